//! The example clusters of `examples/`: their image, their manifest, and waiting until they are healthy.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use windlass_lab::{Lab, Progress, image, tidb};

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
    /// A MySQL primary with two replicas, as a `MySQLCluster`.
    Mysql,
    /// PD, TiKV and TiDB, as a `TidbCluster`: the real PD, and stand-ins for the others.
    Tidb,
}

impl Example {
    /// Its folder, its namespace and its cluster's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Galera => "galera",
            Self::Mysql => "mysql",
            Self::Tidb => "tidb",
        }
    }

    /// The resource that `kubectl get` is asked for.
    fn resource(self) -> &'static str {
        match self {
            Self::Galera => "replicatedstatefulsets.clusterlabs.org",
            Self::Mysql => "mysqlclusters.moco.cybozu.com",
            Self::Tidb => "tidbclusters.pingcap.com",
        }
    }

    /// The condition that is True when nothing is left to be done.
    fn goal(self) -> &'static str {
        match self {
            Self::Galera | Self::Tidb => "Ready",
            Self::Mysql => "Healthy",
        }
    }

    fn folder(self) -> PathBuf {
        cargo::root().join("examples").join(self.name())
    }

    fn manifest(self) -> Result<String> {
        let path = self.folder().join("cluster.yaml");
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// The name of its image; those of TiDB are many, and their names begin so.
    pub(crate) fn image_name(self) -> Result<String> {
        if self == Self::Tidb {
            return Ok(format!("{}/", tidb::REGISTRY));
        }
        let path = self.folder().join("image/image.yaml");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let recipe: Value = serde_saphyr::from_str(&text).with_context(|| format!("{} cannot be read", path.display()))?;
        let name = recipe["name"].as_str().with_context(|| format!("{} has no name", path.display()))?;
        Ok(name.to_owned())
    }

    /// What somebody has to know who brings its image to a cluster that is not the lab.
    pub(crate) fn where_its_image_comes_from(self) -> Result<String> {
        let name = self.image_name()?;
        Ok(match self {
            Self::Tidb => format!("{name}*  (stand-ins that the lab builds; or write the images of TiDB into cluster.yaml)"),
            Self::Galera | Self::Mysql => format!("{name}  (its recipe is in examples/{}/image)", self.name()),
        })
    }

    /// Makes its image, or finds it in the cache. The lab itself has the recipe of TiDB's: it builds the programs.
    pub(crate) async fn build_image(self, progress: &Progress) -> Result<PathBuf> {
        let folder = self.folder().join("image");
        let built = match self {
            Self::Tidb => tidb::images(progress).await,
            Self::Galera | Self::Mysql => image::from_recipe_with(&folder, progress).await,
        };
        built.with_context(|| format!("cannot make the image of the example {}", self.name()))
    }

    /// Makes its image and loads it.
    pub(crate) async fn load_image(self, lab: &Lab, progress: &Progress) -> Result<()> {
        let archive = self.build_image(progress).await?;
        progress.step(format!("loading {}", self.image_name()?), lab.load_image(&archive)).await
    }

    /// Applies it in a namespace of its own, under the strictest Pod Security level.
    pub(crate) async fn apply(self, cluster: &Cluster, progress: &Progress) -> Result<()> {
        let manifest = self.manifest()?;
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

    /// Waits until its cluster has reached its goal, and tells each new reason meanwhile.
    pub(crate) async fn wait_until_ready(self, cluster: &Cluster, progress: &Progress) -> Result<()> {
        let (name, goal) = (self.name(), self.goal());
        let began = Instant::now();
        let mut told = String::new();
        progress.note(&format!("waiting for {name} to be {goal}"));
        loop {
            let object = cluster.get(name, self.resource(), name).await?;
            let news = describe(&object, goal);
            if news != told {
                progress.note(&format!("  {:>12}  {news}", seconds(began.elapsed())));
                told = news;
            }
            if is_met(&object, goal) {
                progress.note(&format!("  ok  {name} is {goal} ({})", seconds(began.elapsed())));
                return Ok(());
            }
            if began.elapsed() > LIMIT {
                bail!("{name} is not {goal} after {}; the last word was: {told}", seconds(LIMIT));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// What a person may want to type next; `kubectl` is how that is called here, with these options after the verb.
    pub(crate) fn next_steps(self, kubectl: &str, options: &str) -> String {
        let steps = match self {
            Self::Galera => format!(
                "  {kubectl} windlass status rss/galera -n galera{options}
  {kubectl} windlass scale rss/galera -n galera --replicas=5{options}
  {kubectl} windlass pause rss/galera -n galera --reason='a look inside'{options}
  {kubectl} windlass plan rss/galera -n galera{options}             # while paused: what will happen on resume
  {kubectl} windlass resume rss/galera -n galera{options}
  {kubectl} get rss,pods,services -n galera{options}
  {kubectl} exec -n galera rss-galera-0{options} -- mariadb -S /run/mysqld/mysqld.sock -u mysql -e \"show status like 'wsrep_cluster_size'\""
            ),
            Self::Mysql => format!(
                "  {kubectl} windlass status mysql/mysql -n mysql{options}
  {kubectl} moco mysql -n mysql -u moco-writable -it mysql{options}
  {kubectl} moco credential -n mysql -u moco-writable mysql{options}
  {kubectl} moco switchover -n mysql mysql{options}
  {kubectl} moco stop clustering -n mysql mysql{options}
  {kubectl} windlass plan mysql/mysql -n mysql{options}      # while stopped: what will happen on start
  {kubectl} moco start clustering -n mysql mysql{options}
  {kubectl} get mysqlclusters,pods,services -n mysql{options}"
            ),
            Self::Tidb => format!(
                "  {kubectl} windlass status tc/tidb -n tidb{options}
  {kubectl} windlass scale tc/tidb -n tidb --replicas=5{options}    # stores of TiKV
  {kubectl} windlass scale tc/tidb -n tidb --replicas=3{options}    # each gives its regions away before its pod goes
  {kubectl} windlass pause tc/tidb -n tidb --reason='a look inside'{options}
  {kubectl} windlass plan tc/tidb -n tidb{options}                  # while paused: what will happen on resume
  {kubectl} windlass resume tc/tidb -n tidb{options}
  {kubectl} exec -n tidb tidb-pd-0{options} -- wget -qO- http://127.0.0.1:2379/pd/api/v1/stores
  {kubectl} get tc,pods,services -n tidb{options}"
            ),
        };
        format!(
            "\
Try next:
  {kubectl} windlass list -A{options}
{steps}
  {kubectl} logs -n windlass-system deployment/windlass -f{options}"
        )
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// The condition is True, and said of the spec as it is now. A condition that names no generation is as new as its status.
fn is_met(object: &Value, goal: &str) -> bool {
    condition(object, goal).is_some_and(|met| {
        let said_of = met["observedGeneration"].as_i64().or(object["status"]["observedGeneration"].as_i64());
        met["status"] == "True" && said_of >= object["metadata"]["generation"].as_i64()
    })
}

/// How far the cluster is from its goal, in one line.
fn describe(object: &Value, goal: &str) -> String {
    let status = &object["status"];
    let Some(condition) = condition(object, goal) else {
        return "no status yet".to_owned();
    };
    let sentence =
        status["reason"].as_str().filter(|text| !text.is_empty()).or(condition["message"].as_str()).unwrap_or_default();
    format!("{}: {sentence}", condition["reason"].as_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_api::TidbCluster;
    use windlass_api::mysql::MySQLCluster;

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
        assert!(is_met(&object(2), "Ready"));
        assert!(!is_met(&object(3), "Ready"));
        assert!(!is_met(&object(2), "Healthy"));
        assert!(!is_met(&json!({"metadata": {"generation": 1}}), "Ready"));
        assert_eq!(describe(&object(2), "Ready"), "Healthy: 3 of 3");
        assert_eq!(describe(&object(2), "Healthy"), "no status yet");
    }

    #[test]
    fn a_condition_without_a_generation_is_as_new_as_its_status() {
        let object = |generation: i64| {
            json!({
                "metadata": {"generation": generation},
                "status": {"observedGeneration": 2, "conditions": [
                    {"type": "Healthy", "status": "True", "reason": "Healthy", "message": "the current state is Healthy"},
                ]},
            })
        };
        assert!(is_met(&object(2), "Healthy"));
        assert!(!is_met(&object(3), "Healthy"));
        assert_eq!(describe(&object(2), "Healthy"), "Healthy: the current state is Healthy");
    }

    #[test]
    fn every_example_has_its_image_recipe() {
        for example in Example::value_variants().iter().filter(|example| **example != Example::Tidb) {
            assert!(example.image_name().unwrap().starts_with("localhost/"), "{example:?}");
        }
    }

    fn objects(example: Example) -> Vec<Value> {
        serde_saphyr::from_multiple(&example.manifest().unwrap()).unwrap()
    }

    #[test]
    fn every_manifest_has_the_cluster_that_is_waited_for_and_runs_its_image() {
        for example in Example::value_variants() {
            let (_, group) = example.resource().split_once('.').unwrap();
            let is_waited_for = |object: &Value| {
                object["apiVersion"].as_str().is_some_and(|version| version.starts_with(group))
                    && object["metadata"]["name"] == example.name()
            };
            assert!(objects(*example).iter().any(is_waited_for), "{example:?}");
            let image = match example {
                Example::Tidb => format!("baseImage: {}tikv\n", example.image_name().unwrap()),
                Example::Galera | Example::Mysql => format!("image: {}\n", example.image_name().unwrap()),
            };
            assert!(example.manifest().unwrap().contains(&image), "{example:?}");
        }
    }

    #[test]
    fn the_cluster_of_mysql_has_no_field_that_the_api_does_not_know() {
        let manifests = objects(Example::Mysql);
        let written = manifests.iter().find(|object| object["kind"] == "MySQLCluster").unwrap();
        let read: MySQLCluster = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(&serde_json::to_value(read).unwrap(), written);
    }

    #[test]
    fn the_cluster_of_tidb_runs_images_that_the_lab_has_and_has_no_field_that_the_api_does_not_know() {
        let [written] = <[Value; 1]>::try_from(objects(Example::Tidb)).unwrap();
        let version = written["spec"]["version"].as_str().unwrap();
        assert!(tidb::VERSIONS.contains(&version), "{version}");
        let read: TidbCluster = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), written);
    }
}
