//! The SQL that fills the tables of time zones, made by the image's own tool from the image's own data.
//!
//! An image without them is not broken: named time zones do not work there, and that is said.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::base::{find_program, search_path};

const TOOL: &str = "mysql_tzinfo_to_sql";

/// Why there will be no named time zones.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Skipped {
    #[error("the image has no {TOOL}")]
    NoTool,
    #[error("the image has no time zone data in {0:?}; its package is usually called tzdata")]
    NoData(PathBuf),
    #[error("{TOOL} failed ({outcome}): {complaint}")]
    ToolFailed { outcome: String, complaint: String },
    #[error("{path:?} cannot be written: {source}")]
    Write { path: PathBuf, source: std::io::Error },
}

/// Writes the SQL into this file.
pub(crate) fn write(zones: &Path, base: &Path, into: &Path) -> Result<(), Skipped> {
    let mut directories = vec![base.join("bin")];
    directories.extend(search_path());
    let tool = find_program(TOOL, &directories).ok_or(Skipped::NoTool)?;
    // Every collection of zones has this one.
    if !zones.join("UTC").exists() {
        return Err(Skipped::NoData(zones.to_owned()));
    }
    let failed = |source| Skipped::Write { path: into.to_owned(), source };
    let mut file = start(into).map_err(failed)?;
    let output = file.try_clone().map_err(failed)?;
    let run = Command::new(tool).arg(zones).stdin(Stdio::null()).stdout(output).stderr(Stdio::piped()).output();
    let run = run.map_err(|error| Skipped::ToolFailed { outcome: "not started".into(), complaint: error.to_string() })?;
    if !run.status.success() {
        let complaint = String::from_utf8_lossy(&run.stderr);
        let complaint = complaint.lines().last().unwrap_or_default().to_owned();
        return Err(Skipped::ToolFailed { outcome: run.status.to_string(), complaint });
    }
    file.flush().map_err(failed)
}

fn start(into: &Path) -> std::io::Result<File> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(into)?;
    // The tool names the tables without their database.
    file.write_all(b"USE mysql;\n")?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn tool(base: &Path, script: &str) {
        std::fs::create_dir_all(base.join("bin")).unwrap();
        let path = base.join("bin").join(TOOL);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn what_is_missing_or_fails_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        let (base, into) = (scratch.path(), scratch.path().join("out.sql"));
        tool(base, "#!/bin/sh\necho broken zone >&2\nexit 3\n");
        assert!(matches!(write(Path::new("/nowhere"), base, &into), Err(Skipped::NoData(_))));
        std::fs::write(base.join("UTC"), "").unwrap();
        let error = write(base, base, &into).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("broken zone"), "{error}");
    }

    #[test]
    fn the_tables_are_named_after_their_database() {
        let scratch = tempfile::tempdir().unwrap();
        let (base, into) = (scratch.path(), scratch.path().join("out.sql"));
        std::fs::write(base.join("UTC"), "").unwrap();
        tool(base, "#!/bin/sh\necho \"TRUNCATE TABLE time_zone;\"\n");
        write(base, base, &into).unwrap();
        assert_eq!(std::fs::read_to_string(&into).unwrap(), "USE mysql;\nTRUNCATE TABLE time_zone;\n");
    }
}
