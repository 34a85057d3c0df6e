//! The API server, with an audit log of every request.

use anyhow::Result;

use crate::artifacts::Artifacts;
use crate::certificates::{self, Authority};
use crate::components::{etcd, path_flag, write};
use crate::layout::Layout;
use crate::network::{KUBERNETES_SERVICE, Link, SERVICE_RANGE};
use crate::process::Program;

/// The user as which the API server calls the kubelet.
pub(crate) const KUBELET_CLIENT: &str = "kube-apiserver-kubelet-client";

/// Users in this group are told in full by the audit log: what they wrote and what the server made of it.
pub const TOLD_IN_FULL: &str = "windlass-lab:told-in-full";

/// Who did what to which object with what result, for every request; the start of a request tells
/// nothing that its end does not. Versions of objects are told of those who ask for it: from them
/// alone is known in which order the server took writes that were under way at the same time.
fn audit_policy() -> String {
    format!(
        "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  userGroups: [{TOLD_IN_FULL:?}]
  verbs: [create, update, patch, delete]
  omitManagedFields: true
- level: Metadata
"
    )
}

pub(crate) fn program(layout: &Layout, artifacts: &Artifacts, link: Link, authority: &Authority) -> Result<Program> {
    let hosts =
        ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
    authority
        .server("kube-apiserver", &hosts, &[link.node, KUBERNETES_SERVICE, std::net::Ipv4Addr::LOCALHOST])?
        .write(layout, "apiserver")?;
    authority.client(KUBELET_CLIENT, &[])?.write(layout, "apiserver-kubelet")?;
    certificates::write_token_keys(layout)?;
    let policy = layout.configuration_file("audit-policy.yaml");
    write(&policy, &audit_policy())?;
    Ok(Program {
        name: "kube-apiserver",
        executable: artifacts.kubernetes.join("kube-apiserver"),
        arguments: vec![
            format!("--etcd-servers={}", etcd::ADDRESS),
            format!("--advertise-address={}", link.node),
            "--secure-port=6443".to_owned(),
            path_flag("tls-cert-file", &layout.key_file("apiserver.crt")),
            path_flag("tls-private-key-file", &layout.key_file("apiserver.key")),
            path_flag("client-ca-file", &layout.key_file("ca.crt")),
            path_flag("service-account-key-file", &layout.key_file("tokens.pub")),
            path_flag("service-account-signing-key-file", &layout.key_file("tokens.key")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-cluster-ip-range={SERVICE_RANGE}"),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            "--allow-privileged=true".to_owned(),
            path_flag("kubelet-certificate-authority", &layout.key_file("ca.crt")),
            path_flag("kubelet-client-certificate", &layout.key_file("apiserver-kubelet.crt")),
            path_flag("kubelet-client-key", &layout.key_file("apiserver-kubelet.key")),
            // Otherwise `kubectl logs` and `exec` look up the node's name, which no server knows.
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            path_flag("audit-policy-file", &policy),
            path_flag("audit-log-path", &layout.audit_log()),
            // In megabytes: never rotated, so that whoever counts entries reads one file.
            "--audit-log-maxsize=1000000".to_owned(),
        ],
    })
}
