//! Other operators that might touch the bench's clusters and spoil its figures.

use std::path::Path;

use windlass_lab::Lab;

/// One warning for each other `windlass controller` process on this machine that may work on the lab.
pub(crate) fn operators_on(lab: &Lab) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| warning(&entry.path(), lab)).collect()
}

fn warning(process: &Path, lab: &Lab) -> Option<String> {
    let pid: u32 = process.file_name()?.to_str()?.parse().ok()?;
    let arguments = words(&process.join("cmdline"));
    let program = Path::new(arguments.first()?).file_name()?.to_str()?;
    if program != "windlass" || arguments.get(1).map(String::as_str) != Some("controller") {
        return None;
    }
    let environment = words(&process.join("environ"));
    let kubeconfig = environment.iter().find_map(|word| word.strip_prefix("KUBECONFIG="));
    // One in a pod of another lab has no kubeconfig; whether it is in this one, the Deployment tells.
    let here = kubeconfig.is_some_and(|path| Path::new(path).parent() == lab.kubeconfig().parent());
    let selective = arguments.iter().any(|word| word.starts_with("--selector"));
    here.then(|| {
        let effect = if selective {
            "it may slow the bench down"
        } else {
            "it has no selector and takes the bench's clusters as well: the figures are spoilt"
        };
        format!("process {pid} runs `{}` against this lab; {effect}", arguments.join(" "))
    })
}

fn words(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}
