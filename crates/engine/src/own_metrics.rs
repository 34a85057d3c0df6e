//! Metrics that one kind has of its own, under the names that its users know. Each series is of one cluster, and goes with it.
//!
//! What they mean is the kind's to say; here they are only kept. A metric is registered when it is told for the first time.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use windlass_core::metrics::{Described, Measure, OWN_LABELS, Sort};

/// A cluster, or a part of it. Its kind is in the names of the metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwnLabels {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// The name of the further label, and its value.
    pub(crate) part: Option<(&'static str, &'static str)>,
}

impl OwnLabels {
    /// The same of a part, in a metric that tells parts apart.
    pub(crate) fn of_part(&self, metric: &Described, part: &'static str) -> Self {
        let label = metric.labels.iter().copied().find(|label| !OWN_LABELS.contains(label));
        Self { part: label.map(|label| (label, part)), ..self.clone() }
    }
}

impl EncodeLabelSet for OwnLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        let own = [("name", self.name.as_str()), ("namespace", self.namespace.as_str())];
        own.into_iter().chain(self.part).collect::<Vec<_>>().encode(encoder)
    }
}

/// Makes histograms with these limits.
#[derive(Clone)]
pub(crate) struct Limits(pub(crate) &'static [f64]);

impl MetricConstructor<Histogram> for Limits {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

enum Kept {
    Gauge(Family<OwnLabels, Gauge<f64, AtomicU64>>),
    Counter(Family<OwnLabels, Counter>),
    Histogram(Family<OwnLabels, Histogram, Limits>),
}

impl Kept {
    fn new(registry: &mut Registry, metric: &Described) -> Self {
        match metric.sort {
            Sort::Gauge => {
                let family = Family::default();
                registry.register(metric.name, metric.help, family.clone());
                Self::Gauge(family)
            }
            Sort::Counter => {
                let family = Family::default();
                registry.register(metric.name, metric.help, family.clone());
                Self::Counter(family)
            }
            Sort::Histogram(limits) => {
                let family = Family::new_with_constructor(Limits(limits));
                registry.register(metric.name, metric.help, family.clone());
                Self::Histogram(family)
            }
        }
    }

    fn remove(&self, labels: &OwnLabels) {
        match self {
            Self::Gauge(family) => family.remove(labels),
            Self::Counter(family) => family.remove(labels),
            Self::Histogram(family) => family.remove(labels),
        };
    }
}

#[derive(Default)]
struct Inner {
    registry: Registry,
    kept: BTreeMap<&'static str, Kept>,
}

impl Inner {
    fn get(&mut self, metric: &'static Described) -> &Kept {
        let Self { registry, kept } = self;
        kept.entry(metric.name).or_insert_with(|| Kept::new(registry, metric))
    }
}

/// The metrics of all kinds' own.
#[derive(Default)]
pub(crate) struct OwnMetrics {
    inner: Mutex<Inner>,
}

impl OwnMetrics {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write_to(&self, text: &mut String) {
        // Writing into a string cannot fail.
        let _infallible = encode_registry(text, &self.lock().registry);
    }

    /// Lets counters and histograms of a cluster begin with nothing: one that comes up with its first event shows no increase.
    pub(crate) fn begin(&self, metrics: &'static [Described], labels: &OwnLabels) {
        let mut inner = self.lock();
        for metric in metrics {
            match inner.get(metric) {
                Kept::Counter(family) => drop(family.get_or_create(labels)),
                Kept::Histogram(family) => drop(family.get_or_create(labels)),
                Kept::Gauge(_) => {}
            }
        }
    }

    pub(crate) fn set(&self, metric: &'static Described, labels: &OwnLabels, value: f64) {
        if let Kept::Gauge(family) = self.lock().get(metric) {
            family.get_or_create(labels).set(value);
        }
    }

    pub(crate) fn add(&self, measure: Measure, labels: &OwnLabels) {
        match measure {
            Measure::Count(metric) => {
                if let Kept::Counter(family) = self.lock().get(metric) {
                    family.get_or_create(labels).inc();
                }
            }
            Measure::Took(metric, took) => {
                if let Kept::Histogram(family) = self.lock().get(metric) {
                    family.get_or_create(labels).observe(took.as_secs_f64());
                }
            }
        }
    }

    pub(crate) fn remove(&self, metric: &'static Described, labels: &OwnLabels) {
        self.lock().get(metric).remove(labels);
    }

    /// Takes everything of a cluster away.
    pub(crate) fn forget(&self, metrics: &'static [Described], labels: &OwnLabels) {
        let inner = self.lock();
        for kept in metrics.iter().filter_map(|metric| inner.kept.get(metric.name)) {
            kept.remove(labels);
        }
    }
}
