//! `mysql-init`: an initialised data directory and the per-instance file, before mysqld starts.
//!
//! The marker beside the data directory is the only proof of a finished initialisation, and it is made last. Without it, whatever is
//! in the data directory was left by an interrupted one and is thrown away; with it, the data directory is never touched.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::base::{NotFound, find_base, find_program, search_path};
use crate::durable::{self, Broken};
use crate::instance::{self, BadInstance};
use crate::time_zones;

/// The marker of a finished initialisation, beside the data directory.
pub const MARKER: &str = "moco-initialized";
/// The data directory, on the volume.
pub const DATA: &str = "data";
/// The SQL of time zones, while it is needed.
const ZONES_SQL: &str = ".time-zones.sql";

/// What to prepare.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The volume: the data directory and the marker are in it.
    pub volume: PathBuf,
    /// Where the per-instance file goes.
    pub configuration: PathBuf,
    /// The name of this pod.
    pub pod_name: String,
    /// `server_id` of instance 0.
    pub server_id_base: u32,
    /// Whether the administrative port listens on localhost only.
    pub admin_on_localhost: bool,
    /// Can be chosen at initialisation only.
    pub lower_case_table_names: Option<u8>,
    /// Where the data of time zones are; absent when the tables are to stay empty.
    pub time_zones: Option<PathBuf>,
    /// The server: a path, or a name in PATH.
    pub server: String,
    /// Where the server's own files are; looked for when absent.
    pub base: Option<PathBuf>,
}

/// Why the instance could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum SetupFailure {
    /// POD_NAME or the base of identifiers is unusable.
    #[error(transparent)]
    Instance(#[from] BadInstance),
    /// The image lacks something.
    #[error(transparent)]
    Image(#[from] NotFound),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] Broken),
    /// What an interrupted initialisation left could not be removed.
    #[error(
        "what an interrupted initialisation left in {path:?} cannot be removed: {source}; the volume must be writable by the user of this container (fsGroup)"
    )]
    Clear {
        /// The data directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The marker could not be looked for.
    #[error("{path:?} cannot be looked for: {source}; the volume must be readable by the user of this container (fsGroup)")]
    Look {
        /// The marker.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The server could not be started.
    #[error("{server:?} cannot be started: {source}")]
    Start {
        /// The server.
        server: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The server did not initialise its data directory.
    #[error("{server:?} did not initialise {data:?} ({outcome}): its own lines above say why; it is tried again from nothing")]
    Initialise {
        /// The server.
        server: PathBuf,
        /// The data directory.
        data: PathBuf,
        /// How it ended.
        outcome: String,
    },
}

/// Prepares the instance. Can be repeated after an end at any point.
pub fn run(setup: &Setup) -> Result<(), SetupFailure> {
    let file = instance::build_file(&setup.pod_name, setup.server_id_base, setup.admin_on_localhost)?;
    if has_marker(&setup.volume)? {
        tracing::info!(volume = %setup.volume.display(), "the data directory is initialised already");
    } else {
        initialise(setup)?;
        durable::put(&setup.volume, MARKER, 0o644, std::io::empty())?;
        tracing::info!(volume = %setup.volume.display(), "the data directory is initialised");
    }
    // Always: the directory is empty in every new pod, and the base may have changed.
    durable::put(&setup.configuration, instance::FILE, 0o644, file.as_bytes())?;
    Ok(())
}

/// Whether an initialisation was finished. A volume that cannot be read is not an empty one.
fn has_marker(volume: &Path) -> Result<bool, SetupFailure> {
    let path = volume.join(MARKER);
    match std::fs::symlink_metadata(&path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(SetupFailure::Look { path, source }),
    }
}

fn initialise(setup: &Setup) -> Result<(), SetupFailure> {
    let server = find_program(&setup.server, &search_path()).ok_or_else(|| NotFound::Server(setup.server.clone()))?;
    let base = match &setup.base {
        Some(base) => base.clone(),
        None => find_base(&server)?,
    };
    // mysqld takes what is relative as relative to its base.
    let volume = std::path::absolute(&setup.volume).unwrap_or_else(|_| setup.volume.clone());
    let data = volume.join(DATA);
    clear(&data)?;
    let zones = setup.time_zones.as_deref().and_then(|zones| write_zones(zones, &base, &volume));
    let mut command = build_command(&server, &base, &data, setup.lower_case_table_names, zones.as_deref());
    tracing::info!(server = %server.display(), base = %base.display(), data = %data.display(), "mysqld initialises its data directory");
    let outcome = command.status().map_err(|source| SetupFailure::Start { server: server.clone(), source })?;
    if !outcome.success() {
        return Err(SetupFailure::Initialise { server, data, outcome: outcome.to_string() });
    }
    if let Some(zones) = zones {
        // One that stays does no harm; the next initialisation, if ever there is one, writes it anew.
        let _stays = std::fs::remove_file(zones);
    }
    // Everything the server wrote is on disk before the marker is.
    durable::sync_file_system(&volume)?;
    Ok(())
}

fn clear(data: &Path) -> Result<(), SetupFailure> {
    match std::fs::remove_dir_all(data) {
        Ok(()) => {
            tracing::warn!(data = %data.display(), "an interrupted initialisation was thrown away");
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(SetupFailure::Clear { path: data.to_owned(), source }),
    }
}

/// The SQL for the time zones, or nothing when the image cannot make it.
fn write_zones(zones: &Path, base: &Path, volume: &Path) -> Option<PathBuf> {
    let into = volume.join(ZONES_SQL);
    match time_zones::write(zones, base, &into) {
        Ok(()) => Some(into),
        Err(why) => {
            tracing::warn!(%why, "named time zones will not work on this instance; offsets such as +01:00 do");
            None
        }
    }
}

/// `--init-file` runs within the initialisation: no second start of the server, no client, and nothing in a binary log.
fn build_command(server: &Path, base: &Path, data: &Path, lower_case: Option<u8>, zones: Option<&Path>) -> Command {
    let option = |name: &str, value: &Path| {
        let mut option = std::ffi::OsString::from(format!("--{name}="));
        option.push(value);
        option
    };
    let mut command = Command::new(server);
    // Not the user's configuration: much of it is about a server that runs, and some of it stops an initialisation.
    command.arg("--no-defaults").arg(option("basedir", base)).arg(option("datadir", data));
    // Packages have a directory built in here that other images lack; mysqld does not start without it.
    command.arg("--secure-file-priv=NULL").arg("--initialize-insecure");
    if let Some(value) = lower_case {
        command.arg(format!("--lower-case-table-names={value}"));
    }
    if let Some(zones) = zones {
        command.arg(option("init-file", zones));
    }
    command.stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// A server that notes its arguments and makes a data directory, or does what the script says.
    fn setup(scratch: &tempfile::TempDir, script: &str) -> Setup {
        let root = scratch.path();
        for directory in ["volume", "conf", "usr/sbin", "usr/share/mysql/english"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        std::fs::write(root.join("usr/share/mysql/english/errmsg.sys"), "").unwrap();
        let server = root.join("usr/sbin/mysqld");
        std::fs::write(&server, format!("#!/bin/sh\necho \"$@\" >> {}/runs\n{script}\n", root.display())).unwrap();
        std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
        Setup {
            volume: root.join("volume"),
            configuration: root.join("conf"),
            pod_name: "moco-a-1".into(),
            server_id_base: 10,
            admin_on_localhost: false,
            lower_case_table_names: Some(1),
            time_zones: None,
            server: server.to_str().unwrap().into(),
            base: None,
        }
    }

    fn runs(scratch: &tempfile::TempDir) -> Vec<String> {
        let text = std::fs::read_to_string(scratch.path().join("runs")).unwrap_or_default();
        text.lines().map(|line| line.replace(scratch.path().to_str().unwrap(), "")).collect()
    }

    #[test]
    fn the_server_initialises_once_and_the_file_is_written_each_time() {
        let scratch = tempfile::tempdir().unwrap();
        let mut setup = setup(&scratch, &format!("mkdir {}/volume/data", scratch.path().display()));
        run(&setup).unwrap();
        let expected = "--no-defaults --basedir=/usr --datadir=/volume/data --secure-file-priv=NULL --initialize-insecure --lower-case-table-names=1";
        assert_eq!(runs(&scratch), [expected]);
        setup.server_id_base = 20;
        setup.server = "/nowhere/mysqld".into();
        run(&setup).unwrap();
        assert_eq!(runs(&scratch).len(), 1);
        let file = std::fs::read_to_string(scratch.path().join("conf/my.cnf")).unwrap();
        assert!(file.contains("server_id = 21"), "{file}");
    }

    #[test]
    fn an_interrupted_initialisation_is_thrown_away() {
        let scratch = tempfile::tempdir().unwrap();
        let fail = format!("mkdir {}/volume/data && exit 1", scratch.path().display());
        let setup = setup(&scratch, &fail);
        assert!(matches!(run(&setup), Err(SetupFailure::Initialise { .. })));
        assert!(!setup.volume.join(MARKER).exists());
        // It fails in the same way again: the directory that the first run made was not in the way.
        assert!(matches!(run(&setup), Err(SetupFailure::Initialise { .. })));
        assert_eq!(runs(&scratch).len(), 2);
    }

    #[test]
    fn data_with_a_marker_is_never_touched() {
        let scratch = tempfile::tempdir().unwrap();
        let setup = setup(&scratch, "exit 1");
        std::fs::create_dir(setup.volume.join(DATA)).unwrap();
        std::fs::write(setup.volume.join(DATA).join("ibdata1"), "precious").unwrap();
        std::fs::write(setup.volume.join(MARKER), "").unwrap();
        run(&setup).unwrap();
        assert!(runs(&scratch).is_empty());
        assert_eq!(std::fs::read_to_string(setup.volume.join(DATA).join("ibdata1")).unwrap(), "precious");
    }

    #[test]
    fn a_bad_pod_name_is_told_before_anything_is_done() {
        let scratch = tempfile::tempdir().unwrap();
        let mut setup = setup(&scratch, "exit 0");
        setup.pod_name = "moco".into();
        assert!(matches!(run(&setup), Err(SetupFailure::Instance(_))));
        assert!(runs(&scratch).is_empty());
    }

    #[test]
    fn an_image_without_time_zones_is_initialised_without_them() {
        let scratch = tempfile::tempdir().unwrap();
        let mut setup = setup(&scratch, "exit 0");
        setup.time_zones = Some("/nowhere".into());
        run(&setup).unwrap();
        assert!(!runs(&scratch)[0].contains("--init-file"));
    }
}
