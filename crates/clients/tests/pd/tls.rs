use std::collections::BTreeMap;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::server::{Server, Start, until};
use crate::world::World;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

/// A Secret with a certificate.
fn secret(signer: &Authority, trusted: &Authority) -> BTreeMap<String, String> {
    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, signer).unwrap();
    let texts = [("tls.crt", certificate.pem()), ("tls.key", key.serialize_pem()), ("ca.crt", trusted.pem())];
    texts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

#[tokio::test]
#[ignore = "needs WINDLASS_PD_SERVER"]
async fn certificates_are_shown_on_both_sides() {
    let (ours, theirs) = (authority(), authority());
    let scratch = tempfile::tempdir().unwrap();
    let texts = secret(&ours, &ours);
    let file = |name: &str| {
        let path = scratch.path().join(name);
        std::fs::write(&path, &texts[name]).unwrap();
        path.display().to_string()
    };
    let more =
        [format!("--cacert={}", file("ca.crt")), format!("--cert={}", file("tls.crt")), format!("--key={}", file("tls.key"))];
    let server = Server::start("a-pd-0", &Start::Alone, "https", &more);
    let world = World::with_secret(Some(secret(&ours, &ours)));
    until("it answers", async || world.look(&[&server]).await.and_then(|seen| seen.leader.map(drop))).await;

    // Whoever we do not know, and whoever does not know us, is not talked to.
    let why = World::with_secret(Some(secret(&ours, &theirs))).look(&[&server]).await.unwrap_err();
    assert!(why.contains("it is not believed, or does not believe us"), "{why}");
    let why = World::with_secret(Some(secret(&theirs, &ours))).look(&[&server]).await.unwrap_err();
    assert!(why.starts_with("asking PD for its cluster: https://localhost:"), "{why}");
    assert!(World::new().look(&[&server]).await.is_err());
    let mut partial = secret(&ours, &ours);
    partial.remove("tls.key");
    let why = World::with_secret(Some(partial)).look(&[&server]).await.unwrap_err();
    assert!(why.contains("Secret \"a-cluster-client-secret\" has no PEM text under \"tls.key\""), "{why}");
}
