//! The identity of this build: a hash of all that code and its tables depend on besides settings and processor. It is in every file of
//! compiled code, so that no other build reads it.

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// The packages that make code, validate modules or run them, from the folder of the workspace.
const SOURCES: [&str; 4] = ["bytecode", "jit", "vm/src", "vm/Cargo.toml"];
/// The same in a package without its workspace, from its own folder. It depends on exactly one version of the other packages.
const OWN_SOURCES: [&str; 2] = ["src", "Cargo.toml"];
/// The versions of dependencies. The file is not there in a package without its workspace.
const LOCK: &str = "Cargo.lock";
/// What Cargo tells: target, features, profile and flags.
const VARIABLES: [&str; 3] = ["CARGO_", "OPT_LEVEL", "DEBUG"];
/// What differs between places and not between builds.
const PLACES: [&str; 6] =
    ["CARGO_HOME", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_MAKEFLAGS", "CARGO_TARGET_DIR", "CARGO_TERM_"];

fn main() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = package.parent().filter(|folder| SOURCES.iter().all(|source| folder.join(source).exists()));
    let (root, sources) = workspace.map_or((package, &OWN_SOURCES[..]), |workspace| (workspace, &SOURCES));
    let mut hasher = blake3::Hasher::new();
    for source in sources {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
        hash(&root.join(source), &mut hasher).unwrap_or_else(|error| panic!("{source}: {error}"));
    }
    println!("cargo:rerun-if-changed={}", root.join(LOCK).display());
    add(&mut hasher, &fs::read(root.join(LOCK)).unwrap_or_default());
    let mut variables: Vec<_> =
        env::vars_os().map(|(name, value)| (name.into_encoded_bytes(), value.into_encoded_bytes())).collect();
    variables.retain(|(name, _)| {
        let begins_with = |prefix: &&str| name.starts_with(prefix.as_bytes());
        VARIABLES.iter().any(begins_with) && !PLACES.iter().any(begins_with)
    });
    variables.sort();
    for (name, value) in variables {
        add(&mut hasher, &name);
        add(&mut hasher, &value);
    }
    let compiler = Command::new(env::var_os("RUSTC").expect("Cargo names the compiler")).arg("-vV").output();
    add(&mut hasher, &compiler.expect("the compiler runs").stdout);
    println!("cargo:rustc-env=WEIR_TARGET={}", env::var("TARGET").expect("Cargo names the target"));
    println!("cargo:rustc-env=WEIR_BUILD={}", hasher.finalize().to_hex());
}

/// Adds bytes with their length, so that different lists differ.
fn add(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// Adds a file, or those of a folder in the order of their names.
fn hash(path: &Path, hasher: &mut blake3::Hasher) -> io::Result<()> {
    if !path.is_dir() {
        add(hasher, &fs::read(path)?);
        return Ok(());
    }
    let mut entries: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        add(hasher, entry.file_name().as_encoded_bytes());
        hash(&entry.path(), hasher)?;
    }
    Ok(())
}
