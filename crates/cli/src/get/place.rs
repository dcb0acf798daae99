//! Where `fulmar get` writes what it fetches.

use std::path::PathBuf;

use super::Item;
use crate::args::GetArgs;
use crate::failure::Failure;

/// Where to write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Stdout,
    Directory(PathBuf),
    File(PathBuf),
}

impl Place {
    /// What `-o` names. Without it, what answers an upload gets no name: it could be that of the file that was sent. And what follows its
    /// head follows it on standard output.
    pub(super) fn of(args: &GetArgs) -> Result<Self, Failure> {
        let out = args.out_dir();
        let is_shown = args.http.sends() || (args.http.include && args.http.continue_at.is_none());
        let place = match out {
            _ if args.out.is_none() && is_shown && !args.http.remote_name => Self::Stdout,
            _ if out.as_os_str() == "-" => Self::Stdout,
            _ if out.is_dir() => Self::Directory(out.to_owned()),
            // Only what ends in a separator is surely meant to be one.
            _ if out.to_string_lossy().ends_with('/') => {
                return Err(Failure::Usage(format!("{} is no directory", out.display())));
            }
            _ => Self::File(out.to_owned()),
        };
        match place {
            Self::File(_) if args.urls.len() > 1 => {
                Err(Failure::Usage(format!("several files need a directory, and {} is none", out.display())))
            }
            Self::File(_) | Self::Stdout if args.http.remote_name => {
                Err(Failure::Usage("-O takes the name of the URL, and -o names another one".to_owned()))
            }
            Self::File(_) if args.http.head => {
                Err(Failure::Usage("-I prints the head of the response, and -o names a file".to_owned()))
            }
            Self::Stdout if args.http.continue_at.is_some() => {
                Err(Failure::Usage("-C goes on with a file, and -o - writes none".to_owned()))
            }
            place => Ok(place),
        }
    }

    /// The file for an item; none for standard output.
    pub(super) fn file(&self, item: &Item) -> Option<PathBuf> {
        match self {
            Self::Stdout => None,
            Self::Directory(directory) => Some(directory.join(&item.name)),
            Self::File(file) => Some(file.clone()),
        }
    }
}
