//! How busy the machine is: without it, no time means anything.

use std::time::Instant;

use serde::Serialize;

/// The load at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    /// How many processors there are.
    pub(crate) cores: usize,
    /// The load averages over 1, 5 and 15 minutes.
    pub(crate) load: String,
}

impl Machine {
    pub(crate) fn now() -> Self {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
        Self { cores: std::thread::available_parallelism().map_or(0, usize::from), load }
    }
}

/// Measures which share of the machine was idle over a time.
pub(crate) struct Idle {
    began: Instant,
    before: Option<(u64, u64)>,
}

impl Idle {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), before: processor_ticks() }
    }

    /// The idle share in percent since the start; nothing when the time was too short to tell.
    pub(crate) fn percent(&self) -> Option<u64> {
        let ((idle_before, all_before), (idle, all)) = (self.before?, processor_ticks()?);
        let passed = all.checked_sub(all_before).filter(|ticks| *ticks > 0 && self.began.elapsed().as_millis() > 200)?;
        Some(100 * idle.saturating_sub(idle_before) / passed)
    }
}

/// Idle ticks, with those that waited for a disk, and all ticks.
fn processor_ticks() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    parse(text.lines().next()?)
}

fn parse(line: &str) -> Option<(u64, u64)> {
    let ticks: Vec<u64> = line.strip_prefix("cpu ")?.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // The ticks of guests, behind the eighth field, are part of those before.
    let all = ticks.iter().take(8).sum();
    Some((ticks.get(3)? + ticks.get(4)?, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_ticks_are_idle_and_guests_are_not_counted_twice() {
        assert_eq!(parse("cpu  10 1 20 60 5 0 2 2 7 0"), Some((65, 100)));
        assert_eq!(parse("cpu0 10 1 20"), None);
    }
}
