//! Which resources the server knows, and how each kind behaves where kinds differ.
//!
//! The flags of the built-in kinds follow the strategies of the real server: whether an update may leave out the
//! resourceVersion, whether PUT may create, whether generation is kept, what a delete answers.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

/// Where the scale subresource of a custom resource finds its numbers.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: Vec<String>,
    pub(crate) status_replicas: Vec<String>,
    pub(crate) selector: Option<Vec<String>>,
}

/// One resource type.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent fact about a kind")]
pub(crate) struct Resource {
    /// API group, empty for core.
    pub(crate) group: String,
    /// API version.
    pub(crate) version: String,
    /// Plural name, as in the URL.
    pub(crate) plural: String,
    /// Kind.
    pub(crate) kind: String,
    /// Whether objects live in namespaces.
    pub(crate) namespaced: bool,
    /// Whether /status exists.
    pub(crate) status: bool,
    /// Whether /scale exists, and where its fields are.
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) generation: bool,
    pub(crate) unconditional_update: bool,
    pub(crate) create_on_update: bool,
    pub(crate) returns_deleted: bool,
    /// The structural schema of a custom resource; built-in kinds have none here.
    pub(crate) schema: Option<Arc<Value>>,
    pub(crate) custom: bool,
}

impl Resource {
    fn built_in(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            namespaced: true,
            status: false,
            scale: None,
            generation: false,
            unconditional_update: true,
            create_on_update: false,
            returns_deleted: false,
            schema: None,
            custom: false,
        }
    }

    fn cluster_wide(mut self) -> Self {
        self.namespaced = false;
        self
    }

    fn with_status(mut self) -> Self {
        self.status = true;
        self
    }

    fn with_scale(mut self) -> Self {
        let path = |fields: [&str; 2]| fields.map(str::to_owned).to_vec();
        self.scale = Some(ScalePaths {
            spec_replicas: path(["spec", "replicas"]),
            status_replicas: path(["status", "replicas"]),
            selector: None,
        });
        self
    }

    fn with_generation(mut self) -> Self {
        self.generation = true;
        self
    }

    fn needs_version(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    fn creates_on_update(mut self) -> Self {
        self.create_on_update = true;
        self
    }

    fn gives_back_deleted(mut self) -> Self {
        self.returns_deleted = true;
        self
    }

    /// `group/version`, or the version alone for core.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `plural.group` as messages name a resource.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `Kind.group` as validation messages name a kind.
    pub(crate) fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }
}

/// All known resources by (group, version, plural).
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
}

impl Registry {
    pub(crate) fn built_in() -> Self {
        let mut registry = Self { resources: BTreeMap::new() };
        for resource in built_in_resources() {
            registry.add(resource);
        }
        registry
    }

    pub(crate) fn add(&mut self, resource: Resource) {
        let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        self.resources.insert(key, Arc::new(resource));
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.resources.get(&key).cloned()
    }

    /// The resource a test means by a plural, a kind, or `plural.group`.
    pub(crate) fn guess(&self, word: &str) -> Option<Arc<Resource>> {
        self.resources
            .values()
            .find(|resource| resource.plural == word || resource.kind == word || resource.qualified() == word)
            .cloned()
    }

    pub(crate) fn by_kind(&self, group: &str, kind: &str) -> Option<Arc<Resource>> {
        self.resources.values().find(|resource| resource.group == group && resource.kind == kind).cloned()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }
}

fn built_in_resources() -> Vec<Resource> {
    let core = |plural, kind| Resource::built_in("", "v1", plural, kind);
    let apps = |plural, kind| Resource::built_in("apps", "v1", plural, kind);
    let rbac = |plural, kind| Resource::built_in("rbac.authorization.k8s.io", "v1", plural, kind).creates_on_update();
    vec![
        core("pods", "Pod").with_status().with_generation().gives_back_deleted(),
        core("services", "Service").with_status().creates_on_update().gives_back_deleted(),
        core("configmaps", "ConfigMap"),
        core("secrets", "Secret"),
        core("events", "Event").creates_on_update(),
        core("endpoints", "Endpoints").creates_on_update(),
        core("persistentvolumeclaims", "PersistentVolumeClaim").with_status().gives_back_deleted(),
        core("persistentvolumes", "PersistentVolume").with_status().cluster_wide().gives_back_deleted(),
        core("serviceaccounts", "ServiceAccount").gives_back_deleted(),
        core("namespaces", "Namespace").with_status().cluster_wide().gives_back_deleted(),
        core("nodes", "Node").with_status().cluster_wide(),
        apps("statefulsets", "StatefulSet").with_status().with_scale().with_generation(),
        apps("deployments", "Deployment").with_status().with_scale().with_generation(),
        apps("replicasets", "ReplicaSet").with_status().with_scale().with_generation(),
        apps("daemonsets", "DaemonSet").with_status().with_generation(),
        apps("controllerrevisions", "ControllerRevision"),
        Resource::built_in("batch", "v1", "jobs", "Job").with_status().with_generation(),
        Resource::built_in("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
            .with_status()
            .with_generation()
            .needs_version(),
        Resource::built_in("coordination.k8s.io", "v1", "leases", "Lease").needs_version().creates_on_update(),
        Resource::built_in("events.k8s.io", "v1", "events", "Event").creates_on_update(),
        Resource::built_in("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice").with_generation(),
        Resource::built_in("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy").with_generation(),
        Resource::built_in("storage.k8s.io", "v1", "storageclasses", "StorageClass").cluster_wide().gives_back_deleted(),
        rbac("roles", "Role"),
        rbac("rolebindings", "RoleBinding"),
        rbac("clusterroles", "ClusterRole").cluster_wide(),
        rbac("clusterrolebindings", "ClusterRoleBinding").cluster_wide(),
        Resource::built_in("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")
            .with_status()
            .with_generation()
            .cluster_wide()
            .needs_version(),
    ]
}

/// The resources a CustomResourceDefinition object serves, one per served version.
pub(crate) fn from_definition(definition: &Value) -> Vec<Resource> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().cloned().unwrap_or_default();
    versions
        .iter()
        .filter(|version| version["served"].as_bool().unwrap_or(true))
        .map(|version| {
            let subresources = &version["subresources"];
            Resource {
                group: text(&spec["group"]),
                version: text(&version["name"]),
                plural: text(&spec["names"]["plural"]),
                kind: text(&spec["names"]["kind"]),
                namespaced: spec["scope"] == "Namespaced",
                status: subresources["status"].is_object(),
                scale: scale_paths(&subresources["scale"]),
                generation: true,
                unconditional_update: false,
                create_on_update: false,
                returns_deleted: false,
                schema: version["schema"].get("openAPIV3Schema").map(|schema| Arc::new(schema.clone())),
                custom: true,
            }
        })
        .collect()
}

fn scale_paths(scale: &Value) -> Option<ScalePaths> {
    let path = |name: &str| {
        scale[name]
            .as_str()
            .map(|dotted| dotted.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>())
    };
    Some(ScalePaths {
        spec_replicas: path("specReplicasPath")?,
        status_replicas: path("statusReplicasPath")?,
        selector: path("labelSelectorPath"),
    })
}
