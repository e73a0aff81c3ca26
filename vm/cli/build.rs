//! Options of the linker with which the command starts faster, where they work. They change nothing else, so that a build without
//! them is as good.

use std::env;
use std::path::Path;
use std::process::Command;

/// The first version of the GNU C library whose loader reads packed relocations.
const READS_PACKED: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_gnu = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    // What this system has says nothing about another one.
    if !is_gnu || variable("HOST") != variable("TARGET") {
        return;
    }
    // A position-independent executable has 20,000 addresses to relocate, which the loader reads from 0.5 MB, or from 5 kB if they are
    // packed. A linker that does not know the option warns and ignores it. One that does makes older loaders refuse the program.
    if library_version().is_some_and(|version| version >= READS_PACKED) {
        println!("cargo:rustc-link-arg-bin=weir=-Wl,-z,pack-relative-relocs");
    }
    // The unwinder as a part of the program: a shared library takes a tenth of the time that the process takes to start.
    let is_static = variable("CARGO_CFG_TARGET_FEATURE").split(',').any(|feature| feature == "crt-static");
    if let Some(folder) = (!is_static).then(unwinder).flatten() {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-lib=static:+whole-archive,-bundle=gcc_eh");
    }
}

/// Returns the version of this system's GNU C library.
fn library_version() -> Option<(u32, u32)> {
    let text = output("getconf", "GNU_LIBC_VERSION")?;
    let (major, minor) = text.strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

/// Returns the folder of the unwinder's static library, which comes with GCC.
fn unwinder() -> Option<String> {
    const LIBRARY: &str = "libgcc_eh.a";
    let file = output("cc", &format!("-print-file-name={LIBRARY}"))?;
    // If it finds no file, it prints the name alone.
    let folder = file.strip_suffix(LIBRARY).filter(|_| Path::new(&file).is_absolute() && Path::new(&file).is_file())?;
    Some(folder.into())
}

/// Returns what a command with one argument prints, if it succeeds.
fn output(command: &str, argument: &str) -> Option<String> {
    let output = Command::new(command).arg(argument).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().into())
}
