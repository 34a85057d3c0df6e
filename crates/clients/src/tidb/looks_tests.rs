use super::*;
use crate::script::Script;

const METRICS: &str = r#"# HELP tikv_raftstore_region_count Number of regions collected in region_collector
# TYPE tikv_raftstore_region_count gauge
tikv_raftstore_region_count{type="buckets"} 50
tikv_raftstore_region_count{type="leader"} 20
tikv_raftstore_region_count{type="region"} 50
"#;

#[test]
fn leaders_are_read_from_metrics() {
    assert_eq!(leaders(METRICS), Ok(20));
    assert_eq!(leaders("tikv_raftstore_region_count{instance=\"a\",type=\"leader\"} 2e+01 1700000000000"), Ok(20));
    assert_eq!(leaders("tikv_raftstore_region_count{type=\"leader\"} 0"), Ok(0));
}

#[test]
fn a_store_that_does_not_tell_its_leaders_may_have_some() {
    for metrics in [
        "",
        "tikv_raftstore_region_count{type=\"region\"} 50",
        "tikv_raftstore_region_count_total{type=\"leader\"} 0",
        "tikv_raftstore_region_count{type=\"leader\"} NaN",
        "tikv_raftstore_region_count{type=\"leader\"} -1",
        "tikv_raftstore_region_count{type=\"leader\"} 0.5",
        "tikv_raftstore_region_count{type=\"leader\"} +Inf",
        "tikv_raftstore_region_count{type=\"leader\"}",
    ] {
        assert!(leaders(metrics).is_err(), "{metrics}");
    }
}

async fn said(component: Component, answers: &'static [(&'static str, u16, &'static str)]) -> Result<Said, Failure> {
    let script = Script::new(|line| {
        let (_, status, body) = answers.iter().find(|(path, ..)| line == format!("GET {path}")).unwrap_or(&("", 404, "none"));
        (*status, (*body).to_owned())
    })
    .await;
    look(&Http::default(), &script.peer(), component, "a-pump-1").await
}

#[tokio::test]
async fn servers_say_how_they_are() {
    assert_eq!(said(Component::Pd, &[]).await.unwrap(), Said::Pd { ready: true });
    assert_eq!(said(Component::Tikv, &[("/metrics", 200, METRICS)]).await.unwrap(), Said::Tikv { leaders: 20 });
    let tiflash = |running| Said::Tiflash { running };
    assert_eq!(said(Component::Tiflash, &[("/tiflash/store-status", 200, "Running")]).await.unwrap(), tiflash(true));
    assert_eq!(said(Component::Tiflash, &[("/tiflash/store-status", 200, "Idle")]).await.unwrap(), tiflash(false));
    assert_eq!(said(Component::Tidb, &[("/status", 200, "{\"connections\":1}")]).await.unwrap(), Said::Tidb);
    let info = "{\"config_checksum\":7}".to_owned();
    let health: &[_] = &[("/api/debug/health", 200, "{\"config_checksum\":7}\n")];
    assert_eq!(said(Component::Tiproxy, health).await.unwrap(), Said::Tiproxy { info });
}

#[tokio::test]
async fn servers_that_are_not_well_give_no_answer() {
    assert!(said(Component::Tidb, &[("/status", 500, "")]).await.is_err());
    assert!(said(Component::Tiproxy, &[("/api/debug/health", 502, "")]).await.is_err());
    assert!(said(Component::Tiflash, &[]).await.is_err());
    assert!(said(Component::Tikv, &[("/metrics", 200, "")]).await.is_err());
    assert!(said(Component::Ticdc, &[("/status", 200, "{}")]).await.is_err());
}

#[tokio::test]
async fn a_capture_is_among_the_captures_or_nobody_knows() {
    const STATUS: (&str, u16, &str) =
        ("/status", 200, r#"{"version":"v7.5.0","git_hash":"x","id":"c1","pid":1,"is_owner":true}"#);
    const LISTED: &str =
        r#"[{"id":"c1","is_owner":true,"address":"a-ticdc-0:8301"},{"id":"c2","is_owner":false,"address":"b"}]"#;
    let listed = |said| match said {
        Ok(Said::Ticdc { capture, version, is_owner: true, listed }) => {
            assert_eq!((capture.as_str(), version.as_str()), ("c1", "v7.5.0"));
            listed.ok()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(listed(said(Component::Ticdc, &[STATUS, ("/api/v1/captures", 200, LISTED)]).await), Some(true));
    assert_eq!(listed(said(Component::Ticdc, &[STATUS, ("/api/v1/captures", 200, "[]")]).await), Some(false));
    assert_eq!(listed(said(Component::Ticdc, &[STATUS, ("/api/v1/captures", 503, "")]).await), None);
    assert_eq!(listed(said(Component::Ticdc, &[STATUS, ("/api/v1/captures", 404, "")]).await), None);
}

#[tokio::test]
async fn a_pump_is_found_by_its_pod() {
    const PUMPS: &str = r#"{"status":{
        "a-pump-1:8250":{"nodeId":"a-pump-1:8250","host":"a-pump-1.a-pump:8250","state":"online","isAlive":false,"maxCommitTS":1},
        "a-pump-10:8250":{"nodeId":"a-pump-10:8250","host":"a-pump-10.a-pump:8250","state":"offline"}},
        "CommitTS":412518831849473230,"Checkpoint":{},"ErrMsg":""}"#;
    let expected = Said::Pump { node: "a-pump-1:8250".into(), host: "a-pump-1.a-pump:8250".into(), state: "online".into() };
    assert_eq!(said(Component::Pump, &[("/status", 200, PUMPS)]).await.unwrap(), expected);
    for unknown in [r#"{"status":{},"ErrMsg":""}"#, r#"{"status":null,"ErrMsg":"no PD"}"#, "[]"] {
        let script = Script::new(move |_| (200, unknown.to_owned())).await;
        assert!(look(&Http::default(), &script.peer(), Component::Pump, "a-pump-1").await.is_err(), "{unknown}");
    }
}
