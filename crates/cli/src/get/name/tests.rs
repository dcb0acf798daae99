use super::*;

fn names(urls: &[&str]) -> Result<Vec<String>, String> {
    let urls: Vec<Url> = urls.iter().map(|text| Url::parse(text).expect(text)).collect();
    local_names(&urls)
}

#[test]
fn a_file_is_named_by_its_last_segment() {
    let urls = ["https://h/x/a.bin?v=1", "https://h/b%20c", "https://h/%C3%A9", "https://h/caf%e9%20"];
    assert_eq!(
        names(&urls).expect("names"),
        ["a.bin", "b c", "é", "caf%e9%20"],
        "what is no text stays encoded"
    );
}

#[test]
fn equal_names_are_told_apart() {
    let urls = ["https://h/a", "https://h/x/a", "https://h/a.2", "https://i/a", "https://h/a"];
    let names = names(&urls).expect("names");
    assert_eq!(names, ["a", "a.2", "a.2.2", "a.3", "a.4"]);
}

#[test]
fn what_is_no_name_is_refused() {
    let long = format!("https://h/{}", "x".repeat(256));
    for url in [
        "https://h",
        "https://h/",
        "https://h/a/",
        "https://h/a/..",
        "https://h/.",
        "https://h/%2e%2E",
        "https://h/a%2fb",
        "https://h/a%5Cb",
        "https://h/a%00",
        "https://h/a%1b",
        "https://h/%",
        "https://h/c:x",
        &long,
    ] {
        let error = names(&[url]).expect_err(url);
        assert!(error.contains("names no file"), "{error}");
    }
}
