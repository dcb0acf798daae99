//! Priorities of responses (RFC 9218).

/// How soon a response is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Priority {
    /// From 0, the most urgent, to 7; 3 if nothing is said.
    pub urgency: u8,
    /// Whether parts of the response are of use before all of it is there.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Reads the value of a `priority` field or of a PRIORITY_UPDATE frame. Parameters that are unknown, of a wrong type or
    /// out of range are ignored (RFC 9218 §4), and of what is no list of parameters nothing is taken.
    #[must_use]
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in members(value) {
            // Parameters of a parameter mean nothing here.
            let member = member.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            match member {
                [b'u', b'=', urgency @ b'0'..=b'7'] => priority.urgency = urgency - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }

    /// The value that says this. Defaults are left out.
    #[must_use]
    pub fn encode(self) -> String {
        let mut members = Vec::new();
        if self.urgency != Self::default().urgency {
            members.push(format!("u={}", self.urgency.min(7)));
        }
        if self.incremental {
            members.push("i".to_owned());
        }
        members.join(", ")
    }
}

/// The members of a dictionary (RFC 9651 §3.2). Commas in strings separate none.
fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut is_string, mut is_escaped) = (false, false);
    value.split(move |byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b',' => return !is_string,
            _ => {}
        }
        false
    })
}

#[cfg(test)]
mod tests;
