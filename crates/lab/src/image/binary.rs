//! An image that holds one static program and nothing else.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::cache;
use crate::image::archive::{self, Configuration};

/// What goes into the image.
#[derive(Clone, Debug)]
pub struct BinaryImage<'a> {
    /// The name that pods use, such as `localhost/windlass:1`.
    pub reference: &'a str,
    /// The program on this machine. It must be static: there is no C library in the image.
    pub binary: &'a Path,
    /// The program's path in the image, such as `/windlass`.
    pub path: &'a str,
    /// The numeric user (and group) that runs it.
    pub user: u32,
    /// Arguments that follow the program's path in the entry point.
    pub arguments: &'a [&'a str],
}

/// Makes the archive, or finds it in the cache.
pub fn from_binary(image: &BinaryImage<'_>) -> Result<PathBuf> {
    let program = std::fs::read(image.binary).with_context(|| format!("cannot read {}", image.binary.display()))?;
    let mut key = cache::Key::default()
        .add("reference", image.reference.as_bytes())
        .add("path", image.path.as_bytes())
        .add("user", &image.user.to_le_bytes())
        .add("program", &program);
    for argument in image.arguments {
        key = key.add("argument", argument.as_bytes());
    }
    let directory = cache::root()?.join("images");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let archive = directory.join(format!("binary-{}.tar", key.finish()));
    if archive.exists() {
        return Ok(archive);
    }

    // Two callers may make the same image at once: each has a file of its own until it is named.
    let layer = archive.with_extension(format!("{}.layer", std::process::id()));
    let file = File::create(&layer).with_context(|| format!("cannot write {}", layer.display()))?;
    let mut tar = tar::Builder::new(file);
    tar.append_data(&mut archive::header(0o755, program.len() as u64), image.path.trim_start_matches('/'), program.as_slice())?;
    // Programs expect a place for temporary files; without a root file system there is none.
    let mut temporary = archive::header(0o1777, 0);
    temporary.set_entry_type(tar::EntryType::Directory);
    tar.append_data(&mut temporary, "tmp/", std::io::empty())?;
    tar.into_inner()?;

    let entrypoint = std::iter::once(image.path).chain(image.arguments.iter().copied()).map(str::to_owned).collect();
    let configuration = Configuration {
        reference: image.reference.to_owned(),
        user: format!("{0}:{0}", image.user),
        entrypoint,
        environment: vec!["PATH=/".to_owned()],
    };
    archive::write(&[configuration], &layer, &archive)?;
    cache::remove(&layer)?;
    Ok(archive)
}
