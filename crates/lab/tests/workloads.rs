//! What pods, volumes, names, Services and users of a lab can do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::path::Path;
use std::process::Command;

use support::{apply, eventually, fresh, kubectl, try_kubectl};
use windlass_lab::{Lab, Progress, image};

const MANIFEST: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: trial, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: trial}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: peers, namespace: trial}
spec: {selector: {app: web}, clusterIP: None, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: trial}
spec:
  serviceName: peers
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: localhost/windlass-lab-workload:1
        imagePullPolicy: Never
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: data, mountPath: /data}]
";

fn fetch(lab: &Lab, host: &str, port: &str) -> String {
    let script = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | busybox nc -w 5 {host} {port} | tail -n 1");
    let output = try_kubectl(lab, &["--namespace=trial", "exec", "web-0", "--", "sh", "-c", &script]);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn restricted_pods_have_names_services_and_volumes_and_no_way_out() {
    let lab = fresh("ltest-work").await;
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workload-image");
    let archive = image::from_recipe(&recipe).await.unwrap();
    lab.load_image(&archive).await.unwrap();
    lab.load_image(&archive).await.unwrap();

    apply(&lab, MANIFEST);
    kubectl(&lab, &["--namespace=trial", "rollout", "status", "statefulset/web", "--timeout=120s"]);
    assert_eq!(kubectl(&lab, &["--namespace=trial", "logs", "web-0"]).trim(), "hello from user 10000");

    eventually("a pod is reached by its own name", || fetch(&lab, "web-1.peers.trial.svc.cluster.local", "8080") == "web-1")
        .await;
    for pod in ["web-0", "web-1"] {
        eventually("every pod, also the caller, answers through the Service", || fetch(&lab, "web", "80") == pod).await;
    }

    let namespace = format!("--net=/run/netns/wl-{}", lab.name());
    let route = Command::new("nsenter").args([&namespace, "ip", "route", "get", "192.0.2.1"]).output().unwrap();
    assert!(!route.status.success(), "the lab has a way out: {}", String::from_utf8_lossy(&route.stdout));

    volumes_grow_and_are_deleted(&lab).await;
    users_have_only_the_rights_they_are_given(&lab);

    lab.down(&Progress::new()).await.unwrap();
    assert_eq!(lab.leftovers().unwrap(), Vec::<String>::new());
}

async fn volumes_grow_and_are_deleted(lab: &Lab) {
    let claim =
        |path: &str| kubectl(lab, &["--namespace=trial", "get", "pvc", "data-web-0", &format!("--output=jsonpath={{{path}}}")]);
    let volume = claim(".spec.volumeName");
    let patch = r#"{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}"#;
    kubectl(lab, &["--namespace=trial", "patch", "pvc", "data-web-0", "--patch", patch]);
    eventually("the claim has grown", || claim(".status.capacity.storage") == "2Gi").await;
    assert_eq!(kubectl(lab, &["get", "pv", &volume, "--output=jsonpath={.spec.capacity.storage}"]), "2Gi");

    let directory = kubectl(lab, &["get", "pv", &volume, "--output=jsonpath={.spec.hostPath.path}"]);
    assert_eq!(std::fs::read_to_string(Path::new(&directory).join("index.html")).unwrap(), "web-0\n");
    kubectl(lab, &["delete", "namespace", "trial", "--timeout=120s"]);
    eventually("the volumes are gone with their directories", || {
        kubectl(lab, &["get", "pv", "--output=name"]).is_empty() && !Path::new(&directory).exists()
    })
    .await;
}

fn users_have_only_the_rights_they_are_given(lab: &Lab) {
    let kubeconfig = lab.user_kubeconfig("bench", &["crew", "watch"]).unwrap();
    let act = |arguments: &[&str]| {
        Command::new(lab.bin_dir().join("kubectl")).arg("--kubeconfig").arg(&kubeconfig).args(arguments).output().unwrap()
    };
    let who = act(&["auth", "whoami", "--output=jsonpath={.status.userInfo}"]);
    let text = String::from_utf8_lossy(&who.stdout).into_owned();
    for part in ["\"bench\"", "\"crew\"", "\"watch\""] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!act(&["get", "nodes"]).status.success());
    let audit = std::fs::read_to_string(lab.audit_log()).unwrap();
    let refused = audit.lines().any(|line| line.contains("\"username\":\"bench\"") && line.contains("\"code\":403"));
    assert!(refused, "the refusal is in the audit log");
    kubectl(lab, &["create", "clusterrolebinding", "crew", "--clusterrole=system:node-reader", "--group=crew"]);
    kubectl(lab, &["create", "clusterrole", "system:node-reader", "--verb=list", "--resource=nodes"]);
    let nodes = act(&["get", "nodes", "--output=name"]);
    assert!(nodes.status.success(), "{}", String::from_utf8_lossy(&nodes.stderr));
}
