//! The plugins of kubectl: built, and put where kubectl finds them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use windlass_lab::Progress;

use crate::cargo;

const PROGRAMS: [&str; 2] = ["kubectl-windlass", "kubectl-moco"];
const COMPLETIONS: [(&str, &str); 2] = [
    ("kubectl_complete-windlass", windlass_kubectl::WINDLASS_COMPLETION_SCRIPT),
    ("kubectl_complete-moco", windlass_kubectl::MOCO_COMPLETION_SCRIPT),
];
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
        .step("plugins of kubectl", async {
            let build = cargo::command(&["build", "--quiet", "--locked", "--package", "windlass-kubectl", "--bins"]);
            let [one, _] = PROGRAMS;
            let program = cargo::build(build, one).await?;
            put(program.parent().context("a program without a directory")?, &directory()?)
        })
        .await
}

fn put(built: &Path, directory: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    // Written beside and renamed: somebody may be running the old one.
    let place = |name: &str, write: &dyn Fn(&Path) -> std::io::Result<()>| {
        let (new, end) = (directory.join(format!(".{name}.new")), directory.join(name));
        let written = write(&new).and_then(|()| std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)));
        written.and_then(|()| std::fs::rename(&new, &end)).with_context(|| format!("cannot write {}", end.display()))
    };
    for program in PROGRAMS {
        place(program, &|path| std::fs::copy(built.join(program), path).map(drop))?;
    }
    for (name, script) in COMPLETIONS {
        place(name, &|path| std::fs::write(path, script))?;
    }
    Ok(directory.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_put_in_place_and_can_be_run() {
        let folder = std::env::temp_dir().join(format!("windlass-plugin-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for program in PROGRAMS {
            std::fs::write(folder.join(program), "#!/bin/sh\n").unwrap();
        }
        for _ in 0..2 {
            let directory = put(&folder, &beside(&folder.join("xtask"))).unwrap();
            for name in PROGRAMS.into_iter().chain(COMPLETIONS.map(|(name, _)| name)) {
                let mode = std::fs::metadata(directory.join(name)).unwrap().permissions().mode();
                assert_eq!(mode & 0o111, 0o111, "{name}");
            }
            assert_eq!(std::fs::read_dir(directory).unwrap().count(), 4);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
