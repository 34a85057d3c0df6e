//! The plugins of kubectl: built, and put where kubectl finds them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use windlass_lab::Progress;

use crate::cargo;

const PROGRAM: &str = "kubectl-windlass";
const COMPLETION: &str = "kubectl_complete-windlass";
/// Beside the programs that cargo built: only what belongs on somebody's PATH is in it.
const FOLDER: &str = "kubectl-plugins";

/// Where the plugins are, once they were built.
pub(crate) fn directory() -> Result<PathBuf> {
    let me = std::env::current_exe().context("cannot tell where this program is")?;
    Ok(beside(&me))
}

fn beside(program: &Path) -> PathBuf {
    program.with_file_name(FOLDER)
}

/// Builds the plugins, and returns the directory to put on PATH.
pub(crate) async fn build(progress: &Progress) -> Result<PathBuf> {
    progress
        .step(format!("plugin {PROGRAM}"), async {
            let build = cargo::command(&["build", "--quiet", "--locked", "--package", "windlass-kubectl", "--bin", PROGRAM]);
            let program = cargo::build(build, PROGRAM).await?;
            put(&program, &directory()?)
        })
        .await
}

fn put(program: &Path, directory: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    // Written beside and renamed: somebody may be running the old one.
    let place = |name: &str, write: &dyn Fn(&Path) -> std::io::Result<()>| {
        let (new, end) = (directory.join(format!(".{name}.new")), directory.join(name));
        let written = write(&new).and_then(|()| std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)));
        written.and_then(|()| std::fs::rename(&new, &end)).with_context(|| format!("cannot write {}", end.display()))
    };
    place(PROGRAM, &|path| std::fs::copy(program, path).map(drop))?;
    place(COMPLETION, &|path| std::fs::write(path, windlass_kubectl::WINDLASS_COMPLETION_SCRIPT))?;
    Ok(directory.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_put_in_place_and_can_be_run() {
        let folder = std::env::temp_dir().join(format!("windlass-plugin-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("built");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        for _ in 0..2 {
            let directory = put(&program, &beside(&program)).unwrap();
            for name in [PROGRAM, COMPLETION] {
                let mode = std::fs::metadata(directory.join(name)).unwrap().permissions().mode();
                assert_eq!(mode & 0o111, 0o111, "{name}");
            }
            assert_eq!(std::fs::read_dir(directory).unwrap().count(), 2);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
