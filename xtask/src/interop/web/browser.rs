//! A page in Chromium without a window: the page itself tells what it got and how, and a picture is taken.

use std::collections::BTreeMap;
use std::fs;

use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::{Peer, Scene, site};
use crate::Result;
use crate::process::Process;

/// What belongs to the page besides the files that its script fetches.
const PARTS: [&str; 6] = ["", "style.css", site::COMPRESSED, "photograph.png", "drawing.svg", "blocks.ttf"];
/// What the style sheet says.
const BACKGROUND: &str = "rgb(236, 243, 248)";
/// 26 letters of the font of the page, each half an em of 32 pixels wide.
const TEXT_WIDTH: f64 = 26.0 * 16.0;
/// The sizes of the pictures, in pixels.
const PHOTOGRAPH: [u64; 2] = [1100, 815];
const DRAWING: [u64; 2] = [160, 160];
/// What a picture of the page has at least, in bytes: an empty one has less.
const PICTURE_BYTES_MIN: usize = 50_000;

/// Shows the page and judges what the browser made of it.
pub(super) fn show(scene: &Scene<'_>) -> Result<()> {
    let picture = scene.dir.join("page.png");
    let authority = scene.url.trim_start_matches("https://").trim_end_matches('/');
    let key = base64(digest(&SHA256, &scene.stage.certificates.short.public_key).as_ref());
    let mut command = scene.stage.programs.chromium()?;
    // Without a sandbox, since it only opens a page that was made here, and may be run by root.
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]);
    // It talks to nobody else.
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.arg(format!("--user-data-dir={}", scene.dir.join("profile").display()));
    // Else it begins over TCP, and takes no certificates of an authority of ours.
    command.arg(format!("--origin-to-force-quic-on={authority}"));
    command.arg(format!("--ignore-certificate-errors-spki-list={key}"));
    // Its time stands still while something is on its way.
    command.args(["--virtual-time-budget=20000", "--window-size=1000,1000", "--dump-dom"]);
    command.arg(format!("--screenshot={}", picture.display())).arg(&scene.url);
    let finished = scene.finish(Process::start(command, &scene.dir, "client")?)?;
    if !finished.status.success() {
        return Err(format!("the browser failed: {}", finished.complaint()).into());
    }
    let bytes = fs::read(&picture).map_err(|error| format!("there is no picture of the page: {error}"))?;
    let report = report(&finished.stdout)
        .ok_or_else(|| format!("the page tells nothing: {}", finished.complaint()))?;
    judge(scene, &report)?;
    match bytes.len() >= PICTURE_BYTES_MIN {
        true => Ok(()),
        false => Err(format!("the picture has {} bytes: it is empty", bytes.len()).into()),
    }
}

/// What the script of the page has written into it.
fn report(document: &str) -> Option<Value> {
    let (_, rest) = document.split_once("<pre id=\"report\">")?;
    let (text, _) = rest.split_once("</pre>")?;
    serde_json::from_str(&text.replace("&quot;", "\"").replace("&amp;", "&")).ok()
}

fn judge(scene: &Scene<'_>, report: &Value) -> Result<()> {
    if let Some(error) = report["error"].as_str() {
        return Err(format!("the script of the page failed: {error}").into());
    }
    let seen: BTreeMap<&str, &Value> = report["parts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| Some((part["name"].as_str()?.strip_prefix('/')?, part)))
        .collect();
    let files = site::names();
    for name in PARTS.into_iter().chain(files.iter().map(String::as_str)) {
        let part = seen.get(name).ok_or_else(|| format!("the page never got /{name}"))?;
        let file = if name.is_empty() { "index.html" } else { name };
        let bytes = fs::metadata(scene.stage.www.join(file))?.len();
        expect(&format!("the protocol of /{name}"), &part["protocol"], "h3".into())?;
        expect(&format!("the status of /{name}"), &part["status"], 200.into())?;
        expect(&format!("the length of /{name}"), &part["bytes"], bytes.into())?;
        if name == site::COMPRESSED && scene.pair.server != Peer::QuicGo {
            let compressed = fs::metadata(scene.stage.www.join(format!("{name}.gz")))?.len();
            expect(&format!("what was sent of /{name}"), &part["sent"], compressed.into())?;
        }
    }
    for name in &files {
        let content = fs::read(scene.stage.www.join(name))?;
        let fetched = report["files"].as_array().into_iter().flatten().find(|file| file["name"] == **name);
        let fetched = fetched.ok_or_else(|| format!("the script never got {name}"))?;
        let wanted: String =
            digest(&SHA256, &content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        expect(&format!("the digest of {name}"), &fetched["sha256"], wanted.into())?;
    }
    for (id, [width, height]) in [("photograph", PHOTOGRAPH), ("drawing", DRAWING)] {
        expect(&format!("the width of the {id}"), &report[id]["width"], width.into())?;
        expect(&format!("the height of the {id}"), &report[id]["height"], height.into())?;
    }
    expect("the background", &report["background"], BACKGROUND.into())?;
    let width = report["textWidth"].as_f64().unwrap_or_default();
    // Browsers lay text out in 64ths of a pixel; another font is off by many pixels.
    match (width - TEXT_WIDTH).abs() < 1.0 {
        true => Ok(()),
        false => Err(format!("the text is {width} pixels wide: its font is another one").into()),
    }
}

fn expect(what: &str, found: &Value, wanted: Value) -> Result<()> {
    match *found == wanted {
        true => Ok(()),
        false => Err(format!("{what} is {found} instead of {wanted}").into()),
    }
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().chain([0, 0].iter()).take(3).fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            // So many digits as bytes, and one.
            let digit = (place <= group.len()).then(|| char::from(DIGITS[bits >> shift & 63]));
            text.push(digit.unwrap_or('='));
        }
    }
    text
}

#[cfg(test)]
mod tests;
