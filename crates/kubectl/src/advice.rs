//! What a person can do, in a sentence each. Says nothing that depends on one kind of database.

/// No release has claimed the cluster.
pub(crate) const UNCLAIMED: &str =
    "no release of Windlass has taken it: none is running, or none has a selector and a namespace that match it";
/// The release that had it let it go.
pub(crate) const RELEASED: &str =
    "that release gave it up and nobody has taken it since: give it labels that the selector of a running release matches";

/// What to do about a reason of `Stalled`.
pub(crate) fn for_stall(reason: &str, handle: &str, namespace: &str) -> String {
    let command = |verb: &str| format!("kubectl {verb} {handle} -n {namespace}");
    match reason {
        "InvalidSpec" => {
            format!("change the field that is named, with `{}`; until then the last good spec stays in force", command("edit"))
        }
        "LogbookLost" | "LogbookContradicted" => {
            "let every member come up, so that what is missing can be seen again; steps that \
             cannot be undone wait until then"
                .to_owned()
        }
        "SeedUndecided" | "QuorumLost" => {
            "bring every member that is named back, with its data; nothing is started anew before all \
             were heard"
                .to_owned()
        }
        "StepFailed" => format!(
            "remove the cause that is named; it is tried again by itself; `{}` and the operator's log tell more",
            command("describe")
        ),
        _ => format!("remove the cause that is named; `{}` shows what happened before", command("describe")),
    }
}
