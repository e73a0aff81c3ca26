//! Random programs whose guests are suspended, stopped and dropped: everything that a host can observe is the same as when they are called
//! synchronously, in every tier, the fuel included.
//!
//! Each program runs in four ways, on one engine:
//! - synchronously, which is the reference;
//! - asynchronously: it yields after fuel, its host functions are pending some times, and a part of the polls are on another thread;
//! - the same, with futures that are dropped at a suspension, after which the store must be usable and leave nothing behind;
//! - resumably: it stops when a small amount of fuel is used up, and gets as much again; some calls are given up.

use crate::differential::{
    AMPLE_FUEL, CallEnd, Mismatch, Outcome, TierUse, difference, ended, failed, weir_module, weir_outcome,
};
use crate::engines::engine;
use crate::generate::{Action, Program, generate, switching, throwing};
use crate::host::{self, Uses, to_val};
use crate::rng::Rng;
use crate::state::State;
use std::fmt;
use std::future::poll_fn;
use std::ops::AddAssign;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use weir::{Config, Module, Result, ResumableCall, Store, Val};

/// Chooses the program of this seed, of each kind in turn.
pub fn program(seed: u64) -> Program {
    match seed % 3 {
        0 => generate(seed / 3),
        1 => switching(seed / 3),
        _ => throwing(seed / 3),
    }
}

/// What was compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Runs of a program on an engine, each compared with a synchronous one.
    pub runs: u64,
    /// Calls in them.
    pub calls: u64,
    /// Calls that trapped, out of fuel included.
    pub trapped: u64,
    /// Suspensions in calls that ended.
    pub suspended: u64,
    /// Calls that were dropped at a suspension.
    pub dropped: u64,
    /// Stops after which a guest got more fuel.
    pub resumed: u64,
    /// Stopped calls that were given up.
    pub given_up: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        let Tally { runs, calls, trapped, suspended, dropped, resumed, given_up } = other;
        self.runs += runs;
        self.calls += calls;
        self.trapped += trapped;
        self.suspended += suspended;
        self.dropped += dropped;
        self.resumed += resumed;
        self.given_up += given_up;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { runs, calls, trapped, suspended, dropped, resumed, given_up } = self;
        writeln!(f, "{runs} runs of programs compared with synchronous ones: {calls} calls, of which {trapped} trapped")?;
        writeln!(f, "{suspended} suspensions, and {dropped} calls dropped while they were suspended")?;
        write!(f, "{resumed} stops without fuel, and {given_up} calls given up after one")
    }
}

/// Compares the ways to run a program on an engine.
///
/// # Errors
/// The first difference.
pub fn compare(program: &Program, config: &Config, profile: Option<u64>, rng: &mut Rng) -> Result<Tally, Mismatch> {
    let mut config = config.clone();
    config.consume_fuel(true);
    let module = engine(&config).and_then(|engine| weir_module(program, &engine, profile));
    let module = module.map_err(|error| failed("loading", error))?;
    let mut tally = Tally::default();
    let ample = weir_outcome(program, &module, AMPLE_FUEL).map_err(|error| failed("synchronous", error))?;
    let longest = ample.fuel.iter().flatten().max().copied().unwrap_or(0);
    for fuel in [AMPLE_FUEL, longest * u64::from(rng.below(256) as u8) / 256] {
        let reference = weir_outcome(program, &module, fuel).map_err(|error| failed("synchronous", error))?;
        let interval = 1 + u64::from(rng.below(2 + longest.min(4000) as u32 / 4));
        let seed = rng.bits();
        let (outcome, suspended) =
            asynchronous(program, &module, fuel, interval, seed).map_err(|error| failed("asynchronous", error))?;
        same(program, &reference, ("asynchronous", &outcome))?;
        tally.suspended += suspended;
        tally.runs += 1;
        tally.calls += outcome.calls.len() as u64;
        tally.trapped += outcome.calls.iter().filter(|end| matches!(end, CallEnd::Trap(_))).count() as u64;
        tally.dropped += dropping(program, &module, interval, seed).map_err(|error| failed("dropped", error))?;
    }
    let step = 1 + u64::from(rng.below(2 + longest.min(4000) as u32 / 3));
    let (outcome, resumed) = resumable(program, &module, step).map_err(|error| failed("resumable", error))?;
    same(program, &ample, ("resumable", &outcome))?;
    tally.runs += 1;
    tally.calls += outcome.calls.len() as u64;
    tally.resumed += resumed;
    tally.given_up += giving_up(program, &module, step, rng).map_err(|error| failed("given up", error))?;
    Ok(tally)
}

/// Compares an outcome with that of synchronous calls, the fuel included.
fn same(program: &Program, reference: &Outcome, (name, outcome): (&str, &Outcome)) -> Result<(), Mismatch> {
    difference(program, ("synchronous", reference), (name, outcome))?;
    // What a guest has overdrawn is lost if it traps before the poll that would stop it.
    let trapped = |i: usize| name == "resumable" && matches!(reference.calls.get(i), Some(CallEnd::Trap(_)));
    let fuel = |outcome: &Outcome| outcome.fuel.clone().unwrap_or_default();
    let pairs = fuel(reference).into_iter().zip(fuel(outcome)).enumerate();
    let same = pairs.into_iter().all(|(i, (expected, found))| found == expected || trapped(i) && found < expected);
    match same && fuel(reference).len() == fuel(outcome).len() {
        true => Ok(()),
        false => Err(failed(name, format!("fuel {:?} instead of {:?}", outcome.fuel, reference.fuel))),
    }
}

/// How often futures of host functions are pending: a sequence that a seed determines.
#[derive(Clone)]
struct Pauses(Arc<AtomicU64>);

impl Pauses {
    fn next(&self) -> u64 {
        let state = self.0.load(Ordering::Relaxed);
        self.0.store(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407), Ordering::Relaxed);
        state >> 33
    }

    /// A future that is pending some times.
    fn pause(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut left = self.next() % 4;
        poll_fn(move |cx| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// Makes such futures.
    fn source(&self) -> impl Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Clone + Send + Sync + 'static {
        let pauses = self.clone();
        move || Box::pin(pauses.pause())
    }
}

/// Polls a future until it is ready, or has been pending `limit` times. Returns its output and how often it was pending.
fn drive<F: Future + Send>(mut future: Pin<&mut F>, pauses: &Pauses, limit: u64) -> (Option<F::Output>, u64)
where
    F::Output: Send,
{
    for pending in 0..=limit {
        let mut poll = || future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let polled = match pauses.next() % 64 {
            // Starting a thread takes longer than most calls.
            0 => std::thread::scope(|scope| scope.spawn(poll).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            _ => poll(),
        };
        if let Poll::Ready(output) = polled {
            return (Some(output), pending);
        }
    }
    (None, limit)
}

/// A store for asynchronous calls.
fn store(module: &Module) -> Store<()> {
    let mut store = Store::new(module.engine(), ());
    store.set_epoch_deadline(u64::MAX);
    store
}

/// Runs a program asynchronously, with `fuel` for each call, and yields after each `interval`. Returns how often it was suspended, too.
fn asynchronous(program: &Program, module: &Module, fuel: u64, interval: u64, seed: u64) -> Result<(Outcome, u64)> {
    let (pauses, uses, mut suspended) = (Pauses(Arc::new(AtomicU64::new(seed))), Uses::default(), 0);
    let mut store = store(module);
    store.set_fuel(AMPLE_FUEL)?;
    let start = host::instantiate_async(&mut store, module, &uses, pauses.source());
    let instances = drive(pin!(start), &pauses, u64::MAX).0.expect("it is polled until it is ready")?;
    let instance = instances.first;
    let reset = instance.get_func(&mut store, "reset").expect("it is exported");
    let (mut calls, mut taken) = (Vec::new(), Vec::new());
    for call in &program.calls {
        let func = instance.get_func(&mut store, &format!("f{}", call.func)).expect("it is exported");
        store.fuel_async_yield_interval(None)?;
        store.set_fuel(AMPLE_FUEL)?;
        drive(pin!(reset.call_async(&mut store, &[], &mut [])), &pauses, u64::MAX).0.expect("as above")?;
        store.set_fuel(fuel)?;
        store.fuel_async_yield_interval(Some(interval))?;
        let args: Vec<Val> = call.args.iter().map(|&arg| to_val(arg)).collect();
        let mut results = vec![Val::I32(0); program.funcs[call.func as usize].results.len()];
        let (result, pending) = drive(pin!(func.call_async(&mut store, &args, &mut results)), &pauses, u64::MAX);
        suspended += pending;
        calls.push(ended(result.expect("as above"), &results));
        taken.push(fuel - store.get_fuel()?);
    }
    let state = State::of_weir(&mut store, instances);
    drop(store);
    let host = uses.at_end()?;
    let tiers_used = TierUse::default();
    Ok((
        Outcome { calls, faults: Vec::new(), fuel: Some(taken), start_fuel: None, state, host, crossed: 0, tiers_used },
        suspended,
    ))
}

/// Calls functions of a program, and drops each future at another suspension. The store stays usable, and nothing is left of the guests.
fn dropping(program: &Program, module: &Module, interval: u64, seed: u64) -> Result<u64> {
    let (pauses, uses, mut dropped) = (Pauses(Arc::new(AtomicU64::new(!seed))), Uses::default(), 0);
    let mut store = store(module);
    store.set_fuel(AMPLE_FUEL)?;
    let start = host::instantiate_async(&mut store, module, &uses, pauses.source());
    let instances = drive(pin!(start), &pauses, u64::MAX).0.expect("it is polled until it is ready")?;
    let instance = instances.first;
    let reset = instance.get_func(&mut store, "reset").expect("it is exported");
    for call in program.calls.iter().take(8) {
        let func = instance.get_func(&mut store, &format!("f{}", call.func)).expect("it is exported");
        store.set_fuel(AMPLE_FUEL)?;
        store.fuel_async_yield_interval(Some(interval))?;
        let args: Vec<Val> = call.args.iter().map(|&arg| to_val(arg)).collect();
        let mut results = vec![Val::I32(0); program.funcs[call.func as usize].results.len()];
        let polls = pauses.next() % 8;
        let mut future = Box::pin(func.call_async(&mut store, &args, &mut results));
        dropped += u64::from(drive(future.as_mut(), &pauses, polls).0.is_none());
        match pauses.next() % 8 {
            0 => std::thread::scope(|scope| scope.spawn(|| drop(future)).join()).expect("dropping does not panic"),
            _ => drop(future),
        }
        drive(pin!(reset.call_async(&mut store, &[], &mut [])), &pauses, u64::MAX).0.expect("as above")?;
    }
    drop(store);
    uses.at_end()?;
    Ok(dropped)
}

/// Runs a program with `step` units of fuel, and as much again each time it stops. Returns the number of stops, too.
fn resumable(program: &Program, module: &Module, step: u64) -> Result<(Outcome, u64)> {
    let (uses, mut resumed) = (Uses::default(), 0);
    let mut store = store(module);
    store.set_fuel(AMPLE_FUEL)?;
    let instances = host::instantiate(&mut store, module, &uses)?;
    let instance = instances.first;
    let reset = instance.get_func(&mut store, "reset").expect("it is exported");
    let (mut calls, mut taken) = (Vec::new(), Vec::new());
    for call in &program.calls {
        let func = instance.get_func(&mut store, &format!("f{}", call.func)).expect("it is exported");
        store.set_fuel(AMPLE_FUEL)?;
        reset.call(&mut store, &[], &mut [])?;
        // Programs that run long are stopped more seldom the longer they run. A call within a call, by the host, traps without fuel, so
        // it gets ample.
        let (mut step, mut given) = (if calls_back(module) { AMPLE_FUEL } else { step }, 0);
        let args: Vec<Val> = call.args.iter().map(|&arg| to_val(arg)).collect();
        let mut results = vec![Val::I32(0); program.funcs[call.func as usize].results.len()];
        store.set_fuel(step)?;
        given += step;
        let mut state = func.call_resumable(&mut store, &args, &mut results);
        let result = loop {
            state = match state {
                Ok(ResumableCall::Finished) => break Ok(()),
                Ok(ResumableCall::HostTrap(stopped)) => break Err(stopped.into_host_error()),
                Ok(ResumableCall::OutOfFuel(stopped)) => {
                    resumed += 1;
                    step += step / 8;
                    let next = stopped.required_fuel() + step;
                    store.set_fuel(next)?;
                    given += next;
                    stopped.resume(&mut store, &mut results)
                }
                Err(error) => break Err(error),
            };
        };
        calls.push(ended(result, &results));
        taken.push(given - store.get_fuel()?);
    }
    let state = State::of_weir(&mut store, instances);
    drop(store);
    let host = uses.at_end()?;
    Ok((
        Outcome {
            calls,
            faults: Vec::new(),
            fuel: Some(taken),
            start_fuel: None,
            state,
            host,
            crossed: 0,
            tiers_used: TierUse::default(),
        },
        resumed,
    ))
}

/// Stops calls and gives some of them up, others later, in any order. Returns how many.
fn giving_up(program: &Program, module: &Module, step: u64, rng: &mut Rng) -> Result<u64> {
    let uses = Uses::default();
    let mut store = store(module);
    store.set_fuel(AMPLE_FUEL)?;
    let instances = host::instantiate(&mut store, module, &uses)?;
    let instance = instances.first;
    let (mut kept, mut given_up) = (Vec::new(), 0);
    for call in program.calls.iter().take(8) {
        let func = instance.get_func(&mut store, &format!("f{}", call.func)).expect("it is exported");
        let args: Vec<Val> = call.args.iter().map(|&arg| to_val(arg)).collect();
        let mut results = vec![Val::I32(0); program.funcs[call.func as usize].results.len()];
        store.set_fuel(step)?;
        if let Ok(ResumableCall::OutOfFuel(stopped)) = func.call_resumable(&mut store, &args, &mut results) {
            given_up += 1;
            kept.push((stopped, results));
        }
        store.set_fuel(step)?;
        if kept.len() > 2 {
            let (stopped, mut results) = kept.swap_remove(rng.below(kept.len() as u32) as usize);
            // What becomes of it depends on what others have done to the store meanwhile.
            let _ = stopped.resume(&mut store, &mut results);
            kept.truncate(rng.below(4) as usize);
        }
    }
    // Some handles outlive the store.
    let outlive = rng.one_in(2);
    if !outlive {
        kept.clear();
    }
    drop(store);
    uses.at_end()?;
    Ok(given_up)
}

/// Whether host functions of the program call it.
fn calls_back(module: &Module) -> bool {
    module.imports().any(|import| import.module() == "o" || Action::named(import.name()).is_some())
}
