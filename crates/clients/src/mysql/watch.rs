//! Watches a server: its end is heard of at once, and that it hangs after a moment.
//!
//! A statement that takes a second is always under way on a connection of its own. The end of the server ends it; a server that
//! hangs, or cannot be reached, does not answer it in time.

use std::io::ErrorKind;
use std::time::Duration;

use futures::future::select_all;
use tokio::net::TcpStream;
use tokio::time::Instant;
use windlass_kinds::mysql::deeds::Place;
use windlass_kinds::mysql::facts::{Fact, News, Silence};

use super::Servers;

/// How long each statement takes.
const BEAT: Duration = Duration::from_secs(1);
/// How much later its answer may come.
const LATE: Duration = Duration::from_millis(1500);
/// How long a node may take to accept a connection. One whose first packet was lost takes a second.
const KNOCK: Duration = Duration::from_millis(500);
/// How many connections a node must accept in a row, before and after its server was listened for, to count as one that can be reached.
const KNOCKS: usize = 4;
/// How long a server may take to greet one of those who connected. Servers speak first, and what was lost is sent again after 0.2 and
/// 0.6 seconds.
const GREETING: Duration = Duration::from_secs(1);

impl Servers {
    /// Returns when the server cannot be heard any more.
    pub async fn watch(&self, place: &Place) -> Fact {
        let (how, quiet, why) = self.hear(place).await;
        Fact { place: place.clone(), news: News::Gone { how, quiet, why } }
    }

    async fn hear(&self, place: &Place) -> (Silence, Duration, String) {
        let began = async {
            let _turn = self.turns.acquire().await;
            self.log_in(place).await
        };
        let mut session = match began.await {
            Ok((session, _)) => session,
            Err(failure) => {
                // That a watch cannot begin says nothing of a server that was just heard. It is not tried over and over.
                tokio::time::sleep(BEAT).await;
                return (Silence::Refused, BEAT, failure.to_string());
            }
        };
        let statement = format!("DO SLEEP({})", BEAT.as_secs());
        loop {
            let heard = Instant::now();
            match tokio::time::timeout(BEAT + LATE, session.run("keeping watch", &statement)).await {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => {
                    return (failure.silence().unwrap_or(Silence::Unreachable), heard.elapsed(), failure.to_string());
                }
                Err(_) => {
                    let how = knock(&place.address, (self.port)(&place.address)).await;
                    let why = format!(
                        "the server of pod {:?} has not answered for {:.1} s",
                        place.pod,
                        heard.elapsed().as_secs_f64()
                    );
                    return (how, heard.elapsed(), why);
                }
            }
        }
    }
}

/// How somebody is silent who does not answer in time: its node takes connections and its server greets nobody, or the node refuses
/// connections, or is silent as well.
///
/// That a node takes connections is not enough for a hang. After a burst of lost packets, a connection that was there before is quiet
/// for seconds, until what was lost is sent again, while new ones get through: but on those a server that lives greets.
pub(super) async fn knock(address: &str, port: u16) -> Silence {
    let listened = async {
        let doors = connect(address, port).await?;
        if is_greeted(&doors).await {
            return Err(Silence::Unreachable);
        }
        connect(address, port).await
    };
    listened.await.err().unwrap_or(Silence::Hangs)
}

/// Connects several times in a row.
async fn connect(address: &str, port: u16) -> Result<Vec<TcpStream>, Silence> {
    let mut doors = Vec::new();
    for _ in 0..KNOCKS {
        match tokio::time::timeout(KNOCK, TcpStream::connect((address, port))).await {
            Ok(Ok(door)) => doors.push(door),
            Ok(Err(error)) => return Err(of_error(&error)),
            Err(_) => return Err(Silence::Unreachable),
        }
    }
    Ok(doors)
}

/// Whether the server says anything to one of those who connected.
async fn is_greeted(doors: &[TcpStream]) -> bool {
    let greetings = doors.iter().map(|door| async {
        let mut byte = [0];
        match door.peek(&mut byte).await {
            Ok(1..) => {}
            // It was closed without a word, which says nothing of the others.
            _ => std::future::pending().await,
        }
    });
    tokio::time::timeout(GREETING, select_all(greetings.map(Box::pin))).await.is_ok()
}

/// What an error of a connection says of the process at its other end.
pub(super) fn of_error(error: &std::io::Error) -> Silence {
    match error.kind() {
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Silence::Closed,
        _ => Silence::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn who_listens_and_says_nothing_hangs_and_who_does_not_listen_is_gone() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(knock("127.0.0.1", port).await, Silence::Hangs);
        drop(listener);
        assert_eq!(knock("127.0.0.1", port).await, Silence::Closed);
    }

    #[tokio::test]
    async fn who_greets_does_not_hang_though_old_connections_are_quiet() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let greets = async {
            let mut doors = Vec::new();
            loop {
                let (mut door, _) = listener.accept().await.unwrap();
                // All but the last greeting are lost.
                if doors.len() + 1 == KNOCKS {
                    door.write_all(b"J").await.unwrap();
                }
                doors.push(door);
            }
        };
        tokio::select! {
            () = greets => {}
            how = knock("127.0.0.1", port) => assert_eq!(how, Silence::Unreachable),
        }
    }

    #[tokio::test]
    async fn who_hangs_up_without_a_word_greets_nobody() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let hangs_up = async {
            loop {
                drop(listener.accept().await.unwrap());
            }
        };
        tokio::select! {
            () = hangs_up => {}
            how = knock("127.0.0.1", port) => assert_eq!(how, Silence::Hangs),
        }
    }

    #[test]
    fn only_a_sign_of_the_other_end_is_one_of_its_end() {
        assert_eq!(of_error(&ErrorKind::ConnectionReset.into()), Silence::Closed);
        assert_eq!(of_error(&ErrorKind::TimedOut.into()), Silence::Unreachable);
        assert_eq!(of_error(&ErrorKind::HostUnreachable.into()), Silence::Unreachable);
    }
}
