//! Checks the records of qlog files against schemas in CDDL: those beside this file, or those of the drafts.

use std::collections::BTreeMap;

use cddl::ast::CDDL;
use cddl::validator::Validator as _;
use cddl::validator::json::JSONValidator;
use serde_json::Value;

/// Schemas that were put together.
pub(crate) struct Schema {
    text: String,
    rules: Vec<String>,
    /// The whole, for each rule that a value was checked against: the library checks against the first one.
    parsed: BTreeMap<String, CDDL<'static>>,
}

impl Schema {
    /// The schema in some texts: CDDL, or drafts in Markdown with blocks of it.
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let text: String = texts.into_iter().map(|text| cddl_of(text) + "\n").collect();
        let text = anchored(&unwrapped(&text));
        let rules = text.lines().filter_map(|line| line.split_once(" =")).map(|(name, _)| name.to_owned());
        let rules = rules.filter(|name| name.starts_with(char::is_alphabetic)).collect();
        Self { text, rules, parsed: BTreeMap::new() }
    }

    /// The rule for the data of an event, which is named as the event is but for case and punctuation.
    pub(crate) fn rule_of(&self, event: &str) -> Option<String> {
        let plain = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        self.rules.iter().find(|rule| plain(rule) == plain(event)).cloned()
    }

    /// Checks a value against a rule.
    ///
    /// # Errors
    /// The value, and what is wrong with it.
    pub(crate) fn check(&mut self, rule: &str, value: &Value) -> Result<(), String> {
        if !self.parsed.contains_key(rule) {
            let text: &'static str = format!("root = {rule}\n{}", self.text).leak();
            let parsed = cddl::parser::cddl_from_str(text, true).map_err(|e| format!("the schema: {e}"))?;
            self.parsed.insert(rule.to_owned(), parsed);
        }
        let mut validator = JSONValidator::new(&self.parsed[rule], value.clone(), None);
        validator.validate().map_err(|error| format!("{rule}: {value}\n{error}"))
    }

    /// Checks all records of a file, and returns how often each event occurs.
    ///
    /// # Errors
    /// The first record that is not as the schema has it.
    pub(crate) fn check_file(&mut self, file: &[u8]) -> Result<BTreeMap<String, u64>, String> {
        let text = std::str::from_utf8(file).map_err(|error| error.to_string())?;
        let mut seen = BTreeMap::new();
        for (number, record) in text.split('\u{1e}').skip(1).enumerate() {
            let value: Value = serde_json::from_str(record).map_err(|error| error.to_string())?;
            if number == 0 {
                self.check("QlogFileSeq", &value)?;
                continue;
            }
            let name = value["name"].as_str().ok_or_else(|| format!("no name: {value}"))?;
            let is_known = |key: &String| matches!(key.as_str(), "time" | "name" | "tuple" | "data");
            let keys_known = value.as_object().is_some_and(|object| object.keys().all(is_known));
            let tuple = value.get("tuple").is_none_or(Value::is_string);
            if !value["time"].is_f64() || value.get("data").is_none() || !keys_known || !tuple {
                return Err(format!("not as an event is: {value}"));
            }
            let rule = self.rule_of(name).ok_or_else(|| format!("{name} is not in the schema"))?;
            self.check(&rule, &value["data"])?;
            *seen.entry(name.to_owned()).or_default() += 1;
        }
        Ok(seen)
    }
}

/// The blocks of CDDL in a draft; a text that has none is CDDL itself.
fn cddl_of(text: &str) -> String {
    const BEGIN: &str = "~~~ cddl";
    if !text.contains(BEGIN) {
        return text.to_owned();
    }
    let blocks = text.split(BEGIN).skip(1);
    blocks.map(|block| block.split("\n~~~").next().unwrap_or_default()).collect()
}

/// Puts the fields of a map in the place where another map takes them over (RFC 8610 §3.7), which the library does not.
fn unwrapped(text: &str) -> String {
    let mut out = text.to_owned();
    while let Some(at) = out.find('~') {
        let name: String = out[at + 1..].chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        let rule = format!("{name} = {{");
        let start = out.find(&rule).map_or(out.len(), |start| start + rule.len());
        let fields = out[start..].split('}').next().unwrap_or_default().to_owned();
        out.replace_range(at..=at + name.len(), &fields);
    }
    out
}

/// Regular expressions are to match the whole text (RFC 8610 §3.8.3); to the library they are to occur in it.
fn anchored(text: &str) -> String {
    let mut parts = text.split(".regexp \"");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once('"').unwrap_or((part, ""));
        out.push_str(&format!(".regexp \"^({expression})$\"{rest}"));
    }
    out
}
