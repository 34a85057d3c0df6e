//! Judges a schedule by the calls that the server saw: never two writers to one cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use windlass_testkit::Call;

/// The Lease's period and one call: so long an owner must have been silent before another release follows it.
const PATIENCE: Duration = Duration::from_secs(9);

/// Who holds the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
struct Held {
    release: String,
    released: bool,
}

/// A claim that changed hands.
pub struct Taken {
    pub at: Instant,
    pub release: String,
    /// Whether its former owner had given it up.
    pub given_up: bool,
}

fn concerns_the_cluster(call: &Call) -> bool {
    let status = call.resource == "replicatedstatefulsets" && call.subresource.as_deref() == Some("status");
    let child = matches!(
        call.resource.as_str(),
        "logbooks" | "statefulsets" | "services" | "poddisruptionbudgets" | "pods" | "controllerrevisions"
    );
    status || child
}

pub fn describe(call: &Call, began: Instant) -> String {
    let claim = if call.resource == "logbooks" { call.body["spec"]["claim"].to_string() } else { String::new() };
    let (verb, name) = (call.verb.as_str(), call.name.as_deref().unwrap_or_default());
    format!(
        "{:>8.3} {:12} {verb} {} {name} {:?} {claim}",
        (call.at - began).as_secs_f64(),
        call.caller,
        call.rbac_resource(),
        call.outcome
    )
}

/// Reads the calls in their order. `renewals` has the times at which the Lease of each release was renewed.
pub fn judge(calls: &[Call], renewals: &BTreeMap<String, Vec<Instant>>) -> Result<Vec<Taken>, String> {
    let mut held: Option<Held> = None;
    let mut taken = Vec::new();
    let writes = calls.iter().filter(|call| !call.caller.is_empty() && call.is_mutation() && call.succeeded());
    for call in writes.filter(|call| concerns_the_cluster(call)) {
        let caller = &call.caller;
        let owned = held.as_ref().is_some_and(|held| held.release == *caller && !held.released);
        if call.resource != "logbooks" {
            if !owned {
                return Err(format!("call {} of {caller} while {held:?} holds the cluster", call.index));
            }
            continue;
        }
        let claim = &call.body["spec"]["claim"];
        let next =
            Held { release: claim["release"].as_str().unwrap_or_default().to_owned(), released: claim["released"] == true };
        if next.release != *caller {
            return Err(format!("call {} of {caller} writes the claim of {next:?}", call.index));
        }
        let given_up = held.as_ref().is_none_or(|held| held.released);
        if !owned {
            // The last renewal before this call, as the follower can have seen it.
            let last = held.as_ref().and_then(|held| renewals.get(&held.release)?.iter().rev().find(|at| **at <= call.at));
            let silent = last.is_none_or(|last| call.at - *last >= PATIENCE);
            let own = held.as_ref().is_some_and(|held| held.release == *caller);
            if !given_up && !silent && !own {
                return Err(format!("call {} of {caller} takes the cluster that {held:?} holds and lives", call.index));
            }
            if !next.released {
                taken.push(Taken { at: call.at, release: caller.clone(), given_up });
            }
        }
        held = Some(next);
    }
    Ok(taken)
}
