//! Files that are there whole or not at all, also after the power failed.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A file could not be put in place.
#[derive(Debug, thiserror::Error)]
#[error("{path:?} cannot be {act}: {source}")]
pub struct Broken {
    act: &'static str,
    path: PathBuf,
    source: std::io::Error,
}

fn broken(act: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Broken {
    move |source| Broken { act, path: path.to_owned(), source }
}

/// Writes a file beside its place under a name with a dot, syncs it, renames it, and syncs the directory.
pub fn put(directory: &Path, name: &str, mode: u32, mut content: impl Read) -> Result<(), Broken> {
    let (draft, place) = (directory.join(format!(".{name}")), directory.join(name));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    let mut file = options.open(&draft).map_err(broken("created", &draft))?;
    std::io::copy(&mut content, &mut file).map_err(broken("written", &draft))?;
    file.flush().map_err(broken("written", &draft))?;
    // A draft that somebody else left has the mode that it had, and a new one what the umask left of ours.
    file.set_permissions(std::fs::Permissions::from_mode(mode)).map_err(broken("given its mode", &draft))?;
    file.sync_all().map_err(broken("synced", &draft))?;
    std::fs::rename(&draft, &place).map_err(broken("put in place", &place))?;
    sync_directory(directory)
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), Broken> {
    File::open(directory).and_then(|opened| opened.sync_all()).map_err(broken("synced", directory))
}

/// Makes everything on a file system durable.
pub(crate) fn sync_file_system(of: &Path) -> Result<(), Broken> {
    let opened = File::open(of).map_err(broken("opened", of))?;
    rustix::fs::syncfs(&opened).map_err(std::io::Error::from).map_err(broken("synced", of))
}

/// Copies the running program into a directory, as `windlass`: containers of other images run it from there.
pub fn copy_self(directory: &Path) -> Result<PathBuf, Broken> {
    let own = Path::new("/proc/self/exe");
    let program = File::open(own).map_err(broken("opened", own))?;
    put(directory, "windlass", 0o755, program)?;
    Ok(directory.join("windlass"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_no_draft_stays() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join(".a"), "half of an earlier one").unwrap();
        put(scratch.path(), "a", 0o644, &b"first"[..]).unwrap();
        put(scratch.path(), "a", 0o600, &b"second"[..]).unwrap();
        assert_eq!(std::fs::read_to_string(scratch.path().join("a")).unwrap(), "second");
        let mode = std::fs::metadata(scratch.path().join("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_copy_is_the_running_program_and_can_be_run() {
        let scratch = tempfile::tempdir().unwrap();
        let copy = copy_self(scratch.path()).unwrap();
        assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read("/proc/self/exe").unwrap());
        assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = copy_self(Path::new("/nowhere/at-all")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at-all/.windlass"), "{error}");
    }
}
