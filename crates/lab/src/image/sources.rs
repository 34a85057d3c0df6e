//! Where Debian packages come from: the mirrors that this machine itself uses.

use anyhow::{Context as _, Result, bail};

use crate::command;

/// One repository that the machine's apt knows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Repository {
    address: String,
    release: String,
    component: String,
    signed_by: String,
}

/// The lines of a sources list for `suite`.
pub(super) async fn of_suite(suite: &str) -> Result<Vec<String>> {
    let format = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SIGNED_BY)";
    let output = command::run("apt-get", &["indextargets", "--format", format, "Created-By: Packages"])
        .await
        .context("cannot read the machine's package sources")?;
    let release = std::fs::read_to_string("/etc/os-release").context("cannot read the machine's release")?;
    let codename = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .unwrap_or_default();
    select(&parse(&output), suite, &codename)
}

fn parse(output: &str) -> Vec<Repository> {
    output
        .lines()
        .filter_map(|line| {
            let mut fields = line.split('|').map(str::to_owned);
            Some(Repository {
                address: fields.next()?,
                release: fields.next()?,
                component: fields.next()?,
                signed_by: fields.next()?,
            })
        })
        .collect()
}

/// The machine's own sources when they have the suite, with its updates; otherwise the suite from
/// the archive that the machine's own release comes from.
fn select(repositories: &[Repository], suite: &str, codename: &str) -> Result<Vec<String>> {
    let wanted = [suite.to_owned(), format!("{suite}-updates"), format!("{suite}-security")];
    let mut chosen: Vec<Repository> = repositories
        .iter()
        .filter(|repository| repository.component == "main" && wanted.contains(&repository.release))
        .cloned()
        .collect();
    if !chosen.iter().any(|repository| repository.release == suite) {
        let archive = repositories.iter().find(|repository| repository.component == "main" && repository.release == codename);
        let Some(archive) = archive else {
            bail!(
                "the machine's apt sources have neither the suite `{suite}` nor its own release `{codename}`: add one to /etc/apt"
            );
        };
        chosen = vec![Repository { release: suite.to_owned(), ..archive.clone() }];
    }
    let mut lines: Vec<String> = chosen.iter().map(line).collect();
    lines.dedup();
    Ok(lines)
}

fn line(repository: &Repository) -> String {
    let Repository { address, release, component, signed_by } = repository;
    // A key may be given inline; then the machine's keyrings decide.
    let options = if signed_by.starts_with('/') { format!("[signed-by={signed_by}] ") } else { String::new() };
    format!("deb {options}{address} {release} {component}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: &str = "\
http://mirror.test/debian/|bookworm|main|/k.gpg
http://mirror.test/debian/|bookworm-updates|main|/k.gpg
http://mirror.test/security/|bookworm-security|main|/k.gpg
http://other.test/node/|nodistro|main|/n.gpg
";

    #[test]
    fn the_machines_own_suite_comes_with_its_updates() {
        let lines = select(&parse(TARGETS), "bookworm", "bookworm").unwrap();
        assert_eq!(
            lines,
            [
                "deb [signed-by=/k.gpg] http://mirror.test/debian/ bookworm main",
                "deb [signed-by=/k.gpg] http://mirror.test/debian/ bookworm-updates main",
                "deb [signed-by=/k.gpg] http://mirror.test/security/ bookworm-security main",
            ]
        );
    }

    #[test]
    fn another_suite_comes_from_the_same_archive() {
        let lines = select(&parse(TARGETS), "sid", "bookworm").unwrap();
        assert_eq!(lines, ["deb [signed-by=/k.gpg] http://mirror.test/debian/ sid main"]);
    }

    #[test]
    fn without_any_archive_the_error_says_what_to_add() {
        assert!(select(&[], "sid", "bookworm").unwrap_err().to_string().contains("/etc/apt"));
    }
}
