//! A lab comes up, survives nothing on purpose, and leaves nothing behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use support::{apply, eventually, fresh, kubectl};
use windlass_lab::{Lab, Progress};

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: idle}
spec:
  containers:
  - {name: idle, image: 'localhost/windlass-lab-pause:1', imagePullPolicy: Never}
";

fn run_pod(lab: &Lab) {
    apply(lab, POD);
    kubectl(lab, &["wait", "--for=condition=Ready", "pod/idle", "--timeout=120s"]);
}

/// Looks at the machine by other means than the library does.
fn traces(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let parts = [format!("/labs/{name}/"), format!("/run/windlass/{name}/"), format!("/run/netns/wl-{name} ")];
    found.extend(mounts.lines().filter(|line| parts.iter().any(|part| line.contains(part.as_str()))).map(str::to_owned));
    let processes = Command::new("ps").args(["-eo", "stat=,args="]).output().unwrap();
    found.extend(
        String::from_utf8_lossy(&processes.stdout)
            .lines()
            .filter(|line| !line.starts_with('Z') && parts.iter().any(|part| line.contains(part.as_str())))
            .map(str::to_owned),
    );
    let links = Command::new("ip").args(["-oneline", "link", "show"]).output().unwrap();
    let interface = format!("wl-{name}@");
    found.extend(String::from_utf8_lossy(&links.stdout).lines().filter(|line| line.contains(&interface)).map(str::to_owned));
    let groups = Command::new("find").args(["/sys/fs/cgroup", "-name", &format!("windlass-{name}")]).output().unwrap();
    found.extend(String::from_utf8_lossy(&groups.stdout).lines().map(str::to_owned));
    found
}

async fn kill(lab: &Lab, names: &[&str]) {
    for process in lab.status().await.processes.iter().filter(|process| names.contains(&process.name.as_str())) {
        assert!(Command::new("kill").args(["-9", &process.pid.to_string()]).status().unwrap().success());
    }
    assert!(!lab.status().await.healthy);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_starts_afresh_after_a_crash_and_leaves_nothing_behind() {
    let progress = Progress::new();
    let lab = fresh("ltest").await;
    run_pod(&lab);
    assert!(!traces("ltest").is_empty());

    let before: Vec<i32> = lab.status().await.processes.iter().map(|process| process.pid).collect();
    lab.up(&progress).await.unwrap();
    let after: Vec<i32> = lab.status().await.processes.iter().map(|process| process.pid).collect();
    assert_eq!(before, after, "a healthy lab is left alone");

    // The pod's own process outlives these, and so do its mounts and its namespace.
    kill(&lab, &["containerd", "kubelet", "etcd"]).await;
    let began = Instant::now();
    lab.up(&progress).await.unwrap();
    assert!(began.elapsed() < Duration::from_mins(1), "a warm start took {:?}", began.elapsed());
    assert_eq!(kubectl(&lab, &["get", "pods", "--output=name"]), "");
    run_pod(&lab);

    // Processes are found even when the lab has forgotten them.
    kill(&lab, &["kube-apiserver"]).await;
    std::fs::remove_dir_all(lab.log_dir().with_file_name("processes")).unwrap();
    lab.down(&progress).await.unwrap();
    assert_eq!(lab.leftovers().unwrap(), Vec::<String>::new());
    assert_eq!(traces("ltest"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_labs_do_not_see_each_other_and_the_end_of_one_spares_the_other() {
    let progress = Progress::new();
    let (one, two) = (fresh("ltest-one").await, fresh("ltest-two").await);
    assert_ne!(one.status().await.address, two.status().await.address);
    run_pod(&one);
    run_pod(&two);
    one.down(&progress).await.unwrap();
    assert_eq!(one.leftovers().unwrap(), Vec::<String>::new());
    assert_eq!(traces("ltest-one"), Vec::<String>::new());
    assert!(two.status().await.healthy);
    kubectl(&two, &["delete", "pod", "idle", "--grace-period=1"]);
    eventually("the second lab still runs pods", || {
        apply(&two, POD);
        kubectl(&two, &["get", "pod", "idle", "--output=jsonpath={.status.phase}"]) == "Running"
    })
    .await;
    two.down(&progress).await.unwrap();
    assert_eq!(traces("ltest-two"), Vec::<String>::new());
}
