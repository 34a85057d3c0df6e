//! What is in the images, looked at by other means than the library's.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use windlass_lab::{Progress, tidb};

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a script in the image prints.
fn inside(root: &Path, version: &str, script: &str) -> String {
    let variables = ["PATH=/usr/local/bin:/usr/bin:/bin".to_owned(), format!("STANDIN_VERSION={version}")];
    output(Command::new("chroot").arg(root).args(["/usr/bin/env", "-i"]).args(variables).args(["/bin/sh", "-c", script]))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_images_run_each_program_under_its_name_and_version() {
    let archive = tidb::images(&Progress::new()).await.unwrap();
    let manifest =
        output(Command::new("tar").arg("--extract").arg("--to-stdout").arg("--file").arg(&archive).arg("manifest.json"));
    let images: Vec<Value> = serde_json::from_str(&manifest).unwrap();
    // Each has a name and a configuration of its own: a container's status tells which image it runs.
    for key in ["/RepoTags/0", "/Config"] {
        let different: BTreeSet<&str> = images.iter().map(|image| image.pointer(key).unwrap().as_str().unwrap()).collect();
        assert_eq!(different.len(), 7 * tidb::VERSIONS.len(), "{different:?}");
    }
    let layer = images[0]["Layers"][0].as_str().unwrap();
    assert!(images.iter().all(|image| image["Layers"] == images[0]["Layers"]), "the content is there more than once");

    let root = std::env::temp_dir().join(format!("windlass-standin-image-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    let unpack = "tar --extract --to-stdout --file \"$0\" \"$1\" | tar --extract --directory \"$2\"";
    output(Command::new("sh").args(["-c", unpack]).arg(&archive).arg(layer).arg(&root));
    for version in tidb::VERSIONS {
        for program in ["/pd-server", "/tikv-server", "/tidb-server", "/tiflash/tiflash", "/cdc", "/bin/tiproxy", "/pump"] {
            let said = inside(&root, version, &format!("{program} -V"));
            assert!(said.starts_with(&format!("Release Version: {version}")), "{program}: {said}");
            assert_eq!(said.contains("stand-in"), program != "/pd-server", "{program}: {said}");
        }
    }
    // What start scripts take for granted.
    inside(&root, "", "set -euo pipefail; [[ a == a ]]; source /etc/os-release; sleep $((RANDOM * 0)); echo $HOSTNAME");
    inside(
        &root,
        "",
        "for each in awk base64 cat getent grep hostname nslookup sed sleep tail tr wget; do command -v $each; done",
    );
    std::fs::remove_dir_all(&root).unwrap();
}
