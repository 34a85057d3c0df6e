//! Where slow results are kept, and how they get there whole.
//!
//! Everything under the root can be deleted at any time and is keyed by what it was made from. A
//! result appears under its final name only when it is complete, so an interrupted build leaves
//! nothing that could be mistaken for one.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// The cache directory: `$XDG_CACHE_HOME/windlass`, or `~/.cache/windlass`.
pub fn root() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(path) if Path::new(&path).is_absolute() => PathBuf::from(path),
        _ => PathBuf::from(
            std::env::var_os("HOME")
                .context("neither XDG_CACHE_HOME nor HOME is set: set one, the lab keeps its cache there")?,
        )
        .join(".cache"),
    };
    Ok(base.join("windlass"))
}

/// Holds a lock file until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Waits for the lock file at `path`. `waiting` is called once when somebody else holds it.
pub(crate) async fn lock(path: PathBuf, waiting: impl FnOnce() + Send + 'static) -> Result<Lock> {
    tokio::task::spawn_blocking(move || {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot open the lock file {}", path.display()))?;
        if file.try_lock().is_err() {
            waiting();
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        Ok(Lock { _file: file })
    })
    .await
    .context("the task that waits for a lock ended early")?
}

/// A digest over named parts, short enough for a file name.
#[derive(Default)]
pub(crate) struct Key(Sha256);

impl Key {
    /// Adds one part; name and length are part of the digest, so parts cannot run into each other.
    pub(crate) fn add(mut self, name: &str, bytes: &[u8]) -> Self {
        self.0.update(name.len().to_le_bytes());
        self.0.update(name);
        self.0.update(bytes.len().to_le_bytes());
        self.0.update(bytes);
        self
    }

    pub(crate) fn finish(self) -> String {
        hex(&self.0.finalize())[..16].to_owned()
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The temporary sibling under which a result is built before it gets its name.
pub(crate) fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// Removes a file or a directory tree; that it is not there is fine.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let outcome = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match outcome {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_run_into_each_other_have_different_keys() {
        let left = Key::default().add("a", b"bc").add("d", b"").finish();
        let right = Key::default().add("a", b"b").add("cd", b"").finish();
        assert_ne!(left, right);
    }

    #[test]
    fn a_partial_result_is_a_sibling() {
        assert_eq!(partial(Path::new("/c/images/x.tar")), Path::new("/c/images/x.tar.partial"));
    }
}
