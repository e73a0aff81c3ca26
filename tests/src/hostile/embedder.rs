//! An embedder that runs a hostile module and others in one engine, and how much later than alone the others have native code.

use super::ends::{first_funcs, instantiate};
use crate::engines::engine_with_events;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use weir::{CompiledBy, Config, Engine, Instance, Module, Result, Store, TierEventKind};

/// The deadline of the hostile guest.
const DEADLINE: Duration = Duration::from_secs(2);
/// A module that ends earlier is loaded and run again until this time is over.
const LEAST: Duration = Duration::from_secs(1);
/// Between two innocent modules.
const PAUSE: Duration = Duration::from_millis(20);
/// Innocent modules that run alone.
const ALONE: usize = 7;
/// A module without native code by then gets none.
const NEVER: Duration = Duration::from_secs(10);

/// The longest time from the bytes of an innocent module to its native code.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    /// In an engine of its own.
    pub alone: Duration,
    /// In the engine of the hostile one.
    pub beside: Duration,
}

impl Delays {
    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Option<Delays> {
        let (alone, beside) = text.trim().split_once(' ')?;
        let micros = |text: &str| text.parse().ok().map(Duration::from_micros);
        Some(Delays { alone: micros(alone)?, beside: micros(beside)? })
    }

    /// How much later it is.
    pub fn difference(&self) -> Duration {
        self.beside.saturating_sub(self.alone)
    }
}

impl fmt::Display for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.alone.as_micros(), self.beside.as_micros())
    }
}

/// An engine with the default settings and deadlines, and the names of the functions for which there is optimised code.
struct Host {
    engine: Engine,
    compiled: Arc<Mutex<HashSet<String>>>,
}

impl Host {
    fn new() -> Result<Host> {
        let compiled = Arc::new(Mutex::new(HashSet::new()));
        let names = compiled.clone();
        let engine = engine_with_events(Config::new().epoch_interruption(true), move |event| {
            if let TierEventKind::Compiled { by: CompiledBy::Native, .. } = event.kind {
                names.lock().unwrap_or_else(PoisonError::into_inner).insert(event.name());
            }
        })?;
        Ok(Host { engine, compiled })
    }

    fn has_code(&self, name: &str) -> bool {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// The time until an innocent module, whose number is its own, has native code.
    fn innocent(&self, number: usize) -> Result<Duration> {
        let name = format!("innocent{number}");
        let wasm = super::wasm::text(&format!(
            r#"(module (func ${name} (export "f") (param i32) (result i32) (local i32)
                (loop $next
                    (local.set 1 (i32.xor (i32.mul (local.get 1) (i32.const 31)) (local.get 0)))
                    (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
                (i32.add (local.get 1) (i32.const {number}))))"#
        ));
        let begun = Instant::now();
        let module = Module::new(&self.engine, &wasm)?;
        let mut store = Store::new(&self.engine, ());
        store.set_epoch_deadline(1 << 32);
        let f = Instance::new(&mut store, &module, &[])?.get_typed_func::<i32, i32>(&mut store, "f")?;
        while !self.has_code(&name) && begun.elapsed() < NEVER {
            f.call(&mut store, 100)?;
        }
        Ok(begun.elapsed())
    }

    /// The longest of the times of innocent modules with these numbers.
    fn longest(&self, mut numbers: impl Iterator<Item = usize>) -> Result<Duration> {
        numbers.try_fold(Duration::ZERO, |longest, number| {
            let taken = self.innocent(number)?;
            thread::sleep(PAUSE);
            Ok(longest.max(taken))
        })
    }

    /// Loads and runs the hostile module until the deadline, at the latest.
    fn hostile(&self, wasm: &[u8]) {
        // Its own failures are no failures of the host.
        let _ = self.try_hostile(wasm);
    }

    fn try_hostile(&self, wasm: &[u8]) -> Result<()> {
        let mut store = Store::new(&self.engine, ());
        store.set_epoch_deadline(1);
        let module = Module::new(&self.engine, wasm)?;
        let instance = instantiate(&mut store, &module)?;
        for (func, mut results) in first_funcs(&store, &instance) {
            func.call(&mut store, &[], &mut results)?;
        }
        Ok(())
    }
}

/// Runs a hostile module, and meanwhile innocent ones.
///
/// # Errors
/// An innocent module fails.
pub fn run(wasm: &[u8]) -> Result<Delays> {
    let alone = Host::new()?.longest(0..ALONE)?;
    let host = Host::new()?;
    let begun = Instant::now();
    let beside = thread::scope(|scope| {
        let guest = scope.spawn(|| {
            while begun.elapsed() < LEAST {
                host.hostile(wasm);
            }
        });
        let clock = &host.engine;
        scope.spawn(move || {
            thread::sleep(DEADLINE);
            clock.increment_epoch();
        });
        host.longest((ALONE..).take_while(|_| !guest.is_finished() && begun.elapsed() < DEADLINE))
    })?;
    Ok(Delays { alone, beside })
}
