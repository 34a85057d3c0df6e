//! As much of HTTP as the tests need.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Long: what is asked once must be answered on a busy machine, too.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a server answers, as JSON when it is that, else as text; nothing when it does not answer.
pub fn ask(method: &str, address: &str, path: &str, body: Option<&Value>) -> Value {
    let text = exchange(method, address, path, body).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn exchange(method: &str, address: &str, path: &str, body: Option<&Value>) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    // Version 1.0 ends an answer with the connection.
    write!(stream, "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split_once("\r\n\r\n").map(|(_, text)| text.to_owned()).unwrap_or_default())
}
