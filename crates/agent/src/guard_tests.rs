use std::path::Path;
use std::time::Instant;

use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;

use super::*;

/// A server that notes that it was told to stop, and ends then.
const STOPS: &str =
    "trap 'echo told > told; exit 3' TERM; trap 'echo logs > logs' HUP; echo up > up; while :; do sleep 0.05; done";

fn guard(place: &Path, script: &str) -> Guard {
    let script = format!("cd {}; {script}", place.display());
    Guard { program: "sh".into(), arguments: vec!["-c".into(), script.into()], directory: place.to_owned() }
}

/// An agent that says this to whoever asks.
fn agent(place: &Path, says: &'static str) {
    let listener = UnixListener::bind(farewell::socket_in(place)).unwrap();
    tokio::spawn(async move {
        loop {
            let (mut asked, _) = listener.accept().await.unwrap();
            asked.write_all(says.as_bytes()).await.unwrap();
        }
    });
}

async fn until_there(file: &Path) {
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Sends a signal to this process, as soon as the server is up.
async fn tell(place: &Path, what: Signal) {
    until_there(&place.join("up")).await;
    kill_process(rustix::process::getpid(), what).unwrap();
}

// Signals reach all of a process, so what follows is one test.
#[tokio::test]
async fn a_server_is_told_to_stop_when_its_clients_are_gone_and_killed_when_they_are_not() {
    // It ends by itself.
    let place = TempDir::new().unwrap();
    let end = guard(place.path(), "exit 7").run().await.unwrap();
    assert_eq!(exit_code(end), 7);

    // The agent has disconnected them. Other signals are passed on, and it runs on.
    let place = TempDir::new().unwrap();
    agent(place.path(), farewell::DONE);
    let guarded = guard(place.path(), STOPS);
    let telling = async {
        tell(place.path(), Signal::HUP).await;
        until_there(&place.path().join("logs")).await;
        let waiting = until_no_server_runs(place.path());
        assert!(tokio::time::timeout(Duration::from_millis(300), waiting).await.is_err(), "the server runs");
        tell(place.path(), Signal::TERM).await;
    };
    let (end, ()) = tokio::join!(guarded.run(), telling);
    assert_eq!(exit_code(end.unwrap()), 3);
    assert!(place.path().join("told").exists());
    until_no_server_runs(place.path()).await;

    // The agent cannot: it is never told.
    let place = TempDir::new().unwrap();
    agent(place.path(), "log-in failed");
    let (began, guarded) = (Instant::now(), guard(place.path(), STOPS));
    let (end, ()) = tokio::join!(guarded.run(), tell(place.path(), Signal::TERM));
    assert_eq!(exit_code(end.unwrap()), 128 + 9);
    assert!(!place.path().join("told").exists());
    assert!(began.elapsed() >= FAREWELL);
}

#[tokio::test]
async fn where_no_guard_was_nobody_is_waited_for() {
    until_no_server_runs(TempDir::new().unwrap().path()).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told() {
    let place = TempDir::new().unwrap();
    let guard = Guard { program: "no-such-server".into(), arguments: Vec::new(), directory: place.path().to_owned() };
    assert_eq!(guard.run().await.unwrap_err().kind(), io::ErrorKind::NotFound);
}
