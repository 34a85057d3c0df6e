//! The archive format: a manifest, a configuration and one layer, as a tar file.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::cache;

/// All times in an image: the same input gives the same bytes.
pub(super) const MODIFIED: u64 = 1_700_000_000;

/// An image's name, and how its containers run unless told otherwise.
pub(super) struct Configuration {
    pub(super) reference: String,
    pub(super) user: String,
    pub(super) entrypoint: Vec<String>,
    pub(super) environment: Vec<String>,
}

/// Writes the archive of images whose only layer is the tar file `layer`.
pub(super) fn write(configurations: &[Configuration], layer: &Path, archive: &Path) -> Result<()> {
    let digest = cache::hex(&digest(layer)?);
    let layer_name = format!("{digest}/layer.tar");
    let partial = layer.with_extension("archive");
    let file = File::create(&partial).with_context(|| format!("cannot write {}", partial.display()))?;
    let mut tar = tar::Builder::new(file);
    let mut manifest = Vec::new();
    for configuration in configurations {
        let config = serde_json::to_vec(&json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "User": configuration.user,
                "Entrypoint": configuration.entrypoint,
                "Env": configuration.environment,
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
        }))?;
        let config_name = format!("{}.json", cache::hex(&Sha256::digest(&config)));
        append_bytes(&mut tar, &config_name, &config)?;
        manifest.push(json!({"Config": config_name, "RepoTags": [configuration.reference], "Layers": [layer_name]}));
    }
    append_bytes(&mut tar, "manifest.json", &serde_json::to_vec(&manifest)?)?;
    let file = File::open(layer).with_context(|| format!("cannot read {}", layer.display()))?;
    let mut header = header(0o644, file.metadata()?.len());
    tar.append_data(&mut header, layer_name, BufReader::new(file))?;
    tar.into_inner()?.flush()?;
    std::fs::rename(&partial, archive).with_context(|| format!("cannot name the finished {}", archive.display()))
}

/// The references that an archive gives its images; none when it has no manifest of this format.
pub(crate) fn references(archive: &Path) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Image {
        #[serde(default)]
        repo_tags: Vec<String>,
    }
    let file = File::open(archive).with_context(|| format!("cannot read {}", archive.display()))?;
    let mut reader = tar::Archive::new(file);
    for entry in reader.entries_with_seek().with_context(|| format!("{} is no image archive", archive.display()))? {
        let entry = entry.with_context(|| format!("{} is damaged", archive.display()))?;
        if entry.path()?.as_os_str() == "manifest.json" {
            let images: Vec<Image> = serde_json::from_reader(entry)?;
            return Ok(images.into_iter().flat_map(|image| image.repo_tags).collect());
        }
    }
    Ok(Vec::new())
}

/// A header for a plain file of root.
pub(super) fn header(mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_mtime(MODIFIED);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    header
}

fn append_bytes<W: Write>(tar: &mut tar::Builder<W>, name: &str, bytes: &[u8]) -> Result<()> {
    tar.append_data(&mut header(0o644, bytes.len() as u64), name, bytes)?;
    Ok(())
}

fn digest(path: &Path) -> Result<[u8; 32]> {
    let mut reader = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = reader.read(&mut buffer)?;
        if read == 0 {
            return Ok(hash.finalize().into());
        }
        hash.update(&buffer[..read]);
    }
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_tells_its_references_and_is_the_same_each_time() {
        let directory = std::env::temp_dir().join(format!("windlass-archive-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let layer = directory.join("layer");
        std::fs::write(&layer, [0; 1024]).unwrap();
        let configurations = ["localhost/example:7", "localhost/sample:7"].map(|reference| Configuration {
            reference: reference.into(),
            user: "1:1".into(),
            entrypoint: vec![format!("/{reference}")],
            environment: Vec::new(),
        });
        let (one, two) = (directory.join("one.tar"), directory.join("two.tar"));
        write(&configurations, &layer, &one).unwrap();
        write(&configurations, &layer, &two).unwrap();
        assert_eq!(references(&one).unwrap(), ["localhost/example:7", "localhost/sample:7"]);
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
