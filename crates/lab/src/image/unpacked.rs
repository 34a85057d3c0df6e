//! A program of an image, run without a container.
//!
//! The image's files are unpacked beside its archive, and a script takes the place of the program: it runs the real one with the libraries
//! of the image, for those of this machine may be too old. What the program itself opens by name it finds here, not in the image.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::cache;
use crate::progress::Progress;

/// Where the program is that was at `path` in an image. It is given these options after all others.
pub async fn program(archive: &Path, path: &str, options: &str, progress: &Progress) -> Result<PathBuf> {
    let root = archive.with_extension("unpacked");
    let program = root.join(path.trim_start_matches('/'));
    let _lock = cache::lock(root.with_extension("lock"), || ()).await?;
    if program.exists() {
        return Ok(program);
    }
    let (archive, path, options) = (archive.to_owned(), path.trim_start_matches('/').to_owned(), options.to_owned());
    let unpacked = tokio::task::spawn_blocking(move || {
        let partial = cache::partial(&root);
        cache::remove(&partial)?;
        cache::remove(&root)?;
        unpack(&archive, &partial)?;
        replace(&partial, &root, &path, &options)?;
        std::fs::rename(&partial, &root).with_context(|| format!("cannot name the finished {}", root.display()))
    });
    progress
        .step(format!("unpacking {}", program.display()), async {
            unpacked.await.context("the task that unpacks the image ended early")?
        })
        .await?;
    Ok(program)
}

fn unpack(archive: &Path, into: &Path) -> Result<()> {
    let file = File::open(archive).with_context(|| format!("cannot read {}", archive.display()))?;
    let mut reader = tar::Archive::new(file);
    for entry in reader.entries_with_seek()? {
        let entry = entry.with_context(|| format!("{} is damaged", archive.display()))?;
        if entry.path()?.ends_with("layer.tar") {
            tar::Archive::new(entry).unpack(into).with_context(|| format!("cannot unpack {}", archive.display()))?;
        }
    }
    Ok(())
}

/// Puts the script in the place of the program, for when what is in `partial` is at `root`.
fn replace(partial: &Path, root: &Path, path: &str, options: &str) -> Result<()> {
    let program = partial.join(path);
    let real = format!("{path}.real");
    std::fs::rename(&program, partial.join(&real)).with_context(|| format!("there is no {path} in the image"))?;
    let libraries = libraries(partial)?;
    let loader = Path::new(&libraries).join(loader());
    let at = |path: &Path| root.join(path).display().to_string();
    let script = format!(
        "#!/bin/sh\nexec '{}' --library-path '{}' '{}' \"$@\" {options}\n",
        at(&loader),
        at(Path::new(&libraries)),
        at(Path::new(&real)),
    );
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    Ok(())
}

/// The directory with the loader, as Debian names it after the architecture.
fn libraries(root: &Path) -> Result<String> {
    let directories = std::fs::read_dir(root.join("usr/lib")).context("the image has no /usr/lib")?;
    let mut names = directories.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let found = names.find(|name| root.join("usr/lib").join(name).join(loader()).exists());
    found.map(|name| format!("usr/lib/{name}")).with_context(|| format!("the image has no {}", loader()))
}

fn loader() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "ld-linux-aarch64.so.1",
        _ => "ld-linux-x86-64.so.2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::archive::{Configuration, header, write};

    #[tokio::test]
    async fn a_program_runs_by_the_loader_of_its_image() {
        let directory = std::env::temp_dir().join(format!("windlass-unpacked-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let layer = directory.join("layer");
        let mut tar = tar::Builder::new(File::create(&layer).unwrap());
        for (name, text) in [(format!("usr/lib/some-arch/{}", loader()), "loader"), ("usr/sbin/it".to_owned(), "it")] {
            tar.append_data(&mut header(0o755, text.len() as u64), name, text.as_bytes()).unwrap();
        }
        tar.finish().unwrap();
        let configuration =
            Configuration { reference: "it:1".into(), user: "1".into(), entrypoint: Vec::new(), environment: Vec::new() };
        let archive = directory.join("it.tar");
        write(&[configuration], &layer, &archive).unwrap();
        let progress = Progress::new();
        let program = super::program(&archive, "/usr/sbin/it", "--last", &progress).await.unwrap();
        assert_eq!(super::program(&archive, "/usr/sbin/it", "--last", &progress).await.unwrap(), program);
        let root = directory.join("it.unpacked").display().to_string();
        let expected = format!(
            "#!/bin/sh\nexec '{root}/usr/lib/some-arch/{}' --library-path '{root}/usr/lib/some-arch' '{root}/usr/sbin/it.real' \"$@\" --last\n",
            loader()
        );
        assert_eq!(std::fs::read_to_string(&program).unwrap(), expected);
        assert_eq!(std::fs::read_to_string(program.with_extension("real")).unwrap(), "it");
        assert_eq!(std::fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
