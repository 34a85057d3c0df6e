//! The dependency arrows of the workspace: they point up the list of crates only, and what is pure stays pure.

use std::process::Command;

use serde_json::Value;

/// From what everybody may use to what nobody may use.
const ORDER: [&str; 14] = [
    "windlass-api",
    "windlass-core",
    "windlass-kinds",
    "windlass-serve",
    "windlass-clients",
    "windlass-agent",
    "windlass-engine",
    "windlass-operator",
    "windlass-kubectl",
    "windlass-dice",
    "windlass-testkit",
    "windlass-lab",
    "windlass-e2e",
    "xtask",
];

/// What the plugins may be made of: they are clients, and know of clusters only what everybody can read.
const OF_PLUGINS: [&str; 2] = ["windlass-api", "windlass-core"];

/// Crates that take values and return values.
const PURE: [&str; 3] = ["windlass-api", "windlass-core", "windlass-kinds"];
/// What makes a crate able to wait or to talk to somebody.
const IMPURE: [&str; 5] = ["tokio", "kube-client", "kube-runtime", "hyper", "reqwest"];

fn cargo(arguments: &[&str]) -> String {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program).args(arguments).arg("--locked").current_dir(crate::cargo::root()).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn place(name: &str) -> usize {
    ORDER.iter().position(|it| *it == name).unwrap_or_else(|| panic!("{name} has no place in the order of crates"))
}

/// What is wrong with the arrows of these packages.
fn wrong_arrows(metadata: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = dependency["name"].as_str().unwrap();
            let of_ours = !dependency["path"].is_null();
            // Tests may use what is below: the fake API server is made of the same types.
            let for_tests = dependency["kind"] == "dev";
            let not_for_plugins = name == "windlass-kubectl" && !OF_PLUGINS.contains(&to);
            if of_ours && !for_tests && (place(to) >= place(name) || not_for_plugins) {
                wrong.push(format!("{name} -> {to}"));
            }
        }
    }
    wrong
}

#[test]
fn crates_depend_only_on_crates_above_them() {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    assert!(metadata["packages"].as_array().unwrap().len() >= 10);
    assert_eq!(wrong_arrows(&metadata), Vec::<String>::new());
}

#[test]
fn an_arrow_that_points_down_is_found() {
    let metadata = serde_json::json!({"packages": [{"name": "windlass-core", "dependencies": [
        {"name": "windlass-api", "path": "/", "kind": null},
        {"name": "windlass-testkit", "path": "/", "kind": "dev"},
        {"name": "windlass-engine", "path": "/", "kind": null},
        {"name": "serde", "path": null, "kind": null},
    ]}]});
    assert_eq!(wrong_arrows(&metadata), ["windlass-core -> windlass-engine"]);
}

#[test]
fn a_plugin_that_is_made_of_the_operator_is_found() {
    let metadata = serde_json::json!({"packages": [{"name": "windlass-kubectl", "dependencies": [
        {"name": "windlass-api", "path": "/", "kind": null},
        {"name": "windlass-kinds", "path": "/", "kind": null},
        {"name": "windlass-testkit", "path": "/", "kind": "dev"},
        {"name": "kube", "path": null, "kind": null},
    ]}]});
    assert_eq!(wrong_arrows(&metadata), ["windlass-kubectl -> windlass-kinds"]);
}

/// The names of all that a package is built from, with the features that it asks for itself.
fn built_from(package: &str) -> Vec<String> {
    // Not from `cargo metadata`: there, the features of all packages of the workspace are one.
    cargo(&["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn pure_crates_can_neither_wait_nor_talk() {
    for package in PURE {
        let all = built_from(package);
        assert!(all.iter().any(|name| name == "serde"), "{package}: {all:?}");
        let found: Vec<&String> = all.iter().filter(|name| IMPURE.contains(&name.as_str())).collect();
        assert!(found.is_empty(), "{package} is built from {found:?}");
    }
    assert!(built_from("windlass-engine").iter().any(|name| name == "kube-client"), "the check sees nothing");
}
