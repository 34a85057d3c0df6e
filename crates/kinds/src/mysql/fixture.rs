//! A healthy cluster, as a pass sees it, for tests that change one thing about it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;
use windlass_api::logbook::LogbookSpec;
use windlass_api::logbook::mysql::{CouncilEntry, MySqlEntries, VoterEntry};
use windlass_api::mysql::{MySQLCluster, keys};
use windlass_core::bookkeeping;
use windlass_core::claim::Identity;
use windlass_core::gate::Door;
use windlass_core::kind::{Kind as _, Observed, Options};
use windlass_core::lane::Lane;
use windlass_core::memory::Memory;
use windlass_core::ordinals::Ordinal;
use windlass_core::plan::Plan;
use windlass_core::step::{Act, ObjectKind};
use windlass_core::views::{Children, ClaimView, Compact, Meta, ObjectView, PodView, REVISION, StatefulSetView};

use super::build::with_agent;
use super::deeds::{Deed, Place};
use super::facts::{Fact, Facts, News, Silence};
use super::gtid::Uuid;
use super::instance::{Known, Replication};
use super::{MySql, Settings};

pub(super) const SET: &str = "moco-harbour";
pub(super) const UID: &str = "u-1";
const NAMESPACE: &str = "shop";
const FIRST_ID: u32 = 100;
pub(super) const NOW: i64 = 1_800_000_000;

/// What a pass sees.
pub(super) struct Fixture {
    pub(super) resource: MySQLCluster,
    pub(super) children: Children,
    pub(super) facts: Facts,
    pub(super) logbook: LogbookSpec,
    pub(super) running: Vec<Deed>,
    pub(super) signs_certificates: bool,
}

pub(super) fn pod_name(number: u16) -> String {
    Ordinal::new(number).pod_name(SET)
}

pub(super) fn claim_name(number: u16) -> String {
    format!("mysql-data-{}", pod_name(number))
}

pub(super) fn server(number: u16) -> Uuid {
    Uuid::new(u128::from(number) + 1)
}

pub(super) fn known(size: u16, number: u16) -> Known {
    let host = format!("{}.{SET}.{NAMESPACE}.svc", pod_name(0));
    let set: super::gtid::GtidSet = format!("{}:1-9", server(0)).parse().unwrap();
    let replication = Replication {
        quiet: None,
        source_host: host,
        received: set.clone(),
        connects: true,
        receives: true,
        applies: true,
        behind: Some(0),
        error: None,
    };
    let is_primary = number == 0;
    Known {
        server: server(number),
        executed: set,
        purged: super::gtid::GtidSet::default(),
        read_only: !is_primary,
        super_read_only: !is_primary,
        replication: (!is_primary).then_some(replication),
        followers: if is_primary { (1..size).map(|it| FIRST_ID + u32::from(it)).collect() } else { Vec::new() },
        clone: None,
        awaits: is_primary.then_some(size / 2),
        acknowledges: !is_primary,
        waiting_commits: 0,
    }
}

impl Fixture {
    /// A healthy cluster of this size, whose pods have the template `r1`, and everything as it should be.
    pub(super) fn healthy(size: u16) -> Self {
        let resource = serde_json::from_value(json!({
            "apiVersion": "moco.cybozu.com/v1beta2", "kind": "MySQLCluster",
            "metadata": { "name": "harbour", "namespace": NAMESPACE, "uid": UID, "generation": 1 },
            "spec": {
                "replicas": size, "serverIDBase": FIRST_ID,
                "podTemplate": { "spec": { "containers": [{ "name": "mysqld", "image": "mysql:9.7" }] } },
                "volumeClaimTemplates": [{
                    "metadata": { "name": "mysql-data" },
                    "spec": { "storageClassName": "fast", "resources": { "requests": { "storage": "1Gi" } } },
                }],
            },
        }));
        let voters = (1..size).map(|it| VoterEntry { ordinal: it, server: server(it).to_string() }).collect();
        let entries = MySqlEntries {
            opened: true,
            has_credentials: true,
            server: Some(server(0).to_string()),
            server_id_base: FIRST_ID,
            councils: vec![CouncilEntry { voters, count: size / 2 }],
            ..MySqlEntries::default()
        };
        let mut logbook = LogbookSpec { cluster_uid: UID.into(), mysql: Some(entries), ..LogbookSpec::default() };
        logbook.counts.restore = size;
        let mut fixture = Self {
            resource: resource.unwrap(),
            children: Children::default(),
            facts: Facts::default(),
            logbook,
            running: Vec::new(),
            signs_certificates: false,
        };
        let credentials = ObjectView { meta: fixture.meta(SET), spec: Compact::of(&json!({ "fingerprint": "f" })) };
        fixture.children.secrets.insert(SET.into(), credentials);
        for number in 0..size {
            fixture.add(size, number);
        }
        // In the first passes objects are made, in the later ones there is nothing to do.
        for _ in 0..3 {
            fixture.carry_out();
        }
        fixture.settle("r1");
        fixture
    }

    fn meta(&self, name: &str) -> Meta {
        Meta {
            namespace: NAMESPACE.into(),
            name: name.into(),
            uid: format!("uid-{name}"),
            resource_version: "1".into(),
            owner_uid: self.resource.metadata.uid.clone(),
            ..Meta::default()
        }
    }

    fn add(&mut self, size: u16, number: u16) {
        let name = pod_name(number);
        let mut meta = self.meta(&name);
        meta.labels.insert(REVISION.into(), "r1".into());
        let role = if number == 0 { keys::ROLE_PRIMARY } else { keys::ROLE_REPLICA };
        meta.labels.insert(keys::ROLE.into(), role.into());
        let pod = PodView {
            meta,
            phase: "Running".into(),
            ready: true,
            process: Some(format!("process-{number}")),
            address: Some(format!("10.0.0.{number}")),
            arguments: with_agent(),
            ..PodView::default()
        };
        self.children.pods.insert(name, pod);
        let meta = self.meta(&claim_name(number));
        let claim = ClaimView { meta, requested: Some("1Gi".into()), class: Some("fast".into()), volume: None };
        self.children.claims.insert(claim_name(number), claim);
        self.hear(number, News::Seen(Box::new(known(size, number))));
    }

    /// Lets an instance say something.
    pub(super) fn hear(&mut self, number: u16, news: News) {
        let place = self.place(number);
        self.facts.learn(Fact { place, news }, Timestamp::from_second(NOW).unwrap());
    }

    pub(super) fn place(&mut self, number: u16) -> Place {
        let pod = self.pod(number);
        Place {
            namespace: NAMESPACE.into(),
            credentials: SET.into(),
            pod: pod.meta.name.clone(),
            pod_uid: pod.meta.uid.clone(),
            process: pod.process.clone().unwrap_or_default(),
            address: pod.address.clone().unwrap_or_default(),
            ordinal: Ordinal::new(number),
        }
    }

    pub(super) fn pod(&mut self, number: u16) -> &mut PodView {
        self.children.pods.get_mut(&pod_name(number)).unwrap()
    }

    pub(super) fn set(&mut self) -> &mut StatefulSetView {
        self.children.stateful_sets.get_mut(SET).unwrap()
    }

    pub(super) fn annotate(&mut self, key: &str, value: &str) {
        self.resource.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
    }

    /// The StatefulSet controller saw the newest template, which is of this revision.
    pub(super) fn settle(&mut self, revision: &str) {
        let set = self.set();
        set.observed_generation = set.object.meta.generation;
        set.update_revision = Some(revision.into());
    }

    /// The instance's server does not answer, and its pod is not ready.
    pub(super) fn silence(&mut self, number: u16) {
        self.pod(number).ready = false;
        self.hear(number, News::Silent { how: Silence::Closed, why: "no answer".into() });
    }

    pub(super) fn watched<T>(&self, look: impl FnOnce(&Observed<'_, MySql>) -> T) -> T {
        let memory = Memory::Known(Box::new(self.logbook.clone()));
        let settings = Settings { agent_image: "windlass:1".into(), signs_certificates: self.signs_certificates };
        look(&Observed {
            resource: &self.resource,
            children: &self.children,
            facts: &self.facts,
            settings: &settings,
            options: &Options::None,
            memory: &memory,
            answered: &BTreeMap::new(),
            running: &self.running,
            settled: false,
            now: Timestamp::from_second(NOW).unwrap(),
        })
    }

    /// What is remembered after a look.
    pub(super) fn remembered(&self) -> LogbookSpec {
        let mut logbook = self.logbook.clone();
        self.watched(|observed| MySql::remember(observed, &mut logbook));
        logbook
    }

    pub(super) fn plan(&self) -> Plan<Deed> {
        self.watched(|observed| {
            let plan = MySql::plan(observed);
            // Objects that are not looked at again change nothing about the rest.
            if plan.settled {
                assert_eq!(MySql::plan(&Observed { settled: true, ..*observed }), plan);
            }
            plan
        })
    }

    /// Whether the lane of objects is paused for good, and the logbook after a pass.
    pub(super) fn pass(&mut self) -> (Door, Vec<String>) {
        let me = Identity { release: "ops/windlass".into(), version: "1".into(), holder: "pod".into() };
        let mut entries = self.logbook.clone();
        let (door, goes) = self.watched(|observed| {
            let plan = MySql::plan(observed);
            let gate = bookkeeping::gate::<MySql>(observed.resource, observed.running, &entries);
            let parted = gate.part(&plan);
            bookkeeping::note_pass(observed, &me, &plan, &gate, &parted, &mut entries);
            (gate.door(Lane::Resources).clone(), parted.go.iter().map(ToString::to_string).collect())
        });
        self.logbook = entries;
        (door, goes)
    }

    /// What is announced.
    pub(super) fn intents(&self) -> Vec<(&str, &str)> {
        self.logbook.intents.iter().map(|it| (it.act.as_str(), it.target.as_str())).collect()
    }

    pub(super) fn steps(&self) -> Vec<String> {
        self.plan().steps.iter().map(ToString::to_string).collect()
    }

    /// What a plan waits for, with its reason; those that wait for a person are marked.
    pub(super) fn waits(&self) -> Vec<String> {
        let mark = |stalled| if stalled { "!" } else { "" };
        self.plan().waiting.iter().map(|it| format!("{}{}: {}", it.reason, mark(it.stalled), it.message)).collect()
    }

    /// Objects become as the plan wants them, with the defaults that a server would add.
    pub(super) fn carry_out(&mut self) {
        for step in self.plan().steps {
            match step.act {
                Act::Apply(manifest) => self.apply(&manifest),
                Act::Delete { object, .. } if object.kind == ObjectKind::ControllerRevision => {
                    self.children.templates.remove(&object.name);
                }
                Act::DeleteAlone { object, .. } => drop(self.children.stateful_sets.remove(&object.name)),
                Act::Grow { object, to, .. } => {
                    self.children.claims.get_mut(&object.name).unwrap().requested = Some(to);
                }
                Act::SetReplicas { to, .. } => {
                    let set = self.set();
                    let mut spec = set.object.spec.value();
                    spec["replicas"] = to.into();
                    (set.replicas, set.object.spec) = (to, Compact::of(&spec));
                }
                _ => {}
            }
        }
    }

    fn apply(&mut self, manifest: &windlass_core::step::Manifest) {
        let name = manifest.object.name.clone();
        let mut meta = self.meta(&name);
        (meta.labels, meta.annotations) = (manifest.labels.clone().into(), manifest.annotations.clone().into());
        let mut spec = manifest.spec.clone();
        if manifest.object.kind == ObjectKind::Secret {
            spec = json!({ "fingerprint": "f" });
            meta.annotations.insert(windlass_core::secrets::FINGERPRINT.into(), "f".into());
        }
        let children = &mut self.children;
        let all = match manifest.object.kind {
            ObjectKind::StatefulSet => {
                for claim in spec["volumeClaimTemplates"].as_array_mut().unwrap() {
                    claim["status"] = json!({ "phase": "Pending" });
                }
                let replicas = u16::try_from(spec["replicas"].as_u64().unwrap()).unwrap();
                let set = children.stateful_sets.get_or_insert_with(name, StatefulSetView::default);
                meta.generation = Some(set.object.meta.generation.unwrap_or(0) + 1);
                set.object = ObjectView { meta, spec: Compact::of(&spec) };
                set.replicas = replicas;
                return;
            }
            ObjectKind::Service => &mut children.services,
            ObjectKind::PodDisruptionBudget => &mut children.disruption_budgets,
            ObjectKind::ControllerRevision => &mut children.templates,
            ObjectKind::ConfigMap => &mut children.config_maps,
            ObjectKind::Secret => &mut children.secrets,
            ObjectKind::ServiceAccount => &mut children.service_accounts,
            kind => panic!("{kind} is never applied"),
        };
        all.insert(name, ObjectView { meta, spec: Compact::of(&spec) });
    }
}

#[test]
fn a_healthy_cluster_has_nothing_to_do() {
    for size in [1, 3, 5] {
        let fixture = Fixture::healthy(size);
        assert_eq!((fixture.steps(), fixture.waits()), (Vec::new(), Vec::new()), "{size}");
        assert!(fixture.plan().settled);
    }
}
