//! Loops before and after vectorisation have the same results, memory, fuel, traps and calls of the host.

use bumpalo::Bump;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use weir::{Config, Engine, Instance, Memory, Module, Store, StoreContextMut, Tier, UpdateDeadline, Val};
use weir_bytecode::Trap;
use weir_jit::analysis::verify;
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{EvalError, Func, Outcome, Type, eval, parse, print};
use weir_tests::counted_loops::{PARAMS, Shape, arguments, function, shape, wat};
use weir_tests::engines::engine;
use weir_tests::rng::Rng;
use weir_tests::vector_loops::vectorised;

const PAGE: u32 = 1 << 16;
/// The number of loops.
const LOOPS: u64 = 24_000;
/// The number of loops that are compiled.
const NATIVE_LOOPS: u64 = 1_000;
/// The runs of each loop.
const RUNS: u64 = 6;
const STEPS: u64 = 40_000;

/// A world and arguments: the arrays are near each other, or near the end of memory, or at its start, unless they must be apart;
/// sometimes fuel is scarce, and sometimes polls call the host.
fn world(rng: &mut Rng, shape: Shape, apart: bool) -> (Sandbox, Vec<u128>) {
    let mut bytes = vec![0; PAGE as usize];
    bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&(rng.bits() >> (8 * rng.below(8))).to_le_bytes()));
    let rounds = match rng.below(4) {
        0 => rng.below(4),
        1 => 100 + rng.below(200),
        _ => rng.below(100),
    };
    // Often as many as some rounds of the vector loop have.
    let rounds = if rng.percent(60) { rounds.next_multiple_of(16) } else { rounds };
    let rounds = shape.rounds.unwrap_or(rounds);
    let element = shape.elements.into_iter().max().expect("there are three arrays");
    let extent = (rounds + 4) * shape.copies * element + 64;
    let first = match rng.below(5) {
        0 => rng.below(40),
        // The last rounds may be out of bounds.
        1 => (PAGE - extent.min(PAGE)).wrapping_add(rng.below(extent)),
        _ => 1000 + rng.below(1000),
    };
    let at = [0, 1, 2].map(|_| match rng.below(3) {
        0 => first.wrapping_add(rng.below(81)).wrapping_sub(40),
        1 => first.wrapping_add(rng.below(9) * element),
        _ => 20_000 + rng.below(20_000),
    });
    let at = if apart { [2000, 22_000, 42_000].map(|at| at + 8 * rng.below(9)) } else { at };
    let args = arguments(rng, shape, at, rounds);
    let fuel = match rng.below(3) {
        0 => shape.cost * u64::from(rng.below(rounds + 2)) + u64::from(rng.below(4)),
        _ => 1_000_000_000,
    };
    let mut world = Sandbox { memories: vec![bytes], fuel: Some(fuel), ..Sandbox::default() };
    if shape.cost > 0 && shape.polls && rng.percent(50) {
        let count = 1 + rng.below(3);
        world.due_at = (0..count).map(|_| fuel.wrapping_sub(shape.cost * u64::from(rng.below(rounds + 1)))).collect();
        world.callback = *rng.pick(&[writes, grows, takes_fuel, gives_fuel, stops]);
    }
    (world, args)
}

fn writes(world: &mut Sandbox) -> Result<(), Trap> {
    let seed = world.fuel.unwrap_or_default() as usize;
    let memory = &mut world.memories[0];
    let len = memory.len();
    (0..4000).for_each(|i| memory[(i * 17 + seed) % len] ^= i as u8);
    Ok(())
}

fn grows(world: &mut Sandbox) -> Result<(), Trap> {
    world.memories[0].extend([7; PAGE as usize]);
    Ok(())
}

fn takes_fuel(world: &mut Sandbox) -> Result<(), Trap> {
    world.fuel = world.fuel.map(|fuel| fuel.min(50));
    Ok(())
}

fn gives_fuel(world: &mut Sandbox) -> Result<(), Trap> {
    world.fuel = world.fuel.map(|fuel| fuel + 5_000_000_000);
    Ok(())
}

fn stops(_: &mut Sandbox) -> Result<(), Trap> {
    Err(Trap::Interrupt)
}

type Observed = (Result<Outcome, EvalError>, Sandbox);

fn run(func: &Func<'_>, mut world: Sandbox, args: &[u128]) -> Observed {
    let end = eval(func, &mut world, args, STEPS);
    (end, world)
}

/// Counts of what was reached.
#[derive(Default)]
struct Reached(BTreeMap<String, u64>);

impl Reached {
    fn note(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    fn merge(mut self, other: Reached) -> Reached {
        other.0.into_iter().for_each(|(what, count)| *self.0.entry(what).or_default() += count);
        self
    }
}

fn note_run(reached: &mut Reached, shape: Shape, (end, world): &Observed) {
    let kind = match end {
        Ok(_) => "returns",
        Err(EvalError::Failed { why: Trap::MemoryOutOfBounds, .. }) => "leaves the memory",
        Err(EvalError::Failed { why: Trap::OutOfFuel, .. }) => "has no fuel",
        Err(EvalError::Failed { .. }) => "is stopped",
        Err(EvalError::Steps) => "is endless",
    };
    reached.note(format!("vector rounds: {} copies", shape.copies));
    let [first, _, third] = shape.elements;
    let fills = matches!((shape.ty, first), (Type::I32, 1 | 2 | 4) | (Type::I64 | Type::F64, 8) | (Type::F32, 4));
    match fills && shape.elements == [first; 3] {
        true => reached.note(format!("vector rounds: {:?} of {first} bytes", shape.ty)),
        false => reached.note(format!("vector rounds: {:?} of other bytes", shape.ty)),
    }
    if third > shape.widths[2] {
        reached.note("vector rounds: loads parts of elements");
    }
    if first > shape.widths[0] && shape.stores {
        reached.note("vector rounds: stores parts of elements");
    }
    for (what, has) in [
        ("arms", shape.arms),
        ("unused loads", shape.unused),
        ("their number is constant", shape.rounds.is_some()),
        ("recurs", shape.recurs),
        ("ramps", shape.ramps),
        ("reduces to an extreme", shape.reduces && shape.extreme),
    ] {
        if has {
            reached.note(format!("vector rounds: {what}"));
        }
    }
    reached.note(format!("vector rounds: {:?}", shape.counter));
    reached.note(format!("vector rounds: reduces {}, stores {}", shape.reduces, shape.stores));
    reached.note(format!("vector rounds: {kind}"));
    if world.accesses == world.wide_accesses {
        reached.note("vector rounds only");
        if shape.reduces {
            reached.note("vector rounds only: reduces");
        }
        if shape.recurs {
            reached.note("vector rounds only: recurs");
        }
    }
    if !world.called_at.is_empty() {
        reached.note("vector rounds: the host is called");
    }
}

/// Compares the loops of these seeds, and returns what they reached.
fn compare_loops(seeds: impl Iterator<Item = u64>) -> Reached {
    let mut reached = Reached::default();
    for seed in seeds {
        let arena = Bump::new();
        let shape = shape(&mut Rng::new(seed));
        let original = function(&arena, &mut Rng::new(seed), shape);
        verify(&original, None).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{original}"));
        let (vector, changed) = vectorised(function(&arena, &mut Rng::new(seed), shape));
        reached.note(if changed { "vectorised" } else { "left" });
        if !changed {
            continue;
        }
        let text = print(&vector);
        assert!(parse(&arena, &text).unwrap() == vector, "seed {seed}:\n{text}");
        let mut rng = Rng::new(seed ^ 0xA5A5);
        for _ in 0..RUNS {
            let (world, args) = world(&mut rng, shape, false);
            let found = run(&vector, world.clone(), &args);
            // The host is called only where the vector loop looks, so the original is called in these rounds.
            let world = Sandbox { due_at: found.1.called_at.clone(), ..world };
            let expected = run(&original, world, &args);
            if found.1.wide_accesses > 0 {
                note_run(&mut reached, shape, &found);
            } else {
                reached.note("scalar rounds only");
                if matches!(found.0, Err(EvalError::Failed { why: Trap::MemoryOutOfBounds, .. })) {
                    reached.note("scalar rounds only: leaves the memory");
                }
            }
            let ends = !matches!((&found.0, &expected.0), (Err(EvalError::Steps), _) | (_, Err(EvalError::Steps)));
            if ends && (found.0 != expected.0 || found.1 != expected.1) {
                let same = found.1.memories == expected.1.memories;
                panic!(
                    "seed {seed}, {shape:?}, {args:?}: {:?}, fuel {:?}, called at {:?}\nis expected, not {:?}, fuel {:?}, called at {:?}, same memory {same}\n{original}\n{vector}",
                    expected.0, expected.1.fuel, expected.1.called_at, found.0, found.1.fuel, found.1.called_at,
                );
            }
        }
    }
    reached
}

#[test]
fn vector_loops_do_what_the_loops_do() {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get().min(8));
    let reached = std::thread::scope(|scope| {
        let parts = (0..threads).map(|part| scope.spawn(move || compare_loops((part as u64..LOOPS).step_by(threads))));
        let parts: Vec<_> = parts.collect();
        let joined = parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.reduce(Reached::merge).expect("there is a thread")
    });
    for (what, count) in &reached.0 {
        println!("{count:8} {what}");
    }
    let rare: Vec<_> = reached
        .0
        .iter()
        // A loop that would leave the memory runs as it is, unless it makes more rounds than the check has counted.
        .filter(|(what, _)| !["vector rounds: is endless", "vector rounds: leaves the memory"].contains(&what.as_str()))
        .filter(|(what, count)| **count < if what.contains("stopped") { 200 } else { 1000 })
        .collect();
    assert!(rare.is_empty() && reached.0.len() >= 25, "{rare:?} of {}", reached.0.len());
}

/// What can be observed of a call in an engine: results, or the trap with its backtrace; memory; and fuel.
type Called = (Result<Vec<u128>, String>, Vec<u8>, Option<u64>);

fn call(module: &Module, fuel: Option<u64>, memory: &[u8], args: &[u128]) -> Called {
    let mut store = Store::new(module.engine(), ());
    store.set_epoch_deadline(1 << 40);
    call_in(&mut store, module, fuel, memory, args, |_, _| ())
}

/// Calls the loop in a new instance. `begin` has the memory, and is called right before the guest runs.
fn call_in<T: 'static>(
    mut store: &mut Store<T>,
    module: &Module,
    fuel: Option<u64>,
    memory: &[u8],
    args: &[u128],
    begin: impl FnOnce(&mut Store<T>, Memory),
) -> Called {
    if let Some(fuel) = fuel {
        store.set_fuel(fuel).unwrap();
    }
    let instance = Instance::new(&mut store, module, &[]).unwrap();
    let at = instance.get_memory(&mut store, "memory").unwrap();
    at.write(&mut store, 0, memory).unwrap();
    begin(store, at);
    let args: Vec<Val> = args
        .iter()
        .zip(PARAMS)
        .map(|(&bits, ty)| match ty {
            Type::I32 => Val::I32(bits as i32),
            Type::I64 => Val::I64(bits as i64),
            Type::F32 => Val::F32(bits as u32),
            _ => Val::F64(bits as u64),
        })
        .collect();
    let func = instance.get_func(&mut store, "f").unwrap();
    let mut results = vec![Val::I32(0); func.ty(&store).results().len()];
    let end = func.call(&mut store, &args, &mut results);
    let bits = |value: &Val| match value {
        Val::I32(value) => u128::from(*value as u32),
        Val::I64(value) => u128::from(*value as u64),
        // The bits of a NaN are open.
        Val::F32(bits) => {
            if f32::from_bits(*bits).is_nan() {
                u128::MAX
            } else {
                u128::from(*bits)
            }
        }
        Val::F64(bits) => {
            if f64::from_bits(*bits).is_nan() {
                u128::MAX
            } else {
                u128::from(*bits)
            }
        }
        other => panic!("the loop passes no {other:?}"),
    };
    let end = end.map(|()| results.iter().map(bits).collect()).map_err(|error| format!("{error:?}"));
    (end, at.data(&store).to_vec(), fuel.map(|_| store.get_fuel().unwrap()))
}

/// Whether two memories are equal, or, if they have floats, differ at most in the bits of NaNs, which are open.
fn same_up_to_nans(floats: bool, a: &[u8], b: &[u8]) -> bool {
    let is_nan = |bytes: &[u8]| match bytes.len() {
        4 => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
    };
    let in_nan = |i: usize| {
        [4, 8].into_iter().any(|size| {
            let mut starts = i.saturating_sub(size - 1)..=i.min(a.len() - size);
            starts.any(|start| is_nan(&a[start..start + size]) && is_nan(&b[start..start + size]))
        })
    };
    a == b || floats && a.len() == b.len() && (0..a.len()).filter(|&i| a[i] != b[i]).all(in_nan)
}

#[test]
fn machine_code_does_what_the_interpreter_does() {
    let engines: Vec<[Engine; 2]> = [(false, false, true), (true, false, true), (true, true, true), (false, true, false)]
        .map(|(fuel, epoch, signals)| {
            [Tier::Interpreter, Tier::Native].map(|tier| {
                let mut config = Config::new();
                config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(1));
                config.consume_fuel(fuel).epoch_interruption(epoch).async_support(epoch).signals_based_traps(signals);
                engine(&config).unwrap()
            })
        })
        .into();
    let (mut calls, mut changed, mut ends) = (0, 0, BTreeMap::<&str, u64>::new());
    for seed in 0..NATIVE_LOOPS {
        let arena = Bump::new();
        let mut rng = Rng::new(seed ^ 0x5A5A);
        let shape = Shape { polls: false, cost: 0, ..shape(&mut Rng::new(seed)) };
        let original = function(&arena, &mut Rng::new(seed), shape);
        changed += u64::from(vectorised(function(&arena, &mut Rng::new(seed), shape)).1);
        let text = wat(&original);
        let pair = rng.pick(&engines);
        let [interpreter, native] =
            [0, 1].map(|i| Module::new(&pair[i], &text).unwrap_or_else(|error| panic!("{error:?}\n{text}")));
        for _ in 0..3 {
            // The bits of a NaN are open, also where another array has them as numbers.
            let (world, args) = world(&mut rng, shape, shape.ty.is_float());
            // Endless loops do not end without fuel.
            if run(&original, Sandbox { fuel: None, ..world.clone() }, &args).0 == Err(EvalError::Steps) {
                continue;
            }
            let fuel = std::ptr::eq(pair, &engines[1]) || std::ptr::eq(pair, &engines[2]);
            let fuel = fuel.then(|| if rng.one_in(2) { 1 << 40 } else { u64::from(rng.below(3000)) });
            let expected = call(&interpreter, fuel, &world.memories[0], &args);
            let found = call(&native, fuel, &world.memories[0], &args);
            let same =
                expected.0 == found.0 && expected.2 == found.2 && same_up_to_nans(shape.ty.is_float(), &expected.1, &found.1);
            let memory = expected.1 == found.1;
            assert!(
                same,
                "seed {seed} {shape:?} {args:?}: {:?}, fuel {:?} is expected, not {:?}, fuel {:?}; same memory: {memory}\n{text}",
                expected.0, expected.2, found.0, found.2
            );
            *ends.entry(if found.0.is_ok() { "returns" } else { "traps" }).or_default() += 1;
            calls += 1;
        }
    }
    println!("{calls} calls, {changed} loops vectorised, {ends:?}");
    assert!(changed > NATIVE_LOOPS / 4 && ends["traps"] > calls / 20);
}

/// The number of calls that the host interrupts.
const INTERRUPTED: usize = 400;

/// Ends a thread when it is dropped.
struct Ends<'e>(&'e AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the deadline's callback does, and when it did it.
struct Host {
    memory: Option<Memory>,
    does: Action,
    /// The fuel at each call so far.
    called_at: Vec<u64>,
    /// The fuel at which it is to do something, in this order; at every call if there is none.
    due_at: Option<Vec<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Write,
    Grow,
    TakeFuel,
    GiveFuel,
    Stop,
}

impl Host {
    fn called(mut store: StoreContextMut<'_, Host>) -> weir::Result<UpdateDeadline> {
        let fuel = store.get_fuel()?;
        let host = store.data_mut();
        let (next, memory, does) = (host.called_at.len(), host.memory.expect("the guest runs"), host.does);
        // One tick of the engine that it recorded; every poll of the one that it repeats.
        let ticks = u64::from(host.due_at.is_none());
        if host.due_at.as_ref().is_some_and(|due_at| due_at.get(next) != Some(&fuel)) {
            return Ok(UpdateDeadline::Continue(ticks));
        }
        host.called_at.push(fuel);
        match does {
            Action::Write => {
                let bytes = memory.data_mut(&mut store);
                let len = bytes.len();
                (0..4000).for_each(|i| bytes[(i * 17 + fuel as usize) % len] ^= i as u8);
            }
            Action::Grow => _ = memory.grow(&mut store, 1),
            Action::TakeFuel => store.set_fuel(fuel.min(500))?,
            Action::GiveFuel if next == 0 => store.set_fuel(fuel + 500_000)?,
            Action::GiveFuel => {}
            Action::Stop => return Ok(UpdateDeadline::Interrupt),
        }
        Ok(UpdateDeadline::Continue(ticks))
    }
}

/// The deadline's callback reads and changes fuel and memory in any round of vector loops in machine code. A thread advances the epoch;
/// then the interpreter calls the host with the same amounts of fuel.
#[test]
fn the_host_is_called_from_vector_loops() {
    let [interpreter, native] = [Tier::Interpreter, Tier::Native].map(|tier| {
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(1)).consume_fuel(true).epoch_interruption(true);
        engine(&config).unwrap()
    });
    let ended = AtomicBool::new(false);
    let mut interrupted = BTreeMap::<String, usize>::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = Rng::new(0);
            while !ended.load(Ordering::Relaxed) {
                native.increment_epoch();
                (0..rng.below(400)).for_each(|_| std::hint::spin_loop());
            }
        });
        // The thread ends also if this one panics.
        let _end = Ends(&ended);
        for seed in 0.. {
            let arena = Bump::new();
            let mut rng = Rng::new(seed ^ 0x3C3C);
            let shape = Shape { polls: false, cost: 0, rounds: None, damaged: false, ..shape(&mut Rng::new(seed)) };
            let original = function(&arena, &mut Rng::new(seed), shape);
            if !vectorised(function(&arena, &mut Rng::new(seed), shape)).1 {
                continue;
            }
            let text = wat(&original);
            let modules = [&interpreter, &native].map(|engine| Module::new(engine, &text).unwrap());
            for _ in 0..20 {
                let (world, _) = world(&mut rng, shape, true);
                let extent = shape.copies * shape.elements.into_iter().max().expect("there are three arrays");
                let rounds = 19_000 / extent - rng.below(200 / extent + 1);
                let at = [2000, 22_000, 42_000].map(|at| at + 8 * rng.below(9));
                let args = arguments(&mut rng, shape, at, rounds);
                // Endless loops end, too.
                let fuel = if rng.percent(80) { 1_000_000 } else { u64::from(rng.below(100_000)) };
                let does = *rng.pick(&[Action::Write, Action::Grow, Action::TakeFuel, Action::GiveFuel, Action::Stop]);
                // The bits of a NaN are open, and would not be those of a NaN any more.
                let does = if shape.ty.is_float() && does == Action::Write { Action::Grow } else { does };
                let call = |module: &Module, ticks, due_at| {
                    let host = Host { memory: None, does, called_at: Vec::new(), due_at };
                    let mut store = Store::new(module.engine(), host);
                    store.epoch_deadline_callback(Host::called);
                    let begin = |store: &mut Store<Host>, memory| {
                        store.data_mut().memory = Some(memory);
                        store.set_epoch_deadline(ticks);
                    };
                    let called = call_in(&mut store, module, Some(fuel), &world.memories[0], &args, begin);
                    (called, store.into_data().called_at)
                };
                let (found, called_at) = call(&modules[1], 1 + u64::from(rng.below(3)), None);
                if called_at.is_empty() {
                    continue;
                }
                let (expected, repeated) = call(&modules[0], 0, Some(called_at.clone()));
                assert!(
                    expected.0 == found.0
                        && expected.2 == found.2
                        && same_up_to_nans(shape.ty.is_float(), &expected.1, &found.1)
                        && called_at == repeated,
                    "seed {seed} {shape:?} {args:?}, {does:?} at {called_at:?}, of which {} were repeated: {:?}, fuel {:?} is expected, not {:?}, fuel {:?}; same memory: {}\n{text}",
                    repeated.len(),
                    expected.0,
                    expected.2,
                    found.0,
                    found.2,
                    expected.1 == found.1,
                );
                *interrupted.entry(format!("{does:?}")).or_default() += 1;
            }
            if interrupted.values().sum::<usize>() >= INTERRUPTED {
                println!("{interrupted:?} after {seed} loops");
                break;
            }
        }
    });
    assert_eq!(interrupted.len(), 5, "{interrupted:?}");
}
