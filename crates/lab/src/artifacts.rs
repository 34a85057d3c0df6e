//! What the lab is made of: every version in one place, and how to get it all into the cache.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use tokio::process::Command;

use crate::gobuild::{self, GoTool};
use crate::progress::Progress;
use crate::{apt, cache, command};

/// The Kubernetes that the lab runs.
pub const KUBERNETES_VERSION: &str = "1.34.4";

/// The Helm that is built beside it.
const HELM_VERSION: &str = "4.3.1";

/// The reference of the sandbox image.
pub(crate) const PAUSE_IMAGE: &str = "localhost/windlass-lab-pause:1";

/// Debian packages whose programs the lab calls.
const PACKAGES: [&str; 8] =
    ["ca-certificates", "conntrack", "containerd", "containernetworking-plugins", "iproute2", "iptables", "mmdebstrap", "runc"];

const KUBERNETES: GoTool = GoTool {
    name: "kubernetes",
    version: KUBERNETES_VERSION,
    files: &[
        ("go.mod", include_str!("../tools/kubernetes/go.mod")),
        ("go.sum", include_str!("../tools/kubernetes/go.sum")),
        ("tools.go", include_str!("../tools/kubernetes/tools.go")),
    ],
    packages: &[
        "k8s.io/kubernetes/cmd/kube-apiserver",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-proxy",
        "k8s.io/kubernetes/cmd/kube-scheduler",
        "k8s.io/kubernetes/cmd/kubectl",
        "k8s.io/kubernetes/cmd/kubelet",
    ],
    tags: "",
    linker_flags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.34.4 \
                   -X k8s.io/component-base/version.gitMajor=1 \
                   -X k8s.io/component-base/version.gitMinor=34 \
                   -X k8s.io/client-go/pkg/version.gitVersion=v1.34.4",
    static_only: false,
    cold: "about 13 minutes on two cores, half of it download",
};

const ETCD: GoTool = GoTool {
    name: "etcd",
    version: "3.6.16",
    files: &[
        ("go.mod", include_str!("../tools/etcd/go.mod")),
        ("go.sum", include_str!("../tools/etcd/go.sum")),
        ("main.go", include_str!("../tools/etcd/main.go")),
    ],
    packages: &["windlass.dev/lab/etcd"],
    tags: "",
    linker_flags: "-s -w",
    static_only: false,
    cold: "about 1 minute",
};

const COREDNS: GoTool = GoTool {
    name: "coredns",
    version: "1.12.4",
    files: &[
        ("go.mod", include_str!("../tools/coredns/go.mod")),
        ("go.sum", include_str!("../tools/coredns/go.sum")),
        ("main.go", include_str!("../tools/coredns/main.go")),
    ],
    packages: &["windlass.dev/lab/coredns"],
    tags: "",
    linker_flags: "-s -w",
    static_only: false,
    cold: "about 2 minutes",
};

const PAUSE: GoTool = GoTool {
    name: "pause",
    version: "1",
    files: &[("go.mod", include_str!("../tools/pause/go.mod")), ("main.go", include_str!("../tools/pause/main.go"))],
    packages: &["windlass.dev/lab/pause"],
    tags: "",
    linker_flags: "-s -w",
    static_only: true,
    cold: "seconds",
};

const HELM: GoTool = GoTool {
    name: "helm",
    version: HELM_VERSION,
    files: &[
        ("go.mod", include_str!("../tools/helm/go.mod")),
        ("go.sum", include_str!("../tools/helm/go.sum")),
        ("tools.go", include_str!("../tools/helm/tools.go")),
    ],
    packages: &["helm.sh/helm/v4/cmd/helm"],
    tags: "",
    linker_flags: "-s -w -X helm.sh/helm/v4/internal/version.version=v4.3.1 -X helm.sh/helm/v4/internal/version.metadata=",
    static_only: false,
    cold: "about 3 minutes on two cores",
};

/// The order is that of the build: the slow one first, so that its cost is seen first.
const TOOLS: [&GoTool; 5] = [&KUBERNETES, &HELM, &ETCD, &COREDNS, &PAUSE];

/// Where everything is, once it is there.
#[derive(Clone, Debug)]
pub(crate) struct Artifacts {
    pub(crate) kubernetes: PathBuf,
    pub(crate) etcd: PathBuf,
    pub(crate) coredns: PathBuf,
    pub(crate) pause: PathBuf,
    pub(crate) provisioner: PathBuf,
}

/// The directory that holds kubectl, whether it is built yet or not.
pub(crate) fn kubernetes_directory() -> Result<PathBuf> {
    gobuild::directory(&KUBERNETES)
}

/// The directory that holds helm, whether it is built yet or not.
pub(crate) fn helm_directory() -> Result<PathBuf> {
    gobuild::directory(&HELM)
}

/// Gets helm alone into the cache; it needs no lab.
pub(crate) async fn ensure_helm(progress: &Progress) -> Result<PathBuf> {
    let helm = helm_directory()?.join("helm");
    if !helm.exists() {
        announce_tools(*progress, &[&HELM], Vec::new())?;
        let _lock = lock(progress).await?;
        gobuild::ensure(&HELM, progress).await?;
    }
    Ok(helm)
}

async fn lock(progress: &Progress) -> Result<cache::Lock> {
    let progress = *progress;
    cache::lock(cache::root()?.join("artifacts.lock"), move || {
        progress.note("another lab is building the same things: waiting for it");
    })
    .await
}

/// Gets everything into the cache that is not there yet.
pub(crate) async fn ensure(progress: &Progress) -> Result<Artifacts> {
    announce(progress).await?;
    let _lock = lock(progress).await?;
    apt::ensure(&PACKAGES, progress).await?;
    for tool in TOOLS {
        gobuild::ensure(tool, progress).await?;
    }
    let provisioner = ensure_provisioner(progress).await?;
    Ok(Artifacts {
        kubernetes: gobuild::directory(&KUBERNETES)?,
        etcd: gobuild::directory(&ETCD)?.join("etcd"),
        coredns: gobuild::directory(&COREDNS)?.join("coredns"),
        pause: gobuild::directory(&PAUSE)?.join("pause"),
        provisioner,
    })
}

/// A cold start takes long: says what it will do before it does.
async fn announce(progress: &Progress) -> Result<()> {
    let packages = apt::missing(&PACKAGES).await?;
    let mut lines = Vec::new();
    if !packages.is_empty() {
        lines.push(format!("  Debian packages {}: about 1 minute", packages.join(" ")));
    }
    announce_tools(*progress, &TOOLS, lines)
}

/// Says which of these programs are to be built, after what else there is to say.
pub(crate) fn announce_tools(progress: Progress, tools: &[&GoTool], mut lines: Vec<String>) -> Result<()> {
    for tool in tools {
        if !gobuild::directory(tool)?.exists() {
            lines.push(format!("  {} {}: {} (less when Go's own caches are warm)", tool.name, tool.version, tool.cold));
        }
    }
    if !lines.is_empty() {
        progress.note("Not in the cache yet, so it will be fetched and built once:");
        for line in lines {
            progress.note(&line);
        }
    }
    Ok(())
}

/// What the volume provisioner is made from: while none of it changes, the cached program serves.
const PROVISIONER_SOURCES: [(&str, &str); 5] = [
    ("bin", include_str!("bin/provisioner.rs")),
    ("cache", include_str!("cache.rs")),
    ("kubeconfig", include_str!("kubeconfig.rs")),
    ("provisioner", include_str!("provisioner.rs")),
    ("quantity", include_str!("../../core/src/quantity.rs")),
];

fn provisioner_path() -> Result<PathBuf> {
    let key = PROVISIONER_SOURCES.iter().fold(cache::Key::default(), |key, (name, text)| key.add(name, text.as_bytes()));
    Ok(cache::root()?.join("tools").join(format!("provisioner-{}", key.finish())))
}

/// The volume provisioner is a program of this crate. Whoever calls the library was built without
/// it, so cargo is asked for it.
async fn ensure_provisioner(progress: &Progress) -> Result<PathBuf> {
    let path = provisioner_path()?;
    if !path.exists() {
        let built = progress.step("compiling the volume provisioner", build_provisioner()).await?;
        let partial = cache::partial(&path);
        std::fs::copy(&built, &partial).with_context(|| format!("cannot copy {}", built.display()))?;
        std::fs::rename(&partial, &path).with_context(|| format!("cannot name the finished {}", path.display()))?;
    }
    Ok(path)
}

async fn build_provisioner() -> Result<PathBuf> {
    const NAME: &str = "windlass-lab-provisioner";

    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
    }

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["build", "--quiet", "--locked", "--package", "windlass-lab", "--bin", NAME])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command::output(build).await.context("cannot build the lab's volume provisioner")?;
    output
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok()?.executable)
        .find(|path| path.file_name().is_some_and(|name| name == NAME))
        .context("cargo built the volume provisioner but did not say where it is")
}
