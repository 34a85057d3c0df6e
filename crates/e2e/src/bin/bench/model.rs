//! The objects of one converged cluster, as the operator made them: what the bare writer posts for every other name.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ListParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::Logbook;

use crate::converge::Watches;
use crate::kind;
use crate::operator::Operator;
use crate::report::Report;
use crate::stage::{Stage, from_json};
use crate::{Bench, cluster, floor, say};

const LIMIT: Duration = Duration::from_mins(2);

/// The children of a cluster.
pub(crate) struct Model {
    name: String,
    namespace: String,
    children: Vec<Child>,
}

struct Child {
    collection: String,
    object: Value,
}

/// Lets the operator make one cluster, and takes its objects. The operator's memory without any cluster is told on the way.
pub(crate) async fn take(bench: Bench<'_>, report: &mut Report) -> Result<Model> {
    say("taking the objects of one cluster as a model");
    let (stage, kind) = (bench.stage, bench.arguments.kind);
    let namespace = stage.namespace("model").await?;
    let mut operator = Operator::start(stage, bench.program)?;
    operator.ready().await?;
    report.without_clusters = Some(operator.usage()?);
    let name = cluster::name(999_999);
    let mut watches = Watches::start(stage, kind, &namespace).await?;
    let post = kind.post(stage, &namespace, &name, bench.arguments.members);
    floor::post_all(&stage.writer, vec![post]).await?;
    watches.all_converged(1, LIMIT).await.context("the operator did not complete the model cluster")?;
    let mut children = Vec::new();
    for (child, expected) in kind.children() {
        let found = collect_all((stage, &namespace, &kind.selector()), *child, &mut children).await?;
        ensure!(found == *expected, "a cluster has {found} {child:?}, and the bench waits for {expected}: correct the bench");
    }
    operator.kill().await?;
    stage.remove_namespace(&namespace).await?;
    Ok(Model { name, namespace, children })
}

/// Where objects are looked for: in which namespace, with which labels.
type Where<'a> = (&'a Stage, &'a str, &'a str);

async fn collect_all(place: Where<'_>, child: kind::Child, children: &mut Vec<Child>) -> Result<usize> {
    match child {
        kind::Child::Service => collect::<Service>(place, children).await,
        kind::Child::DisruptionBudget => collect::<PodDisruptionBudget>(place, children).await,
        kind::Child::StatefulSet => collect::<StatefulSet>(place, children).await,
        kind::Child::Logbook => collect::<Logbook>(place, children).await,
        kind::Child::Secret => collect::<Secret>(place, children).await,
        kind::Child::ConfigMap => collect::<ConfigMap>(place, children).await,
        kind::Child::ServiceAccount => collect::<ServiceAccount>(place, children).await,
        kind::Child::Role => collect::<Role>(place, children).await,
        kind::Child::RoleBinding => collect::<RoleBinding>(place, children).await,
        kind::Child::Deployment => collect::<Deployment>(place, children).await,
    }
}

async fn collect<K>((stage, namespace, selector): Where<'_>, children: &mut Vec<Child>) -> Result<usize>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let found = Api::<K>::namespaced(stage.writer.clone(), namespace).list(&ListParams::default().labels(selector)).await?;
    let before = children.len();
    for object in found {
        let mut object = serde_json::to_value(object)?;
        object["apiVersion"] = K::api_version(&()).into_owned().into();
        object["kind"] = K::kind(&()).into_owned().into();
        strip(&mut object);
        let url = K::url_path(&(), None);
        let collection = url.rsplit_once('/').map_or(url.clone(), |(group, plural)| format!("{group} {plural}"));
        children.push(Child { collection, object });
    }
    Ok(children.len() - before)
}

/// Takes off what the server gave the object.
fn strip(object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
            metadata.remove(key);
        }
    }
    // The address of a Service is its own; that it has none is part of the wish.
    if let Some(spec) = object["spec"].as_object_mut()
        && spec.get("clusterIP").is_some_and(|address| address != "None")
    {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
}

impl Model {
    /// The requests of a bare writer for the clusters of these numbers. All objects have an owner that exists, as those of the
    /// operator have: without one they would be collected at once.
    pub(crate) async fn posts(
        &self,
        stage: &Stage,
        namespace: &str,
        numbers: std::ops::Range<usize>,
    ) -> Result<Vec<floor::Post>> {
        let owner: ConfigMap = from_json(json!({ "metadata": { "generateName": "owner-" } }))?;
        let owner =
            Api::<ConfigMap>::namespaced(stage.writer.clone(), namespace).create(&PostParams::default(), &owner).await?;
        let reference = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner.metadata.name, "uid": owner.metadata.uid,
            "controller": true, "blockOwnerDeletion": true,
        });
        let mut posts = Vec::new();
        for number in numbers {
            let name = cluster::name(number);
            for child in &self.children {
                posts.push(child.post(self, namespace, &name, &reference)?);
            }
        }
        Ok(posts)
    }
}

impl Child {
    fn post(&self, model: &Model, namespace: &str, name: &str, owner: &Value) -> Result<floor::Post> {
        let text = self.object.to_string().replace(&model.name, name).replace(&model.namespace, namespace);
        let mut object: Value = serde_json::from_str(&text)?;
        object["metadata"]["ownerReferences"] = json!([owner]);
        let (group, plural) = self.collection.split_once(' ').context("a collection without a name")?;
        Ok(floor::Post::of(group, plural, namespace, &object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_gave_goes_and_what_was_wished_stays() {
        let mut client = json!({ "metadata": { "name": "a", "uid": "u", "generation": 1 }, "spec": { "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"] }, "status": {} });
        strip(&mut client);
        assert_eq!(client, json!({ "metadata": { "name": "a" }, "spec": {} }));
        let mut headless = json!({ "metadata": { "name": "a" }, "spec": { "clusterIP": "None", "clusterIPs": ["None"] } });
        strip(&mut headless);
        assert_eq!(headless["spec"]["clusterIP"], "None");
    }
}
