//! Puts binary logs with transactions that nobody else has beside the data directory, before that is replaced.
//!
//! They are linked, not copied: it takes no time and no room, and a log that the server has closed never changes. The server gets
//! another identity with its next start: it would give the numbers of what it has lost to other transactions, and whoever still has
//! the former ones would take the two for the same.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::durable::{self, Broken};
use crate::setup::DATA;

/// Where they are put, on the volume.
pub const DIRECTORY: &str = "surplus";
/// What says which transactions these are, beside the logs.
const NOTE: &str = "transactions";
/// The file with the server's identity.
const IDENTITY: &str = "auto.cnf";

/// Why they could not be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveFailure {
    /// A name that leads elsewhere.
    #[error("{0:?} is not the name of a file")]
    Name(String),
    /// A file could not be linked or removed.
    #[error("{path:?} cannot be {act}: {source}")]
    File {
        /// What was tried.
        act: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] Broken),
}

fn failed(act: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> SaveFailure {
    move |source| SaveFailure::File { act, path: path.to_owned(), source }
}

/// Saves these logs of the data directory under a name, with a note. What is there already stays; it can be done again. Without any log
/// there is nothing to save, and only the identity goes.
pub fn save(volume: &Path, name: &str, note: &str, logs: &[String]) -> Result<PathBuf, SaveFailure> {
    let data = volume.join(DATA);
    if logs.is_empty() {
        forget_identity(&data)?;
        return Ok(data);
    }
    let place = volume.join(DIRECTORY).join(plain(name)?);
    std::fs::create_dir_all(&place).map_err(failed("made", &place))?;
    for log in logs {
        let (from, to) = (data.join(plain(log)?), place.join(log));
        match std::fs::hard_link(&from, &to) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            end => end.map_err(failed("linked", &from))?,
        }
    }
    // Last: where it is, the rest is.
    durable::put(&place, NOTE, 0o644, format!("{note}\n").as_bytes())?;
    durable::sync_directory(&volume.join(DIRECTORY))?;
    durable::sync_directory(volume)?;
    forget_identity(&data)?;
    Ok(place)
}

fn forget_identity(data: &Path) -> Result<(), SaveFailure> {
    let file = data.join(IDENTITY);
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        end => end.map_err(failed("removed", &file))?,
    }
    Ok(durable::sync_directory(data)?)
}

fn plain(name: &str) -> Result<&str, SaveFailure> {
    let leads_elsewhere = name.is_empty() || name.starts_with('.') || name.contains('/');
    if leads_elsewhere { Err(SaveFailure::Name(name.to_owned())) } else { Ok(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> tempfile::TempDir {
        let volume = tempfile::tempdir().unwrap();
        let data = volume.path().join(DATA);
        std::fs::create_dir(&data).unwrap();
        for file in ["binlog.000001", "binlog.000002", IDENTITY] {
            std::fs::write(data.join(file), file).unwrap();
        }
        volume
    }

    #[test]
    fn logs_outlive_the_data_directory_and_can_be_saved_again() {
        let volume = volume();
        let logs = ["binlog.000002".to_owned()];
        let place = save(volume.path(), "one", "a:7", &logs).unwrap();
        assert_eq!(save(volume.path(), "one", "a:7", &logs).unwrap(), place);
        assert!(!volume.path().join(DATA).join(IDENTITY).exists(), "the next start would be the same server");
        std::fs::remove_dir_all(volume.path().join(DATA)).unwrap();
        assert_eq!(std::fs::read_to_string(place.join("binlog.000002")).unwrap(), "binlog.000002");
        assert_eq!(std::fs::read_to_string(place.join(NOTE)).unwrap(), "a:7\n");
        assert!(!place.join("binlog.000001").exists());
    }

    #[test]
    fn a_log_that_is_not_there_leaves_the_identity_and_no_note() {
        let volume = volume();
        let error = save(volume.path(), "one", "a:7", &["binlog.000009".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("binlog.000009"), "{error}");
        assert!(volume.path().join(DATA).join(IDENTITY).exists());
        assert!(!volume.path().join(DIRECTORY).join("one").join(NOTE).exists());
    }

    #[test]
    fn without_a_log_only_the_identity_goes() {
        let volume = volume();
        save(volume.path(), "one", "", &[]).unwrap();
        assert!(!volume.path().join(DATA).join(IDENTITY).exists());
        assert!(!volume.path().join(DIRECTORY).exists());
    }

    #[test]
    fn names_do_not_lead_elsewhere() {
        let volume = volume();
        for name in ["", "..", "../x", "a/b", ".hidden"] {
            let log = ["binlog.000001".to_owned()];
            assert!(matches!(save(volume.path(), name, "", &log), Err(SaveFailure::Name(_))), "{name}");
            assert!(matches!(save(volume.path(), "x", "", &[name.to_owned()]), Err(SaveFailure::Name(_))), "{name}");
        }
    }
}
