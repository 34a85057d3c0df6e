//! MySQL's wire protocol, as far as the operator's client speaks it: a log-in, statements as text, answers as text. No encryption, no
//! compression, no prepared statements.
//!
//! Knows nothing of what is asked and answered. It lets everybody in: passwords are not what is measured.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What a server says that it is.
const VERSION: &str = "9.7.4-bench";
/// How clients of servers since 8.0 log in. One whose password the server remembers is let in after its first word.
const PLUGIN: &str = "caching_sha2_password";
const REMEMBERED: [u8; 2] = [0x01, 0x03];
/// The long form of a password, the protocol of 4.1, transactions, its log-in, several statements and results, log-in by a plugin, and
/// results that end without a packet of their own.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x1_0000 | 0x2_0000 | 0x4_0000 | 0x8_0000 | 0x100_0000;
/// `utf8mb4_general_ci`
const COLLATION: u8 = 45;
const AUTOCOMMIT: u16 = 0x2;
const MORE_RESULTS: u16 = 0x8;
/// A column of text of any length.
const TEXT: u8 = 0xfd;
/// Nobody sends as much in one packet.
const LARGEST: usize = 0xff_ffff;

/// What came from a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Statements.
    Query(String),
    /// Whether somebody is there.
    Ping,
    /// Something that is not spoken here.
    Other(u8),
}

/// What is said to one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was done.
    Done,
    /// Rows.
    Rows(Rows),
    /// It was not done.
    Refused {
        /// The server's code.
        code: u16,
        /// Why.
        why: String,
    },
}

/// Rows of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    /// The names of the columns.
    pub(super) columns: Vec<String>,
    /// The values; none is NULL.
    pub(super) rows: Vec<Vec<Option<String>>>,
}

impl Rows {
    pub(super) fn new(columns: &[&str], rows: Vec<Vec<Option<String>>>) -> Self {
        Self { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows }
    }
}

/// One connection.
pub(super) struct Wire {
    stream: TcpStream,
    sequence: u8,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, sequence: 0 }
    }

    /// Lets the client in.
    pub(super) async fn let_in(&mut self, id: u32) -> Result<()> {
        let mut out = Vec::new();
        self.put(&mut out, &greeting(id));
        self.stream.write_all(&out).await?;
        if self.packet().await?.is_none() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut out = Vec::new();
        self.put(&mut out, &REMEMBERED);
        self.put(&mut out, &okay(0x00, 0));
        self.stream.write_all(&out).await
    }

    /// The next command; none when the client is gone.
    pub(super) async fn command(&mut self) -> Result<Option<Command>> {
        let Some(packet) = self.packet().await? else { return Ok(None) };
        match packet.split_first() {
            Some((0x01, _)) | None => Ok(None),
            Some((0x03, text)) => Ok(Some(Command::Query(String::from_utf8_lossy(text).into_owned()))),
            Some((0x0e, _)) => Ok(Some(Command::Ping)),
            Some((other, _)) => Ok(Some(Command::Other(*other))),
        }
    }

    /// Says this to the statements of one command.
    pub(super) async fn answer(&mut self, answers: &[Answer]) -> Result<()> {
        let mut out = Vec::new();
        for (index, answer) in answers.iter().enumerate() {
            let more = if index + 1 < answers.len() { MORE_RESULTS } else { 0 };
            match answer {
                Answer::Done => self.put(&mut out, &okay(0x00, more)),
                Answer::Rows(rows) => self.put_rows(&mut out, rows, more),
                Answer::Refused { code, why } => self.put(&mut out, &refusal(*code, why)),
            }
        }
        self.stream.write_all(&out).await
    }

    fn put_rows(&mut self, out: &mut Vec<u8>, rows: &Rows, more: u16) {
        let mut count = Vec::new();
        put_length(&mut count, rows.columns.len());
        self.put(out, &count);
        for name in &rows.columns {
            self.put(out, &column(name));
        }
        for row in &rows.rows {
            let mut packet = Vec::new();
            for value in row {
                match value {
                    None => packet.push(0xfb),
                    Some(text) => put_text(&mut packet, text),
                }
            }
            self.put(out, &packet);
        }
        self.put(out, &okay(0xfe, more));
    }

    /// One packet; none when the other end closed the connection.
    async fn packet(&mut self) -> Result<Option<Vec<u8>>> {
        let mut head = [0; 4];
        match self.stream.read_exact(&mut head).await {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        };
        let [first, second, third, sequence] = head;
        let length = u32::from_le_bytes([first, second, third, 0]) as usize;
        if length == LARGEST {
            return Err(Error::new(ErrorKind::InvalidData, "a statement of 16 MiB"));
        }
        self.sequence = sequence.wrapping_add(1);
        let mut packet = vec![0; length];
        self.stream.read_exact(&mut packet).await?;
        Ok(Some(packet))
    }

    fn put(&mut self, out: &mut Vec<u8>, packet: &[u8]) {
        out.extend_from_slice(&little(packet.len())[..3]);
        out.push(self.sequence);
        self.sequence = self.sequence.wrapping_add(1);
        out.extend_from_slice(packet);
    }
}

fn greeting(id: u32) -> Vec<u8> {
    let mut packet = vec![10];
    packet.extend_from_slice(VERSION.as_bytes());
    packet.push(0);
    packet.extend_from_slice(&id.to_le_bytes());
    // The challenge of which a password is proven; nobody looks at the proof here.
    packet.extend_from_slice(b"challeng\0");
    let [low, lower, high, higher] = CAPABILITIES.to_le_bytes();
    packet.extend_from_slice(&[low, lower, COLLATION]);
    packet.extend_from_slice(&AUTOCOMMIT.to_le_bytes());
    packet.extend_from_slice(&[high, higher, 21]);
    packet.extend_from_slice(&[0; 10]);
    packet.extend_from_slice(b"e of the day\0");
    packet.extend_from_slice(PLUGIN.as_bytes());
    packet.push(0);
    packet
}

fn okay(header: u8, more: u16) -> Vec<u8> {
    let mut packet = vec![header, 0, 0];
    packet.extend_from_slice(&(AUTOCOMMIT | more).to_le_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet
}

fn refusal(code: u16, why: &str) -> Vec<u8> {
    let mut packet = vec![0xff];
    packet.extend_from_slice(&code.to_le_bytes());
    packet.extend_from_slice(b"#HY000");
    packet.extend_from_slice(why.as_bytes());
    packet
}

fn column(name: &str) -> Vec<u8> {
    let mut packet = Vec::new();
    for text in ["def", "", "", "", name, ""] {
        put_text(&mut packet, text);
    }
    packet.push(0x0c);
    packet.extend_from_slice(&u16::from(COLLATION).to_le_bytes());
    packet.extend_from_slice(&65_535_u32.to_le_bytes());
    packet.extend_from_slice(&[TEXT, 0, 0, 0, 0, 0]);
    packet
}

fn put_text(packet: &mut Vec<u8>, text: &str) {
    put_length(packet, text.len());
    packet.extend_from_slice(text.as_bytes());
}

fn put_length(packet: &mut Vec<u8>, length: usize) {
    let bytes = little(length);
    match length {
        0..=250 => packet.push(bytes[0]),
        251..=0xffff => {
            packet.push(0xfc);
            packet.extend_from_slice(&bytes[..2]);
        }
        _ => {
            packet.push(0xfd);
            packet.extend_from_slice(&bytes[..3]);
        }
    }
}

/// The lowest bytes first.
fn little(length: usize) -> [u8; 8] {
    (length as u64).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_the_shortest_form_that_holds_them() {
        let shown = |length| {
            let mut packet = Vec::new();
            put_length(&mut packet, length);
            packet
        };
        assert_eq!(shown(250), [250]);
        assert_eq!(shown(251), [0xfc, 251, 0]);
        assert_eq!(shown(0x1_0000), [0xfd, 0, 0, 1]);
    }
}
