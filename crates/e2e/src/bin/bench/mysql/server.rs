//! Answers for all servers at once: one listener, which tells them apart by the address that a client connected to.
//!
//! It has a thread of its own, so that nothing else in the bench keeps a server from answering. Only this machine reaches it: it listens
//! on the loopback device, and the addresses lead there.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};

use super::answers::code;
use super::cluster::Reaction;
use super::fleet::{Berth, Fleet};
use super::statement::{Statement, cut};
use super::wire::{Answer, Command, Wire};

/// Between two writes of a cluster's clients.
const WRITE: Duration = Duration::from_secs(1);
const WAITING: u32 = 4096;

/// The running servers; they end when this is dropped.
pub(super) struct Serving {
    /// Ends them by being dropped.
    _stop: oneshot::Sender<()>,
}

/// Takes the port of all servers; 0 is any that is free.
pub(super) fn bind(port: u16) -> Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind_device(Some(b"lo")).context("the loopback device cannot be listened on")?;
    socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).with_context(|| {
        format!("port {port} of this machine is in use: by another bench, or by a MySQL server that must be stopped for this")
    })?;
    Ok(socket)
}

/// Serves in a thread of its own.
pub(super) fn start(fleet: Fleet, socket: TcpSocket) -> Result<Serving> {
    let (stop, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _in_its_runtime = runtime.enter();
        socket.listen(WAITING)?
    };
    let work = move || {
        runtime.block_on(async move {
            tokio::select! {
                () = serve(listener, fleet) => {}
                _ = stopped => {}
            }
        });
    };
    std::thread::Builder::new().name("servers".to_owned()).spawn(work).context("no thread for the servers")?;
    Ok(Serving { _stop: stop })
}

/// Takes connections, and lets clients write.
async fn serve(listener: TcpListener, fleet: Fleet) {
    let clients = async {
        let mut tick = tokio::time::interval(WRITE);
        loop {
            tick.tick().await;
            fleet.write_everywhere().await;
        }
    };
    let connections = async {
        let mut id = 0_u32;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    id = id.wrapping_add(1);
                    receive(&fleet, stream, id);
                }
                // Out of descriptors, most likely: who gives one back is one of the other tasks.
                Err(error) => {
                    crate::say(format!("the bench's servers cannot take a connection: {error}"));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    };
    tokio::join!(clients, connections);
}

/// Hands a connection to its server. Where none runs it is reset: a client of a real one would have been refused.
fn receive(fleet: &Fleet, stream: TcpStream, id: u32) {
    let Ok(IpAddr::V4(address)) = stream.local_addr().map(|it| it.ip()) else { return };
    let Some(berth) = fleet.at(address) else {
        let _reset = stream.set_zero_linger();
        return;
    };
    // An answer is written at once, as a server does.
    let _unset = stream.set_nodelay(true);
    let (seated, seat) = oneshot::channel();
    let (fleet, there) = (fleet.clone(), berth.clone());
    let task = tokio::spawn(async move {
        let Ok(mute) = seat.await else { return };
        let _counted = fleet.count();
        let _risen = Rising { berth: there.clone(), id };
        // A client that is gone is none's loss.
        let _end = converse(&fleet, &there, stream, id, mute).await;
    });
    // Where it ended in between, the task hears that nobody has a seat for it.
    if let Some(mute) = berth.cluster().sit(berth.at, id, task.abort_handle()) {
        let _ended = seated.send(mute);
    }
}

/// Who leaves is not listed any more.
struct Rising {
    berth: Berth,
    id: u32,
}

impl Drop for Rising {
    fn drop(&mut self) {
        self.berth.cluster().rise(self.berth.at, self.id);
    }
}

async fn converse(
    fleet: &Fleet,
    berth: &Berth,
    stream: TcpStream,
    id: u32,
    mut mute: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut wire = Wire::new(stream);
    speak(&mut mute).await;
    wire.let_in(id).await?;
    fleet.note_log_in();
    while let Some(command) = wire.command().await? {
        fleet.note_command();
        let answers = match command {
            Command::Query(text) => answer(fleet, berth, id, &text).await,
            Command::Ping => vec![Answer::Done],
            Command::Other(number) => {
                fleet.note_unknown(&format!("command {number}"));
                vec![Answer::Refused { code: code::UNKNOWN_COMMAND, why: "Unknown command".to_owned() }]
            }
        };
        speak(&mut mute).await;
        wire.answer(&answers).await?;
    }
    Ok(())
}

/// Returns when the server is not mute. One that goes meanwhile takes its sessions with it.
async fn speak(mute: &mut watch::Receiver<bool>) {
    let _gone = mute.wait_for(|mute| !mute).await;
}

/// What a server says to a command. A statement that fails ends it.
async fn answer(fleet: &Fleet, berth: &Berth, id: u32, text: &str) -> Vec<Answer> {
    let mut answers = Vec::new();
    for text in cut(text) {
        let Some(statement) = Statement::read(text) else {
            fleet.note_unknown(text);
            let why = "the bench's servers do not know this statement".to_owned();
            answers.push(Answer::Refused { code: code::UNREADABLE, why });
            break;
        };
        let reaction = berth.cluster().execute(berth.at, id, &statement);
        let answer = match reaction {
            Reaction::Now(answer) => answer,
            Reaction::Later(time, answer) => {
                tokio::time::sleep(time).await;
                answer
            }
        };
        let refused = match &answer {
            Answer::Refused { code, .. } => Some(*code),
            _ => None,
        };
        answers.push(answer);
        if matches!(refused, Some(code::UNREADABLE | code::UNKNOWN_VARIABLE)) {
            fleet.note_unknown(text);
        }
        if refused.is_some() {
            break;
        }
    }
    if answers.is_empty() {
        answers.push(Answer::Refused { code: code::EMPTY, why: "Query was empty".to_owned() });
    }
    answers
}
