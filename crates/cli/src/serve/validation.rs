//! How clients prove their addresses, as the command line says.

use std::fs;
use std::path::{Path, PathBuf};

use fulmar::{AddressValidation, RetryPolicy, TokenKeys};
use tracing::{info, warn};

use crate::args::{RetryWhen, ServeArgs};
use crate::failure::Failure;

/// The policy, and the file of keys as it was last read.
#[derive(Debug)]
pub(super) struct Validation {
    retry: RetryPolicy,
    file: Option<PathBuf>,
    text: String,
    keys: Option<TokenKeys>,
}

impl Validation {
    /// Fails if there is a file of keys that cannot be read or holds none.
    pub(super) fn from_args(args: &ServeArgs) -> Result<Self, Failure> {
        let retry = match args.retry {
            RetryWhen::Always => RetryPolicy::Always,
            RetryWhen::Auto => RetryPolicy::default(),
            RetryWhen::Never => RetryPolicy::Never,
        };
        let (mut text, mut keys) = (String::new(), None);
        if let Some(file) = &args.token_keys {
            text =
                fs::read_to_string(file).map_err(Failure::io(format!("cannot read {}", file.display())))?;
            keys = Some(TokenKeys::parse(&text).map_err(|error| Failure::Usage(no_keys(file, &error)))?);
        }
        Ok(Self { retry, file: args.token_keys.clone(), text, keys })
    }

    /// The keys of tokens.
    pub(super) fn keys(&self) -> Option<TokenKeys> {
        self.keys.clone()
    }

    pub(super) fn config(&self) -> AddressValidation {
        AddressValidation { retry: self.retry, keys: self.keys.clone(), ..AddressValidation::default() }
    }

    /// Looks at the file again. If it cannot be used, the keys stay as they are.
    pub(super) fn has_changed(&mut self) -> bool {
        let Some(file) = &self.file else { return false };
        let text = match fs::read_to_string(file) {
            Ok(text) if text != self.text => text,
            Ok(_) => return false,
            Err(error) => {
                warn!("cannot read {}: {error}", file.display());
                return false;
            }
        };
        let keys = TokenKeys::parse(&text);
        self.text = text;
        match keys {
            Ok(keys) => {
                info!("new keys from {}", file.display());
                self.keys = Some(keys);
                true
            }
            Err(error) => {
                warn!("{}", no_keys(file, &error));
                false
            }
        }
    }
}

fn no_keys(file: &Path, error: &fulmar::TokenKeysError) -> String {
    format!("{} is no file of keys: {error}", file.display())
}
