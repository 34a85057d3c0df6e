use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{ServerName, UnixTime};

use super::*;

const HOST: &str = "windlass-webhook.ops.svc";
const DAY: i64 = 86_400;

fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// Whether whoever trusts this bundle takes this certificate at this time.
fn is_trusted(bundle: &str, kept: &Kept, now: Timestamp) -> bool {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let certificate = CertificateDer::from_pem_slice(kept.certificate.as_bytes()).unwrap();
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(u64::try_from(now.as_second()).unwrap()));
    verifier.verify_server_cert(&certificate, &[], &ServerName::try_from(HOST).unwrap(), &[], time).is_ok()
}

/// Twenty-five years, a look every week: whoever trusts what was published the week before, or what is published now, is never let down.
#[test]
fn no_renewal_ever_breaks_trust() {
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut kept = due(None, HOST, start()).unwrap().unwrap();
    let (mut certificates, mut authorities) = (0, 0);
    for week in 1..25 * 52 {
        let now = start() + jiff::SignedDuration::from_secs(week * 7 * DAY);
        let published = kept.bundle.clone();
        if let Some(next) = due(Some(&kept), HOST, now).unwrap() {
            let (renewed, added) = (next.certificate != kept.certificate, next.bundle != kept.bundle);
            assert!(renewed != added, "one thing at a time");
            certificates += usize::from(renewed);
            authorities += usize::from(added);
            kept = next;
        }
        assert!(is_trusted(&published, &kept, now), "week {week}");
        assert!(is_trusted(&kept.bundle, &kept, now), "week {week}");
        assert!(kept.bundle.matches("BEGIN CERTIFICATE").count() <= 2);
    }
    assert!(certificates > 100 && authorities == 2, "{certificates} certificates, {authorities} authorities");
}

#[test]
fn what_is_kept_is_read_back_and_rubbish_counts_as_nothing() {
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let kept = due(None, HOST, start()).unwrap().unwrap();
    assert_eq!(Kept::read(&kept.data()), Some(kept.clone()));
    for key in kept.data().keys() {
        let mut less = kept.data();
        less.remove(key);
        assert_eq!(Kept::read(&less), None, "without {key}");
    }
    let mut broken = kept.data();
    broken.insert(KEY.into(), b"rubbish".to_vec());
    assert_eq!(Kept::read(&broken), None);
}

#[test]
fn another_host_gets_another_certificate_and_one_that_is_over_everything_anew() {
    let kept = due(None, HOST, start()).unwrap().unwrap();
    assert_eq!(due(Some(&kept), HOST, start()).unwrap(), None);
    let moved = due(Some(&kept), "other.ops.svc", start()).unwrap().unwrap();
    assert_eq!(moved.bundle, kept.bundle);
    assert_ne!(moved.certificate, kept.certificate);
    let late = start() + jiff::SignedDuration::from_secs(4_000 * DAY);
    let anew = due(Some(&kept), HOST, late).unwrap().unwrap();
    assert!(is_trusted(&anew.bundle, &anew, late) && !anew.bundle.contains(&kept.bundle));
}
