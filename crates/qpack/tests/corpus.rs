//! The QPACK corpus, which is not in this repository. `cargo xtask qifs` fetches it and runs these tests; by hand:
//!
//! ```sh
//! git clone https://github.com/qpackers/qifs target/qifs
//! QIFS=target/qifs cargo test --release -p fulmar-qpack --test corpus -- --ignored --nocapture
//! ```

mod qif;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fulmar_qpack::{Decoded, Decoder, DecoderConfig, EncoderConfig, Error, ErrorCode, Field};

use self::qif::{Mode, blocks, encode, lists, without_marks};

/// Where the corpus is: a relative path counts from the root of the repository.
fn corpus() -> PathBuf {
    let dir = std::env::var("QIFS").expect("QIFS names the directory of the corpus");
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(dir)
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap()
}

fn list_files() -> BTreeMap<String, Vec<Vec<Field>>> {
    let files = entries(&corpus().join("qifs"));
    files
        .iter()
        .map(|path| (name(path).trim_end_matches(".qif").to_owned(), lists(&fs::read(path).unwrap())))
        .collect()
}

/// The encoded files of RFC 9204, with the encoder's name, that of the lists, and the mode.
fn encoded_files() -> Vec<(String, String, Mode, Vec<u8>)> {
    let mut files = Vec::new();
    for encoder in entries(&corpus().join("encoded/qpack-05")).iter().filter(|path| path.is_dir()) {
        for path in entries(encoder) {
            let (qif, mode) = Mode::of_file(name(&path)).unwrap();
            files.push((name(encoder).to_owned(), qif.to_owned(), mode, fs::read(&path).unwrap()));
        }
    }
    files
}

fn decoder(mode: Mode, blocked_streams: usize) -> Decoder {
    Decoder::new(DecoderConfig {
        max_table_capacity: mode.capacity,
        blocked_streams,
        ..DecoderConfig::default()
    })
}

/// Decodes a file, with the encoder stream as it comes or all at the end.
fn decode(file: &[u8], decoder: &mut Decoder, late: bool) -> Result<BTreeMap<u64, Vec<Field>>, Error> {
    let mut decoded = BTreeMap::new();
    let mut keep = |stream_id, fields| decoded.insert(stream_id, without_marks(fields));
    let blocks = blocks(file);
    let (streams, sections): (Vec<_>, Vec<_>) =
        blocks.iter().partition(|(stream_id, _)| late && *stream_id == 0);
    for (stream_id, block) in sections.into_iter().chain(streams) {
        if stream_id == 0 {
            decoder.on_encoder_stream(block)?;
            while let Some((stream_id, Decoded::Fields(fields))) = decoder.unblocked()? {
                keep(stream_id, fields);
            }
        } else if let Decoded::Fields(fields) = decoder.decode(stream_id, Bytes::copy_from_slice(block))? {
            keep(stream_id, fields);
        }
    }
    Ok(decoded)
}

/// The instruction that sets a capacity, which is not small.
fn set_capacity(capacity: usize) -> Vec<u8> {
    let rest = capacity - 31;
    vec![0x3f, 0x80 | rest as u8, (rest >> 7) as u8]
}

#[test]
#[ignore = "needs the corpus, which cargo xtask qifs fetches"]
fn all_encodings_of_the_corpus_decode_to_their_inputs() {
    let inputs = list_files();
    let mut count = 0;
    for (encoder, qif, mode, file) in encoded_files() {
        // The file of the examples has the name of another one; examples.rs has the same bytes.
        let Some(input) = inputs.get(&qif) else { continue };
        let what = format!("{encoder} {qif} {mode:?}");
        let mut decoder = decoder(mode, mode.blocked);
        // Some encoders rely on the size of the table that was agreed on, as a draft had it. The RFC begins with none.
        let sets_capacity =
            blocks(&file).iter().find(|block| block.0 == 0).is_none_or(|block| block.1[0] >> 5 == 1);
        if !sets_capacity {
            decoder.on_encoder_stream(&set_capacity(mode.capacity)).unwrap();
        }
        // Some go over the limit of blocked streams, too. In the order of the file none is blocked.
        let decoded = decode(&file, &mut decoder, false);
        let decoded: Vec<_> =
            decoded.unwrap_or_else(|error| panic!("{what}: {error}")).into_values().collect();
        assert_eq!(&decoded, input, "{what}");
        count += 1;
    }
    println!("{count} files decode to their inputs");
    assert!(count >= 500);
}

#[test]
#[ignore = "needs the corpus, which cargo xtask qifs fetches"]
fn the_broken_files_of_the_corpus_are_refused() {
    for path in entries(&corpus().join("encoded/errors")) {
        // They name the entries 0 and 62 of the static table, which a draft did not have, and the RFC has.
        if ["err9", "err10"].contains(&name(&path)) {
            continue;
        }
        let mode = Mode { capacity: 4096, blocked: 100, acknowledged: false };
        let file = fs::read(&path).unwrap();
        let error = decode(&file, &mut decoder(mode, 0), false).expect_err(name(&path));
        let is_stream = blocks(&file).last().is_some_and(|(stream_id, _)| *stream_id == 0);
        let code = if is_stream { ErrorCode::EncoderStreamError } else { ErrorCode::DecompressionFailed };
        assert_eq!(error.code(), code, "{}: {error}", name(&path));
        println!("{}: {error}", name(&path));
    }
}

/// The bytes of all blocks, without the heads that the files add.
fn size(file: &[u8]) -> usize {
    blocks(file).iter().map(|(_, block)| block.len()).sum()
}

/// Whether more streams may have been blocked than the mode allows: where nothing is acknowledged, all that refer to
/// the table.
fn breaks_limit(file: &[u8], mode: Mode) -> bool {
    let with_references =
        blocks(file).iter().filter(|(stream_id, block)| *stream_id != 0 && block[0] != 0).count();
    !mode.acknowledged && with_references > mode.blocked
}

#[test]
#[ignore = "needs the corpus, which cargo xtask qifs fetches"]
fn our_encodings_decode_and_are_small() {
    let inputs = list_files();
    let mut best: BTreeMap<(String, Mode), (usize, String)> = BTreeMap::new();
    for (encoder, qif, mode, file) in encoded_files() {
        if inputs.contains_key(&qif) && !breaks_limit(&file, mode) {
            let size = size(&file);
            let entry = best.entry((qif, mode)).or_insert((usize::MAX, String::new()));
            *entry = std::mem::take(entry).min((size, encoder));
        }
    }
    println!(
        "{:12} {:>5} {:>4} {:>4} {:>8} {:>8} {:>7}  best encoder",
        "input", "table", "blkd", "acks", "ours", "best", "%"
    );
    let (mut ours_all, mut best_all) = (0, 0);
    for ((qif, mode), (best, encoder)) in &best {
        let input = &inputs[qif];
        let file = encode(input, *mode, EncoderConfig::default());
        for late in [false, true].into_iter().filter(|late| !late || mode.blocked > 0 && !mode.acknowledged) {
            let decoded = decode(&file, &mut decoder(*mode, mode.blocked), late).unwrap();
            assert!(decoded.values().eq(input), "{qif} {mode:?}");
        }
        let ours = size(&file);
        let per_cent = 100.0 * ours as f64 / *best as f64;
        let acks = if mode.acknowledged { "yes" } else { "no" };
        println!(
            "{qif:12} {:5} {:4} {acks:>4} {ours:8} {best:8} {per_cent:6.1}%  {encoder}",
            mode.capacity, mode.blocked
        );
        ours_all += ours;
        best_all += best;
        // Where nothing is acknowledged and nothing may block, one entry is sent to see whether it will be.
        assert!(ours <= best + best / 4 + 200, "{qif} {mode:?}: {ours} bytes, {encoder} has {best}");
    }
    println!("all: {ours_all} bytes, the best of each row together {best_all}");
}
