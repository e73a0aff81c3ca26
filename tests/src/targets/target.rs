//! A target, and the inputs with which most of them begin.

use crate::rng::Rng;
use std::fs;
use std::path::Path;

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of its harness, and of the folder of its inputs.
    pub name: &'static str,
    /// What it does with an input. It panics if it finds a fault.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// The contents of the files in a folder of this package, and in the folders of it, with one of these extensions.
pub(super) fn files(folder: &str, extensions: &[&str]) -> Vec<Vec<u8>> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.map(|entry| entry.expect("an entry of the folder").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted)) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.into_iter().map(|path| fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).collect()
}

/// Random bytes, as inputs of a target that makes decisions of them.
pub(super) fn random_inputs(count: u64, len: usize) -> Vec<Vec<u8>> {
    let of_seed = |seed| {
        let mut rng = Rng::new(seed);
        (0..len).map(|_| rng.bits() as u8).collect()
    };
    (0..count).map(of_seed).collect()
}
