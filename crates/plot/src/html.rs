//! What the pages have in common: one file with the chart library, the style and the data in it.

use serde::Serialize;

const LIBRARY: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
const LIBRARY_STYLE: &str = include_str!("../assets/uplot/uPlot.min.css");
const LICENSE: &str = include_str!("../assets/uplot/LICENSE");
const STYLE: &str = include_str!("../assets/style.css");
const COMMON: &str = include_str!("../assets/common.js");

/// A page with this data and the script that draws it.
pub(crate) fn page(title: &str, data: &impl Serialize, script: &str) -> String {
    let title = escaped(title);
    let data = json(data);
    let license = LICENSE.trim();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\n\
         <title>{title}</title>\n<style>\n{LIBRARY_STYLE}\n{STYLE}</style>\n</head>\n<body>\n\
         <noscript>The charts are drawn by a script, which this browser does not run.</noscript>\n\
         <main id=\"page\"></main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n/*\n{license}\n*/\n{LIBRARY}\n</script>\n<script>\n\"use strict\";\n{COMMON}\n{script}</script>\n\
         </body>\n</html>\n"
    )
}

/// JSON that can stand in a script element: no text in it can end that.
fn json(data: &impl Serialize) -> String {
    let text = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
