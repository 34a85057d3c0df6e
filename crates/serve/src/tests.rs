use axum::routing::get;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use super::*;

struct Door {
    manner: Result<Manner, String>,
    open: bool,
}

impl Porter for Door {
    async fn manner(&self) -> Result<Manner, String> {
        self.manner.clone()
    }

    fn admit(&self, _stranger: &ServerConnection) -> Result<(), Router> {
        if self.open { Ok(()) } else { Err(Router::new().fallback(async || "no")) }
    }
}

async fn house(door: Door, connections: usize) -> (std::net::SocketAddr, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let router = Router::new().route("/", get(async || "yes"));
    tokio::spawn(serve(listener, connections, door, router, stop.clone()));
    (address, stop)
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
    let _sent = stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    let mut answer = Vec::new();
    let _ended = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).rsplit("\r\n").next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn plain_connections_are_answered_until_told_to_stop() {
    let (address, stop) = house(Door { manner: Ok(Manner::Plain), open: false }, 2).await;
    assert_eq!(ask(TcpStream::connect(address).await.unwrap()).await, "yes");
    stop.cancel();
    while TcpStream::connect(address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn nobody_is_let_in_when_nobody_knows_how() {
    let (address, _stop) = house(Door { manner: Err("no certificate".into()), open: true }, 2).await;
    assert_eq!(ask(TcpStream::connect(address).await.unwrap()).await, "");
}

#[tokio::test]
async fn so_many_at_once_and_no_more() {
    let (address, _stop) = house(Door { manner: Ok(Manner::Plain), open: true }, 1).await;
    let first = TcpStream::connect(address).await.unwrap();
    let second = tokio::spawn(async move { ask(TcpStream::connect(address).await.unwrap()).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!second.is_finished());
    drop(first);
    assert_eq!(second.await.unwrap(), "yes");
}

#[tokio::test]
async fn who_is_not_admitted_is_told_so() {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(vec!["house".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let configuration = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let configuration = configuration.unwrap().with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let client = Arc::new(client.with_root_certificates(roots).with_no_client_auth());
    let manner = Manner::Tls(Arc::new(configuration));
    for (open, answer) in [(true, "yes"), (false, "no")] {
        let (address, _stop) = house(Door { manner: Ok(manner.clone()), open }, 2).await;
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("house").unwrap();
        let stream = TlsConnector::from(Arc::clone(&client)).connect(name, stream).await.unwrap();
        assert_eq!(ask(stream).await, answer);
    }
}
