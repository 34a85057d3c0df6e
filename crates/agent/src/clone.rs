//! Clones this server from a donor, on behalf of the controller, and tells how that goes.
//!
//! One clone at a time, and only onto a server without transactions: a clone throws everything away. It goes on when whoever asked
//! for it hangs up. It does not survive the agent: what it left is found again by asking anew.

use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use crate::accounts::{ADMIN, AGENT, Passwords, quote};
use crate::initialise::finish_clone;
use crate::metrics::Metrics;
use crate::probes::read_clone_state;
use crate::session::{Failure, Session, Socket, code};

const BETWEEN_LOG_INS: Duration = Duration::from_millis(500);

/// What the controller asks for.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Request {
    donor_host: String,
    donor_port: u16,
    donor_user: String,
    donor_password: String,
    /// An account of the donor's that may do everything; ours when the donor is of the same cluster.
    init_user: Option<String>,
    init_password: Option<String>,
    #[serde(default = "ten_minutes")]
    boot_timeout_seconds: u64,
}

fn ten_minutes() -> u64 {
    600
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum State {
    #[default]
    None,
    Running,
    Done,
    Failed,
}

/// How the last clone goes, or went.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    donor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Why a clone is not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("a clone runs already; ask for its state with GET /v1/clone")]
    Running,
    #[error(
        "gtid_executed is {0:?}: a clone would throw these transactions away; delete the instance's volume claim and pod first"
    )]
    NotEmpty(String),
    #[error("{0}")]
    Bad(String),
    #[error("this server cannot be asked whether it is empty: {0}")]
    Unknown(#[from] Failure),
}

#[derive(Debug, thiserror::Error)]
enum CloneFailure {
    #[error(transparent)]
    Server(#[from] Failure),
    #[error("the server says that the clone failed: {code} {said}")]
    Failed { code: u16, said: String },
    #[error("the server was not back with the clone within {seconds} s; last: {last}")]
    NotBack { seconds: u64, last: String },
}

/// What is left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Everything,
    /// The data are there, from a foreign donor; an agent before this one did not come to the end.
    TheEnd,
}

/// The clones of one server.
pub(crate) struct Clones {
    socket: Socket,
    passwords: Passwords,
    metrics: Arc<Metrics>,
    place: Arc<tokio::sync::Mutex<()>>,
    report: Mutex<Report>,
}

impl Clones {
    pub(crate) fn new(socket: Socket, passwords: Passwords, metrics: Arc<Metrics>) -> Self {
        Self { socket, passwords, metrics, place: Arc::default(), report: Mutex::default() }
    }

    pub(crate) fn report(&self) -> Report {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self, change: impl FnOnce(&mut Report)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Starts a clone and returns its name.
    pub(crate) async fn start(self: &Arc<Self>, request: Request) -> Result<String, Refused> {
        check(&request).map_err(Refused::Bad)?;
        let place = Arc::clone(&self.place).try_lock_owned().map_err(|_| Refused::Running)?;
        let work = self.look(&request).await?;
        let started = Timestamp::now();
        let id = format!("clone-{}", started.as_millisecond());
        let donor = format!("{}:{}", request.donor_host, request.donor_port);
        tracing::info!(id, donor, ?work, "a clone starts");
        let (name, at) = (Some(id.clone()), Some(started));
        self.tell(|report| {
            *report = Report { state: State::Running, id: name, donor: Some(donor), started_at: at, ..Report::default() };
        });
        tokio::spawn(Arc::clone(self).carry_out(request, work, place));
        Ok(id)
    }

    /// What there is to do on this server, if anything may be done at all.
    async fn look(&self, request: &Request) -> Result<Work, Refused> {
        let mut session = match self.socket.log_in(AGENT, self.passwords.of(AGENT)).await {
            Ok(session) => session,
            // Our accounts are not there, but those of a donor may be.
            Err(failure) if failure.is_refusal() && request.init_user.is_some() => {
                let mut session = self.log_in_as_initial(request).await.map_err(|_| failure)?;
                return match read_clone_state(&mut session).await? {
                    Some(clone) if clone.state == "Completed" => Ok(Work::TheEnd),
                    _ => Err(Refused::NotEmpty("unknown: our accounts are missing, and there was no clone".to_owned())),
                };
            }
            Err(failure) => return Err(failure.into()),
        };
        let act = "reading gtid_executed";
        let executed: Option<String> = session.first(act, "SELECT @@GLOBAL.gtid_executed").await?;
        match executed {
            Some(executed) if executed.is_empty() => Ok(Work::Everything),
            // What is not told is not empty.
            executed => Err(Refused::NotEmpty(executed.unwrap_or_default().replace('\n', ""))),
        }
    }

    async fn log_in_as_initial(&self, request: &Request) -> Result<Session, Failure> {
        let user = request.init_user.as_deref().unwrap_or(ADMIN);
        let password = match &request.init_user {
            Some(_) => request.init_password.as_deref().unwrap_or_default(),
            None => self.passwords.of(ADMIN),
        };
        self.socket.log_in(user, password).await
    }

    async fn carry_out(self: Arc<Self>, request: Request, work: Work, place: OwnedMutexGuard<()>) {
        let began = std::time::Instant::now();
        self.metrics.clone_started();
        let result = self.clone_and_finish(&request, work).await;
        self.metrics.clone_ended(result.is_ok(), began.elapsed());
        match &result {
            Ok(()) => tracing::info!(seconds = began.elapsed().as_secs(), "the clone is done"),
            Err(why) => tracing::error!(%why, "the clone failed"),
        }
        let reason = result.as_ref().err().map(ToString::to_string);
        let state = if result.is_ok() { State::Done } else { State::Failed };
        // The place is free before that is told: whoever reads it may ask again at once.
        drop(place);
        self.tell(|report| *report = Report { state, reason, ended_at: Some(Timestamp::now()), ..report.clone() });
    }

    async fn clone_and_finish(&self, request: &Request, work: Work) -> Result<(), CloneFailure> {
        let mut session = match work {
            Work::Everything => {
                self.copy(request).await?;
                self.wait_until_back(request).await?
            }
            Work::TheEnd => self.log_in_as_initial(request).await?,
        };
        finish_clone(&mut session, &self.passwords).await?;
        Ok(())
    }

    /// Copies the data. The server stops at the end of it.
    async fn copy(&self, request: &Request) -> Result<(), Failure> {
        let mut session = self.socket.log_in(AGENT, self.passwords.of(AGENT)).await?;
        session.run("naming the donor", &build_donor_list(request)).await?;
        match session.run_secretly("CLONE INSTANCE", &build_statement(request), &request.donor_password).await {
            // It cannot start itself again, so it stops; who supervises it starts it.
            Err(failure) if failure.code() == Some(code::NO_SUPERVISOR) => Ok(()),
            // It is gone. Whether it had finished is asked when it is back.
            Err(failure) if failure.code().is_none() => {
                tracing::info!(%failure, "the server went away during the clone");
                Ok(())
            }
            answer => answer,
        }
    }

    async fn wait_until_back(&self, request: &Request) -> Result<Session, CloneFailure> {
        let deadline = Instant::now() + Duration::from_secs(request.boot_timeout_seconds);
        loop {
            let last = match self.look_for_clone(request).await {
                Ok((session, Some(clone))) => match (clone.state.as_str(), clone.code) {
                    ("Completed", _) => return Ok(session),
                    // The server that stops says so of itself; the one that comes after it does not.
                    ("Failed", code) if code != code::NO_SUPERVISOR => {
                        return Err(CloneFailure::Failed { code, said: clone.said });
                    }
                    (state, _) => format!("the state of the clone is {state:?}"),
                },
                Ok((_, None)) => "the server knows of no clone".to_owned(),
                Err(failure) => failure.to_string(),
            };
            if Instant::now() >= deadline {
                return Err(CloneFailure::NotBack { seconds: request.boot_timeout_seconds, last });
            }
            tokio::time::sleep(BETWEEN_LOG_INS).await;
        }
    }

    async fn look_for_clone(&self, request: &Request) -> Result<(Session, Option<crate::probes::CloneState>), Failure> {
        let mut session = self.log_in_as_initial(request).await?;
        let state = read_clone_state(&mut session).await?;
        Ok((session, state))
    }
}

/// What the server would refuse with words that help nobody.
fn check(request: &Request) -> Result<(), String> {
    let host = request.donor_host.trim_matches(['[', ']']);
    if host.is_empty() || request.donor_user.is_empty() {
        return Err("donorHost and donorUser must not be empty".to_owned());
    }
    if host.parse::<Ipv6Addr>().is_ok() {
        return Err(format!("donorHost {host:?} is an IPv6 address, which CLONE does not take; give a host name"));
    }
    Ok(())
}

fn build_donor_list(request: &Request) -> String {
    format!("SET GLOBAL clone_valid_donor_list = {}", quote(&format!("{}:{}", request.donor_host, request.donor_port)))
}

fn build_statement(request: &Request) -> String {
    let Request { donor_host, donor_port, donor_user, donor_password, .. } = request;
    let (user, host, password) = (quote(donor_user), quote(donor_host), quote(donor_password));
    format!("CLONE INSTANCE FROM {user}@{host}:{donor_port} IDENTIFIED BY {password}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(host: &str) -> Request {
        let text = format!(
            r#"{{"donorHost": "{host}", "donorPort": 3306, "donorUser": "moco-clone-donor", "donorPassword": "it's"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_statements_name_the_donor_and_quote_its_password() {
        let request = request("moco-a-0.moco-a.n.svc");
        assert_eq!(build_donor_list(&request), "SET GLOBAL clone_valid_donor_list = 'moco-a-0.moco-a.n.svc:3306'");
        assert_eq!(
            build_statement(&request),
            "CLONE INSTANCE FROM 'moco-clone-donor'@'moco-a-0.moco-a.n.svc':3306 IDENTIFIED BY 'it''s'"
        );
        assert_eq!(request.boot_timeout_seconds, 600);
    }

    #[test]
    fn an_ipv6_address_is_refused_before_the_server_does() {
        assert!(check(&request("10.0.0.1")).is_ok());
        assert!(check(&request("fd00::1")).unwrap_err().contains("host name"));
        assert!(check(&request("[fd00::1]")).is_err());
        assert!(check(&request("")).is_err());
    }

    #[test]
    fn a_report_has_only_what_is_known() {
        assert_eq!(serde_json::to_string(&Report::default()).unwrap(), r#"{"state":"none"}"#);
    }
}
