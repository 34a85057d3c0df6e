//! Loading images into a lab, each only once.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::components::containerd;
use crate::layout::Layout;
use crate::{cache, image};

/// Imports `archive` unless its references were last given by this very archive.
pub(crate) async fn load(layout: &Layout, archive: &Path) -> Result<()> {
    let metadata = std::fs::metadata(archive)?;
    let modified = metadata.modified()?.duration_since(std::time::UNIX_EPOCH)?.as_nanos();
    let identity = cache::Key::default()
        .add("path", archive.as_os_str().as_encoded_bytes())
        .add("modified", &modified.to_le_bytes())
        .add("size", &metadata.len().to_le_bytes())
        .finish();
    // One note per reference: a later archive with the same reference takes it over.
    let notes = layout.state.join("images");
    std::fs::create_dir_all(&notes).with_context(|| format!("cannot create {}", notes.display()))?;
    let references = image::references(archive)?;
    let note = |reference: &String| notes.join(cache::Key::default().add("reference", reference.as_bytes()).finish());
    let loaded = |reference: &String| std::fs::read_to_string(note(reference)).is_ok_and(|text| text == identity);
    if !references.is_empty() && references.iter().all(loaded) {
        return Ok(());
    }
    containerd::import(layout, archive).await?;
    for reference in &references {
        let path = note(reference);
        std::fs::write(&path, &identity).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
