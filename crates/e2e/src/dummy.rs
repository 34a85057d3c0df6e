//! A light `ReplicatedStatefulSet`: its members are shells, and a file says whether one "runs".
//!
//! Each member keeps what it is in `/state`: `running` and `data` are its state, `hooks` has one line per hook that changed
//! something, and a start waits while there is a file `hold`. `epoch` is the highest epoch that it was told, and `refused` has one
//! line per hook that it did not run because it came from a former leader.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::place::Place;
use crate::process::OWN;
use crate::wait::{LONG, wait_for};

/// The image of the Galera example has a shell, and is in the lab anyway.
const IMAGE: &str = "localhost/windlass-galera:1";

/// Refuses a hook whose caller is not the newest, or went away before it said who it is. Without a pipe, a person runs it.
const FENCE: &str = r#"refuse() { echo "$1" >>/state/refused; echo "refused: $1" >&2; exit 76; }
if test -p /dev/stdin; then
read -r -t 30 word epoch && test "$word" = epoch || refuse "no epoch"
exec 9>>/state/epoch.lock; flock 9; seen=$(cat /state/epoch 2>/dev/null || echo 0)
test "$epoch" -ge "$seen" || refuse "epoch $epoch, $seen was seen"
echo "$epoch" >/state/epoch; exec 9>&-
fi"#;
const HOLD: &str = "while test -e /state/hold; do sleep 0.1; done";
const SEQUENCE: &str = r#"if test -f /state/data; then
echo '{"history":"one","sequence":1,"safe":false,"kind":"clean"}'
else echo '{"history":null,"sequence":null,"safe":false,"kind":"none"}'; fi"#;

fn shell(script: &str) -> Value {
    json!({ "command": ["/bin/bash", "-c", script] })
}

/// A hook that changes something.
fn deed(script: &str) -> Value {
    shell(&format!("{FENCE}\n{script}"))
}

/// The manifest of a light cluster.
pub fn manifest(name: &str, replicas: u16) -> Value {
    json!({
        "apiVersion": "clusterlabs.org/v1alpha1",
        "kind": "ReplicatedStatefulSet",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "reconcileInterval": "10s",
            "servicePorts": [{ "name": "main", "port": 3306 }],
            "pod": {
                "terminationGracePeriodSeconds": 2,
                "containers": [{
                    "name": "member",
                    "image": IMAGE,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["/bin/bash", "-c", "trap 'exit 0' TERM; sleep infinity & wait"],
                    "resources": { "requests": { "cpu": "10m", "memory": "16Mi" } },
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 10000,
                        "allowPrivilegeEscalation": false,
                        "capabilities": { "drop": ["ALL"] },
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "volumeMounts": [{ "name": "state", "mountPath": "/state" }],
                    // A busy machine takes its time to run even this; a member that is told unready for it would be news of the machine.
                    "readinessProbe": {
                        "exec": { "command": ["test", "-f", "/state/running"] },
                        "periodSeconds": 1,
                        "timeoutSeconds": 5,
                        "failureThreshold": 1,
                    },
                }],
                "volumes": [{ "name": "state", "emptyDir": {} }],
                "commands": {
                    "sequence": shell(SEQUENCE),
                    "status": shell("test -f /state/running && exit 8; exit 7"),
                    "stop": deed("echo stop >>/state/hooks; rm -f /state/running"),
                    "seed": deed(&format!("echo seed >>/state/hooks; {HOLD}; touch /state/data /state/running")),
                    "primary": deed(&format!("echo primary >>/state/hooks; {HOLD}; touch /state/data /state/running")),
                },
            },
        },
    })
}

/// The manifest of a light cluster that operators which run as processes look after.
pub fn manifest_for(own: &str, name: &str, replicas: u16) -> Value {
    let mut manifest = manifest(name, replicas);
    manifest["metadata"]["labels"] = json!({ OWN: own });
    manifest
}

/// Makes it a cluster whose pods no node takes: it costs next to nothing.
pub fn unplaced(mut manifest: Value) -> Value {
    manifest["spec"]["nodeSelector"] = json!({ "windlass.dev/no-such-node": "true" });
    manifest
}

impl Place {
    /// Makes a light cluster and waits until it is Ready.
    pub async fn dummy(&self, name: &str, replicas: u16) -> Result<Cluster> {
        self.apply(&[manifest(name, replicas)]).await?;
        let cluster = self.cluster(name)?;
        cluster.wait_until_ready(replicas).await?;
        Ok(cluster)
    }
}

impl Cluster {
    /// Makes a member of a light cluster stop, as a crash does.
    pub async fn crash(&self, ordinal: u16) -> Result<()> {
        self.place.shell(&self.pod(ordinal), "rm /state/running").await.map(drop)
    }

    /// Whether a member of a light cluster runs.
    pub async fn runs(&self, ordinal: u16) -> Result<bool> {
        Ok(self.place.run(&self.pod(ordinal), &["test", "-f", "/state/running"]).await?.code == 0)
    }

    /// Waits until a member of a light cluster runs.
    pub async fn wait_until_runs(&self, ordinal: u16) -> Result<()> {
        wait_for(&format!("member {ordinal} runs"), LONG, async || {
            ensure!(self.runs(ordinal).await.context("not asked")?, "it does not run");
            Ok(())
        })
        .await
    }

    /// The hooks that changed something in the members of a light cluster, as the members saw them.
    pub async fn hooks(&self, replicas: u16) -> Result<Vec<String>> {
        self.noted(replicas, "hooks").await
    }

    /// The hooks that members of a light cluster refused, and why.
    pub async fn refused_hooks(&self, replicas: u16) -> Result<Vec<String>> {
        self.noted(replicas, "refused").await
    }

    async fn noted(&self, replicas: u16, file: &str) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for pod in self.pods(replicas) {
            let lines = self.place.shell(&pod, &format!("cat /state/{file} 2>/dev/null || true")).await?;
            all.extend(lines.lines().map(|line| format!("{line} {pod}")));
        }
        Ok(all)
    }
}
