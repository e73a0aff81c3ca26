//! `embed` and `tests/wasmtime` have lock files of their own, which no other build reads. These must contain the current dependencies
//! of this workspace's packages; otherwise the documented commands, which use `--locked`, fail.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Each package of the lock file with its dependencies, without versions.
fn locked(text: &str) -> BTreeMap<String, Vec<String>> {
    let packages = text.split("[[package]]").skip(1).map(|package| {
        let quoted = |line: &str| line.split('"').nth(1).unwrap_or_default().split(' ').next().unwrap_or_default().to_string();
        let name = package.lines().find(|line| line.starts_with("name = ")).map(quoted).expect("a name");
        let dependencies = package.lines().filter(|line| line.starts_with(" \"")).map(quoted).collect();
        (name, dependencies)
    });
    packages.collect()
}

/// The name, normal dependencies and optional dependencies of each package of the workspace.
fn declared() -> Vec<(String, Vec<String>, Vec<String>)> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let package = |package: &Value| {
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let names = |optional: bool| -> Vec<String> {
            let of_kind = dependencies.iter().filter(|it| it["kind"] != "dev" && it["optional"] == optional);
            of_kind.map(|it| it["name"].as_str().expect("a name").to_string()).collect()
        };
        (package["name"].as_str().expect("a name").to_string(), names(false), names(true))
    };
    metadata["packages"].as_array().expect("packages").iter().map(package).collect()
}

#[test]
fn the_lock_files_outside_the_workspace_are_up_to_date() {
    for folder in ["programs/bench/embed", "tests/wasmtime"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder).join("Cargo.lock");
        let locked = locked(&fs::read_to_string(path).expect("the lock file"));
        let mut compared = 0;
        for (name, normal, optional) in declared() {
            let Some(dependencies) = locked.get(&name) else { continue };
            compared += 1;
            for dependency in &normal {
                let there = dependencies.contains(dependency);
                assert!(there, "{folder}/Cargo.lock: {name} without {dependency}: run `cargo metadata` there");
            }
            for dependency in dependencies {
                let there = normal.contains(dependency) || optional.contains(dependency);
                assert!(there, "{folder}/Cargo.lock: {name} depends on {dependency} no more: run `cargo metadata` there");
            }
        }
        assert!(compared >= 4, "{folder}: {compared}");
    }
}
