use super::*;
use crate::script::Script;

async fn end(task: Task, status: u16, body: &'static str) -> (End, Vec<String>) {
    let script = Script::new(move |_| (status, body.to_owned())).await;
    let end = at_server(&Http::default(), &script.peer(), &task).await.unwrap();
    (end, script.changes())
}

#[tokio::test]
async fn a_capture_drains_until_nothing_is_left() {
    let drain = || Task::DrainCapture { capture: "c1".into() };
    let (left, sent) = end(drain(), 202, r#"{"current_table_count":3}"#).await;
    assert_eq!(left, End::Drains { left: 3 });
    assert_eq!(sent, [r#"PUT /api/v1/captures/drain {"capture_id":"c1"}"#]);
    assert_eq!(end(drain(), 404, "").await.0, End::Drains { left: 0 });
    assert!(matches!(end(drain(), 503, "").await.0, End::Failed { .. }));
    assert!(matches!(end(drain(), 200, "{}").await.0, End::Failed { .. }));
}

#[tokio::test]
async fn an_owner_resigns_where_it_can() {
    let (done, sent) = end(Task::ResignTiCdcOwner, 202, "").await;
    assert_eq!((done, sent), (End::Done, vec!["POST /api/v1/owner/resign".to_owned()]));
    assert_eq!(end(Task::ResignTiCdcOwner, 404, "").await.0, End::Done);
    assert!(matches!(end(Task::ResignTiCdcOwner, 503, "").await.0, End::Failed { .. }));
}

#[tokio::test]
async fn a_pump_says_in_words_whether_it_leaves() {
    let offline = || Task::PumpOffline { node: "a-pump-1:8250".into() };
    let (done, sent) = end(offline(), 200, r#"{"message":"apply action close success!","code":200}"#).await;
    assert_eq!((done, sent), (End::Done, vec!["PUT /state/a-pump-1:8250/close".to_owned()]));
    let (no, _) = end(offline(), 200, r#"{"message":"invalide nodeID","code":500}"#).await;
    assert!(matches!(no, End::Failed { why } if why.contains("invalide nodeID")));
}

#[tokio::test]
async fn a_task_at_the_wrong_place_is_not_sent() {
    let script = Script::new(|_| (200, String::new())).await;
    let (http, peer) = (Http::default(), script.peer());
    assert_eq!(at_server(&http, &peer, &Task::EvictLeaders { store: 1 }).await, None);
    assert_eq!(at_pd(Pd::new(&http, &peer), &Task::ResignTiCdcOwner).await, None);
    assert!(script.heard().is_empty());
}
