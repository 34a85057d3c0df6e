//! What the tests of a whole lab share.

mod wait;

use std::process::{Command, Output, Stdio};

use windlass_lab::{Lab, Progress};

pub use wait::eventually;

/// A lab that begins as nothing, whatever an earlier run of the test left.
pub async fn fresh(name: &str) -> Lab {
    let lab = Lab::named(name).unwrap();
    lab.down(&Progress::new()).await.unwrap();
    assert_eq!(lab.leftovers().unwrap(), Vec::<String>::new());
    lab.up(&Progress::new()).await.unwrap();
    lab
}

/// Runs kubectl as the administrator and returns what it printed.
pub fn kubectl(lab: &Lab, arguments: &[&str]) -> String {
    let output = try_kubectl(lab, arguments);
    assert!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub fn try_kubectl(lab: &Lab, arguments: &[&str]) -> Output {
    Command::new(lab.bin_dir().join("kubectl"))
        .arg("--kubeconfig")
        .arg(lab.kubeconfig())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Applies a manifest.
pub fn apply(lab: &Lab, manifest: &str) {
    use std::io::Write as _;
    let mut child = Command::new(lab.bin_dir().join("kubectl"))
        .arg("--kubeconfig")
        .arg(lab.kubeconfig())
        .args(["apply", "--filename", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "kubectl did not apply:\n{manifest}");
}
