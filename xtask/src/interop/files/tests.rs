use super::*;

#[test]
fn a_missing_a_short_and_a_wrong_file_are_told_apart() {
    let dir = std::env::temp_dir().join(format!("fulmar-xtask-files-{}", std::process::id()));
    let (www, out) = (dir.join("www"), dir.join("out"));
    for dir in [&www, &out] {
        fs::create_dir_all(dir).unwrap();
    }
    let names = ["file".to_owned()];
    let complaint = |content: Option<&[u8]>| {
        if let Some(content) = content {
            fs::write(out.join("file"), content).unwrap();
        }
        compare(&www, &out, &names).err().map(|error| error.to_string())
    };
    fs::write(www.join("file"), b"abcd").unwrap();
    assert!(complaint(None).unwrap().starts_with("file did not arrive"));
    assert_eq!(complaint(Some(b"abc")).as_deref(), Some("file has 3 bytes instead of 4"));
    assert_eq!(complaint(Some(b"abXd")).as_deref(), Some("file differs at byte 2"));
    assert_eq!(complaint(Some(b"abcd")), None);
    fs::remove_dir_all(&dir).unwrap();
}
