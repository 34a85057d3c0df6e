//! What a person can do, in a sentence each. Says nothing that depends on one kind of database.

use windlass_api::logbook::LogbookSpec;
use windlass_core::labels;
use windlass_core::memory::ways_out;

/// No release has claimed the cluster.
pub(crate) const UNCLAIMED: &str =
    "no release of Windlass has taken it: none is running, or none has a selector and a namespace that match it";
/// The release that had it let it go.
pub(crate) const RELEASED: &str =
    "that release gave it up and nobody has taken it since: give it labels that the selector of a running release matches";

/// What to do about a reason of `Stalled`.
pub(crate) fn for_stall(reason: &str, handle: &str, namespace: &str, entries: Option<&LogbookSpec>) -> String {
    let command = |verb: &str, more: &str| format!("`kubectl {verb} {handle} -n {namespace}{more}`");
    match reason {
        "InvalidSpec" => {
            format!("change the field that is named, with {}; until then the last good spec stays in force", command("edit", ""))
        }
        "LogbookLost" => {
            let seen = "let every member come up, so that what is missing can be seen again";
            match entries.map(ways_out).filter(|ways| !ways.is_empty()) {
                Some(ways) => format!("{seen}; or, if you know it, say it once: {}", command("annotate", &format!(" {ways}"))),
                None => seen.to_owned(),
            }
        }
        "LogbookContradicted" => {
            "find out where the data of the member that is named comes from, before anything else; nothing is removed meanwhile".to_owned()
        }
        "SeedUndecided" | "QuorumLost" => {
            "bring every member that is named back, with the data of this cluster; nothing is started anew before all were heard".to_owned()
        }
        "ForeignObject" => format!(
            "if the other operator does not look after it any more, {} lets Windlass take its objects over; nothing is restarted by that",
            command("annotate", &format!(" {}=true", labels::ADOPT))
        ),
        "UnknownIntent" => {
            "let the newer release of Windlass that announced it look after the cluster again, or upgrade this one".to_owned()
        }
        "StepFailed" => format!(
            "remove the cause that is named; it is tried again by itself; {} and the operator's log tell more",
            command("describe", "")
        ),
        _ => format!("remove the cause that is named; {} shows what happened before", command("describe", "")),
    }
}

#[cfg(test)]
mod tests {
    use windlass_api::logbook::Unproven;

    use super::*;

    #[test]
    fn what_was_lost_can_be_said_by_a_command_that_is_ready_to_type() {
        let unproven = vec![Unproven { entry: "counts".to_owned(), why: String::new() }];
        let entries = LogbookSpec { own_uid: "book".to_owned(), unproven, ..LogbookSpec::default() };
        let advice = for_stall("LogbookLost", "rss/harbour", "shop", Some(&entries));
        assert!(advice.contains("`kubectl annotate rss/harbour -n shop windlass.dev/override.counts="), "{advice}");
        assert!(advice.contains("@book`"), "{advice}");
        assert!(!for_stall("LogbookLost", "rss/harbour", "shop", None).contains("annotate"));
    }
}
