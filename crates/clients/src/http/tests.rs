use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;

fn peer(port: u16) -> Peer {
    Peer { host: "a.b".into(), address: "127.0.0.1".into(), port, process: "1".into(), tls: None }
}

/// Answers each request with the next of these texts, and tells what it read; a connection is closed after an empty one. Every
/// connection is counted.
async fn server(answers: Vec<&'static str>) -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut answers = answers.into_iter();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _heard = tell.send("connected".into());
            let mut buffer = vec![0; 65536];
            while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                let _heard = tell.send(String::from_utf8_lossy(&buffer[..length]).into_owned());
                match answers.next() {
                    Some("") | None => break,
                    Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                }
            }
        }
    });
    (port, told)
}

const YES: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\"ok\"";
const NO: &str = "HTTP/1.1 500 Oh\r\ncontent-length: 8\r\n\r\n\"no\\nno\"";

fn all(told: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| told.try_recv().ok()).collect()
}

#[tokio::test]
async fn a_connection_is_kept_and_the_host_is_named() {
    let (port, mut told) = server(vec![YES, YES, NO]).await;
    let http = Http::default();
    for _ in 0..2 {
        let answer = http.ask("asking", &peer(port), "/x").await.unwrap().yes().unwrap();
        assert_eq!(answer.json::<String>().unwrap(), "ok");
    }
    let said = http.ask("asking", &peer(port), "/x").await.unwrap().yes().unwrap_err();
    assert_eq!(said.to_string(), format!("asking: http://a.b:{port} answers with status 500: no no"));
    let told = all(&mut told);
    assert_eq!(told.iter().filter(|it| *it == "connected").count(), 1, "{told:?}");
    assert!(told[1].contains(&format!("host: a.b:{port}")), "{told:?}");
}

#[tokio::test]
async fn a_question_is_asked_again_when_the_kept_connection_is_dead_and_a_change_is_not_sent_twice() {
    let (port, mut told) = server(vec![YES, "", YES, "", YES]).await;
    let http = Http::default();
    http.ask("asking", &peer(port), "/").await.unwrap();
    http.ask("asking", &peer(port), "/").await.unwrap();
    let lost = http.change("changing", &peer(port), (Method::POST, "/"), Some(&Value::Null)).await.unwrap_err();
    assert!(matches!(lost, Failure::Lost { .. }), "{lost:?}");
    assert!(lost.to_string().starts_with(&format!("changing: http://a.b:{port} did not answer: ")), "{lost}");
    let told = all(&mut told);
    assert_eq!(told.iter().filter(|it| it.starts_with("POST")).count(), 1, "{told:?}");
}

#[tokio::test]
async fn a_connection_to_another_process_is_not_used() {
    let (port, mut told) = server(vec![YES, YES]).await;
    let http = Http::default();
    http.ask("asking", &peer(port), "/").await.unwrap();
    http.ask("asking", &Peer { process: "2".into(), ..peer(port) }, "/").await.unwrap();
    assert_eq!(all(&mut told).iter().filter(|it| *it == "connected").count(), 2);
}

#[tokio::test]
async fn nothing_is_sent_without_the_guard() {
    let (port, mut told) = server(vec![YES]).await;
    let http = Http::default().guarded(Guard::new(|| Err("the Lease is gone".into())));
    let failure = http.change("changing", &peer(port), (Method::POST, "/"), None).await.unwrap_err();
    assert!(!failure.may_be_done());
    assert_eq!(failure.to_string(), format!("changing was not tried at http://a.b:{port}: the Lease is gone"));
    assert!(all(&mut told).iter().all(|it| it == "connected"));
    http.ask("asking", &peer(port), "/").await.unwrap();
}

#[tokio::test]
async fn who_does_not_listen_was_sent_nothing() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let http = Http::default();
    let failure = http.change("changing", &peer(port), (Method::POST, "/"), None).await.unwrap_err();
    assert!(matches!(failure, Failure::Unreached { .. }), "{failure:?}");
    assert!(!failure.may_be_done());
}

#[tokio::test]
async fn who_listens_and_says_nothing_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let began = Instant::now();
    let failure = Http::default().ask("asking", &peer(port), "/").await.unwrap_err();
    assert!(matches!(failure, Failure::Lost { .. }), "{failure:?}");
    assert!((CALL..CALL * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
}

#[test]
fn what_is_put_into_a_path_stays_one_part_of_it() {
    assert_eq!(segment("a-pd-0.a-pd-peer.shop.svc"), "a-pd-0.a-pd-peer.shop.svc");
    assert_eq!(segment("ip-1:8250"), "ip-1:8250");
    assert_eq!(segment("../a b?"), "..%2Fa%20b%3F");
}
