//! Files of one JSON text that is broken: its writer was interrupted, or makes mistakes.

use serde_json::Value;

/// The description of the first trace and the texts of its events, where each event begins a line; `None` if this does not look
/// like such a file.
pub(super) fn salvage(text: &str) -> Option<(Value, impl Iterator<Item = Option<Value>>)> {
    let at = text.find("\"events\"")?;
    let begin = at + text[at..].find('[')? + 1;
    // What surrounds the events is whole when the list of them is closed.
    let file: Value = serde_json::from_str(&format!("{}]}}]}}", &text[..begin])).ok()?;
    let trace = file.get("traces")?.get(0)?.clone();
    Some((trace, lines(&text[begin..]).map(event)))
}

/// Parts that each begin where a line begins with a bracket.
fn lines(mut rest: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if rest.trim().is_empty() {
            return None;
        }
        let mut brackets = rest.match_indices(['[', '{']).map(|(at, _)| at);
        let end = brackets.find(|at| rest[..*at].ends_with('\n') && !rest[..*at].trim().is_empty());
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(part)
    })
}

/// An event, which commas, or the ends of what surrounds all events, may follow.
fn event(part: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(part).into_iter().next()?.ok()
}
