//! Code that is retired while its module lives: with a full budget, with threads, with suspended frames, at every depth of
//! a recursion, and when a loop's code is no longer needed. Results must stay the same.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use weir::{
    Caller, CompiledBy, Config, Engine, Error, Instance, Linker, Module, RefusedBy, Stats, Store, Tier, TierEventKind, Trap,
    TypedFunc,
};
use weir_tests::engines::{engine, engine_with_events};

/// The figures that a failed assertion shows: retired, recompiled, bytes made, retired and freed.
fn figures(stats: &Stats) -> [u64; 5] {
    [stats.retired, stats.recompiled, stats.code_bytes, stats.retired_bytes, stats.freed_bytes]
}

/// The number of functions that have had code of any compiler.
fn compiled(stats: &Stats) -> u64 {
    stats.functions.called - stats.functions.interpreted
}

/// The number of functions in [`many`], and the bytes of code that they may have: stubs for all of them and bodies for
/// some.
const FUNCTIONS: i32 = 120;
const BUDGET: usize = 10 << 10;

/// Functions `0` to `FUNCTIONS - 1`, of a hundred bytes of code each, a few of which call others; and `run`, which
/// calls a function by its number.
fn many() -> String {
    let work: String = (1..16)
        .map(|k| format!("(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const {})) (i32.const {k})))", 2 * k + 1))
        .collect();
    let function = |i: i32| {
        let call = if i % 7 == 6 { format!("(local.set 0 (call ${} (local.get 0)))", i - 1) } else { String::new() };
        format!("(func ${i} (export \"{i}\") (param i32) (result i32) {call} {work} (i32.add (local.get 0) (i32.const {i})))")
    };
    let functions: String = (0..FUNCTIONS).map(function).collect();
    let elems: String = (0..FUNCTIONS).map(|i| format!(" ${i}")).collect();
    format!(
        "(module (type $f (func (param i32) (result i32))) (table {FUNCTIONS} funcref) (elem (i32.const 0){elems})
            (func (export \"run\") (param i32 i32) (result i32)
                (call_indirect (type $f) (local.get 1) (local.get 0)))
            {functions})"
    )
}

/// The result of function `i` of [`many`] for `x`.
fn expected(i: i32, mut x: i32) -> i32 {
    if i % 7 == 6 {
        x = expected(i - 1, x);
    }
    (1..16).fold(x, |x, k| x.wrapping_mul(2 * k + 1) ^ k).wrapping_add(i)
}

#[test]
fn a_program_that_needs_more_code_than_it_may_have_goes_on() {
    for tier in [Tier::Native, Tier::Baseline, Tier::Auto] {
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(3)).max_code_size(BUDGET);
        let engine = engine(&config).unwrap();
        let module = Module::new(&engine, many()).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let run = instance.get_typed_func::<(i32, i32), i32>(&mut store, "run").unwrap();
        // The working set fits, and moves in turn over all functions.
        for phase in 0..3 * FUNCTIONS / 10 {
            for round in 0..2000 {
                let i = (10 * phase + round % 10) % FUNCTIONS;
                assert_eq!(run.call(&mut store, (i, round)).unwrap(), expected(i, round), "{tier:?}: function {i}");
            }
        }
        let stats = module.stats();
        assert!(stats.retired > 20 && stats.recompiled > 20, "{tier:?}: {:?}", figures(&stats));
        assert!(stats.freed_bytes > 0 && stats.freed_bytes <= stats.retired_bytes, "{tier:?}: {:?}", figures(&stats));
        assert!(stats.code_bytes - stats.freed_bytes <= BUDGET as u64, "{tier:?}: {:?}", figures(&stats));
        let functions = [stats.functions.native, stats.functions.baseline];
        assert_eq!(compiled(&stats), FUNCTIONS as u64 + 1, "{tier:?}: each has had code: {:?}", figures(&stats));
        assert_eq!(functions.map(|count| count > 0), [tier != Tier::Baseline, tier != Tier::Native], "{tier:?}");
        drop((store, instance, module));
        // The first module leaves nothing that hinders a second one.
        let module = Module::new(&engine, many()).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let first = instance.get_typed_func::<i32, i32>(&mut store, "0").unwrap();
        for x in 0..10 {
            assert_eq!(first.call(&mut store, x).unwrap(), expected(0, x));
        }
        assert_eq!((compiled(&module.stats()), module.stats().retired), (1, 0), "{tier:?}: there is room");
    }
}

#[test]
fn threads_share_a_module_whose_code_comes_and_goes() {
    // In the background, the threads may finish before the compiler.
    for (stress, synchronous) in [(None, true), (None, false), (Some(1), true), (Some(2), true)] {
        let mut config = Config::new();
        config.tier_up_threshold(Some(3)).max_code_size(BUDGET).stress(stress).synchronous_compilation(synchronous);
        let engine = engine(&config).unwrap();
        let module = Module::new(&engine, many()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (engine, module) = (&engine, &module);
                scope.spawn(move || {
                    let mut store = Store::new(engine, ());
                    let instance = Instance::new(&mut store, module, &[]).unwrap();
                    let run = instance.get_typed_func::<(i32, i32), i32>(&mut store, "run").unwrap();
                    for round in 0..20_000 {
                        let i = (round / 500 * 10 + round % 10 + 31 * thread) % FUNCTIONS;
                        assert_eq!(run.call(&mut store, (i, round)).unwrap(), expected(i, round), "function {i}");
                    }
                });
            }
        });
        let stats = engine.stats();
        assert!(!synchronous || stats.retired > 10 && stats.freed_bytes > 0, "{stress:?}: {:?}", figures(&stats));
    }
}

#[test]
fn code_under_a_suspended_frame_stays_until_the_frame_is_gone() {
    code_under_a_suspended_frame_stays(Tier::Native);
}

#[test]
fn baseline_code_under_a_suspended_frame_stays_until_the_frame_is_gone() {
    code_under_a_suspended_frame_stays(Tier::Baseline);
}

/// Optimised code replaces the baseline code of all functions, in many sections of the store.
#[test]
fn replaced_code_is_freed_while_there_is_room() {
    const ROOM: usize = 256 << 10;
    let mut config = Config::new();
    config.tier(Tier::Auto).synchronous_compilation(true).tier_up_threshold(Some(8)).max_code_size(ROOM);
    let engine = engine(&config).unwrap();
    let module = Module::new(&engine, many()).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let run = instance.get_typed_func::<(i32, i32), i32>(&mut store, "run").unwrap();
    for round in 0..32 * FUNCTIONS {
        let i = round % FUNCTIONS;
        assert_eq!(run.call(&mut store, (i, round)).unwrap(), expected(i, round));
    }
    let stats = module.stats();
    assert!(stats.functions.native >= FUNCTIONS as u64 && stats.retired >= FUNCTIONS as u64, "{:?}", figures(&stats));
    assert!(stats.code_bytes < ROOM as u64 / 2, "the budget was never used up: {:?}", figures(&stats));
    assert!(stats.retired_bytes - stats.freed_bytes <= ROOM as u64 / 16, "{:?}", figures(&stats));
    assert!(stats.freed_bytes > 0 && stats.freed_bytes <= stats.retired_bytes, "{:?}", figures(&stats));
}

/// `outer` calls the host, which calls everything else, so that the code of `outer` is evicted while `outer` is
/// suspended; then `outer` continues or traps.
fn code_under_a_suspended_frame_stays(tier: Tier) {
    let text = many().replacen(
        "(module",
        r#"(module (import "host" "call" (func $host (param i32) (result i32))) (memory 1)
            (func $outer (export "outer") (param i32) (result i32)
                (i32.load (i32.add (call $host (local.get 0)) (local.get 0))))"#,
        1,
    );
    let retired = Arc::new(Mutex::new(Vec::new()));
    let log = retired.clone();
    let mut config = Config::new();
    config.tier(tier).tier_up_threshold(Some(3)).max_code_size(BUDGET);
    let engine = engine_with_events(&config, move |event| {
        if let TierEventKind::Retired { .. } = event.kind {
            log.lock().unwrap().push(event.name());
        }
    });
    let engine = engine.unwrap();
    let module = Module::new(&engine, text).unwrap();
    // Bytes that were retired before the outermost call.
    let mut store = Store::new(&engine, 0u64);
    let mut linker = Linker::new(&engine);
    let call_all = |mut caller: Caller<'_, u64>, depth: i32| -> Result<i32, Error> {
        if depth > 4 && depth < 8 {
            // Calls again through the suspended frames.
            let outer = caller.get_export("outer").unwrap().into_func().unwrap().typed::<i32, i32>(&caller)?;
            outer.call(&mut caller, depth + 1)?;
        }
        let run = caller.get_export("run").unwrap().into_func().unwrap().typed::<(i32, i32), i32>(&caller)?;
        for round in 0..8 * FUNCTIONS {
            let i = round % FUNCTIONS;
            assert_eq!(run.call(&mut caller, (i, round))?, expected(i, round));
        }
        let stats = caller.engine().stats();
        assert!(stats.freed_bytes <= *caller.data(), "what was retired since the store is in the guest stays");
        Ok(8)
    };
    linker.func_wrap("host", "call", call_all).unwrap();
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let outer = instance.get_typed_func::<i32, i32>(&mut store, "outer").unwrap();
    for round in 0..6 {
        *store.data_mut() = engine.stats().retired_bytes;
        assert_eq!(outer.call(&mut store, round).unwrap(), 0);
        *store.data_mut() = engine.stats().retired_bytes;
        let error = outer.call(&mut store, 65536).unwrap_err();
        assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::MemoryOutOfBounds));
        assert!(format!("{error:?}").contains("outer"), "the frame still has its name: {error:?}");
    }
    let names = retired.lock().unwrap();
    assert!(names.iter().any(|name| name == "outer"), "{names:?}");
    assert!(engine.stats().freed_bytes > 0, "outer calls freed what the ones before them retired");
}

/// The number of frames of a recursion.
const DEPTH: i32 = 24;
/// The calls and iterations after which functions of a recursion are optimised.
const THRESHOLD: u32 = 40;
/// A limit for the calls after which the code of a function changes.
const CALLS: usize = 20_000;

/// A change of the code of a function's calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Compiled(CompiledBy),
    Retired,
    /// The code did not fit, although there was an attempt to free memory.
    NoRoom,
}

/// The changes of all functions in order, each with the name of the function.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(String, Change)>>>);

impl Log {
    /// Creates an engine whose changes are logged.
    fn engine(config: &Config) -> (Engine, Log) {
        let log = Log::default();
        let listener = log.clone();
        let engine = engine_with_events(config, move |event| {
            let change = match event.kind {
                TierEventKind::Compiled { by, .. } => Change::Compiled(by),
                TierEventKind::Retired { .. } => Change::Retired,
                TierEventKind::Refused { by: RefusedBy::CodeMemory, .. } => Change::NoRoom,
                _ => return,
            };
            if event.osr.is_none() {
                listener.0.lock().unwrap().push((event.name(), change));
            }
        });
        (engine.unwrap(), log)
    }

    /// The number of times that code did not fit.
    fn refusals(&self) -> usize {
        self.0.lock().unwrap().iter().filter(|(_, change)| *change == Change::NoRoom).count()
    }

    /// The changes of one function.
    fn of(&self, name: &str) -> Vec<Change> {
        self.0.lock().unwrap().iter().filter(|(of, _)| of == name).map(|(_, change)| *change).collect()
    }
}

/// The export `run` of [`many`].
type Run = TypedFunc<(i32, i32), i32>;

/// Modules that use up the budget, each in a store of its own.
struct Others(Vec<(Store<()>, Run)>);

impl Others {
    fn new(engine: &Engine) -> Others {
        let module = || {
            let mut store = Store::new(engine, ());
            let instance = Instance::new(&mut store, &Module::new(engine, many()).unwrap(), &[]).unwrap();
            let run = instance.get_typed_func(&mut store, "run").unwrap();
            (store, run)
        };
        Others((0..3).map(|_| module()).collect())
    }

    /// Calls all functions in turn, each often enough to be compiled, until `done`.
    fn call_until(&mut self, done: impl Fn() -> bool) {
        for _ in 0..100 {
            for (store, run) in &mut self.0 {
                for i in 0..FUNCTIONS {
                    if done() {
                        return;
                    }
                    for x in 0..2 * THRESHOLD as i32 {
                        assert_eq!(run.call(&mut *store, (i, x)).unwrap(), expected(i, x));
                    }
                }
            }
        }
        panic!("the budget is not used up");
    }
}

/// A recursion. Each frame calls the host, which has the code of that frame retired.
#[derive(Clone)]
struct Recursion {
    /// The definitions of its functions.
    functions: String,
    /// The name of the function at each depth.
    names: Vec<String>,
    /// Whether the function at this depth executes a loop.
    loops: fn(i32) -> bool,
    /// Has the code of a frame of the named function retired.
    retire: fn(&mut Caller<'_, State>, &str) -> Result<(), Error>,
    /// The number of calls within it that are counted: all except calls of optimised code to itself.
    calls: u64,
}

/// The data of the store in which a recursion runs.
struct State {
    recursion: Recursion,
    log: Log,
    others: Others,
    /// Whether the innermost frame traps.
    traps: bool,
    /// By depth: the changes of the frame's function until the frame called the host, and those that the host caused.
    observed: Vec<(Vec<Change>, Vec<Change>)>,
    /// Counted when all frames were suspended: calls from code of a back end to code of the same, and bytes freed.
    calls: u64,
    freed: u64,
}

/// The function `name` of a recursion. It calls the host, then `callee` unless it is the innermost frame, and then executes a loop
/// if `loops`. With a negative `$x` it returns at once.
fn frame(name: &str, callee: &str, loops: bool) -> String {
    let again = if loops {
        "(loop $again
            (local.set $y (f64.add (local.get $y) (f64.const 1)))
            (br_if $again (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))"
    } else {
        ""
    };
    format!(
        r#"(func ${name} (export "{name}") (type $frame) (local $k i32) (local $y f64)
            (if (f64.lt (local.get 1) (f64.const 0)) (then (return (local.get 1))))
            (local.set $k (call $host (local.get 0)))
            (f64.mul (local.get 1) (f64.convert_i32_s (local.get $k)))
            (if (result f64) (i32.eq (local.get 0) (i32.const {}))
                (then (f64.convert_i32_s (i32.div_s (i32.const 5040) (local.get $k))))
                (else (i32.add (local.get 0) (i32.const 1)) (f64.add (local.get 1) (f64.const 0.5)) {callee}))
            (local.set $y (f64.add))
            {again}
            (local.get $y))"#,
        DEPTH - 1
    )
}

/// The value that the host returns to the frame at `depth`.
fn factor(depth: i32) -> i32 {
    depth + 7
}

/// The result of a recursion, if the frames for whose depth `loops` returns true execute a loop.
fn sum(loops: impl Fn(i32) -> bool) -> f64 {
    let of_frame = |depth| {
        let k = f64::from(factor(depth));
        (0.25 + 0.5 * f64::from(depth)) * k + if loops(depth) { k } else { 0.0 }
    };
    (0..DEPTH).map(of_frame).sum::<f64>() + f64::from(5040 / factor(DEPTH - 1))
}

/// The function that each frame calls.
fn host(mut caller: Caller<'_, State>, depth: i32) -> Result<i32, Error> {
    let State { recursion, log, traps, .. } = caller.data();
    let (log, name, retire, traps) = (log.clone(), recursion.names[depth as usize].clone(), recursion.retire, *traps);
    let before = log.of(&name);
    retire(&mut caller, &name)?;
    let changes = log.of(&name)[before.len()..].to_vec();
    caller.data_mut().observed.push((before, changes));
    let innermost = depth == DEPTH - 1;
    if innermost {
        let engine = caller.engine().clone();
        let state = caller.data_mut();
        state.calls = calls(&engine);
        let refusals = log.refusals();
        state.others.call_until(|| log.refusals() > refusals);
        state.freed = engine.stats().freed_bytes;
    }
    Ok(if innermost && traps { 0 } else { factor(depth) })
}

/// Returns the number of calls from code of a back end to code of the same.
fn calls(engine: &Engine) -> u64 {
    let within =
        |(name, _): &&(String, u64)| ["call baseline to baseline", "call optimised to optimised"].contains(&name.as_str());
    engine.stats().crossings.iter().filter(within).map(|(_, count)| count).sum()
}

/// Calls `callee`, which returns at once, until function `name` has `count` more changes.
fn call_until(caller: &mut Caller<'_, State>, callee: &str, name: &str, count: usize) -> Result<(), Error> {
    let log = caller.data().log.clone();
    let wanted = log.of(name).len() + count;
    let func = caller.get_export(callee).unwrap().into_func().unwrap().typed::<(i32, f64), f64>(&*caller)?;
    for _ in 0..CALLS {
        if log.of(name).len() >= wanted {
            return Ok(());
        }
        assert_eq!(func.call(&mut *caller, (0, -1.0))?, -1.0);
    }
    panic!("{name}: {:?} after {CALLS} calls of {callee}", log.of(name));
}

/// Executes a recursion, and returns [`State::observed`]. Calls are counted if it does not trap; otherwise the code has no counting
/// entries.
fn recurse(config: &mut Config, recursion: &Recursion, traps: bool) -> Vec<(Vec<Change>, Vec<Change>)> {
    let frames = NonZeroUsize::new(recursion.names.len());
    let (engine, log) = Log::engine(config.count_crossings(!traps).wasm_backtrace_max_frames(frames));
    let text = format!(
        r#"(module (type $frame (func (param i32 f64) (result f64)))
            (import "host" "call" (func $host (param i32) (result i32))) {})"#,
        recursion.functions
    );
    let module = Module::new(&engine, text).unwrap();
    let (recursion, others) = (recursion.clone(), Others::new(&engine));
    let state = State { recursion: recursion.clone(), log: log.clone(), others, traps, observed: Vec::new(), calls: 0, freed: 0 };
    let mut store = Store::new(&engine, state);
    let mut linker = Linker::new(&engine);
    linker.func_wrap("host", "call", host).unwrap();
    let instance = linker.instantiate(&mut store, &module).unwrap();
    for name in &recursion.names {
        let func = instance.get_typed_func::<(i32, f64), f64>(&mut store, name).unwrap();
        let calls = (0..CALLS).find(|_| !log.of(name).is_empty() || func.call(&mut store, (0, -1.0)).unwrap() != -1.0);
        assert!(calls.is_some(), "{name} has code");
    }
    let outermost = instance.get_typed_func::<(i32, f64), f64>(&mut store, &recursion.names[0]).unwrap();
    let before = calls(&engine);
    match outermost.call(&mut store, (0, 0.25)) {
        Ok(result) => assert!(!traps && result == sum(recursion.loops), "{result}, {}", sum(recursion.loops)),
        Err(error) => {
            assert!(traps && error.downcast_ref() == Some(&Trap::IntegerDivisionByZero), "{error:?}");
            let backtrace = error.wasm_backtrace().expect("a trap in the guest");
            let functions: Vec<_> = backtrace.frames().iter().rev().map(|frame| frame.func_name().unwrap().to_owned()).collect();
            assert_eq!(functions, recursion.names, "each frame has its name");
        }
    }
    let stats = engine.stats();
    let State { observed, others, calls, freed, .. } = store.data_mut();
    assert_eq!(*calls - before, if traps { 0 } else { recursion.calls }, "each frame executes code of the back end");
    assert_eq!(*freed, 0, "nothing is freed while all frames are suspended: {:?}", figures(&stats));
    // The frames are gone.
    others.call_until(|| engine.stats().freed_bytes > 0);
    assert!(engine.stats().freed_bytes >= stats.retired_bytes, "{:?} and {:?}", figures(&stats), figures(&engine.stats()));
    std::mem::take(observed)
}

/// Functions that call each other in a chain. While the baseline code of each is suspended, it is replaced by code of the
/// optimiser and retired. Each frame then continues in retired code, or is unwound by a trap.
#[test]
fn code_is_retired_at_every_depth() {
    let names: Vec<String> = (0..DEPTH).map(|depth| format!("deep{depth}")).collect();
    let loops = |depth| depth % 3 == 0;
    let callee = |depth: i32| format!("(call $deep{})", (depth + 1) % DEPTH);
    let recursion = Recursion {
        functions: (0..DEPTH).map(|depth| frame(&names[depth as usize], &callee(depth), loops(depth))).collect(),
        names,
        loops,
        retire: |caller, name| call_until(caller, name, name, 2),
        calls: DEPTH as u64 - 1,
    };
    for traps in [false, true] {
        let mut config = Config::new();
        config.synchronous_compilation(true).tier_up_threshold(Some(THRESHOLD)).max_code_size(5 * BUDGET);
        let observed = recurse(&mut config, &recursion, traps);
        assert_eq!(observed.len(), DEPTH as usize);
        for (depth, changes) in observed.iter().enumerate() {
            let expected = [Change::Compiled(CompiledBy::Native), Change::Retired];
            assert_eq!(
                *changes,
                (vec![Change::Compiled(CompiledBy::Baseline)], expected.to_vec()),
                "depth {depth}, traps {traps}"
            );
        }
    }
}

/// A function that calls itself. At each depth its code is evicted and compiled again, so that each frame executes other code than the
/// frames around it, and returns to retired code. Optimised code that calls itself directly stays in the code of the first frame.
#[test]
fn code_of_one_function_is_retired_at_every_depth() {
    const DIRECT: &str = "(call $rec)";
    const INDIRECT: &str = "(call_indirect $itself (type $frame) (i32.const 0))";
    let work: String = (0..3600)
        .map(|k| format!("(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const {})) (i32.const 9)))", 2 * k + 3))
        .collect();
    // Its code never fits in the budget, so each attempt sweeps all code. It is in the table too, so that calls through that are not direct.
    let big = format!(
        r#"(func $big (export "big") (type $frame)
            (if (f64.lt (local.get 1) (f64.const 0)) (then (return (local.get 1)))) {work} (f64.convert_i32_s (local.get 0)))
        (table $itself funcref (elem $rec $big))"#
    );
    let (baseline, native) = ((Tier::Baseline, CompiledBy::Baseline), (Tier::Native, CompiledBy::Native));
    let others = DEPTH as u64 - 1;
    let cases = [(DIRECT, baseline, others), (INDIRECT, baseline, others), (DIRECT, native, 0), (INDIRECT, native, others)];
    for (callee, (tier, by), calls) in cases {
        let recursion = Recursion {
            functions: frame("rec", callee, true) + &big,
            names: vec!["rec".to_owned(); DEPTH as usize],
            loops: |_| true,
            retire: |caller, name| {
                call_until(caller, "big", name, 1)?;
                call_until(caller, name, name, 1)
            },
            calls,
        };
        for traps in [false, true] {
            let mut config = Config::new();
            config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(1)).max_code_size(3 * BUDGET);
            let observed = recurse(&mut config, &recursion, traps);
            assert_eq!(observed.len(), DEPTH as usize);
            for (depth, (before, changes)) in observed.iter().enumerate() {
                let at = format!("{callee}, {tier:?}, depth {depth}, traps {traps}");
                assert_eq!(before.last(), Some(&Change::Compiled(by)), "{at}");
                assert_eq!(*changes, [Change::Retired, Change::Compiled(by)], "{at}");
            }
        }
    }
}

#[test]
fn code_of_a_loop_goes_when_the_function_has_code_of_its_own() {
    // The offset of each loop whose code was retired, and the size of the code.
    let retired = Arc::new(Mutex::new(Vec::new()));
    let listener = retired.clone();
    let mut config = Config::new();
    config.tier_up_threshold(Some(200)).compiler_threads(1).baseline(false);
    let engine = engine_with_events(&config, move |event| {
        if let TierEventKind::Retired { bytes, .. } = event.kind {
            listener.lock().unwrap().push((event.osr, bytes));
        }
    });
    let engine = engine.unwrap();
    let sum = r#"(func (export "sum") (param i32) (result i32) (local i32)
        (loop $again
            (local.set 1 (i32.add (local.get 1) (local.get 0)))
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 1))"#;
    let text = many().replacen("(module", &format!("(module {sum}"), 1);
    // The loop is entered before the function's own code exists if the compiler is busy first and then compiles the loop, which
    // is more urgent. The limit of five minutes allows for a slow machine.
    let started = std::time::Instant::now();
    while retired.lock().unwrap().is_empty() && started.elapsed().as_secs() < 300 {
        let module = Module::new(&engine, &text).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let run = instance.get_typed_func::<(i32, i32), i32>(&mut store, "run").unwrap();
        for round in 0..250 * 20 {
            run.call(&mut store, (round % 20, round)).unwrap();
        }
        let sum = instance.get_typed_func::<i32, i32>(&mut store, "sum").unwrap();
        for _ in 0..1000 {
            assert_eq!(sum.call(&mut store, 5000).unwrap(), 12_502_500);
        }
    }
    let stats = engine.stats();
    assert!(stats.osr_entries > 0 && stats.retired > 0, "{:?}", figures(&stats));
    let retired = retired.lock().unwrap();
    assert_eq!(stats.retired, retired.len() as u64, "each is reported");
    assert!(retired.iter().all(|&(osr, bytes)| osr.is_some() && bytes > 0), "only code of loops: {retired:?}");
}
