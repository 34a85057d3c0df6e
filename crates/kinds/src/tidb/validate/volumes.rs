//! The volumes that each member gets of its own, and the directories inside them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use windlass_api::tidb::{Component, StorageVolume, TidbClusterSpec, TiflashSpec};
use windlass_core::quantity;

use super::{Problems, given};

const STORAGE: &str = "storage";

/// A claim that each member gets of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimTemplate {
    /// The name of the template, and of the volume.
    pub name: String,
    /// The size.
    pub size: String,
    /// The storage class; the default one when absent.
    pub class: Option<String>,
    /// Where the component's container has it; nowhere when absent.
    pub mount: Option<String>,
}

/// The data volume of a component that has one: its name, and where it is mounted.
pub(super) const fn data(component: Component) -> Option<(&'static str, &'static str)> {
    match component {
        Component::Pd => Some(("pd", "/var/lib/pd")),
        Component::Tikv => Some(("tikv", "/var/lib/tikv")),
        Component::Pump => Some(("data", "/data")),
        _ => None,
    }
}

/// What of a component's spec speaks of volumes.
pub(super) struct Asked<'a> {
    pub(super) requests: Option<&'a BTreeMap<String, Quantity>>,
    pub(super) class: Option<&'a String>,
    pub(super) volumes: Option<&'a Vec<StorageVolume>>,
    pub(super) sub_directory: Option<&'a String>,
}

/// The claims of a component, with its data first.
pub(super) fn read(component: Component, asked: &Asked<'_>, problems: &mut Problems) -> Vec<ClaimTemplate> {
    let field = format!("spec.{component}");
    let class = given(asked.class).cloned();
    let mut claims = Vec::new();
    if let Some((name, mount)) = data(component) {
        let size = asked.requests.and_then(|requests| requests.get(STORAGE));
        let size = read_size(&format!("{field}.requests.storage"), size.map(|size| size.0.as_str()), problems);
        claims.push(ClaimTemplate { name: name.to_owned(), size, class: class.clone(), mount: Some(mount.to_owned()) });
    }
    let mut seen = BTreeSet::new();
    for (index, volume) in asked.volumes.into_iter().flatten().enumerate() {
        let field = format!("{field}.storageVolumes[{index}]");
        if !is_label(&volume.name) {
            let problem =
                format!("{:?} cannot be part of a claim's name; write lower-case letters, digits and \"-\"", volume.name);
            problems.tell(format!("{field}.name"), problem);
        }
        if !seen.insert(&volume.name) {
            problems.tell(format!("{field}.name"), format!("{:?} is there twice; give each volume its own name", volume.name));
        }
        let size = read_size(&format!("{field}.storageSize"), Some(&volume.storage_size), problems);
        let mount = given(volume.mount_path.as_ref()).cloned();
        if mount.as_ref().is_some_and(|path| !path.starts_with('/')) {
            problems.tell(format!("{field}.mountPath"), "it must begin with \"/\"");
        }
        let class = given(volume.storage_class_name.as_ref()).cloned().or_else(|| class.clone());
        claims.push(ClaimTemplate { name: format!("{component}-{}", volume.name), size, class, mount });
    }
    if let Some(directory) = given(asked.sub_directory) {
        check_directory(&format!("{field}.dataSubDir"), directory, problems);
    }
    claims
}

/// The disks of TiFlash.
pub(super) fn read_disks(tiflash: &TiflashSpec, problems: &mut Problems) -> Vec<ClaimTemplate> {
    let field = "spec.tiflash.storageClaims";
    if tiflash.storage_claims.is_empty() {
        problems.tell(field, "TiFlash needs at least one disk; add { resources: { requests: { storage: 100Gi } } }");
    }
    let read = |(index, claim): (usize, &windlass_api::tidb::StorageClaim)| {
        let requests = claim.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let size = requests.and_then(|requests| requests.get(STORAGE)).map(|size| size.0.as_str());
        ClaimTemplate {
            name: format!("data{index}"),
            size: read_size(&format!("{field}[{index}].resources.requests.storage"), size, problems),
            class: given(claim.storage_class_name.as_ref()).cloned(),
            mount: Some(format!("/data{index}")),
        }
    };
    tiflash.storage_claims.iter().enumerate().map(read).collect()
}

fn read_size(field: &str, size: Option<&str>, problems: &mut Problems) -> String {
    match size {
        None => problems.tell(field, "say how large the volume is, for example 10Gi"),
        Some(size) if quantity::bytes(size).is_none_or(|bytes| bytes == 0) => {
            problems.tell(field, format!("{size:?} is no size of a volume; write for example 10Gi"));
        }
        Some(_) => {}
    }
    size.unwrap_or_default().to_owned()
}

/// It becomes a part of a path in a script, below the volume.
fn check_directory(field: &str, directory: &str, problems: &mut Problems) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    if directory.starts_with('/') || directory.split('/').any(|part| part == "..") || !directory.bytes().all(is_plain) {
        let problem = format!(
            "{directory:?} is no directory inside the volume; write a relative path without \"..\", of letters, digits, \"-\", \"_\", \".\" and \"/\""
        );
        problems.tell(field, problem);
    }
}

/// Volumes that logs are written to must be there, and mounted.
pub(super) fn check_logs(spec: &TidbClusterSpec, problems: &mut Problems) {
    let mut check = |field: &str, name: Option<&String>, volumes: Option<&Vec<StorageVolume>>, mounts: Vec<String>| {
        let Some(name) = given(name) else { return };
        let is_volume = volumes.into_iter().flatten().any(|it| it.name == *name && given(it.mount_path.as_ref()).is_some());
        if !is_volume && !mounts.contains(name) {
            let problem = format!(
                "there is no volume {name:?} that is mounted; name one of storageVolumes that has a mountPath, or of additionalVolumeMounts"
            );
            problems.tell(field, problem);
        }
    };
    if let Some(tikv) = &spec.tikv {
        let mounts = super::pods::mount_names(&tikv.component);
        let volumes = tikv.storage_volumes.as_ref();
        check("spec.tikv.rocksDBLogVolumeName", tikv.rocks_db_log_volume_name.as_ref(), volumes, mounts.clone());
        check("spec.tikv.raftLogVolumeName", tikv.raft_log_volume_name.as_ref(), volumes, mounts);
    }
    if let Some(tidb) = &spec.tidb {
        let mounts = super::pods::mount_names(&tidb.component);
        check("spec.tidb.slowLogVolumeName", tidb.slow_log_volume_name.as_ref(), tidb.storage_volumes.as_ref(), mounts);
    }
}

fn is_label(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && !name.starts_with('-') && !name.ends_with('-') && name.len() <= 40 && name.bytes().all(is_allowed)
}
