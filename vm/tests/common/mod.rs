//! Helpers that the API tests share.

#![allow(dead_code, reason = "not every test uses everything")]

#[path = "../../../tests/src/engines.rs"]
mod engines;
pub mod process;

pub use engines::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use weir::{Config, Engine, Instance, Linker, Module, Store, Tier};

/// Settings under which results must not differ: interpreted only, evaluated as SSA, compiled at the first call or loop, compiled by
/// the baseline compiler, the same without signal handlers, and switching between the tiers at random.
pub fn configs() -> Vec<Config> {
    let mut interpreted = Config::new();
    interpreted.tier(Tier::Interpreter);
    let mut evaluated = Config::new();
    evaluated.tier(Tier::Ssa);
    let mut compiled = Config::new();
    compiled.synchronous_compilation(true).tier_up_threshold(Some(1));
    let without_signals = |tier: &Tier| {
        let mut config = compiled.clone();
        config.tier(*tier).signals_based_traps(false);
        config
    };
    let tiers = [Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Auto];
    let signalless: Vec<Config> = tiers.iter().filter(|&&tier| is_built(tier)).map(without_signals).collect();
    let mut baseline = compiled.clone();
    baseline.tier(Tier::Baseline);
    let baseline = is_built(Tier::Baseline).then_some(baseline);
    let stressed = (1..=3).map(|seed| {
        let mut config = Config::new();
        config.stress(Some(seed));
        config
    });
    let evaluated = is_built(Tier::Ssa).then_some(evaluated);
    [interpreted].into_iter().chain(evaluated).chain([compiled]).chain(baseline).chain(signalless).chain(stressed).collect()
}

/// Whether this build has the tier.
pub fn is_built(tier: Tier) -> bool {
    match tier {
        Tier::Native | Tier::Baseline | Tier::Ssa => cfg!(feature = "jit"),
        Tier::Cranelift => cfg!(feature = "cranelift"),
        Tier::Auto | Tier::Interpreter => true,
    }
}

/// Runs a test under each of them, with changes of its own.
pub fn each_engine(change: impl Fn(&mut Config), mut test: impl FnMut(&Engine)) {
    for mut config in configs() {
        change(&mut config);
        test(&engine(&config).unwrap());
    }
}

/// An instance of a module without imports, in a store of its own.
pub fn instance(engine: &Engine, wat: &str) -> (Store<()>, Instance) {
    let module = Module::new(engine, wat).unwrap();
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(u64::MAX);
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    (store, instance)
}

/// An instance with the linker's imports, in a store with `data`.
pub fn linked<T>(linker: &Linker<T>, wat: &str, data: T) -> (Store<T>, Instance) {
    let module = Module::new(linker.engine(), wat).unwrap();
    let mut store = Store::new(linker.engine(), data);
    store.set_epoch_deadline(u64::MAX);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    (store, instance)
}

/// The executable mappings of this process that belong to no file of the system, or to one that was never in a folder.
#[cfg(target_os = "linux")]
pub fn executable_memory() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let executable = |line: &&str| line.split_whitespace().nth(1).is_some_and(|access| access.contains('x'));
    let made_here = |line: &&str| match line.split_whitespace().nth(5) {
        Some(name) => name.starts_with("/memfd:") || name.starts_with("[anon") || line.ends_with("(deleted)"),
        None => true,
    };
    maps.lines().filter(executable).filter(made_here).map(str::to_owned).collect()
}

/// Waits until this holds; a minute is taken for never.
pub fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The compiler threads of this process.
#[cfg(target_os = "linux")]
pub fn compiler_threads() -> usize {
    let names = std::fs::read_dir("/proc/self/task").expect("Linux has it").filter_map(|task| {
        let comm = task.ok()?.path().join("comm");
        std::fs::read_to_string(comm).ok()
    });
    names.filter(|name| name.starts_with("weir-compiler")).count()
}

/// Bytes of the process's memory that are resident.
#[cfg(target_os = "linux")]
pub fn resident() -> usize {
    let sizes = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = sizes.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("its format");
    pages * 4096
}

/// Sets a flag when it is dropped: tells a thread to end, however the test ends.
pub struct Done<'a>(pub &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
