//! The example clusters of `examples/`: their image, their manifest, and waiting until they are healthy.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use windlass_lab::{Lab, Progress, image};

use crate::cargo;
use crate::cluster::Cluster;
use crate::report::seconds;

/// Three members on a busy machine with two cores need a few minutes.
const LIMIT: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_secs(1);

/// An example. Its folder, its namespace and its cluster have its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Example {
    /// Three members of a Galera cluster, as a `ReplicatedStatefulSet`.
    Galera,
}

impl Example {
    /// Its folder, its namespace and its cluster's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Galera => "galera",
        }
    }

    /// The resource that `kubectl get` is asked for.
    fn resource(self) -> &'static str {
        match self {
            Self::Galera => "replicatedstatefulsets.clusterlabs.org",
        }
    }

    fn folder(self) -> PathBuf {
        cargo::root().join("examples").join(self.name())
    }

    /// The name of its image.
    pub(crate) fn image_name(self) -> Result<String> {
        let path = self.folder().join("image/image.yaml");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let recipe: Value = serde_saphyr::from_str(&text).with_context(|| format!("{} cannot be read", path.display()))?;
        let name = recipe["name"].as_str().with_context(|| format!("{} has no name", path.display()))?;
        Ok(name.to_owned())
    }

    /// Makes its image, or finds it in the cache.
    pub(crate) async fn build_image(self, progress: &Progress) -> Result<PathBuf> {
        image::from_recipe_with(&self.folder().join("image"), progress)
            .await
            .with_context(|| format!("cannot make the image of the example {}", self.name()))
    }

    /// Makes its image and loads it.
    pub(crate) async fn load_image(self, lab: &Lab, progress: &Progress) -> Result<()> {
        let archive = self.build_image(progress).await?;
        progress.step(format!("loading {}", self.image_name()?), lab.load_image(&archive)).await
    }

    /// Applies it in a namespace of its own, under the strictest Pod Security level.
    pub(crate) async fn apply(self, cluster: &Cluster, progress: &Progress) -> Result<()> {
        let path = self.folder().join("cluster.yaml");
        let manifest = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self.name(), "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        });
        progress
            .step(format!("example {}", self.name()), async {
                cluster.apply(&namespace.to_string(), None).await?;
                cluster.apply(&manifest, Some(self.name())).await
            })
            .await
    }

    /// Waits until its cluster is Ready, and tells each new reason meanwhile.
    pub(crate) async fn wait_until_ready(self, cluster: &Cluster, progress: &Progress) -> Result<()> {
        let began = Instant::now();
        let mut told = String::new();
        progress.note(&format!("waiting for {} to be Ready", self.name()));
        loop {
            let object = cluster.get(self.name(), self.resource(), self.name()).await?;
            let news = describe(&object);
            if news != told {
                progress.note(&format!("  {:>12}  {news}", seconds(began.elapsed())));
                told = news;
            }
            if is_ready(&object) {
                progress.note(&format!("  ok  {} is Ready ({})", self.name(), seconds(began.elapsed())));
                return Ok(());
            }
            if began.elapsed() > LIMIT {
                bail!("{} is not Ready after {}; the last word was: {told}", self.name(), seconds(LIMIT));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// What a person may want to type next; `kubectl` is how that is called here, with these options after the verb.
    pub(crate) fn next_steps(self, kubectl: &str, options: &str) -> String {
        match self {
            Self::Galera => format!(
                "\
Try next:
  {kubectl} windlass list -A{options}
  {kubectl} windlass status rss/galera -n galera{options}
  {kubectl} windlass scale rss/galera -n galera --replicas=5{options}
  {kubectl} windlass pause rss/galera -n galera --reason='a look inside'{options}
  {kubectl} windlass plan rss/galera -n galera{options}             # while paused: what will happen on resume
  {kubectl} windlass resume rss/galera -n galera{options}
  {kubectl} get rss,pods,services -n galera{options}
  {kubectl} exec -n galera rss-galera-0{options} -- mariadb -S /run/mysqld/mysqld.sock -u mysql -e \"show status like 'wsrep_cluster_size'\"
  {kubectl} logs -n windlass-system deployment/windlass -f{options}"
            ),
        }
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Ready, and said of the spec as it is now.
fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|ready| {
        ready["status"] == "True" && ready["observedGeneration"].as_i64() >= object["metadata"]["generation"].as_i64()
    })
}

/// The state in one line.
fn describe(object: &Value) -> String {
    let status = &object["status"];
    let Some(ready) = condition(object, "Ready") else {
        return "no status yet".to_owned();
    };
    let sentence = status["reason"].as_str().filter(|text| !text.is_empty()).or(ready["message"].as_str()).unwrap_or_default();
    format!("{}: {sentence}", ready["reason"].as_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_for_an_older_spec_is_not_ready() {
        let object = |generation: i64| {
            json!({
                "metadata": {"generation": generation},
                "status": {"reason": "3 of 3", "conditions": [
                    {"type": "Ready", "status": "True", "reason": "Healthy", "observedGeneration": 2},
                ]},
            })
        };
        assert!(is_ready(&object(2)));
        assert!(!is_ready(&object(3)));
        assert!(!is_ready(&json!({"metadata": {"generation": 1}})));
        assert_eq!(describe(&object(2)), "Healthy: 3 of 3");
    }

    #[test]
    fn every_example_has_its_image_recipe() {
        for example in Example::value_variants() {
            assert!(example.image_name().unwrap().starts_with("localhost/"), "{example:?}");
        }
    }
}
