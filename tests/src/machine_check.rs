//! Checks the machine code of whole modules, function by function: see [`weir_check`].

use crate::compiled::check_compiled;
use crate::profiles;
use crate::rng::Rng;
use arbitrary::Unstructured;
use std::time::{Duration, Instant};
use wasm_smith::{Config, Module as Smith};
use weir_bytecode::Module;
use weir_check::{Fault, Statistics};
use weir_contract::Entry;
use weir_jit::compile::{Context, compile};
use weir_jit::request::{CalleeCounts, PadAt, Padding};
use weir_jit::{Backend, Inlining, Options, Request};

/// A way to compile the functions of a module.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Its name in reports.
    pub name: &'static str,
    /// The compiler.
    pub backend: Backend,
    /// Whether the functions are entered at their loops, and not by calls.
    pub osr: bool,
    /// The number of loops of a function at which it is entered.
    pub loops: usize,
    /// Whether each function has a random profile.
    pub profiled: bool,
    /// Whether the code has padding, of another kind in each function.
    pub padded: bool,
    /// The options.
    pub options: Options,
}

/// The configurations of every compiler, with guard regions and without.
pub fn configurations() -> Vec<Configuration> {
    let options = || Options { verify: false, ..Options::default() };
    let unguarded = || Options { guard_regions: false, reserves_guards: false, ..options() };
    let metered = || Options { fuel: true, poll: true, ..options() };
    let silent = || Options { signals: false, guard_regions: false, ..options() };
    let counting = || Options { ticks: true, counts: true, ..options() };
    let everywhere = || Options { opt_all: true, ..options() };
    let relative = || Options { segment: true, opt_all: true, ..options() };
    let of = |name, backend, osr, options| {
        let (loops, profiled, padded) = (usize::MAX, false, false);
        Configuration { name, backend, osr, loops, profiled, padded, options }
    };
    let profiled = |name, backend, osr, options| Configuration { profiled: true, ..of(name, backend, osr, options) };
    let padded = |name, osr, options| Configuration { padded: true, ..of(name, Backend::Native, osr, options) };
    vec![
        of("native", Backend::Native, false, options()),
        of("native, no guard regions", Backend::Native, false, unguarded()),
        of("native, metered", Backend::Native, false, metered()),
        of("native, no signals", Backend::Native, false, silent()),
        of("osr", Backend::Native, true, Options { leaves: true, ..options() }),
        of("osr, no guard regions", Backend::Native, true, Options { leaves: true, ..unguarded() }),
        of("native, segment", Backend::Native, false, relative()),
        of("osr, segment", Backend::Native, true, Options { leaves: true, ..relative() }),
        of("baseline", Backend::Baseline, false, counting()),
        of("baseline, no guard regions", Backend::Baseline, false, Options { ticks: true, counts: true, ..unguarded() }),
        of(
            "baseline, metered, striped",
            Backend::Baseline,
            false,
            Options { ticks: true, counts: true, striped: true, ..metered() },
        ),
        of("baseline, no signals", Backend::Baseline, false, silent()),
        of("cranelift", Backend::Cranelift, false, options()),
        of("cranelift, no guard regions", Backend::Cranelift, false, unguarded()),
        of("cranelift, no signals", Backend::Cranelift, false, silent()),
        of("cranelift, osr", Backend::Cranelift, true, options()),
        profiled("profiled", Backend::Native, false, everywhere()),
        profiled(
            "profiled, no guard regions, metered",
            Backend::Native,
            false,
            Options { opt_all: true, fuel: true, poll: true, ..unguarded() },
        ),
        profiled("profiled, segment, metered", Backend::Native, false, Options { fuel: true, poll: true, ..relative() }),
        profiled(
            "profiled, leaves, no guard regions",
            Backend::Native,
            false,
            Options { opt_all: true, leaves: true, ..unguarded() },
        ),
        profiled("profiled, leaves, segment", Backend::Native, false, Options { leaves: true, ..relative() }),
        profiled("profiled, osr", Backend::Native, true, Options { leaves: true, ..everywhere() }),
        profiled(
            "profiled, osr, no guard regions",
            Backend::Native,
            true,
            Options { opt_all: true, leaves: true, ..unguarded() },
        ),
        profiled("profiled, cranelift, no guard regions", Backend::Cranelift, false, Options { opt_all: true, ..unguarded() }),
        padded("padded", false, options()),
        padded("padded, osr, segment", true, Options { leaves: true, segment: true, ..everywhere() }),
    ]
}

/// A function whose code was refused.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The function.
    pub func: u32,
    /// How it is entered.
    pub entry: Entry,
    /// Why.
    pub fault: Box<Fault>,
}

/// The result of checking a module.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Counts of the code that was proved.
    pub statistics: Statistics,
    /// Compilations that the compiler refused.
    pub uncompiled: u64,
    /// Code in which calls were inlined.
    pub inlining: u64,
    /// Functions whose code was refused.
    pub refused: Vec<Refused>,
    /// The time of the checks.
    pub time: Duration,
}

impl Report {
    /// Adds another report.
    pub fn add(&mut self, other: Report) {
        self.statistics.add(&other.statistics);
        self.uncompiled += other.uncompiled;
        self.inlining += other.inlining;
        self.refused.extend(other.refused);
        self.time += other.time;
    }
}

/// Compiles and checks functions of a module.
pub fn check_functions(module: &Module, funcs: impl Iterator<Item = u32>, configuration: &Configuration) -> Report {
    let mut report = Report::default();
    let mut cx = Context::default();
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).map(|ty| ty + 1000).collect();
    let Configuration { backend, options, .. } = configuration;
    for func in funcs {
        let Some(body) = module.body(func) else { continue };
        let profile = configuration.profiled.then(|| profiles::random(module, body, &mut Rng::new(func.into())));
        let padding = if configuration.padded { padding(func) } else { options.padding };
        let options = &Options { padding, ..options.clone() };
        let entries: Vec<Entry> = match configuration.osr {
            true => body.loops.iter().take(configuration.loops).map(|info| Entry::Osr(info.pc)).collect(),
            false => vec![Entry::Call],
        };
        for entry in entries {
            let callees = profiles::RandomCounts(module);
            let (backend, profile, callees) =
                (*backend, profile.as_ref(), profile.as_ref().map(|_| &callees as &dyn CalleeCounts));
            let request = Request { module, func, entry, sig_ids: &sig_ids, backend, profile, callees, options };
            let Ok(compiled) = compile(&mut cx, &request) else {
                report.uncompiled += 1;
                continue;
            };
            report.inlining += u64::from(compiled.inlining != Inlining::default());
            let start = Instant::now();
            let checked = check_compiled(&request, &compiled);
            report.time += start.elapsed();
            match checked {
                Ok(statistics) => report.statistics.add(&statistics),
                Err(fault) => report.refused.push(Refused { func, entry, fault }),
            }
        }
    }
    report
}

/// Padding at random places, and at all places of one kind.
fn padding(func: u32) -> Padding {
    const PLACES: [PadAt; 4] = [PadAt::Function, PadAt::Head, PadAt::Arms, PadAt::Jump];
    Padding { after: Some((PLACES[func as usize % PLACES.len()], 1 + func % 67)), seed: Some(func.into()) }
}

/// Compiles and checks every function of a module.
pub fn check_module(module: &Module, configuration: &Configuration) -> Report {
    check_functions(module, module.imported_funcs..module.funcs.len() as u32, configuration)
}

/// A random module with several memories and tables, with addresses of 32 and 64 bits and pages of any size, or `None` if wasm-smith makes
/// none for this seed.
pub fn random_module(seed: u64) -> Option<Vec<u8>> {
    let mut rng = Rng::new(seed);
    let bytes: Vec<u8> = (0..4096).map(|_| rng.bits() as u8).collect();
    let config = Config {
        custom_page_sizes_enabled: true,
        exceptions_enabled: true,
        gc_enabled: false,
        max_funcs: 12,
        max_memories: 4,
        max_tables: 4,
        memory64_enabled: true,
        min_funcs: 4,
        min_memories: 2,
        min_tables: 1,
        shared_everything_threads_enabled: false,
        simd_enabled: true,
        tail_call_enabled: true,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        ..Config::default()
    };
    Some(Smith::new(config, &mut Unstructured::new(&bytes)).ok()?.to_bytes())
}
