//! TiDB on the lab: the real PD, and stand-ins for the programs that cannot be had as packages.
//!
//! What the stand-ins do, and how they are told to do it slowly or wrong, is in `tools/tidb-standin/README.md`. They are got ready only
//! when somebody asks for them: a lab does not need them.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::gobuild::{self, GoTool};
use crate::progress::Progress;
use crate::{Lab, artifacts, cache, image};

/// The versions that there are images of; the second is there to be upgraded to.
pub const VERSIONS: [&str; 2] = ["v8.1.0", "v8.1.1"];

/// What the names of the images begin with: the image of TiKV is `windlass.dev/lab/tikv:v8.1.0`.
pub const REGISTRY: &str = "windlass.dev/lab";

const RECIPE: &str = include_str!("../images/tidb/image.yaml");

/// Where PD and the stand-ins are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The real `pd-server`, of each of the [`VERSIONS`].
    pub pd_servers: [PathBuf; VERSIONS.len()],
    /// The stand-in for all others: the program that it stands in for is its first argument.
    pub standin: PathBuf,
}

const PD_FILES: &[(&str, &str)] = &[
    ("go.mod", include_str!("../tools/pd/go.mod")),
    ("go.sum", include_str!("../tools/pd/go.sum")),
    ("tools.go", include_str!("../tools/pd/tools.go")),
];

/// Both are made from the same source, of the time of 8.1.0: a second version differs in what it says of itself.
const PD: [GoTool; VERSIONS.len()] = [
    pd("8.1.0", "-s -w -X github.com/tikv/pd/pkg/versioninfo.PDReleaseVersion=v8.1.0"),
    pd("8.1.1", "-s -w -X github.com/tikv/pd/pkg/versioninfo.PDReleaseVersion=v8.1.1"),
];

const fn pd(version: &'static str, linker_flags: &'static str) -> GoTool {
    GoTool {
        name: "pd",
        version,
        files: PD_FILES,
        packages: &["github.com/tikv/pd/cmd/pd-server"],
        // The dashboard is another program's source, and large.
        tags: "without_dashboard",
        linker_flags,
        static_only: true,
        cold: "about 5 minutes on two cores, seconds for the second version",
    }
}

/// The stand-in's sources by their names.
macro_rules! sources {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../tools/tidb-standin/", $name)))),*] };
}

const STANDIN: GoTool = GoTool {
    name: "tidb-standin",
    version: "1",
    files: sources!(
        "go.mod" "go.sum" "main.go"
        "pd/client.go"
        "program/faults.go" "program/http.go" "program/program.go" "program/security.go"
        "pump/pump.go"
        "region/region.go"
        "registry/registry.go"
        "store/disk.go" "store/elect.go" "store/heartbeat.go" "store/operate.go" "store/options.go" "store/pace.go" "store/peers.go"
        "store/split.go" "store/start.go" "store/status.go" "store/store.go"
        "ticdc/api.go" "ticdc/plan.go" "ticdc/ticdc.go"
        "tidb/greeting.go" "tidb/tidb.go"
        "tiproxy/tiproxy.go"
    ),
    packages: &["windlass.dev/lab/tidb-standin"],
    tags: "",
    linker_flags: "-s -w",
    static_only: true,
    cold: "about 1 minute",
};

/// Gets PD and the stand-ins into the cache.
pub async fn programs(progress: &Progress) -> Result<Programs> {
    let tools: Vec<&GoTool> = PD.iter().chain([&STANDIN]).collect();
    artifacts::announce_tools(*progress, &tools, Vec::new())?;
    // Not the lock of the lab's own parts: whoever wants a lab need not wait for PD.
    let note = *progress;
    let _lock = cache::lock(cache::root()?.join("tidb.lock"), move || {
        note.note("somebody else is building PD and the stand-ins: waiting for it");
    })
    .await?;
    for tool in tools {
        gobuild::ensure(tool, progress).await?;
    }
    let [first, second] = &PD;
    Ok(Programs {
        pd_servers: [gobuild::directory(first)?.join("pd-server"), gobuild::directory(second)?.join("pd-server")],
        standin: gobuild::directory(&STANDIN)?.join("tidb-standin"),
    })
}

/// Makes the archive of all the images, or finds it in the cache.
pub async fn images(progress: &Progress) -> Result<PathBuf> {
    let programs = programs(progress).await?;
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/tidb");
    image::from_text(&recipe(&programs), &directory, progress).await
}

/// Makes the images and loads them into a lab.
pub async fn load(lab: &Lab, progress: &Progress) -> Result<()> {
    let archive = images(progress).await?;
    progress.step(format!("loading {REGISTRY}/*"), lab.load_image(&archive)).await
}

/// The recipe with the paths of the programs that were built.
fn recipe(programs: &Programs) -> String {
    let standin = ("{tidb-standin}".to_owned(), &programs.standin);
    let servers = VERSIONS.iter().zip(&programs.pd_servers).map(|(version, path)| (format!("{{pd-server {version}}}"), path));
    servers.chain([standin]).fold(RECIPE.to_owned(), |text, (name, path)| text.replace(&name, &path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The names below a directory of sources, without tests and what is for people.
    fn names(directory: &Path, prefix: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                found.extend(names(&entry.path(), &format!("{name}/")));
            } else if name != "README.md" && !name.ends_with("_test.go") {
                found.insert(name);
            }
        }
        found
    }

    #[test]
    fn the_stand_in_is_built_from_all_its_sources() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/tidb-standin");
        let listed: BTreeSet<String> = STANDIN.files.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(listed, names(&directory, ""));
    }

    #[test]
    fn every_version_has_all_images_and_its_own_pd() {
        let programs =
            Programs { pd_servers: ["/c/one/pd-server".into(), "/c/two/pd-server".into()], standin: "/c/tidb-standin".into() };
        let text = recipe(&programs);
        for path in ["/c/one/pd-server", "/c/two/pd-server", "/c/tidb-standin"] {
            assert!(text.contains(&format!("from: \"{path}\"")), "{text}");
        }
        let recipe: image::Recipe = serde_saphyr::from_str(&text).unwrap();
        let names: BTreeSet<&String> = std::iter::once(&recipe.name).chain(recipe.also.iter().map(|also| &also.name)).collect();
        for version in VERSIONS {
            for program in ["pd", "ticdc", "tidb", "tidb-binlog", "tiflash", "tikv", "tiproxy"] {
                assert!(names.contains(&format!("{REGISTRY}/{program}:{version}")), "{program} {version}");
            }
            let server = format!("/usr/local/lib/windlass-lab/pd-server-{version}");
            assert!(recipe.files.iter().any(|file| file.to == server), "{server}");
        }
    }
}
