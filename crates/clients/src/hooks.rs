//! Runs hooks in members' pods through the API server.
//!
//! Three ends are told apart: it ended with a code, it is unknown whether it ran, and it still runs. A hook that we stop waiting
//! for goes on in the pod: the connection is not its parent. But it is kept, so that the hook's end is heard of.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{AttachParams, AttachedProcess};
use kube::{Api, Client};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use windlass_core::gate::Permit;
use windlass_core::lane::Clustering;
use windlass_kinds::replicated::Replicated;
use windlass_kinds::replicated::facts::{Fact, Of};
use windlass_kinds::replicated::hooks::{Exec, ExecEnd, HookRun, Question};

use crate::members::{Acted, Members};

/// How much of what a hook prints is kept.
const KEPT_OUTPUT: u64 = 16 * 1024;
/// How much of its complaints is told.
const TOLD_ERRORS: usize = 256;
/// How long one request may take.
const CALL: Duration = Duration::from_secs(3);
/// How many hooks and questions run at once, over all clusters.
const AT_ONCE: usize = 256;

/// Runs hooks.
#[derive(Clone)]
pub struct Hooks {
    client: Client,
    places: std::sync::Arc<tokio::sync::Semaphore>,
}

impl Hooks {
    /// With this client.
    pub fn new(client: Client) -> Self {
        Self { client, places: std::sync::Arc::new(tokio::sync::Semaphore::new(AT_ONCE)) }
    }

    /// Runs a command. What it gets on its standard input is what it may need to know and its arguments have no room for. Besides its
    /// end, there comes back the wait for the end of a command that still runs.
    pub(crate) async fn run(&self, exec: &Exec, input: Option<String>) -> (ExecEnd, Option<BoxFuture<'static, ExecEnd>>) {
        let Ok(_place) = self.places.acquire().await else {
            return (unknown("the operator is stopping"), None);
        };
        let parameters = AttachParams::default().container(&exec.container).stdin(input.is_some()).stdout(true).stderr(true);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &exec.namespace);
        let process = match tokio::time::timeout(CALL, pods.exec(&exec.pod, &exec.command, &parameters)).await {
            Ok(Ok(mut process)) => {
                if let (Some(input), Some(mut stdin)) = (input, process.stdin()) {
                    // A hook that does not read it, or has ended already, does not miss it.
                    let _unread = stdin.write_all(input.as_bytes()).await;
                    let _closed = stdin.shutdown().await;
                }
                process
            }
            Ok(Err(error)) => return (unknown(format!("exec in pod {:?} could not be started: {error}", exec.pod)), None),
            // The request may have arrived: the hook may run. A deed on such a member is not repeated before it was asked again.
            Err(_) => return (ExecEnd::Unanswered { after: CALL }, None),
        };
        let mut end = finish(process).boxed();
        match tokio::time::timeout(exec.timeout, &mut end).await {
            Ok(end) => (end, None),
            Err(_) => (ExecEnd::StillRunning { after: exec.timeout }, Some(end)),
        }
    }

    /// Whether the pod and its container are still those that the action was decided for.
    async fn same_process(&self, exec: &Exec) -> Result<(), String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &exec.namespace);
        let pod = match tokio::time::timeout(CALL, pods.get(&exec.pod)).await {
            Ok(Ok(pod)) => pod,
            Ok(Err(error)) => return Err(format!("pod {:?} could not be read: {error}", exec.pod)),
            Err(_) => return Err(format!("pod {:?} could not be read within {} s", exec.pod, CALL.as_secs())),
        };
        let uid = pod.metadata.uid.unwrap_or_default();
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        let process =
            statuses.into_iter().find(|it| it.name == exec.container).and_then(|it| it.container_id).unwrap_or_default();
        if uid == exec.pod_uid && process == exec.process && pod.metadata.deletion_timestamp.is_none() {
            Ok(())
        } else {
            Err(format!("pod {:?} is not the one that this was decided for", exec.pod))
        }
    }
}

impl Members<Replicated> for Hooks {
    async fn probe(&self, probe: Question) -> Fact {
        let (end, _rest) = self.run(&probe.exec, None).await;
        Fact { exec: probe.exec, of: Of::Question(probe.about), end }
    }

    async fn act(&self, permit: &Permit<Clustering>, action: HookRun) -> Acted<Replicated> {
        let (end, rest) = match self.same_process(&action.exec).await {
            Ok(()) => self.run(&action.exec, Some(format!("epoch {}\n", permit.epoch()))).await,
            Err(why) => (ExecEnd::Unknown { why }, None),
        };
        let HookRun { exec, deed } = action;
        let fact = Fact { exec: exec.clone(), of: Of::Deed(deed), end };
        let rest = rest.map(|rest| rest.map(move |end| Fact { exec, of: Of::Deed(deed), end }).boxed());
        Acted { fact, rest }
    }
}

fn unknown(why: impl Into<String>) -> ExecEnd {
    ExecEnd::Unknown { why: why.into() }
}

async fn finish(mut process: AttachedProcess) -> ExecEnd {
    let (output, errors) = (process.stdout(), process.stderr());
    let Some(status) = process.take_status() else {
        return unknown("the connection has no status channel");
    };
    let (output, errors, status) = tokio::join!(read(output), read(errors), status);
    let Some(status) = status else {
        return unknown("the connection ended before the hook did");
    };
    match exit_code(&status) {
        Some(code) => ExecEnd::Exited { code, output, errors: shorten(&errors) },
        None => unknown(format!("the hook could not be run: {}", status.message.unwrap_or_default())),
    }
}

/// Reads all of a stream and keeps its beginning; a stream that is not read would block the hook.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let mut kept = Vec::new();
    // What was read before the connection broke is still worth telling.
    let _broken = (&mut stream).take(KEPT_OUTPUT).read_to_end(&mut kept).await;
    let _rest = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}

fn exit_code(status: &Status) -> Option<i32> {
    match status.status.as_deref() {
        Some("Success") => Some(0),
        _ if status.reason.as_deref() == Some("NonZeroExitCode") => {
            let causes = status.details.as_ref()?.causes.as_ref()?;
            causes.iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"))?.message.as_deref()?.parse().ok()
        }
        _ => None,
    }
}

/// The last line says most; it goes into status and Events, so it must not be long.
fn shorten(errors: &str) -> String {
    let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    last.chars().take(TOLD_ERRORS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{StatusCause, StatusDetails};

    fn failure(reason: &str, code: &str) -> Status {
        let cause = StatusCause { reason: Some("ExitCode".into()), message: Some(code.into()), field: None };
        Status {
            status: Some("Failure".into()),
            reason: Some(reason.into()),
            details: Some(StatusDetails { causes: Some(vec![cause]), ..StatusDetails::default() }),
            ..Status::default()
        }
    }

    #[test]
    fn exit_codes_are_read_and_a_hook_that_could_not_start_has_none() {
        assert_eq!(exit_code(&Status { status: Some("Success".into()), ..Status::default() }), Some(0));
        assert_eq!(exit_code(&failure("NonZeroExitCode", "8")), Some(8));
        assert_eq!(exit_code(&failure("InternalError", "8")), None);
        assert_eq!(exit_code(&failure("NonZeroExitCode", "many")), None);
        assert_eq!(exit_code(&Status::default()), None);
    }

    #[tokio::test]
    async fn a_flood_of_output_is_drained_and_only_its_beginning_kept() {
        let flood = vec![b'x'; 1_000_000];
        let kept = read(Some(std::io::Cursor::new(flood))).await;
        assert_eq!(kept.len() as u64, KEPT_OUTPUT);
    }

    #[test]
    fn the_last_line_of_the_complaints_is_told() {
        assert_eq!(shorten("a\nb\n\n"), "b");
        assert_eq!(shorten(&"x".repeat(1000)).len(), TOLD_ERRORS);
    }
}
