//! One component each: what it runs, how many, and how it is changed.

use std::collections::BTreeMap;
use std::time::Duration;

use toml::Table;
use windlass_api::tidb::{Component, ComponentSpec, Config, ScalePolicy, TidbCluster, TidbClusterSpec, keys};

use super::cluster::one_of;
use super::pods::{self, Pods};
use super::volumes::{self, Asked, ClaimTemplate};
use super::{Problems, config, given, services};

/// How many members may be added in place of failed ones, where the user says nothing else.
const MAX_FAILOVER: u16 = 3;

/// The members of one component.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Which component.
    pub component: Component,
    /// How many there are.
    pub replicas: u16,
    /// What they run.
    pub image: String,
    /// How many are added or removed at once.
    pub parallelism: Parallelism,
    /// How many may be added in place of failed ones.
    pub max_failover: u16,
    /// Whether they are stopped, and their data is kept.
    pub suspended: bool,
    /// Whether it is the user who replaces pods.
    pub replaced_by_user: bool,
    /// Whether pods are made one after the other.
    pub ordered: bool,
    /// What another configuration does.
    pub config_update: ConfigUpdate,
    /// How long a pod must have been ready before the next one is replaced.
    pub min_ready: Duration,
    /// Pods with a lower ordinal are not replaced.
    pub partition: u16,
    /// The configuration, as the user wrote it.
    pub config: Table,
    /// The configuration of TiFlash's proxy, as the user wrote it. Empty for all other components.
    pub proxy_config: Table,
    /// The claims that each member gets of its own.
    pub claims: Vec<ClaimTemplate>,
    /// The pods.
    pub pods: Pods,
}

/// How many members are added or removed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallelism {
    /// How many are removed.
    pub scale_in: u16,
    /// How many are added.
    pub scale_out: u16,
}

/// What another configuration does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigUpdate {
    /// It waits for the next restart.
    InPlace,
    /// It replaces the pods.
    RollingUpdate,
}

/// What of a component's spec every one has, in one form.
struct Raw<'a> {
    component: Component,
    base: &'a ComponentSpec,
    replicas: u16,
    base_image: Option<&'a String>,
    config: Option<&'a Config>,
    scale: Option<&'a ScalePolicy>,
    max_failover: Option<u16>,
}

/// Every component that is asked for.
pub(super) fn read_all(resource: &TidbCluster, problems: &mut Problems) -> BTreeMap<Component, Group> {
    let spec = &resource.spec;
    services::check(spec, problems);
    volumes::check_logs(spec, problems);
    let mut groups = BTreeMap::new();
    for raw in raw(spec) {
        let claims = claims(spec, raw.component, problems);
        let mut group = read(resource, &raw, claims, problems);
        if let (Component::Tiflash, Some(tiflash)) = (raw.component, &spec.tiflash) {
            let proxy = tiflash.config.as_ref().and_then(|config| config.proxy.as_ref());
            group.proxy_config = read_config("spec.tiflash.config.proxy", proxy, problems);
        }
        groups.insert(raw.component, group);
    }
    groups
}

macro_rules! raw {
    ($spec:expr, $component:ident, $scale:expr, $failover:expr) => {
        Raw {
            component: Component::$component,
            base: &$spec.component,
            replicas: $spec.replicas,
            base_image: $spec.base_image.as_ref(),
            config: $spec.config.as_ref(),
            scale: $scale,
            max_failover: $failover,
        }
    };
}

fn raw(spec: &TidbClusterSpec) -> Vec<Raw<'_>> {
    let pd = spec.pd.as_ref().map(|it| raw!(it, Pd, None, it.max_failover_count));
    let tikv = spec.tikv.as_ref().map(|it| raw!(it, Tikv, it.scale_policy.as_ref(), it.max_failover_count));
    let tidb = spec.tidb.as_ref().map(|it| raw!(it, Tidb, it.scale_policy.as_ref(), it.max_failover_count));
    let tiflash = spec.tiflash.as_ref().map(|it| Raw {
        component: Component::Tiflash,
        base: &it.component,
        replicas: it.replicas,
        base_image: it.base_image.as_ref(),
        config: it.config.as_ref().and_then(|config| config.config.as_ref()),
        scale: it.scale_policy.as_ref(),
        max_failover: it.max_failover_count,
    });
    let ticdc = spec.ticdc.as_ref().map(|it| raw!(it, Ticdc, None, Some(0)));
    let tiproxy = spec.tiproxy.as_ref().map(|it| raw!(it, Tiproxy, None, Some(0)));
    let pump = spec.pump.as_ref().map(|it| raw!(it, Pump, None, Some(0)));
    [pd, tikv, tidb, tiflash, ticdc, tiproxy, pump].into_iter().flatten().collect()
}

fn claims(spec: &TidbClusterSpec, component: Component, problems: &mut Problems) -> Vec<ClaimTemplate> {
    macro_rules! asked {
        ($spec:expr, $volumes:expr, $directory:expr) => {
            Asked {
                requests: $spec.component.requests.as_ref(),
                class: $spec.storage_class_name.as_ref(),
                volumes: $volumes,
                sub_directory: $directory,
            }
        };
    }
    let asked = match component {
        Component::Tiflash => return spec.tiflash.iter().flat_map(|it| volumes::read_disks(it, problems)).collect(),
        Component::Pd => spec.pd.as_ref().map(|it| asked!(it, it.storage_volumes.as_ref(), it.data_sub_dir.as_ref())),
        Component::Tikv => spec.tikv.as_ref().map(|it| asked!(it, it.storage_volumes.as_ref(), it.data_sub_dir.as_ref())),
        Component::Tidb => spec.tidb.as_ref().map(|it| asked!(it, it.storage_volumes.as_ref(), None)),
        Component::Ticdc => spec.ticdc.as_ref().map(|it| asked!(it, it.storage_volumes.as_ref(), None)),
        Component::Tiproxy => spec.tiproxy.as_ref().map(|it| asked!(it, it.storage_volumes.as_ref(), None)),
        Component::Pump => spec.pump.as_ref().map(|it| asked!(it, None, None)),
    };
    asked.iter().flat_map(|asked| volumes::read(component, asked, problems)).collect()
}

fn read(resource: &TidbCluster, raw: &Raw<'_>, claims: Vec<ClaimTemplate>, problems: &mut Problems) -> Group {
    let (spec, component) = (&resource.spec, raw.component);
    let field = format!("spec.{component}");
    let config_field =
        if component == Component::Tiflash { format!("{field}.config.config") } else { format!("{field}.config") };
    check_slots(resource, component, problems);
    let base = raw.base;
    let mut word = |name: &str, own: Option<&String>, cluster: Option<&String>, known: &[&str]| {
        one_of(&format!("{field}.{name}"), own, known, problems);
        one_of(&format!("spec.{name}"), cluster, known, problems);
        given(own).or(given(cluster)).cloned().unwrap_or_default()
    };
    let strategy = word(
        "statefulSetUpdateStrategy",
        base.stateful_set_update_strategy.as_ref(),
        spec.stateful_set_update_strategy.as_ref(),
        &["RollingUpdate", "OnDelete"],
    );
    let update = word(
        "configUpdateStrategy",
        base.config_update_strategy.as_ref(),
        spec.config_update_strategy.as_ref(),
        &["InPlace", "RollingUpdate"],
    );
    let policy = given(base.pod_management_policy.as_ref()).or(given(spec.pod_management_policy.as_ref()));
    let scale = raw.scale;
    let mut parallelism = |name: &str, number: Option<u16>| {
        if number == Some(0) {
            problems.tell(format!("{field}.scalePolicy.{name}"), "0 would mean never; write 1 or more");
        }
        number.unwrap_or(1)
    };
    let parallelism = Parallelism {
        scale_in: parallelism("scaleInParallelism", scale.and_then(|it| it.scale_in_parallelism)),
        scale_out: parallelism("scaleOutParallelism", scale.and_then(|it| it.scale_out_parallelism)),
    };
    let suspend = base.suspend_action.as_ref().or(spec.suspend_action.as_ref());
    Group {
        component,
        replicas: raw.replicas,
        image: image(spec, raw, problems),
        parallelism,
        max_failover: raw.max_failover.unwrap_or(MAX_FAILOVER),
        suspended: suspend.is_some_and(|action| action.suspend_stateful_set),
        replaced_by_user: strategy == "OnDelete",
        ordered: policy.is_some_and(|policy| policy == "OrderedReady"),
        config_update: if update == "RollingUpdate" { ConfigUpdate::RollingUpdate } else { ConfigUpdate::InPlace },
        min_ready: Duration::from_secs(number(resource, keys::min_ready_seconds(component), problems).unwrap_or_default()),
        partition: number(resource, keys::partition(component), problems).unwrap_or_default(),
        config: read_config(&config_field, raw.config, problems),
        proxy_config: Table::new(),
        pods: pods::read(spec, base, &field, pods::containers(component), problems),
        claims,
    }
}

fn read_config(field: &str, given: Option<&Config>, problems: &mut Problems) -> Table {
    config::read(given).unwrap_or_else(|error| {
        problems.tell(field, format!("{error}; write a map, or the text of a TOML file"));
        Table::new()
    })
}

/// What the component runs. A whole image counts only where no base is given.
fn image(spec: &TidbClusterSpec, raw: &Raw<'_>, problems: &mut Problems) -> String {
    let version = given(raw.base.version.as_ref()).or(given(spec.version.as_ref()));
    match (given(raw.base_image), given(raw.base.image.as_ref()), version) {
        (Some(base), _, Some(version)) => format!("{base}:{version}"),
        (Some(base), _, None) => base.clone(),
        (None, Some(image), _) => image.clone(),
        (None, None, Some(version)) => format!("{}:{version}", default_image(raw.component)),
        (None, None, None) => {
            problems.tell("spec.version", "say which version to run, for example v8.5.2");
            String::new()
        }
    }
}

const fn default_image(component: Component) -> &'static str {
    match component {
        Component::Pd => "pingcap/pd",
        Component::Tikv => "pingcap/tikv",
        Component::Tidb => "pingcap/tidb",
        Component::Tiflash => "pingcap/tiflash",
        Component::Ticdc => "pingcap/ticdc",
        Component::Tiproxy => "pingcap/tiproxy",
        Component::Pump => "pingcap/tidb-binlog",
    }
}

fn annotation<'a>(resource: &'a TidbCluster, key: Option<&str>) -> Option<&'a String> {
    resource.metadata.annotations.as_ref()?.get(key?)
}

/// The number that an annotation says.
fn number<N: std::str::FromStr>(resource: &TidbCluster, key: Option<&'static str>, problems: &mut Problems) -> Option<N> {
    let text = given(annotation(resource, key))?;
    let number = text.parse().ok();
    if number.is_none() {
        problems.tell(
            format!("metadata.annotations[{}]", key.unwrap_or_default()),
            format!("{text:?} is no number; write it as \"10\""),
        );
    }
    number
}

/// Ordinals without a pod need a StatefulSet of another kind.
fn check_slots(resource: &TidbCluster, component: Component, problems: &mut Problems) {
    let key = keys::delete_slots(component);
    let Some(text) = given(annotation(resource, key)) else { return };
    let field = format!("metadata.annotations[{}]", key.unwrap_or_default());
    match serde_json::from_str::<Vec<u16>>(text) {
        Err(_) => problems.tell(field, format!("{text:?} is no list of ordinals; write it as \"[1, 3]\"")),
        Ok(slots) if !slots.is_empty() => {
            problems.tell(
                field,
                "ordinals without a pod need advanced StatefulSets, which are not supported yet; remove the annotation",
            );
        }
        Ok(_) => {}
    }
}
