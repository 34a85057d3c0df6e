use super::*;
use windlass_core::metrics::{METRICS, of_components, own};

const SHOWS: Described = own("quay_ships", Sort::Gauge, "Ships at the quay");
const PARTS: Described = of_components("quay_planks", "Planks of a ship");
const COUNTS: Described = own("quay_storms", Sort::Counter, "Storms");
const TAKES: Described = own("quay_loading_seconds", Sort::Histogram(&[1.0, 2.0]), "How long ships are loaded");
const OWN: &[Described] = &[SHOWS, PARTS, COUNTS, TAKES];

/// Something of every metric, so that all of them show.
fn shown() -> (Arc<Metrics>, ClusterMetrics) {
    let metrics = Arc::new(Metrics::default());
    let key = Key { kind: "rss".into(), namespace: "n".into(), name: "a".into() };
    let mut cluster = metrics.cluster("rss", OWN, &key);
    cluster.show(&Gate::new(Door::Open, Door::Open), 0);
    let parts = vec![(&PARTS, "bow", 1.0), (&PARTS, "stern", 2.0)];
    let (phase, members, own) = (Some("Running"), vec![("ready", 3)], vec![(&SHOWS, f64::NAN)]);
    cluster.show_figures(Figures { phase, members, own, parts });
    metrics.pass("rss", "Done", Duration::ZERO);
    metrics.step("rss", "Apply", "Done");
    metrics.operation("rss", ("Seed", "Done"), Duration::ZERO);
    metrics.question("rss", ("Status", "Answered"), Duration::ZERO);
    metrics.status_write("rss", "Done");
    metrics.logbook_write("rss", "Done");
    metrics.watch_failed("pods");
    metrics.unreadable("pods");
    metrics.overlap("rss");
    metrics.panic("rss");
    (metrics, cluster)
}

/// The labels of the first line of a metric.
fn labels(text: &str, metric: &Described) -> Option<Vec<String>> {
    let name = match metric.sort {
        Sort::Counter => format!("windlass_{}_total", metric.name),
        Sort::Gauge => format!("windlass_{}", metric.name),
        Sort::Histogram(_) => format!("windlass_{}_sum", metric.name),
    };
    let line = text.lines().find_map(|line| line.strip_prefix(&name).filter(|rest| rest.starts_with(['{', ' '])))?;
    let labels = line.trim_start_matches('{').split('}').next().filter(|_| line.starts_with('{')).unwrap_or_default();
    Some(labels.split(',').filter_map(|label| label.split_once('=')).map(|(key, _)| key.to_owned()).collect())
}

#[test]
fn the_reference_tells_every_metric_with_its_labels() {
    let (metrics, _cluster) = shown();
    let text = metrics.text();
    for metric in METRICS {
        assert_eq!(
            labels(&text, metric).as_deref(),
            Some(&metric.labels.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
            "{metric:?}\n{text}"
        );
    }
    assert_eq!(text.matches("# HELP windlass_").count(), METRICS.len(), "{text}");
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
    assert!(!text.contains("# HELP windlass_members .\n"), "{text}");
}

#[test]
fn a_phase_that_is_over_is_not_shown_and_nothing_outlives_its_cluster() {
    let (metrics, mut cluster) = shown();
    cluster.show_figures(Figures { phase: Some("Failed"), members: vec![("failed", 3)], ..Figures::default() });
    let text = metrics.text();
    assert!(text.contains("phase=\"Failed\"} 1") && !text.contains("phase=\"Running\""), "{text}");
    assert!(text.contains("state=\"failed\"} 3") && !text.contains("state=\"ready\""), "{text}");
    drop(cluster);
    assert!(!metrics.text().contains("namespace="), "{}", metrics.text());
}

#[test]
fn what_a_kind_has_of_its_own_keeps_its_name_and_begins_with_nothing() {
    let (metrics, mut cluster) = shown();
    let text = metrics.text();
    for line in [
        "quay_ships{name=\"a\",namespace=\"n\"} NaN",
        "quay_planks{name=\"a\",namespace=\"n\",component=\"bow\"} 1.0",
        "quay_planks{name=\"a\",namespace=\"n\",component=\"stern\"} 2.0",
        "quay_storms_total{name=\"a\",namespace=\"n\"} 0",
        "quay_loading_seconds_count{name=\"a\",namespace=\"n\"} 0",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    cluster.add(Measure::Count(&COUNTS));
    cluster.add(Measure::Took(&TAKES, Duration::from_millis(1500)));
    let parts = vec![(&PARTS, "stern", 3.0)];
    cluster.show_figures(Figures { own: vec![(&SHOWS, 2.0)], parts, ..Figures::default() });
    let text = metrics.text();
    assert!(text.contains("component=\"stern\"} 3.0") && !text.contains("component=\"bow\""), "{text}");
    assert!(text.contains("quay_ships{name=\"a\",namespace=\"n\"} 2.0"), "{text}");
    assert!(text.contains("quay_storms_total{name=\"a\",namespace=\"n\"} 1"), "{text}");
    assert!(text.contains("quay_loading_seconds_bucket{le=\"2.0\",name=\"a\",namespace=\"n\"} 1"), "{text}");
    cluster.show_figures(Figures::default());
    assert!(!metrics.text().contains("quay_ships{") && metrics.text().contains("quay_storms_total{"), "{}", metrics.text());
}

#[test]
fn of_a_cluster_that_another_one_looks_after_nothing_is_told_until_it_is_ours_again() {
    let (metrics, mut cluster) = shown();
    cluster.hide();
    cluster.add(Measure::Count(&COUNTS));
    cluster.add(Measure::Took(&TAKES, Duration::ZERO));
    assert!(!metrics.text().contains("namespace="), "{}", metrics.text());
    assert!(metrics.text().contains("windlass_clusters{kind=\"rss\"} 1"), "it is still counted: {}", metrics.text());
    cluster.show_figures(Figures::default());
    assert!(metrics.text().contains("quay_storms_total{name=\"a\",namespace=\"n\"} 0"), "{}", metrics.text());
}
