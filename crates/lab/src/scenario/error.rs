//! What is wrong with a scenario, and where.

use std::fmt;

use thiserror::Error;

/// Why a scenario cannot be used. Prints as `FILE:LINE: [TABLE] FIELD: MESSAGE`, as far as these are known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ScenarioError {
    /// The file, or the name of the scenario.
    pub origin: String,
    /// Where in the text; `None` if the complaint is about no place in particular.
    pub place: Option<Place>,
    /// What is wrong, in a sentence.
    pub message: String,
}

/// A place in a scenario file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The line, counted from 1.
    pub line: usize,
    /// The table that the line is in, with its brackets; empty at the top.
    pub table: String,
    /// The field that the line sets; empty on the header of a table.
    pub field: String,
}

impl ScenarioError {
    pub(crate) fn new(origin: &str, message: impl Into<String>) -> Self {
        Self { origin: origin.to_owned(), place: None, message: message.into() }
    }

    /// A complaint of the TOML parser, or of a value's own check.
    pub(crate) fn parsing(origin: &str, text: &str, error: &toml::de::Error) -> Self {
        let message = error.message();
        // What the whole file lacks is on no line of it.
        let is_lack = |start| start == 0 && message.starts_with("missing field");
        let start = error.span().map(|span| span.start).filter(|&start| !is_lack(start));
        let place = start.map(|start| Place::at(text, start));
        Self { origin: origin.to_owned(), place, message: message.to_owned() }
    }

    /// The same about a text that nobody sees: with table and field, but no line.
    pub(crate) fn without_line(self) -> Self {
        let Some(Place { table, field, .. }) = self.place else { return self };
        let parts: Vec<String> = [table, field].into_iter().filter(|part| !part.is_empty()).collect();
        let message = match parts.is_empty() {
            true => self.message,
            false => format!("{}: {}", parts.join(" "), self.message),
        };
        Self { place: None, message, ..self }
    }

    /// A complaint about a field, wherever the text sets it first.
    pub(crate) fn about_field(origin: &str, text: &str, field: &str, message: impl Into<String>) -> Self {
        let sets = |line: &str| {
            line.trim_start().strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        Self::about_line(origin, text, sets, message)
    }

    /// A complaint about a table with this header, the one with the given number, counted from 0.
    pub(crate) fn about_table(
        origin: &str,
        text: &str,
        header: &str,
        number: usize,
        message: impl Into<String>,
    ) -> Self {
        let mut left = number;
        let is_it = |line: &str| {
            let matches = line.trim() == header;
            let found = matches && left == 0;
            left = left.saturating_sub(usize::from(matches));
            found
        };
        Self::about_line(origin, text, is_it, message)
    }

    fn about_line(
        origin: &str,
        text: &str,
        is_it: impl FnMut(&str) -> bool,
        message: impl Into<String>,
    ) -> Self {
        let line = text.lines().position(is_it);
        let offset = |line| text.lines().take(line).map(|line| line.len() + 1).sum();
        let place = line.map(|line| Place::at(text, offset(line)));
        Self { place, ..Self::new(origin, message) }
    }
}

impl Place {
    fn at(text: &str, offset: usize) -> Self {
        // A parser may point behind the last character.
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count();
        let is_header = |line: &&str| line.trim_start().starts_with('[');
        let content = text.lines().nth(line).unwrap_or_default();
        let table = text.lines().take(line + 1).filter(is_header).last().unwrap_or_default();
        let field = match content.split_once('=') {
            Some((key, _)) if !is_header(&content) => key.trim(),
            _ => "",
        };
        Self { line: line + 1, table: table.trim().to_owned(), field: field.to_owned() }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.origin)?;
        if let Some(place) = &self.place {
            write!(f, "{}:", place.line)?;
            let parts = [&place.table, &place.field].map(String::as_str);
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            if !parts.is_empty() {
                write!(f, " {}:", parts.join(" "))?;
            }
        }
        write!(f, " {}", self.message)
    }
}
