//! The kinds of clusters that Windlass serves: how they are named, paused and counted.
//!
//! A new kind costs one entry in [`SERVED`]. Nothing here talks to anybody.

use kube::core::ApiResource;
use serde_json::Value;
use windlass_api::mysql::{DEFAULT_REPLICAS, MySQLCluster, keys};
use windlass_api::tidb::Component;
use windlass_api::{ReplicatedStatefulSet, TidbCluster};
use windlass_core::labels;
use windlass_core::lane::Lane;

use crate::error::Error;
use crate::view::{ComponentView, MemberView, MembersView, RoleView};

/// One kind of clusters.
pub(crate) struct Kind {
    /// How it is written on the command line; also how the names of its logbooks begin.
    pub(crate) short: &'static str,
    /// Where it is served.
    pub(crate) resource: fn() -> ApiResource,
    /// How it is paused.
    pub(crate) pause: PauseForm,
    /// How its members are read from the cluster's name and its object.
    pub(crate) members: fn(&str, &Value) -> MembersView,
    /// Whether its size is changed through the subresource `scale`, as `kubectl scale` does; else in the spec.
    pub(crate) has_scale: bool,
    /// Where its spec says how many members may come or go at a time, if it does.
    pub(crate) scale_policy: Option<&'static [&'static str]>,
    /// Where its spec has the metadata of the pods, if it does: what is noted there reaches every pod.
    pub(crate) pod_metadata: Option<&'static [&'static str]>,
    /// The annotation on the primary's pod that asks it to hand over, if the kind knows that.
    pub(crate) hand_over: Option<&'static str>,
}

/// How a kind is paused.
pub(crate) struct PauseForm {
    /// Whether `spec.paused` closes both lanes.
    pub(crate) has_field: bool,
    /// The annotation that closes the Resources lane.
    pub(crate) resources: &'static str,
    /// The annotation that closes the Clustering lane.
    pub(crate) clustering: &'static str,
}

impl PauseForm {
    /// The annotation that closes a lane.
    pub(crate) fn annotation(&self, lane: Lane) -> &'static str {
        match lane {
            Lane::Resources => self.resources,
            Lane::Clustering => self.clustering,
        }
    }
}

/// Every kind, in the order in which they are listed.
pub(crate) static SERVED: [Kind; 3] = [
    Kind {
        short: "rss",
        resource: || ApiResource::erase::<ReplicatedStatefulSet>(&()),
        pause: PauseForm { has_field: true, resources: labels::RESOURCES_PAUSED, clustering: labels::CLUSTERING_PAUSED },
        members: replicated_members,
        has_scale: true,
        scale_policy: None,
        pod_metadata: None,
        hand_over: None,
    },
    Kind {
        short: "mysql",
        resource: || ApiResource::erase::<MySQLCluster>(&()),
        pause: PauseForm { has_field: false, resources: keys::RECONCILIATION_STOPPED, clustering: keys::CLUSTERING_STOPPED },
        members: mysql_members,
        has_scale: false,
        scale_policy: None,
        pod_metadata: Some(&["spec", "podTemplate", "metadata"]),
        hand_over: Some(keys::DEMOTE),
    },
    Kind {
        short: "tc",
        resource: || ApiResource::erase::<TidbCluster>(&()),
        pause: PauseForm { has_field: true, resources: labels::RESOURCES_PAUSED, clustering: labels::CLUSTERING_PAUSED },
        members: tidb_members,
        has_scale: true,
        scale_policy: Some(&["spec", "tikv", "scalePolicy"]),
        // Annotations of all pods lie in the spec itself.
        pod_metadata: Some(&["spec"]),
        hand_over: None,
    },
];

/// The size of a `ReplicatedStatefulSet` that names none.
const REPLICATED_DEFAULT: usize = 3;

fn replicated_members(_name: &str, object: &Value) -> MembersView {
    let names = |list: &str| -> Vec<String> {
        let all = object["status"]["members"][list].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let wanted = object["spec"]["replicas"].as_u64().and_then(|count| usize::try_from(count).ok());
    let running = object["status"]["replicas"].as_u64().and_then(|count| usize::try_from(count).ok());
    let roles = ["primary", "secondary", "unready", "failed"]
        .into_iter()
        .map(|role| RoleView { role: role.to_owned(), members: names(role) })
        .filter(|role| !role.members.is_empty())
        .collect();
    let wanted = wanted.unwrap_or(REPLICATED_DEFAULT);
    MembersView { ready: names("ready").len(), running, wanted, roles, components: Vec::new() }
}

fn mysql_members(name: &str, object: &Value) -> MembersView {
    let (spec, status) = (&object["spec"], &object["status"]);
    let pod = |ordinal: &Value| ordinal.as_u64().map(|ordinal| format!("moco-{name}-{ordinal}"));
    let errant = status["errantReplicaList"].as_array().into_iter().flatten().filter_map(pod).collect();
    let roles = [("primary", pod(&status["currentPrimaryIndex"]).into_iter().collect()), ("errant", errant)];
    let roles = roles.into_iter().map(|(role, members)| RoleView { role: role.to_owned(), members });
    MembersView {
        ready: count(&status["syncedReplicas"]).unwrap_or(0),
        running: None,
        wanted: count(&spec["replicas"]).unwrap_or(usize::from(DEFAULT_REPLICAS)),
        roles: roles.filter(|role: &RoleView| !role.members.is_empty()).collect(),
        components: Vec::new(),
    }
}

/// The members of a TidbCluster are its stores: what `scale` counts. All others are told by component.
fn tidb_members(_name: &str, object: &Value) -> MembersView {
    let (spec, status) = (&object["spec"]["tikv"], &object["status"]);
    let leader = status["pd"]["leader"]["name"].as_str().map(str::to_owned);
    let roles = leader.map(|leader| RoleView { role: "leader".to_owned(), members: vec![leader] });
    MembersView {
        ready: count(&status["tikv"]["statefulSet"]["readyReplicas"]).unwrap_or(0),
        running: count(&status["tikv"]["statefulSet"]["replicas"]),
        wanted: count(&spec["replicas"]).unwrap_or(0),
        roles: roles.into_iter().collect(),
        components: Component::ALL.into_iter().filter_map(|component| tidb_component(component, object)).collect(),
    }
}

fn tidb_component(component: Component, object: &Value) -> Option<ComponentView> {
    let name = component.as_str();
    let (spec, status) = (object["spec"].get(name)?, &object["status"][name]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let each = |list: &str| status[list].as_object().into_iter().flatten();
    let health = |member: &Value| if member["health"] == true { "healthy" } else { "unhealthy" }.to_owned();
    let store = |(id, store): (&String, &Value)| MemberView {
        name: text(&store["podName"]),
        state: text(&store["state"]),
        id: id.clone(),
    };
    let member =
        |(name, member): (&String, &Value)| MemberView { name: name.clone(), state: health(member), id: String::new() };
    let mut members: Vec<MemberView> = each("stores").map(store).chain(each("members").map(member)).collect();
    members.sort_by_key(|member| ordinal(&member.name));
    Some(ComponentView {
        component: name.to_owned(),
        ready: count(&status["statefulSet"]["readyReplicas"]).unwrap_or(0),
        wanted: count(&spec["replicas"]).unwrap_or(0),
        members,
    })
}

fn count(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|count| usize::try_from(count).ok())
}

/// By the number at the end of its name, so that 10 comes after 9.
fn ordinal(name: &str) -> (Option<u32>, String) {
    let pod = name.split('.').next().unwrap_or(name);
    (pod.rsplit('-').next().and_then(|number| number.parse().ok()), name.to_owned())
}

impl Kind {
    /// Whether a word of the command line means this kind, as kubectl would read it.
    fn is_meant_by(&self, word: &str) -> bool {
        let resource = (self.resource)();
        let word = word.to_ascii_lowercase();
        let qualified = |name: &str| word == format!("{name}.{}", resource.group);
        let singular = resource.kind.to_ascii_lowercase();
        [self.short, &singular, &resource.plural].into_iter().any(|name| word == name || qualified(name))
    }

    /// How a cluster of this kind is written: `rss/harbour`.
    pub(crate) fn handle(&self, name: &str) -> String {
        format!("{}/{name}", self.short)
    }

    /// The name of a cluster's logbook.
    pub(crate) fn logbook(&self, name: &str) -> String {
        format!("{}-{name}", self.short)
    }
}

/// One cluster, as the command line names it.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) kind: &'static Kind,
    pub(crate) name: String,
}

impl Target {
    /// Reads `KIND/NAME`, or `KIND NAME`.
    pub(crate) fn parse(words: &[String]) -> Result<Self, Error> {
        let (kind, name) = match words {
            [word] => word.split_once('/').ok_or_else(|| {
                Error::Usage(format!("{word:?} does not say both kind and name: write for example {:?}", format!("rss/{word}")))
            })?,
            [kind, name] => (kind.as_str(), name.as_str()),
            _ => return Err(Error::Usage("say which cluster is meant, as KIND/NAME".to_owned())),
        };
        if name.is_empty() || name.contains('/') {
            return Err(Error::Usage(format!("{:?} is no name of a cluster: write KIND/NAME", words.join(" "))));
        }
        let found = SERVED.iter().find(|served| served.is_meant_by(kind));
        let kind = found.ok_or_else(|| {
            let known: Vec<&str> = SERVED.iter().map(|served| served.short).collect();
            Error::Usage(format!("Windlass serves no kind {kind:?}; it serves: {}", known.join(", ")))
        })?;
        Ok(Self { kind, name: name.to_owned() })
    }

    /// `rss/harbour`.
    pub(crate) fn handle(&self) -> String {
        self.kind.handle(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[rstest]
    #[case("rss/harbour")]
    #[case("RSS/harbour")]
    #[case("rss harbour")]
    #[case("replicatedstatefulset/harbour")]
    #[case("ReplicatedStatefulSet harbour")]
    #[case("replicatedstatefulsets harbour")]
    #[case("replicatedstatefulsets.clusterlabs.org/harbour")]
    fn a_cluster_is_named_as_kubectl_names_things(#[case] text: &str) {
        let target = Target::parse(&words(text)).ok().unwrap();
        assert_eq!((target.handle().as_str(), target.kind.logbook(&target.name).as_str()), ("rss/harbour", "rss-harbour"));
    }

    #[rstest]
    #[case("harbour", "rss/harbour")]
    #[case("pod/harbour", "serves no kind \"pod\"")]
    #[case("rss/", "no name")]
    #[case("rss/a/b", "no name")]
    #[case("rss a b", "KIND/NAME")]
    fn what_names_no_cluster_is_a_mistake_of_usage(#[case] text: &str, #[case] told: &str) {
        let error = Target::parse(&words(text)).err().unwrap();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(told), "{error}");
    }

    #[test]
    fn every_served_definition_has_its_entry_and_its_short_name() {
        for definition in windlass_api::custom_resource_definitions() {
            let names = definition.spec.names;
            if ["Logbook", "BackupPolicy"].contains(&names.kind.as_str()) {
                continue;
            }
            let kind = SERVED.iter().find(|served| (served.resource)().kind == names.kind);
            let kind = kind.unwrap_or_else(|| panic!("{} has no entry", names.kind));
            let version = definition.spec.versions.first().unwrap();
            let subresources = version.subresources.clone().unwrap_or_default();
            assert_eq!(kind.has_scale, subresources.scale.is_some(), "{}", kind.short);
            // MOCO's has none, and scripts may rest on that.
            assert!(names.short_names.is_none_or(|short| short.contains(&kind.short.to_owned())));
        }
    }

    #[test]
    fn the_primary_of_mysql_is_named_by_its_pod() {
        let status = json!({ "currentPrimaryIndex": 2, "syncedReplicas": 3, "errantReplicaList": [1] });
        let members = mysql_members("shop", &json!({ "spec": { "replicas": 3 }, "status": status }));
        let roles: Vec<_> = members.roles.iter().map(|role| (role.role.as_str(), role.members.join(","))).collect();
        assert_eq!(roles, [("primary", "moco-shop-2".to_owned()), ("errant", "moco-shop-1".to_owned())]);
        assert_eq!((members.ready, members.wanted), (3, 3));
    }

    #[test]
    fn the_members_of_a_tidb_cluster_are_its_stores() {
        let stores = json!({ "1": { "podName": "a-tikv-0", "state": "Up" }, "4": { "podName": "a-tikv-1", "state": "Down" } });
        let status = json!({
            "pd": { "leader": { "name": "a-pd-2" } },
            "tikv": { "stores": stores, "statefulSet": { "replicas": 2, "readyReplicas": 1 } },
        });
        let members = tidb_members("a", &json!({ "spec": { "tikv": { "replicas": 3 } }, "status": status }));
        let roles: Vec<_> = members.roles.iter().map(|role| (role.role.as_str(), role.members.join(","))).collect();
        assert_eq!(roles, [("leader", "a-pd-2".to_owned())]);
        let stores = &members.components[0].members;
        let stores: Vec<_> = stores.iter().map(|it| (it.name.as_str(), it.state.as_str(), it.id.as_str())).collect();
        assert_eq!(stores, [("a-tikv-0", "Up", "1"), ("a-tikv-1", "Down", "4")]);
        assert_eq!((members.ready, members.running, members.wanted), (1, Some(2), 3));
        let none = tidb_members("a", &json!({ "spec": {}, "status": "rubbish" }));
        assert_eq!((none.ready, none.running, none.wanted, none.roles.len(), none.components.len()), (0, None, 0, 0, 0));
    }

    #[test]
    fn members_are_counted_whatever_is_in_the_status() {
        let none = replicated_members("harbour", &json!({ "spec": {}, "status": { "members": "rubbish" } }));
        assert_eq!((none.ready, none.running, none.wanted, none.roles.len()), (0, None, 3, 0));
        let some = replicated_members(
            "harbour",
            &json!({
                "spec": { "replicas": 2 },
                "status": { "replicas": 2, "members": { "ready": ["a"], "primary": ["a"], "unready": ["b"] } },
            }),
        );
        assert_eq!((some.ready, some.running, some.wanted), (1, Some(2), 2));
        assert_eq!(some.roles.iter().map(|role| role.role.as_str()).collect::<Vec<_>>(), ["primary", "unready"]);
    }
}
