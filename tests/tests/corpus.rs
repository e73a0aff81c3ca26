//! Replays the inputs that are kept of coverage-guided fuzzing: `tests/corpus/<target>/`, and those with which each target begins. Of three
//! targets, whose inputs take long without optimisation, only some are replayed, and all by `--ignored`.

use std::path::Path;
use weir_tests::smith::with_stack;
use weir_tests::targets::{ALL, by_name};

/// Runs one target over as many of the kept inputs as `most`, and as many of the others.
fn replay(name: &str, most: usize) {
    let target = by_name(name).expect("there is this target");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry of the folder").path()).collect();
    // Their names are hashes: the first ones are any.
    paths.sort();
    assert!(paths.len() >= 50, "{} has {} inputs", folder.display(), paths.len());
    let kept = paths.iter().take(most).map(|path| {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.display().to_string(), bytes)
    });
    let seeds = (target.seeds)().into_iter().take(most).enumerate().map(|(i, bytes)| (format!("seed {i} of {name}"), bytes));
    // A failure is of the input that was printed last.
    with_stack(|| {
        kept.chain(seeds).for_each(|(input, bytes)| {
            println!("{input}");
            (target.run)(&bytes);
        });
    });
}

macro_rules! targets {
    ($($name:ident: $most:expr;)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name), $most);
        })*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            assert_eq!(ALL.map(|target| target.name), replayed);
        }
    };
}

targets! {
    bytes: usize::MAX;
    differential: 50;
    machine: usize::MAX;
    passes: usize::MAX;
    profile: usize::MAX;
    smith: 200;
    ssa: 150;
    stored: usize::MAX;
    text: usize::MAX;
    wasi: usize::MAX;
}

#[test]
#[ignore = "takes minutes"]
fn every_input() {
    ALL.iter().for_each(|target| replay(target.name, usize::MAX));
}
