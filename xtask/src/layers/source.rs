//! Reads Rust sources as far as the layers need it: which modules a file has, and which paths into its own crate it names.
//!
//! A few kinds of tokens are enough for that. What stands behind `#[cfg(test)]` is left out: tests may use everything.

/// A piece of source text that counts, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    line: usize,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Word(String),
    /// `::`
    Separator,
    Mark(char),
}

/// A path that begins with `crate`, `self` or `super`, or in a `use` with anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedPath {
    pub(super) line: usize,
    pub(super) segments: Vec<String>,
    /// The name under which a `use` brings it in, if it is another one than the last segment.
    pub(super) alias: Option<String>,
}

/// What the layers need to know of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// The modules that stand in files of their own, in the order of their declarations.
    pub(super) modules: Vec<String>,
    /// The paths into the own crate, those of `use` included.
    pub(super) paths: Vec<NamedPath>,
    /// All that `use` brings in, of other crates, too.
    pub(super) uses: Vec<NamedPath>,
}

impl Source {
    /// Reads the text of a file.
    pub(super) fn read(text: &str) -> Self {
        let mut reader = Reader { tokens: tokens(text), at: 0 };
        let mut source = Self::default();
        while let Some(token) = reader.peek(0).cloned() {
            match &token.kind {
                Kind::Mark('#') if reader.is_test_attribute() => reader.skip_item(),
                Kind::Word(word) if word == "mod" && reader.is_mark(2, ';') => {
                    source.modules.extend(reader.word(1).map(str::to_owned));
                    reader.at += 3;
                }
                Kind::Word(word) if word == "use" => {
                    reader.at += 1;
                    let first = source.uses.len();
                    reader.tree(&mut Vec::new(), &mut source.uses);
                    let own = source.uses[first..].iter().filter(|path| is_own(&path.segments[0]));
                    source.paths.extend(own.cloned());
                }
                Kind::Word(word) if is_own(word) && reader.is_separator(1) && !reader.follows_separator() => {
                    reader.tree(&mut Vec::new(), &mut source.paths);
                }
                _ => reader.at += 1,
            }
        }
        source
    }
}

fn is_own(segment: &str) -> bool {
    matches!(segment, "crate" | "self" | "super")
}

/// Walks along the tokens of a file.
struct Reader {
    tokens: Vec<Token>,
    at: usize,
}

impl Reader {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn word(&self, ahead: usize) -> Option<&str> {
        match &self.peek(ahead)?.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is_mark(&self, ahead: usize, mark: char) -> bool {
        self.peek(ahead).is_some_and(|token| token.kind == Kind::Mark(mark))
    }

    fn is_separator(&self, ahead: usize) -> bool {
        self.peek(ahead).is_some_and(|token| token.kind == Kind::Separator)
    }

    /// Whether the word here belongs to a path that began before it.
    fn follows_separator(&self) -> bool {
        self.at > 0 && self.tokens[self.at - 1].kind == Kind::Separator
    }

    /// Whether `#[cfg(test)]` stands here.
    fn is_test_attribute(&self) -> bool {
        self.is_mark(1, '[')
            && self.word(2) == Some("cfg")
            && self.is_mark(3, '(')
            && self.word(4) == Some("test")
            && self.is_mark(5, ')')
    }

    /// Skips an item with its attributes. It ends with a semicolon, a comma, or a block that closes. Where that is
    /// too soon, more is read than need be, and never less.
    fn skip_item(&mut self) {
        while self.is_mark(0, '#') {
            self.at += 1;
            self.skip_group();
        }
        if self.word(0) == Some("pub") {
            self.at += 1;
            if self.is_mark(0, '(') {
                self.skip_group();
            }
        }
        let imports = self.word(0) == Some("use");
        while let Some(Token { kind, .. }) = self.peek(0) {
            match kind {
                Kind::Mark(';' | ',') => {
                    self.at += 1;
                    return;
                }
                Kind::Mark('{') => {
                    self.skip_group();
                    if !imports {
                        return;
                    }
                }
                Kind::Mark('(' | '[') => self.skip_group(),
                Kind::Mark(')' | ']' | '}') => return,
                _ => self.at += 1,
            }
        }
    }

    /// Skips from an opening bracket to behind the one that closes it.
    fn skip_group(&mut self) {
        let mut depth = 0usize;
        while let Some(Token { kind, .. }) = self.peek(0) {
            match kind {
                Kind::Mark('(' | '[' | '{') => depth += 1,
                Kind::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Reads a path, or all paths of a tree as `use` has them, below `prefix`.
    fn tree(&mut self, prefix: &mut Vec<String>, found: &mut Vec<NamedPath>) {
        let depth = prefix.len();
        if self.is_separator(0) {
            self.at += 1;
        }
        while let Some(Token { line, kind }) = self.peek(0).cloned() {
            match kind {
                Kind::Word(word) => prefix.push(word),
                Kind::Mark('*') => prefix.push("*".to_owned()),
                Kind::Mark('{') => {
                    self.branches(prefix, found);
                    break;
                }
                // A path that goes on with the types of a generic: `crate::a::<T>`.
                _ => break,
            }
            self.at += 1;
            if self.is_separator(0) && !self.is_mark(1, '<') {
                self.at += 1;
                continue;
            }
            let alias = (self.word(0) == Some("as")).then(|| self.word(1).map(str::to_owned)).flatten();
            if alias.is_some() {
                self.at += 2;
            }
            found.push(NamedPath { line, segments: prefix.clone(), alias });
            break;
        }
        prefix.truncate(depth);
    }

    /// Reads the branches of a tree, which stand in braces.
    fn branches(&mut self, prefix: &mut Vec<String>, found: &mut Vec<NamedPath>) {
        self.at += 1;
        while self.peek(0).is_some() && !self.is_mark(0, '}') {
            let before = self.at;
            self.tree(prefix, found);
            // What is no path is skipped, so that every round goes on.
            if self.is_mark(0, ',') || self.at == before {
                self.at += 1;
            }
        }
        self.at += 1;
    }
}

/// The tokens of a text, without its comments and literals.
fn tokens(text: &str) -> Vec<Token> {
    let mut rest = text;
    let mut line = 1;
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (len, kind) = next_token(rest, first);
        tokens.extend(kind.map(|kind| Token { line, kind }));
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    tokens
}

/// The length of what stands at the beginning of `rest`, and the token that it is, if it is one.
fn next_token(rest: &str, first: char) -> (usize, Option<Kind>) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), None);
    }
    if let Some(len) = raw_string(rest) {
        return (len, None);
    }
    match first {
        '"' => (string(rest), None),
        '\'' => (character_or_lifetime(rest), None),
        ':' if rest.starts_with("::") => (2, Some(Kind::Separator)),
        _ if first.is_whitespace() => (first.len_utf8(), None),
        _ if first.is_alphanumeric() || first == '_' => {
            let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (len, Some(Kind::Word(rest[..len].to_owned())))
        }
        _ => (first.len_utf8(), Some(Kind::Mark(first))),
    }
}

/// The length of a comment between `/*` and `*/`, which may hold others.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of a raw string, as `r#"..."#` or `br"..."`, if one stands here.
fn raw_string(rest: &str) -> Option<usize> {
    let start =
        rest.strip_prefix("br").or_else(|| rest.strip_prefix("cr")).or_else(|| rest.strip_prefix('r'))?;
    let hashes = start.find(|c| c != '#')?;
    let body = start[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let len = body.find(&end)? + end.len();
    Some(rest.len() - body.len() + len)
}

/// The length of a string, quotes included.
fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of `'a'`, `'\n'` or `'lifetime`.
fn character_or_lifetime(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    let Some((at, first)) = chars.next() else { return rest.len() };
    if first == '\\' {
        let close = rest[at + 2..].find('\'');
        return close.map_or(rest.len(), |close| at + 2 + close + 1);
    }
    match chars.next() {
        Some((close, '\'')) => close + 1,
        // The name of a lifetime is read as a word, which begins no path.
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
