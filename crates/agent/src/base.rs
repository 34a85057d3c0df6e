//! Where the server and what belongs to it are, in an image that somebody else built.
//!
//! mysqld finds its messages, and without them it says nothing useful, below the base directory. Packages of distributions have it at
//! `/usr`, archives at `/usr/local/mysql`, others elsewhere; so it is looked for, first around the server itself.

use std::path::{Path, PathBuf};

/// Where the base directory is when it is not around the server.
const USUAL: [&str; 2] = ["/usr/local/mysql", "/usr"];

/// Something of the image was not found.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// No server.
    #[error("no program {0:?} in PATH: the image of container \"mysqld\" must have the server, or --mysqld say where it is")]
    Server(String),
    /// No messages around it.
    #[error("no base directory around {server:?}: none of {tried:?} has share/…/english/errmsg.sys; say --base-dir")]
    Base {
        /// The server.
        server: PathBuf,
        /// Where messages were looked for.
        tried: Vec<PathBuf>,
    },
}

/// The file that a name means: itself when it has a slash, else the first one of that name in these directories.
pub(crate) fn find_program(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// The directories of PATH.
pub(crate) fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// The base directory of this server.
pub(crate) fn find_base(server: &Path) -> Result<PathBuf, NotFound> {
    // The server may be a link into the directory of its version.
    let real = std::fs::canonicalize(server).unwrap_or_else(|_| server.to_owned());
    let around = [server, &real].into_iter().filter_map(|path| Some(path.parent()?.parent()?.to_owned()));
    let mut tried: Vec<PathBuf> = Vec::new();
    for candidate in around.chain(USUAL.map(PathBuf::from)) {
        if tried.contains(&candidate) {
            continue;
        }
        if has_messages(&candidate) {
            return Ok(candidate);
        }
        tried.push(candidate);
    }
    Err(NotFound::Base { server: server.to_owned(), tried })
}

/// `share/english` in archives, `share/mysql/english` or `share/mysql-8.4/english` in packages.
fn has_messages(base: &Path) -> bool {
    let share = base.join("share");
    let messages = |directory: &Path| directory.join("english/errmsg.sys").is_file();
    if messages(&share) {
        return true;
    }
    let Ok(entries) = std::fs::read_dir(&share) else {
        return false;
    };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("mysql") && messages(&entry.path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[rstest]
    #[case("sbin/mysqld", "share/mysql/english/errmsg.sys")]
    #[case("sbin/mysqld", "share/mysql-8.4/english/errmsg.sys")]
    #[case("bin/mysqld", "share/english/errmsg.sys")]
    fn the_base_is_found_around_the_server(#[case] server: &str, #[case] messages: &str) {
        let scratch = tempfile::tempdir().unwrap();
        touch(&scratch.path().join(server));
        touch(&scratch.path().join(messages));
        assert_eq!(find_base(&scratch.path().join(server)).unwrap(), scratch.path());
    }

    #[test]
    fn a_link_to_the_server_is_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let version = scratch.path().join("opt/mysql-9.7");
        touch(&version.join("bin/mysqld"));
        touch(&version.join("share/english/errmsg.sys"));
        std::fs::create_dir_all(scratch.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(version.join("bin/mysqld"), scratch.path().join("bin/mysqld")).unwrap();
        assert_eq!(find_base(&scratch.path().join("bin/mysqld")).unwrap(), version);
    }

    #[test]
    fn a_program_is_found_by_path_or_by_name() {
        let scratch = tempfile::tempdir().unwrap();
        let server = scratch.path().join("mysqld");
        touch(&server);
        let directories = [PathBuf::from("/nowhere"), scratch.path().to_owned()];
        assert_eq!(find_program("mysqld", &directories), Some(server.clone()));
        assert_eq!(find_program(server.to_str().unwrap(), &[]), Some(server));
        assert_eq!(find_program("mysqld-of-nobody", &directories), None);
    }
}
