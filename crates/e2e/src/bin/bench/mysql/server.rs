//! Answers for all servers at once: one listener, which tells them apart by the address that a client connected to.
//!
//! It has a thread of its own, so that nothing else in the bench keeps a server from answering. Only this machine reaches it: it listens
//! on the loopback device, and the addresses lead there.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};

use super::answers::code;
use super::cluster::Reaction;
use super::fleet::{Berth, Fleet};
use super::statement::{Statement, cut};
use super::wire::{Answer, Command, Wire};
use crate::way::{self, Serving};

/// Between two writes of a cluster's clients.
const WRITE: Duration = Duration::from_secs(1);

/// Serves in a thread of its own.
pub(super) fn start(fleet: Fleet, socket: TcpSocket) -> Result<Serving> {
    way::serve(vec![socket], async move |listeners| {
        for listener in listeners {
            serve(listener, fleet.clone()).await;
        }
    })
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
