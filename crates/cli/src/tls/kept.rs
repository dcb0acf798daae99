//! What a server keeps from one start to the next, in a directory of its user: a key and the certificate that it has signed itself,
//! so that a pinned fingerprint holds, and a secret for stateless resets, so that the clients of a server that was killed
//! learn of it when it is back.

use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::tls::parse_hex32;

/// The directory below that of the user's state.
const DIR: &str = "fulmar";
const KEY: &str = "key.pem";
const CERTIFICATE: &str = "cert.pem";
const RESET_SECRET: &str = "reset.key";

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    Owner,
    Everybody,
}

/// A directory with the three files; they are made as they are asked for. Errors say in words what is wrong.
#[derive(Debug, Clone)]
pub(super) struct KeptFiles {
    dir: PathBuf,
}

impl KeptFiles {
    /// Opens `dir`, or the one in the state directory of the user (XDG Base Directory Specification), and makes it if it is missing.
    ///
    /// # Errors
    /// If it cannot be made, or the environment tells of none.
    pub(super) fn open(dir: Option<&Path>) -> Result<Self, String> {
        let dir = match dir {
            Some(dir) => dir.to_owned(),
            None => default_dir().ok_or("the environment names no home directory (HOME, XDG_STATE_HOME)")?,
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&dir).map_err(|error| cannot("make", &dir)(error))?;
        Ok(Self { dir })
    }

    /// The private key, PEM; `make` makes it the first time.
    pub(super) fn key(&self, make: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
        self.file(KEY, Readers::Owner, make)
    }

    /// The certificate, PEM.
    pub(super) fn certificate(
        &self,
        make: impl FnOnce() -> Result<String, String>,
    ) -> Result<String, String> {
        self.file(CERTIFICATE, Readers::Everybody, make)
    }

    /// The secret of stateless resets.
    pub(super) fn reset_secret(
        &self,
        make: impl FnOnce() -> Result<[u8; 32], String>,
    ) -> Result<[u8; 32], String> {
        let digits = |secret: [u8; 32]| secret.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let make = || make().map(|secret| digits(secret) + "\n");
        let digits = self.file(RESET_SECRET, Readers::Owner, make)?;
        let unusable = || format!("{} holds no 64 hexadecimal digits", self.path(RESET_SECRET).display());
        parse_hex32(digits.trim()).ok_or_else(unusable)
    }

    /// Where the key is, for messages.
    pub(super) fn key_path(&self) -> PathBuf {
        self.path(KEY)
    }

    /// Where the certificate is, for messages.
    pub(super) fn certificate_path(&self) -> PathBuf {
        self.path(CERTIFICATE)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// What a file holds. A missing one is made whole under another name first and never replaces one: of two programs that start
    /// at once both get what the quicker one has made.
    fn file(
        &self,
        name: &str,
        readers: Readers,
        make: impl FnOnce() -> Result<String, String>,
    ) -> Result<String, String> {
        let path = self.path(name);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            result => return result.map_err(cannot("read", &path)),
        }
        let temporary = self.dir.join(format!(".{name}.{:016x}", RandomState::new().hash_one(name)));
        let linked = write_new(&temporary, readers, &make()?).and_then(|()| fs::hard_link(&temporary, &path));
        let _ = fs::remove_file(&temporary);
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(cannot("write", &path)(error)),
            _ => fs::read_to_string(&path).map_err(cannot("read", &path)),
        }
    }
}

fn write_new(path: &Path, readers: Readers, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(
        &mut options,
        if readers == Readers::Owner { 0o600 } else { 0o644 },
    );
    #[cfg(not(unix))]
    let _ = readers;
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    // A name must not outlive what it names when the machine goes down.
    file.sync_all()
}

fn cannot<'a>(what: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> String + 'a {
    move |error| format!("cannot {what} {}: {error}", path.display())
}

fn default_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join(DIR))
}

#[cfg(test)]
mod tests;
