//! A scenario with other settings: values at paths in its file.

use super::{Goal, Scenario, ScenarioError};

impl Scenario {
    /// The scenario with other settings: `key=value`, where the key is the path in the file, such as
    /// `up.delay_ms` or `connection.0.upload_bytes`, and the value is written as in the file. An entry that has a name can be
    /// named by it, as in `path.A.link.delay_ms`.
    ///
    /// # Errors
    /// The first setting that does not exist or makes no sense; all of them, where only several together make none.
    pub fn with_settings<'a>(
        &self,
        settings: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ScenarioError> {
        let settings: Vec<&str> = settings.into_iter().collect();
        if settings.is_empty() {
            return Ok(self.clone());
        }
        let read = |settings: &[&str], what: &str| self.reparse(&self.changed(settings)?, what);
        let together = read(&settings, &settings.join(", "));
        if together.is_err() {
            for (number, setting) in settings.iter().enumerate() {
                let others = [&settings[..number], &settings[number + 1..]].concat();
                if read(&others, "the others").is_ok() {
                    return read(&settings, setting);
                }
            }
        }
        together
    }

    /// The tables of the file with other settings.
    fn changed(&self, settings: &[&str]) -> Result<toml::Table, ScenarioError> {
        let mut table = self.table()?;
        for setting in settings {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| ScenarioError::new(&self.name, format!("`{setting}` is not `key=value`")))?;
            set_path(&mut table, key.trim(), parse_value(value.trim()))
                .map_err(|message| ScenarioError::new(&self.name, message))?;
        }
        Ok(table)
    }

    /// The scenario with the settings of its `[baseline]`, which goals compare it with.
    ///
    /// # Errors
    /// A setting that does not exist or makes no sense.
    pub fn baseline(&self) -> Result<Option<Self>, ScenarioError> {
        let Some(settings) = &self.file.baseline else { return Ok(None) };
        let mut table = self.table()?;
        table.remove("baseline");
        table.remove("goal");
        for (key, value) in settings {
            set_path(&mut table, key, value.clone())
                .map_err(|message| ScenarioError::about_field(&self.name, &self.text, key, message))?;
        }
        self.reparse(&table, "baseline").map(Some)
    }

    /// The scenario with the classic timers of RFC 9002 at both ends.
    ///
    /// # Errors
    /// The text cannot be read again.
    pub fn with_classic_timers(&self) -> Result<Self, ScenarioError> {
        self.with_settings(["endpoints.timers=classic"])
    }

    pub(super) fn without_goals(&self) -> Result<Self, ScenarioError> {
        let mut table = self.table()?;
        table.remove("goal");
        self.reparse(&table, "other settings")
    }

    pub(super) fn table(&self) -> Result<toml::Table, ScenarioError> {
        self.text.parse().map_err(|error| ScenarioError::parsing(&self.name, &self.text, &error))
    }

    /// Reads a changed table. Its text is written anew and nobody sees it, so a complaint says what was changed and names no line.
    fn reparse(&self, table: &toml::Table, what: &str) -> Result<Self, ScenarioError> {
        let text =
            toml::to_string(table).map_err(|error| ScenarioError::new(&self.name, error.to_string()))?;
        let scenario =
            Self::parse(&format!("{} with {what}", self.name), &text).map_err(ScenarioError::without_line)?;
        Ok(Self { name: self.name.clone(), ..scenario })
    }

    /// The scenario with one of its paths alone.
    ///
    /// # Errors
    /// There is no such path.
    pub fn with_only(&self, path: &str) -> Result<Self, ScenarioError> {
        self.with_settings([format!("only={}", toml::Value::from(path)).as_str()])
    }

    /// The scenario as this goal wants it.
    pub(super) fn of_goal(&self, goal: &Goal) -> Result<Self, ScenarioError> {
        let settings: Vec<String> = goal.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let changed = self.with_settings(settings.iter().map(String::as_str))?;
        let name = settings.iter().fold(self.name.clone(), |name, setting| format!("{name} {setting}"));
        Ok(Self { name, ..changed })
    }
}

/// A value as in a file; what is none is taken as a string, so that `controller=bbr` needs no quotes.
fn parse_value(text: &str) -> toml::Value {
    let table = format!("value = {text}").parse::<toml::Table>().ok();
    let value = table.and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// Sets the value at a path such as `connection.0.streams`, and makes the tables on the way.
fn set_path(table: &mut toml::Table, path: &str, value: toml::Value) -> Result<(), String> {
    let Some((first, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return Ok(());
    };
    let entry = table.entry(first).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    match entry {
        toml::Value::Table(table) => set_path(table, rest, value),
        toml::Value::Array(entries) => {
            let (index, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let count = entries.len();
            let index = index.parse().ok().or_else(|| position_of(entries, index));
            let entry = index.and_then(|index: usize| entries.get_mut(index));
            match entry {
                Some(toml::Value::Table(table)) if !rest.is_empty() => set_path(table, rest, value),
                Some(_) => Err(format!("`{path}` names no field")),
                None => Err(format!("`{path}`: `{first}` has {count} entries, counted from 0")),
            }
        }
        _ => Err(format!("`{path}`: `{first}` is not a table")),
    }
}

/// Where the entry with this name is.
fn position_of(entries: &[toml::Value], name: &str) -> Option<usize> {
    entries.iter().position(|entry| entry.get("name").and_then(toml::Value::as_str) == Some(name))
}
