//! Watches a server: its end is heard of at once, and that it hangs after a moment.
//!
//! A statement that takes a second is always under way on a connection of its own. The end of the server ends it; a server that
//! hangs, or cannot be reached, does not answer it in time.

use std::io::ErrorKind;
use std::time::Duration;

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
/// How many connections a node must accept in a row before it counts as one that can be reached: where a third of all packets is lost,
/// one in two hundred tries gets so far.
const KNOCKS: usize = 8;

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
                Ok(Err(failure)) => return (failure.silence(), heard.elapsed(), failure.to_string()),
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

/// How somebody is silent who does not answer in time: its node takes connections, or refuses them, or is silent as well. A node that
/// takes one now and then is no sign that its server hangs: packets are lost on the way.
pub(super) async fn knock(address: &str, port: u16) -> Silence {
    for _ in 0..KNOCKS {
        match tokio::time::timeout(KNOCK, TcpStream::connect((address, port))).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return of_error(&error),
            Err(_) => return Silence::Unreachable,
        }
    }
    Silence::Hangs
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
    use super::*;

    #[tokio::test]
    async fn who_listens_and_says_nothing_hangs_and_who_does_not_listen_is_gone() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(knock("127.0.0.1", port).await, Silence::Hangs);
        drop(listener);
        assert_eq!(knock("127.0.0.1", port).await, Silence::Closed);
    }

    #[test]
    fn only_a_sign_of_the_other_end_is_one_of_its_end() {
        assert_eq!(of_error(&ErrorKind::ConnectionReset.into()), Silence::Closed);
        assert_eq!(of_error(&ErrorKind::TimedOut.into()), Silence::Unreachable);
        assert_eq!(of_error(&ErrorKind::HostUnreachable.into()), Silence::Unreachable);
    }
}
