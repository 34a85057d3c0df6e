use windlass_core::selector::Selector;
use windlass_testkit::{CallMatch, Effect, FakeApiServer};

use super::*;

fn keeper(api: &FakeApiServer) -> Keeper {
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let registration = Registration {
        name: "windlass.default".into(),
        service: "windlass-webhook".into(),
        service_namespace: "default".into(),
        namespace: None,
        selector: Selector::everything(),
    };
    let desk = Arc::new(Desk::new(Selector::everything(), api.client()));
    Keeper { client: api.client(), desk, secret: "windlass-webhook".into(), registration }
}

fn kept(api: &FakeApiServer) -> Option<Kept> {
    let secret: Secret = serde_json::from_value(api.store().get("secrets", "default", "windlass-webhook")?).unwrap();
    Kept::read(&content(&secret))
}

/// What was registered is known here, so that only the Secret is looked after.
async fn look(keeper: &Keeper, api: &FakeApiServer, now: Timestamp) -> bool {
    let mut registered = kept(api).map(|kept| (kept.bundle, now));
    keeper.look(&mut registered, now).await.unwrap()
}

#[tokio::test]
async fn certificates_are_made_once_shared_and_renewed_in_place() {
    let (api, now) = (FakeApiServer::new(), Timestamp::now());
    let (first, second) = (keeper(&api), keeper(&api));
    assert!(!look(&first, &api, now).await, "what was written is used when it is read back");
    let made = kept(&api).unwrap();
    assert!(look(&first, &api, now).await && look(&second, &api, now).await);
    assert_eq!(kept(&api), Some(made.clone()), "two processes, one certificate");
    let later = now + jiff::SignedDuration::from_hours(70 * 24);
    assert!(!look(&second, &api, later).await);
    let renewed = kept(&api).unwrap();
    assert_eq!(renewed.bundle, made.bundle, "nobody has to be told");
    assert_ne!(renewed, made);
    assert!(look(&first, &api, later).await);
}

#[tokio::test]
async fn whoever_is_second_takes_what_the_first_wrote() {
    let (api, now) = (FakeApiServer::new(), Timestamp::now());
    let keeper = keeper(&api);
    api.faults().on(CallMatch::writes().resource("secrets"), Effect::conflict());
    assert!(!look(&keeper, &api, now).await, "a conflict is no trouble");
    assert_eq!(kept(&api), None);
    assert!(!look(&keeper, &api, now).await);
    assert!(look(&keeper, &api, now).await);
}

/// Before the API server knows whom to trust, nothing is served with a certificate that it would refuse.
#[tokio::test]
async fn trust_is_published_before_the_certificate_is_used() {
    let (api, now) = (FakeApiServer::new(), Timestamp::now());
    let keeper = keeper(&api);
    let mut registered = None;
    assert!(!keeper.look(&mut registered, now).await.unwrap());
    // This server has no registrations: the process may only change those that the chart made.
    assert!(matches!(keeper.look(&mut registered, now).await, Err(Trouble::Register(_))));
    assert_eq!(registered, None);
}
