//! What the operator may do: each permission with the call that needs it.
//!
//! The only place that says so: the chart's roles and the page of permissions are written from here. A test on the lab compares
//! it with the calls that were recorded: nothing may be missing, and nothing unused.

/// One rule of the operator's role.
pub(crate) struct Rule {
    pub(crate) groups: &'static [&'static str],
    pub(crate) resources: &'static [&'static str],
    pub(crate) verbs: &'static [&'static str],
    /// The only objects that it is for, as the chart names them; all of them when empty.
    pub(crate) names: &'static [&'static str],
    /// Which calls need it.
    pub(crate) why: &'static str,
}

/// What it may do where its clusters are, in the order in which a reader meets the resources.
pub(crate) const CLUSTERS: &[Rule] = &[
    Rule {
        groups: &["clusterlabs.org"],
        resources: &["replicatedstatefulsets"],
        verbs: &["get", "list", "watch"],
        names: &[],
        why: "the clusters that are asked for; get: the fresh object after a status write met a conflict",
    },
    Rule {
        groups: &["clusterlabs.org"],
        resources: &["replicatedstatefulsets/status"],
        verbs: &["update"],
        names: &[],
        why: "the status commit, a compare-and-swap; nothing else of the custom resource is ever written",
    },
    Rule {
        groups: &["moco.cybozu.com"],
        resources: &["mysqlclusters"],
        verbs: &["get", "list", "patch", "watch"],
        names: &[],
        why: "the clusters of MySQL that are asked for; get: the fresh object after a status write met a conflict; patch: the finalizer, put on \
              before anything is made, and taken off when nothing is left to do or the cluster left the selector",
    },
    Rule {
        groups: &["moco.cybozu.com"],
        resources: &["mysqlclusters/status"],
        verbs: &["update"],
        names: &[],
        why: "the status commit, a compare-and-swap; beside it, only the finalizer of the custom resource is ever written",
    },
    Rule {
        groups: &["pingcap.com"],
        resources: &["tidbclusters"],
        verbs: &["get", "list", "watch"],
        names: &[],
        why: "the clusters of TiDB that are asked for; get: the fresh object after a status write met a conflict, and what discovery may do",
    },
    Rule {
        groups: &["pingcap.com"],
        resources: &["tidbclusters/status"],
        verbs: &["update"],
        names: &[],
        why: "the status commit, a compare-and-swap; nothing else of the custom resource is ever written",
    },
    Rule {
        groups: &["windlass.dev"],
        resources: &["logbooks"],
        verbs: &["create", "get", "list", "update", "watch"],
        names: &[],
        why: "what must be remembered about each cluster; update: compare-and-swap on the whole object; get: a fresh look before a \
              cluster is taken over",
    },
    Rule {
        groups: &["apps"],
        resources: &["statefulsets"],
        verbs: &["create", "delete", "get", "list", "patch", "watch"],
        names: &[],
        why: "the members; patch: server-side apply and replicas; create: an apply that makes the object is judged as both; get: who \
              made an object that is there already; delete: without its pods, to make it again for larger volumes; with them, to stop a \
              component of TiDB",
    },
    Rule {
        groups: &["apps"],
        resources: &["controllerrevisions"],
        verbs: &["create", "delete", "get", "list", "patch", "watch"],
        names: &[],
        why: "the pod templates as they were rendered, so that a newer release restarts nothing; patch and create: server-side \
              apply; delete: those that nothing needs any more",
    },
    Rule {
        groups: &[""],
        resources: &["services"],
        verbs: &["create", "get", "list", "patch", "watch"],
        names: &[],
        why: "the headless and the client Service; patch and create: server-side apply; get: who made one that is there already",
    },
    Rule {
        groups: &["policy"],
        resources: &["poddisruptionbudgets"],
        verbs: &["create", "delete", "get", "list", "patch", "watch"],
        names: &[],
        why: "how many members may be evicted at once; patch and create: server-side apply; get: who made one that is there already; \
              delete: that of a cluster of MySQL which is stopped, or has one instance",
    },
    Rule {
        groups: &[""],
        resources: &["pods"],
        verbs: &["delete", "get", "list", "patch", "watch"],
        names: &[],
        why: "list and watch: readiness of members; get: the same pod still, just before a hook changes it; patch: role labels, and the \
              annotation that protects a primary; \
              delete: a member that must start anew, with its UID as precondition",
    },
    Rule {
        groups: &[""],
        resources: &["nodes"],
        verbs: &["get"],
        names: &[],
        why: "the labels of the nodes of stores, where PD's location-labels ask for them; only the metadata is read. A Role for one \
              namespace cannot give it: stores get no labels then",
    },
    Rule {
        groups: &[""],
        resources: &["pods/exec"],
        verbs: &["create", "get"],
        names: &[],
        why: "hooks; get: the WebSocket request that starts one; create: asked for as well by servers from 1.35 on",
    },
    Rule {
        groups: &[""],
        resources: &["persistentvolumeclaims"],
        verbs: &["delete", "get", "list", "patch", "watch"],
        names: &[],
        why: "whether a cluster is new or has data; patch: a larger request of storage, labels, the mark on those of a store that has left \
              TiDB, and what their volumes were told; get: whether such a claim is there, and what discovery may do; delete: marked ones, with \
              their UID as precondition",
    },
    Rule {
        groups: &[""],
        resources: &["persistentvolumes"],
        verbs: &["get", "patch"],
        names: &[],
        why: "what becomes of the volumes of TiDB when their claims are gone; get: whether one belongs to the claim, once for each claim and \
              change of the spec; patch: its reclaim policy. A Role for one namespace cannot give it: volumes do as their StorageClass says \
              then",
    },
    Rule {
        groups: &[""],
        resources: &["configmaps"],
        verbs: &["create", "delete", "get", "list", "patch", "watch"],
        names: &[],
        why: "my.cnf; patch and create: server-side apply; get: the user's own settings, when a watch of metadata tells that they changed; \
              delete: old ones that nothing names any more",
    },
    Rule {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["create", "get", "list", "patch", "watch"],
        names: &[],
        why: "passwords of the accounts of MySQL; get: to log in, and to write the credentials of clients; list and watch only those \
              that Windlass made; patch and create: server-side apply",
    },
    Rule {
        groups: &[""],
        resources: &["serviceaccounts"],
        verbs: &["create", "get", "list", "patch", "watch"],
        names: &[],
        why: "the account of the pods of MySQL, and of TiDB's discovery; patch and create: server-side apply; get: who made one that is there \
              already",
    },
    Rule {
        groups: &["apps"],
        resources: &["deployments"],
        verbs: &["create", "get", "list", "patch", "watch"],
        names: &[],
        why: "TiDB's discovery; patch and create: server-side apply; get: who made one that is there already",
    },
    Rule {
        groups: &["rbac.authorization.k8s.io"],
        resources: &["rolebindings", "roles"],
        verbs: &["create", "get", "list", "patch", "watch"],
        names: &[],
        why: "what TiDB's discovery may do, which is less than the operator itself may: the server refuses to let it grant more; patch and create: \
              server-side apply; get: who made one that is there already",
    },
    Rule {
        groups: &["events.k8s.io"],
        resources: &["events"],
        verbs: &["create", "patch"],
        names: &[],
        why: "what `kubectl describe` shows; patch: the count of an Event that repeats itself",
    },
    Rule {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["get"],
        names: &[],
        why: "whether the release that claims a cluster is alive; that one may be in any namespace",
    },
];

/// What it may do in the namespace of its release.
pub(crate) const RELEASE: &[Rule] = &[
    Rule {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["create", "get", "list", "update", "watch"],
        names: &[],
        why: "the Lease that says which process acts; update: compare-and-swap, to take it, renew it and give it up",
    },
    Rule {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["create", "get"],
        names: &[],
        why: "the roots of the release's certificates; get: also a certificate that cert-manager made for the agents of a cluster, whose \
              name nobody knows beforehand; create: a name cannot be asked for where something is made",
    },
    Rule {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["update"],
        names: &["{{ include `windlass.name` . }}-authority"],
        why: "the next root before the former one ends, by compare-and-swap; of no other Secret",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_permission_is_a_wildcard_or_given_twice() {
        for rules in [CLUSTERS, RELEASE] {
            let mut given = Vec::new();
            for rule in rules {
                assert!(!rule.why.is_empty());
                for group in rule.groups {
                    for resource in rule.resources {
                        for verb in rule.verbs {
                            assert!(![*group, *resource, *verb].contains(&"*"), "{group} {resource} {verb}");
                            assert!(!given.contains(&(group, resource, verb)), "twice: {group} {resource} {verb}");
                            given.push((group, resource, verb));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn custom_resources_are_never_written_but_for_a_finalizer() {
        let written = |resource: &str| {
            let rules = CLUSTERS.iter().filter(|rule| rule.resources.contains(&resource));
            let verbs = rules.flat_map(|rule| rule.verbs).filter(|verb| !["get", "list", "watch"].contains(verb));
            verbs.copied().collect::<Vec<_>>()
        };
        assert_eq!(written("replicatedstatefulsets"), [""; 0]);
        assert_eq!(written("mysqlclusters"), ["patch"]);
        assert_eq!(written("tidbclusters"), [""; 0]);
    }

    #[test]
    fn a_lease_is_written_in_the_namespace_of_the_release_only() {
        let leases = CLUSTERS.iter().filter(|rule| rule.resources.contains(&"leases"));
        assert!(leases.flat_map(|rule| rule.verbs).all(|verb| *verb == "get"));
    }
}
