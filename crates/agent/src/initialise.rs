//! The first initialisation of a server, and what follows a clone: accounts, plugins, read-only.
//!
//! The account root@localhost without a password is the proof that the first initialisation is not finished: it goes last, and until
//! then everything is done again from the start. Every step can be repeated, and none writes to the binary log, so a server that was
//! prepared has no GTIDs of its own. While the accounts are made, `read_only` stays ON: only super users can write.

use crate::accounts::{ADMIN, Passwords, build_statements};
use crate::plugins::{self, Choice};
use crate::session::{Failure, Session, Socket, code};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A fresh server, which is prepared now.
    Fresh,
    /// A server that was prepared before.
    Prepared,
    /// A server without our accounts: cloned from elsewhere, and the end of the clone is missing.
    Foreign,
}

/// Prepares a fresh server; leaves any other one as it is.
pub(crate) async fn initialise(socket: &Socket, passwords: &Passwords) -> Result<Found, Failure> {
    match socket.log_in("root", "").await {
        Ok(session) => {
            first(session, socket, passwords).await?;
            Ok(Found::Fresh)
        }
        Err(failure) if failure.is_refusal() => settle(socket, passwords).await,
        Err(failure) => Err(failure),
    }
}

async fn first(mut root: Session, socket: &Socket, passwords: &Passwords) -> Result<(), Failure> {
    tracing::info!("the first initialisation starts");
    open(&mut root).await?;
    make_accounts(&mut root, passwords).await?;
    install_plugins(&mut root).await?;
    reset_binary_logs(&mut root).await?;
    done("binary logs reset");
    // As the administrator: root goes only when somebody else is proven to get in.
    let mut session = socket.log_in(ADMIN, passwords.of(ADMIN)).await?;
    stop_logging(&mut session).await?;
    session.run("dropping root@localhost", "DROP USER IF EXISTS 'root'@'localhost'").await?;
    done("root dropped");
    close(&mut session).await?;
    done("read-only");
    Ok(())
}

/// Accounts and plugins of a server whose data came from a donor.
pub(crate) async fn finish_clone(session: &mut Session, passwords: &Passwords) -> Result<(), Failure> {
    open(session).await?;
    make_accounts(session, passwords).await?;
    install_plugins(session).await?;
    close(session).await
}

/// What a kill between the last two steps leaves, and nothing else does: read-only, but not for super users.
async fn settle(socket: &Socket, passwords: &Passwords) -> Result<Found, Failure> {
    let mut session = match socket.log_in(ADMIN, passwords.of(ADMIN)).await {
        Ok(session) => session,
        Err(failure) if failure.is_refusal() => return Ok(Found::Foreign),
        Err(failure) => return Err(failure),
    };
    let act = "reading whether the server is read-only";
    let switches: Option<(bool, bool)> = session.first(act, "SELECT @@GLOBAL.read_only, @@GLOBAL.super_read_only").await?;
    if switches == Some((true, false)) {
        tracing::warn!("an earlier initialisation or clone was cut short at its end; the server is made read-only for all");
        close(&mut session).await?;
    }
    Ok(Found::Prepared)
}

async fn stop_logging(session: &mut Session) -> Result<(), Failure> {
    session.run("turning the binary log off for this session", "SET SESSION sql_log_bin = OFF").await
}

async fn open(session: &mut Session) -> Result<(), Failure> {
    stop_logging(session).await?;
    session.run("keeping others from writing", "SET GLOBAL read_only = ON").await?;
    session.run("letting super users write", "SET GLOBAL super_read_only = OFF").await?;
    session.run("turning partial revokes on", "SET GLOBAL partial_revokes = ON").await?;
    done("opened for super users");
    Ok(())
}

async fn close(session: &mut Session) -> Result<(), Failure> {
    session.run("making the server read-only", "SET GLOBAL super_read_only = ON").await
}

async fn make_accounts(session: &mut Session, passwords: &Passwords) -> Result<(), Failure> {
    for (account, password) in passwords.pairs() {
        for statement in build_statements(account, password) {
            session.run_secretly("making the accounts of the system", &statement, password).await?;
            tracing::debug!(account = account.name, "initialisation: statement done");
        }
    }
    done("accounts made");
    Ok(())
}

async fn install_plugins(session: &mut Session) -> Result<(), Failure> {
    let query = "SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_STATUS = 'ACTIVE'";
    let active: Vec<String> = session.all("reading the active plugins", query).await?;
    for choice in plugins::decide(&active) {
        install(session, choice).await?;
        tracing::debug!(plugin = choice.first.name, "initialisation: statement done");
    }
    done("plugins installed");
    Ok(())
}

async fn install(session: &mut Session, choice: Choice) -> Result<(), Failure> {
    let act = "installing the plugins for replication and clone";
    let answer = session.run(act, &choice.first.statement()).await;
    match (answer, choice.otherwise) {
        (Err(failure), _) if failure.code() == Some(code::PLUGIN_EXISTS) => Ok(()),
        (Err(failure), Some(otherwise)) if failure.code() == Some(code::NO_LIBRARY) => {
            session.run(act, &otherwise.statement()).await
        }
        (answer, _) => answer,
    }
}

/// The server knows one of the two forms; it says which by refusing the other as a mistake of grammar.
async fn reset_binary_logs(session: &mut Session) -> Result<(), Failure> {
    let act = "resetting the binary logs";
    match session.run(act, "RESET BINARY LOGS AND GTIDS").await {
        Err(failure) if failure.code() == Some(code::SYNTAX) => session.run(act, "RESET MASTER").await,
        answer => answer,
    }
}

fn done(step: &'static str) {
    tracing::info!(step, "initialisation: step done");
}
