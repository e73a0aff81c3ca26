//! The compilations of a hostile module's longest function by each back end: the processor time that they take, and the longest part of it in
//! which nothing asks whether they are still wanted. And how long after an engine is dropped its threads are gone.

use super::attack::Attack;
use super::ends::{first_funcs, instantiate};
use crate::engines::engine;
use bumpalo::Bump;
use rustix::time::{ClockId, clock_gettime};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use weir::{Config, Engine, Store, Tier};
use weir_bytecode::{Module, validate};
use weir_jit::ir::Entry;
use weir_jit::meter::Meter;
use weir_jit::pipeline::{self, Form, Unit};
use weir_jit::{Backend, Refusal, Request};

/// What to measure.
#[derive(clap::Args)]
pub struct Options {
    /// About the size of each module, in bytes; several after commas
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1048576")]
    size: Vec<usize>,
    /// Only modules whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Only this back end
    #[arg(long)]
    backend: Option<By>,
    /// The number of compilations of which the fastest counts
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Drop engines instead, while their threads compile, and print the time until these are gone
    #[arg(long)]
    drop: bool,
}

/// A back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum By {
    Baseline,
    Native,
    Cranelift,
}

impl By {
    const ALL: [By; 3] = [By::Baseline, By::Native, By::Cranelift];

    fn backend(self) -> Backend {
        match self {
            By::Baseline => Backend::Baseline,
            By::Native => Backend::Native,
            By::Cranelift => Backend::Cranelift,
        }
    }
}

/// The processor time of this thread.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Sees a compilation's phases, and when its meter asks whether it is still wanted.
struct Watch {
    begun: Duration,
    phase: Cell<&'static str>,
    last: Cell<Duration>,
    /// Of each phase, the time since the meter asked last.
    since: RefCell<Vec<(&'static str, Duration)>>,
    longest: Cell<Pause>,
}

/// A time in which the meter does not ask, and the phase to which the longest part of it belongs.
#[derive(Clone, Copy, Default)]
struct Pause {
    time: Duration,
    phase: &'static str,
}

impl Watch {
    fn new() -> Watch {
        let begun = now();
        let (phase, last) = (Cell::new(""), Cell::new(begun));
        Watch { begun, phase, last, since: RefCell::default(), longest: Cell::default() }
    }

    /// The time since the last event belongs to the running phase.
    fn count(&self) {
        let at = now();
        self.since.borrow_mut().push((self.phase.get(), at - self.last.replace(at)));
    }

    fn begin(&self, phase: &'static str) {
        self.count();
        self.phase.set(phase);
    }

    /// The meter asks.
    fn ask(&self) {
        self.count();
        let since = std::mem::take(&mut *self.since.borrow_mut());
        let time = since.iter().map(|part| part.1).sum();
        if time > self.longest.get().time {
            let phase = since.iter().max_by_key(|part| part.1).map_or("", |part| part.0);
            self.longest.set(Pause { time, phase });
        }
    }
}

/// What a compilation takes.
struct Taken {
    total: Duration,
    longest: Pause,
    refused: Option<Refusal>,
}

impl Taken {
    /// Compiles as [`weir_jit::compile::compile_until`] does.
    fn by(request: &Request<'_>) -> Taken {
        let watch = Watch::new();
        let stop = || {
            watch.ask();
            false
        };
        let body = request.module.body(request.func).expect("it is defined");
        let meter = Meter::of(body.len(), body.loops.len(), &stop);
        let done = compile(request, meter, &watch);
        watch.ask();
        Taken { total: now() - watch.begun, longest: watch.longest.get(), refused: done.err() }
    }
}

fn compile(request: &Request<'_>, meter: Meter<'_>, watch: &Watch) -> Result<(), Refusal> {
    let mut arena = Bump::new();
    let form = Form::Bytecode(&arena);
    let mut phases = pipeline::rest(&form, request.backend);
    let mut unit = Unit::metered(request, form, Bump::new(), meter);
    for phase in phases.by_ref() {
        watch.begin(phase.name);
        let _ = pipeline::run(&mut unit, [phase], &mut ())?;
        watch.begin("end");
        if matches!(unit.form, Form::Machine(_) | Form::Bytes(_)) {
            break;
        }
    }
    let mut unit = unit.after_ssa();
    pipeline::clear(&mut arena);
    for phase in phases {
        watch.begin(phase.name);
        let _ = pipeline::run(&mut unit, [phase], &mut ())?;
    }
    watch.begin("end");
    drop(unit.finish());
    Ok(())
}

/// The compilations of a module's longest function.
struct Row<'a> {
    attack: &'a Attack,
    by: By,
    entry: Entry,
    bytes: u32,
    taken: Taken,
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { attack, by, entry, bytes, taken: Taken { total, longest, refused } } = self;
        let entry = if *entry == Entry::Call { "call" } else { "loop" };
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let (by, total, pause) = (format!("{by:?}").to_lowercase(), millis(*total), millis(longest.time));
        write!(f, "{:<40} {bytes:>8} {by:<9} {entry} {total:>8.2} {pause:>8.2} {:<15}", attack.name, longest.phase)?;
        refused.as_ref().map_or(Ok(()), |refused| write!(f, "  {refused}"))
    }
}

/// Prints the compilations of a module's longest function.
fn print(attack: &Attack, size: usize, options: &Options) {
    let read = validate::Options { accept: true, proposals: validate::Proposals::all(), ..validate::Options::default() };
    let Ok(module) = validate::parse_with(attack.module(size).into(), read) else {
        return println!("{:<40} is invalid", attack.name);
    };
    let Some((longest, loops)) = longest(&module) else { return println!("{:<40} has no function", attack.name) };
    let sig_ids = vec![0; module.types.len()];
    for by in By::ALL.into_iter().filter(|by| options.backend.is_none_or(|only| only == *by)) {
        // As with `--timeout`.
        let is_baseline = by == By::Baseline;
        let compiled = weir_jit::Options {
            verify: false,
            poll: true,
            ticks: is_baseline,
            counts: is_baseline,
            striped: is_baseline,
            leaves: by == By::Native,
            ..weir_jit::Options::default()
        };
        let loops = loops.filter(|_| !is_baseline).map(Entry::Osr);
        for entry in [Entry::Call].into_iter().chain(loops) {
            let backend = by.backend();
            let request = Request {
                module: &module,
                func: longest,
                entry,
                sig_ids: &sig_ids,
                backend,
                profile: None,
                callees: None,
                options: &compiled,
            };
            let runs = (0..options.runs.max(1)).map(|_| Taken::by(&request));
            let taken = runs.min_by_key(|taken| taken.longest.time).expect("there is a run");
            let bytes = module.body(longest).map_or(0, |body| body.len());
            println!("{}", Row { attack, by, entry, bytes, taken });
        }
    }
}

/// The longest function, and the loop in its middle.
fn longest(module: &Module) -> Option<(u32, Option<u32>)> {
    let bodies = module.bodies.iter().enumerate();
    let (longest, _) = bodies.max_by_key(|(_, body)| body.len())?;
    let func = module.imported_funcs + longest as u32;
    let loops = &module.body(func)?.loops;
    Some((func, loops.get(loops.len() / 2).map(|info| info.pc)))
}

/// Drops engines some time after the module has begun, and prints by back end the longest time until their threads are gone.
fn print_drops(attack: &Attack, size: usize) -> weir::Result<()> {
    const AFTER: [u64; 4] = [5, 20, 80, 320];
    let wasm = attack.module(size);
    write!(std::io::stdout(), "{:<40} {:>8}", attack.name, wasm.len())?;
    for baseline in [true, false] {
        let mut compiling = 0;
        let mut longest = Duration::ZERO;
        for after in AFTER.map(Duration::from_millis) {
            let (threads, taken) = dropped(&wasm, baseline, after)?;
            compiling += usize::from(threads > 0);
            longest = longest.max(taken);
        }
        write!(std::io::stdout(), " {compiling} of {} {:>8.2}", AFTER.len(), longest.as_secs_f64() * 1e3)?;
    }
    println!();
    Ok(())
}

/// Drops an engine with all that belongs to it. Returns the number of its compiler threads then, and the time until they are gone.
fn dropped(wasm: &[u8], baseline: bool, after: Duration) -> weir::Result<(usize, Duration)> {
    let mut config = Config::new();
    config.tier(Tier::Auto).baseline(baseline).tier_up_threshold(Some(1)).epoch_interruption(true);
    let engine = engine(&config)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(after);
            engine.increment_epoch();
        });
        // A module that fails or ends may have begun compilations, too.
        let _ = run(&engine, wasm);
    });
    let (threads, begun) = (compiler_threads()?, Instant::now());
    drop(engine);
    while compiler_threads()? > 0 {
        thread::sleep(Duration::from_micros(100));
    }
    Ok((threads, begun.elapsed()))
}

/// Runs a module until the deadline.
fn run(engine: &Engine, wasm: &[u8]) -> weir::Result<()> {
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(1);
    let module = weir::Module::new(engine, wasm)?;
    let instance = instantiate(&mut store, &module)?;
    for (func, mut results) in first_funcs(&store, &instance) {
        func.call(&mut store, &[], &mut results)?;
    }
    Ok(())
}

/// The threads of this process that compile.
fn compiler_threads() -> io::Result<usize> {
    let names = fs::read_dir("/proc/self/task")?.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    Ok(names.filter(|name| name.starts_with("weir-compiler")).count())
}

impl Options {
    /// Measures the attacks and prints a row for each compilation.
    ///
    /// # Errors
    /// No attack has such a name, or an engine cannot be made.
    pub fn run(&self) -> Result<ExitCode, String> {
        let attacks: Vec<Attack> = super::named(self.only.as_deref())?;
        if self.drop {
            println!(
                "{:<40} {:>8} engines that compiled when they were dropped, and the longest ms until their threads",
                "module", "bytes"
            );
            println!("{:<49} were gone: with the baseline compiler, and without it", "");
        } else {
            println!("{:<40} {:>8} {:<9} from {:>8} {:>8} {:<15}", "module", "bytes", "by", "ms", "pause", "most of it in");
        }
        for attack in &attacks {
            for &size in &self.size {
                match self.drop {
                    true => print_drops(attack, size).map_err(|error| format!("{}: {error:#}", attack.name))?,
                    false => print(attack, size, self),
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
