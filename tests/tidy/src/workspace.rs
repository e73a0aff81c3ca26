//! The packages of the workspace, their crate roots and the text of their files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One crate: a library, a binary or an example.
#[derive(Clone, Debug)]
pub struct Target {
    /// The name that other crates use.
    pub name: String,
    /// Whether other crates can name it.
    pub library: bool,
    /// Its root file, relative to the workspace.
    pub root: String,
}

/// One package.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// The package's name.
    pub name: String,
    /// Its folder, relative to the workspace.
    pub folder: String,
    /// Its crates that are not tests.
    pub targets: Vec<Target>,
    /// The packages on which it depends, inside or outside the workspace, as (name in its code, package), without those that
    /// only tests and build scripts use.
    pub dependencies: Vec<(String, String)>,
    /// Its features, without `default`.
    pub features: Vec<String>,
    /// The targets that cargo's options `--bin`, `--test`, `--example` and `--bench` can name: option and name.
    pub commands: Vec<(String, String)>,
}

/// The source of files.
pub enum Files {
    /// The folder of the workspace.
    Disk(PathBuf),
    /// Files in memory, by path, for tests.
    Memory(BTreeMap<String, String>),
}

impl Files {
    /// The text of the file at `path`, relative to the workspace.
    pub fn read(&self, path: &str) -> Option<String> {
        match self {
            Files::Disk(root) => std::fs::read_to_string(root.join(path)).ok(),
            Files::Memory(files) => files.get(path).cloned(),
        }
    }
}

/// The packages and the files.
pub struct Workspace {
    /// The packages, in the order of `cargo metadata`.
    pub packages: Vec<Package>,
    /// Their files.
    pub files: Files,
}

impl Workspace {
    /// Reads the workspace that contains `folder`.
    ///
    /// # Errors
    ///
    /// A message, if `cargo metadata` fails.
    pub fn open(folder: &Path) -> Result<Workspace, String> {
        let metadata = metadata(folder, &["--no-deps"])?;
        let root = PathBuf::from(metadata["workspace_root"].as_str().ok_or("no workspace_root")?);
        let packages = metadata["packages"].as_array().ok_or("no packages")?;
        let mut packages: Vec<Package> = packages.iter().map(|package| read_package(package, &root)).collect();
        let libraries: BTreeMap<String, String> = packages
            .iter()
            .flat_map(|package| {
                let libraries = package.targets.iter().filter(|target| target.library);
                libraries.map(|target| (package.name.clone(), target.name.clone()))
            })
            .collect();
        for package in &mut packages {
            for (name, dependency) in &mut package.dependencies {
                if name.is_empty() {
                    *name = libraries.get(dependency).cloned().unwrap_or_else(|| dependency.replace('-', "_"));
                }
            }
        }
        Ok(Workspace { packages, files: Files::Disk(root) })
    }

    /// A workspace in memory, for tests: each file with the name `PACKAGE/src/lib.rs` is the root of a package that depends on
    /// the packages before it.
    pub fn in_memory(files: &[(&str, &str)]) -> Workspace {
        let mut packages: Vec<Package> = Vec::new();
        for (path, _) in files {
            let Some(name) = path.strip_suffix("/src/lib.rs") else { continue };
            let library = Target { name: name.to_owned(), library: true, root: (*path).to_owned() };
            let dependencies = packages.iter().map(|package| (package.name.clone(), package.name.clone())).collect();
            packages.push(Package {
                name: name.to_owned(),
                folder: name.to_owned(),
                targets: vec![library],
                dependencies,
                ..Package::default()
            });
        }
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Workspace { packages, files: Files::Memory(files) }
    }

    /// The package with the name `name` or `weir-name`, or in the folder `name`.
    pub fn package(&self, name: &str) -> Option<&Package> {
        let full = format!("weir-{name}");
        self.packages.iter().find(|package| package.name == name || package.name == full || package.folder == name)
    }
}

/// The output of `cargo metadata`.
///
/// # Errors
///
/// A message, if it fails or its output is not JSON.
pub fn metadata(folder: &Path, options: &[&str]) -> Result<serde_json::Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .current_dir(folder)
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(options)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// The files that git tracks in the repository with this root.
///
/// # Errors
///
/// A message, if `git ls-files` fails.
pub fn tracked(root: &Path) -> Result<Vec<String>, String> {
    files(root, &[])
}

/// The files in the repository with this root that git tracks or would add.
///
/// # Errors
///
/// As for [`tracked`].
pub fn not_ignored(root: &Path) -> Result<Vec<String>, String> {
    files(root, &["--cached", "--others", "--exclude-standard"])
}

fn files(root: &Path, options: &[&str]) -> Result<Vec<String>, String> {
    let mut git = std::process::Command::new("git");
    let output = git.current_dir(root).args(["ls-files", "-z"]).args(options).output();
    let output = output.map_err(|error| format!("git ls-files: {error}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let names = String::from_utf8(output.stdout).map_err(|error| format!("git ls-files: {error}"))?;
    Ok(names.split_terminator('\0').map(str::to_owned).collect())
}

/// A dependency that is not renamed gets an empty name, which is filled in when all libraries are known.
fn read_package(package: &serde_json::Value, root: &Path) -> Package {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let relative = |value: &serde_json::Value| {
        let path = PathBuf::from(text(value));
        path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned()
    };
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let has_kind = |target: &serde_json::Value, kinds: &[&str]| {
        list(&target["kind"]).iter().any(|kind| kind.as_str().is_some_and(|kind| kinds.contains(&kind)))
    };
    let targets = list(&package["targets"]);
    let commands =
        targets.iter().flat_map(|target| list(&target["kind"]).into_iter().map(|kind| (text(&kind), text(&target["name"]))));
    let commands = commands.collect();
    let targets = targets.iter().filter(|target| has_kind(target, &["lib", "bin", "example", "custom-build"]));
    let dependencies = list(&package["dependencies"]);
    let dependencies = dependencies.iter().filter(|dependency| dependency["kind"].is_null());
    let manifest = relative(&package["manifest_path"]);
    Package {
        name: text(&package["name"]),
        folder: manifest.strip_suffix("/Cargo.toml").unwrap_or("").to_owned(),
        targets: targets
            .map(|target| Target {
                name: text(&target["name"]).replace('-', "_"),
                library: has_kind(target, &["lib"]),
                root: relative(&target["src_path"]),
            })
            .collect(),
        dependencies: dependencies
            .map(|dependency| (text(&dependency["rename"]).replace('-', "_"), text(&dependency["name"])))
            .collect(),
        features: package["features"]
            .as_object()
            .into_iter()
            .flat_map(|all| all.keys().cloned())
            .filter(|name| name != "default")
            .collect(),
        commands,
    }
}
