//! Replays the inputs that are kept of coverage-guided fuzzing: `tests/corpus/<target>/`, and those with which each target begins.

use std::path::Path;
use weir_tests::smith::with_stack;
use weir_tests::targets::{ALL, Target};

/// Runs one target over its inputs.
fn replay(target: Target) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry of the folder").path()).collect();
    paths.sort();
    assert!(paths.len() >= 10, "{} has {} inputs", folder.display(), paths.len());
    let kept = paths.iter().map(|path| {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.display().to_string(), bytes)
    });
    let seeds = (target.seeds)().into_iter().enumerate().map(|(i, bytes)| (format!("seed {i} of {}", target.name), bytes));
    // A failure is of the input that was printed last.
    kept.chain(seeds).for_each(|(name, bytes)| {
        println!("{name}");
        (target.run)(&bytes);
    });
}

#[test]
fn every_target_accepts_its_inputs() {
    for target in ALL {
        let start = std::time::Instant::now();
        with_stack(|| replay(target));
        println!("{}: {:?}", target.name, start.elapsed());
    }
}
