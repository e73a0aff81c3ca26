//! Runs one program on several engines and compares everything that a host can observe: results, traps, globals, memories, tables and, where
//! it is counted, fuel.

use crate::costs;
use crate::crossings;
use crate::engines::engine;
use crate::failure::reasons;
use crate::generate::{Program, Value};
use crate::host::{HostFailure, HostUse, Uses, from_val, instantiate, on_wasmi, to_val};
use crate::pass_sets::PassSet;
use crate::profiles;
use crate::rng::Rng;
use crate::side_tables;
use crate::state::State;
use std::fmt;
use weir::{AsContextMut, Config, Engine, Func, Instance, MemoryFault, Module, RoundTrip, Store, Tier, Trap, Val};

/// More fuel than any generated program needs.
pub const AMPLE_FUEL: u64 = 1 << 40;

/// An engine to run programs on.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name in reports.
    pub name: String,
    /// Its configuration.
    pub setup: Setup,
    /// The seed of the random profile that guides its compiler, if there is one.
    pub profile: Option<u64>,
}

/// The configuration of a [`Subject`].
#[derive(Clone, Debug)]
pub enum Setup {
    /// wasmi, an interpreter of another project.
    Wasmi,
    /// Weir.
    Weir(Box<Config>),
}

impl Subject {
    fn weir(name: &str, change: impl Fn(&mut Config)) -> Subject {
        let mut config = Config::new();
        config.wasm_legacy_exceptions(true);
        change(&mut config);
        Subject { name: name.into(), setup: Setup::Weir(Box::new(config)), profile: None }
    }

    /// Whether throws take the fuel that they take in other tiers.
    pub fn throws_exactly(&self) -> bool {
        throws_exactly(&self.name)
    }

    /// Whether it changes tiers at random.
    pub fn is_stressed(&self) -> bool {
        self.name.starts_with("stress")
    }

    /// Lets it serialise each module and make it again in this way, if it is of Weir.
    pub fn round_trip(&mut self, way: &RoundTrip) {
        if let Setup::Weir(config) = &mut self.setup {
            config.round_trip(Some(way.clone()));
            // A profile that travels in the module has the counts of what this process has compiled, so that the other process has stored another
            // module.
            self.profile = self.profile.map(|seed| seed & !1);
        }
    }

    /// Sets whether every object moves at every safepoint, if it is of Weir.
    pub fn gc_stress(&mut self, enable: bool) {
        if let Setup::Weir(config) = &mut self.setup {
            config.gc_stress(enable);
        }
    }

    /// Sets whether it counts crossings between engines, if it is of Weir.
    pub fn count_crossings(&mut self, enable: bool) {
        if let Setup::Weir(config) = &mut self.setup {
            config.count_crossings(enable);
        }
    }
}

/// Whether throws take the fuel that they take in other tiers, in the tier with this name. An activation of the evaluator is one frame that is
/// left, with all that is inlined in it.
pub(crate) fn throws_exactly(tier: &str) -> bool {
    !tier.starts_with("SSA, calls inlined")
}

/// The name and the settings of each of [`tiers`] on Weir that has no random profile, the interpreter first.
pub fn tiers_of_weir() -> impl Iterator<Item = (String, Config)> {
    tiers(None).into_iter().filter(|subject| subject.profile.is_none()).filter_map(|subject| match subject.setup {
        Setup::Weir(config) => Some((subject.name, *config)),
        Setup::Wasmi => None,
    })
}

/// Every tier, and mixtures of them in which functions and loops change tiers at once or at random. With `stress`, this
/// seed determines the changes and the passes that run.
pub fn tiers(stress: Option<u64>) -> Vec<Subject> {
    let mut tiers = vec![
        Subject::weir("interpreter", |config| {
            config.tier(Tier::Interpreter);
        }),
        Subject::weir("interpreter, portable", |config| {
            config.tier(Tier::Interpreter).portable_interpreter(true);
        }),
        Subject::weir("native", |config| {
            config.tier(Tier::Native).synchronous_compilation(true);
        }),
        Subject::weir("native, explicit bounds checks, polls", |config| {
            config.tier(Tier::Native).synchronous_compilation(true).guard_regions(false).epoch_interruption(true);
        }),
        Subject::weir("native, no signals", |config| {
            config.tier(Tier::Native).synchronous_compilation(true).signals_based_traps(false);
        }),
        Subject::weir("cranelift, no signals", |config| {
            config.tier(Tier::Cranelift).synchronous_compilation(true).signals_based_traps(false);
        }),
        Subject::weir("cranelift", |config| {
            config.tier(Tier::Cranelift).synchronous_compilation(true);
        }),
        Subject::weir("baseline", |config| {
            config.tier(Tier::Baseline).synchronous_compilation(true);
        }),
        Subject::weir("baseline, no signals, explicit bounds checks, polls", |config| {
            config.tier(Tier::Baseline).synchronous_compilation(true).guard_regions(false).epoch_interruption(true);
            config.signals_based_traps(false);
        }),
        Subject::weir("SSA as built", |config| {
            config.tier(Tier::Ssa).rewrite_fuel(Some(0));
        }),
        Subject::weir("SSA as optimised", |config| {
            config.tier(Tier::Ssa);
        }),
        Subject::weir("SSA, calls inlined", |config| {
            config.tier(Tier::Ssa).opt_all(true);
        }),
        Subject::weir("native, calls inlined", |config| {
            config.tier(Tier::Native).synchronous_compilation(true).opt_all(true);
        }),
    ];
    for threshold in [1, 3, 20] {
        tiers.push(Subject::weir(&format!("tiering after {threshold}"), |config| {
            config.synchronous_compilation(true).tier_up_threshold(Some(threshold)).epoch_interruption(threshold == 20);
        }));
    }
    let guided = |subject: Subject| {
        let Setup::Weir(mut config) = subject.setup else { panic!("a tier of Weir") };
        config.keep_profiles(true);
        Subject { name: format!("{}, random profile", subject.name), setup: Setup::Weir(config), profile: stress.or(Some(0)) }
    };
    for name in ["native, calls inlined", "cranelift", "SSA, calls inlined", "tiering after 3"] {
        let of_name = tiers.iter().find(|subject| subject.name == name);
        tiers.push(guided(of_name.expect("there is this tier").clone()));
    }
    if let Some(seed) = stress {
        let passes = PassSet::random(seed);
        tiers.push(Subject::weir(&format!("stress {seed} {}", passes.name), |config| {
            passes.apply(config).stress(Some(seed)).tier_up_threshold(Some(2)).count_crossings(seed % 2 == 0);
        }));
    }
    tiers
}

/// The end of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum CallEnd {
    /// It returned these values.
    Values(Vec<Value>),
    /// It trapped.
    Trap(Trap),
    /// A host function failed.
    Host(HostFailure),
    /// It failed in another way.
    Failed(String),
}

/// Everything that a host can observe of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The end of each call.
    pub calls: Vec<CallEnd>,
    /// The access out of bounds at which each call ended, where the engine says so.
    pub faults: Vec<Option<MemoryFault>>,
    /// The fuel that each call used, where it is counted.
    pub fuel: Option<Vec<u64>>,
    /// The fuel that start functions used, where it is counted.
    pub start_fuel: Option<u64>,
    /// The exported items at the end.
    pub state: State,
    /// What host functions did. All host values have been dropped.
    pub host: HostUse,
    /// The calls of functions of the other instance, where there is one.
    pub crossed: u64,
    /// The tiers that were used.
    pub tiers_used: TierUse,
}

/// The work of each tier. A comparison in which nothing was compiled proves nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct TierUse {
    /// Functions compiled by Weir's native back end.
    pub native: u64,
    /// Functions compiled by Cranelift.
    pub cranelift: u64,
    /// Functions compiled by the baseline compiler.
    pub baseline: u64,
    /// Loops that continued in compiled code.
    pub osr_entries: u64,
    /// The number of times that code was retired.
    pub retired: u64,
    /// The number of compilations of an entry that had code before.
    pub recompiled: u64,
    /// Bytes of retired code that were freed while their module lived.
    pub freed_bytes: u64,
}

impl std::ops::AddAssign for TierUse {
    fn add_assign(&mut self, other: TierUse) {
        self.native += other.native;
        self.cranelift += other.cranelift;
        self.baseline += other.baseline;
        self.osr_entries += other.osr_entries;
        self.retired += other.retired;
        self.recompiled += other.recompiled;
        self.freed_bytes += other.freed_bytes;
    }
}

/// A difference between two runs.
#[derive(Debug)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The size of a comparison in which all subjects agreed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agreement {
    /// The fuel that the calls used. That is the number of instructions, unless the program runs with a [table of costs](costs::seed).
    pub executed: u64,
    /// The number of calls.
    pub calls: usize,
    /// The number of calls that trapped.
    pub trapped: usize,
    /// The number of those that said at which address.
    pub faulted: usize,
    /// The number of calls that wasmi made too.
    pub on_wasmi: usize,
    /// Runs of the whole program, each compared with another.
    pub compared: usize,
    /// What host functions did, on the first subject.
    pub host: HostUse,
    /// The calls of functions of another instance, on the first subject.
    pub crossed: u64,
    /// The tiers that were used.
    pub tiers_used: TierUse,
}

impl std::ops::AddAssign for Agreement {
    fn add_assign(&mut self, other: Agreement) {
        self.executed += other.executed;
        self.calls += other.calls;
        self.trapped += other.trapped;
        self.faulted += other.faulted;
        self.on_wasmi += other.on_wasmi;
        self.compared += other.compared;
        self.host += other.host;
        self.crossed += other.crossed;
        self.tiers_used += other.tiers_used;
    }
}

/// Verifies a program's side tables, and compares the first tier with wasmi and with all other `tiers`: without fuel,
/// with ample fuel and, if the program uses any, with `share` / 256 of the fuel of its longest call. A third of all programs has a random
/// [table of costs](costs::seed).
///
/// A program beyond wasmi is compared on the tiers alone. The meaning of its special operations is then Weir's own
/// definition in every tier; the specification suite has independent expectations for those.
///
/// # Errors
/// The first difference.
pub fn compare(program: &Program, tiers: &[Subject], share: u8) -> Result<Agreement, Mismatch> {
    compare_on(program, tiers, share, &|_, config| engine(config))
}

/// The same, on engines that `engine` makes for the number of a tier and its settings.
///
/// # Errors
/// The first difference.
pub fn compare_on(
    program: &Program,
    tiers: &[Subject],
    share: u8,
    engine: &dyn Fn(usize, &Config) -> weir::Result<Engine>,
) -> Result<Agreement, Mismatch> {
    let (first, others) = tiers.split_first().ok_or_else(no_tier)?;
    side_tables::verify_binary(&program.wasm).map_err(Mismatch)?;
    let reference = outcome(program, first, &|config| engine(0, config))?;
    let trapped = reference.calls.iter().filter(|ended| matches!(ended, CallEnd::Trap(_))).count();
    let faulted = reference.faults.iter().flatten().count();
    let Outcome { host, crossed, tiers_used, .. } = reference;
    let mut agreement =
        Agreement { calls: reference.calls.len(), trapped, faulted, host, crossed, tiers_used, ..Agreement::default() };
    if !program.beyond_wasmi {
        let judge = wasmi_outcome(program).map_err(|error| failed("wasmi", error))?;
        difference(program, ("wasmi", &judge), (&first.name, &reference))?;
        agreement.on_wasmi = judge.calls.len();
        agreement.compared += 1;
    }
    for (i, tier) in (1..).zip(others) {
        let outcome = outcome(program, tier, &|config| engine(i, config))?;
        difference(program, (&first.name, &reference), (&tier.name, &outcome))?;
        agreement.tiers_used += outcome.tiers_used;
        agreement.compared += 1;
    }
    let load = |(i, tier)| Metered::load(program, tier, &|config| engine(i, config));
    let metered = tiers.iter().enumerate().map(load).collect::<Result<Vec<Metered>, Mismatch>>()?;
    let ample = same_everywhere(program, &metered, AMPLE_FUEL)?;
    difference(program, (&first.name, &reference), ("fuel", &ample))?;
    agreement.compared += tiers.len();
    let fuel = ample.fuel.unwrap_or_default();
    agreement.executed = fuel.iter().sum();
    let little = fuel.iter().max().map_or(0, |longest| longest * u64::from(share) / 256);
    if little > 0 {
        same_everywhere(program, &metered, little)?;
        agreement.compared += others.len();
    }
    Ok(agreement)
}

/// A program in an engine that counts fuel, to be run with several amounts.
struct Metered<'a> {
    tier: &'a str,
    module: Module,
}

impl Metered<'_> {
    fn load<'a>(
        program: &Program,
        tier: &'a Subject,
        engine: &dyn Fn(&Config) -> weir::Result<Engine>,
    ) -> Result<Metered<'a>, Mismatch> {
        let Setup::Weir(config) = &tier.setup else { return Err(no_tier()) };
        let mut config = config.clone();
        // Code that polls is compared in `suspended`.
        config.consume_fuel(true).async_support(false);
        if let Some(seed) = costs::seed(&program.wasm) {
            config.operator_cost(costs::random(seed));
        }
        let module = engine(&config).and_then(|engine| weir_module(program, &engine, tier.profile));
        let module = module.map_err(|error| failed(&tier.name, error))?;
        Ok(Metered { tier: &tier.name, module })
    }
}

/// Runs the program with `fuel` for each call on every tier. All must agree, also on the fuel used.
fn same_everywhere(program: &Program, tiers: &[Metered], fuel: u64) -> Result<Outcome, Mismatch> {
    let mut first: Option<(String, Outcome)> = None;
    for Metered { tier, module } in tiers {
        let name = format!("{tier} with fuel {fuel}");
        let outcome = weir_outcome(program, module, fuel).map_err(|error| failed(&name, error))?;
        match &first {
            None => first = Some((name, outcome)),
            Some((other, expected)) => {
                difference(program, (other, expected), (&name, &outcome))?;
                if expected.start_fuel != outcome.start_fuel {
                    let [a, b] = [expected, &outcome].map(|outcome| outcome.start_fuel);
                    return Err(Mismatch(format!("start: {other} takes {a:?} fuel, {name} takes {b:?}")));
                }
                for (i, (a, b)) in expected.fuel.iter().flatten().zip(outcome.fuel.iter().flatten()).enumerate() {
                    if a != b {
                        return Err(Mismatch(format!("{}: {other} takes {a} fuel, {name} takes {b}", call_name(program, i))));
                    }
                }
            }
        }
    }
    first.map(|(_, outcome)| outcome).ok_or_else(no_tier)
}

fn no_tier() -> Mismatch {
    Mismatch("no tier to run on".into())
}

pub(crate) fn failed(name: &str, error: impl fmt::Debug) -> Mismatch {
    Mismatch(format!("{name}: {error:?}"))
}

fn outcome(program: &Program, subject: &Subject, engine: &dyn Fn(&Config) -> weir::Result<Engine>) -> Result<Outcome, Mismatch> {
    match &subject.setup {
        Setup::Wasmi => wasmi_outcome(program).map_err(|error| failed(&subject.name, error)),
        Setup::Weir(config) => (engine(config).and_then(|engine| weir_module(program, &engine, subject.profile)))
            .and_then(|module| weir_outcome(program, &module, 0))
            .map_err(|error| failed(&subject.name, error)),
    }
}

fn call_name(program: &Program, call: usize) -> String {
    let call_made = &program.calls[call];
    format!("call {call}, f{} with {:?}", call_made.func, call_made.args)
}

/// Compares two outcomes.
pub(crate) fn difference(program: &Program, a: (&str, &Outcome), b: (&str, &Outcome)) -> Result<(), Mismatch> {
    let differ = |what: String, x: String, y: String| Mismatch(format!("{what}:\n  {}: {x}\n  {}: {y}", a.0, b.0));
    assert_eq!(a.1.calls.len(), b.1.calls.len(), "every subject makes every call");
    for (i, (x, y)) in a.1.calls.iter().zip(&b.1.calls).enumerate() {
        if !same_end(x, y) {
            return Err(differ(call_name(program, i), format!("{x:x?}"), format!("{y:x?}")));
        }
    }
    for (i, (x, y)) in a.1.faults.iter().zip(&b.1.faults).enumerate() {
        // An engine without guard regions has none.
        if x.is_some() && y.is_some() && x != y {
            return Err(differ(call_name(program, i), format!("{x:x?}"), format!("{y:x?}")));
        }
    }
    if let Some((what, [x, y])) = a.1.state.difference(&b.1.state) {
        return Err(differ(what, x, y));
    }
    match a.1.host == b.1.host {
        true => Ok(()),
        false => Err(differ("host functions".into(), a.1.host.to_string(), b.1.host.to_string())),
    }
}

/// Whether two calls ended in the same way.
fn same_end(a: &CallEnd, b: &CallEnd) -> bool {
    match (a, b) {
        (CallEnd::Values(a), CallEnd::Values(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(*b)),
        (CallEnd::Trap(a), CallEnd::Trap(b)) => a == b,
        (CallEnd::Host(a), CallEnd::Host(b)) => a == b,
        _ => false,
    }
}

pub(crate) fn weir_module(program: &Program, engine: &Engine, profile: Option<u64>) -> weir::Result<Module> {
    let module = Module::new(engine, &program.wasm)?;
    let Some(seed) = profile else { return Ok(module) };
    profiles::use_random(&module, &mut Rng::new(seed))?;
    // Every second profile travels in the module.
    if seed % 2 == 0 { Ok(module) } else { Module::new(module.engine(), module.embed_profile()?) }
}

/// Runs a program, with `fuel` for each call if its engine counts it.
pub(crate) fn weir_outcome(program: &Program, module: &Module, fuel: u64) -> weir::Result<Outcome> {
    let before = module.engine().stats();
    let mut store = Store::new(module.engine(), ());
    store.set_epoch_deadline(u64::MAX);
    let counted = store.get_fuel().is_ok();
    if counted {
        store.set_fuel(AMPLE_FUEL)?;
    }
    let uses = Uses::default();
    let instances = instantiate(&mut store, module, &uses)?;
    let start_fuel = store.get_fuel().ok().map(|left| AMPLE_FUEL - left);
    let at_start = calls_of_other(&mut store, instances.other);
    let instance = instances.first;
    let missing = || weir::Error::msg("an export is missing");
    let reset = instance.get_func(&store, "reset").ok_or_else(missing)?;
    let (mut calls, mut faults) = (Vec::new(), Vec::new());
    let mut taken = Vec::new();
    for call in &program.calls {
        let func = instance.get_func(&store, &format!("f{}", call.func)).ok_or_else(missing)?;
        if counted {
            store.set_fuel(AMPLE_FUEL)?;
        }
        reset.call(&mut store, &[], &mut [])?;
        if counted {
            store.set_fuel(fuel)?;
        }
        let results = program.funcs[call.func as usize].results.len();
        let (end, fault) = weir_call(&mut store, func, &call.args, results);
        calls.push(end);
        faults.push(fault);
        if counted {
            taken.push(fuel - store.get_fuel()?);
        }
    }
    let crossed = calls_of_other(&mut store, instances.other) - at_start;
    let state = State::of_weir(&mut store, instances);
    drop(store);
    let host = uses.at_end()?;
    let stats = module.engine().stats();
    crossings::add(&before, &stats);
    let tiers_used = TierUse {
        native: stats.functions.native,
        cranelift: stats.functions.cranelift,
        baseline: stats.functions.baseline,
        osr_entries: stats.osr_entries,
        retired: stats.retired,
        recompiled: stats.recompiled,
        freed_bytes: stats.freed_bytes,
    };
    Ok(Outcome { calls, faults, fuel: counted.then_some(taken), start_fuel, state, host, crossed, tiers_used })
}

/// The calls of its functions that the other instance counts, if there is one that does.
fn calls_of_other(store: &mut Store<()>, other: Option<Instance>) -> u64 {
    let calls = other.and_then(|other| other.get_global(&mut *store, "calls"));
    calls.and_then(|calls| calls.get(&mut *store).i32()).map_or(0, |calls| calls as u64)
}

fn weir_call(store: impl AsContextMut, func: Func, args: &[Value], results: usize) -> (CallEnd, Option<MemoryFault>) {
    let args: Vec<Val> = args.iter().map(|&arg| to_val(arg)).collect();
    let mut results = vec![Val::I32(0); results];
    let result = func.call(store, &args, &mut results);
    let fault = result.as_ref().err().and_then(|error| error.downcast_ref().copied());
    (ended(result, &results), fault)
}

/// Returns the end of a call with this result.
pub(crate) fn ended(result: weir::Result<()>, results: &[Val]) -> CallEnd {
    match result {
        Ok(()) => CallEnd::Values(results.iter().map(from_val).collect()),
        Err(error) => match (error.downcast_ref(), error.downcast_ref()) {
            (Some(&trap), _) => CallEnd::Trap(trap),
            (_, Some(&failure)) => CallEnd::Host(failure),
            _ => CallEnd::Failed(reasons(&error)),
        },
    }
}

fn wasmi_outcome(program: &Program) -> Result<Outcome, wasmi::Error> {
    let engine = wasmi::Engine::new(&wasmi_config());
    let module = wasmi::Module::new(&engine, &program.wasm)?;
    let (mut store, uses) = (wasmi::Store::new(&engine, ()), Uses::default());
    let (instance, other) = on_wasmi::instantiate(&mut store, &module, &uses)?;
    let missing = || wasmi::Error::new("an export is missing");
    let reset = instance.get_func(&store, "reset").ok_or_else(missing)?;
    let mut calls = Vec::new();
    for call in &program.calls {
        let func = instance.get_func(&store, &format!("f{}", call.func)).ok_or_else(missing)?;
        reset.call(&mut store, &[], &mut [])?;
        let args: Vec<wasmi::Val> = call.args.iter().map(|&arg| on_wasmi::to_wasmi(arg)).collect();
        let mut results = vec![wasmi::Val::I32(0); program.funcs[call.func as usize].results.len()];
        calls.push(match func.call(&mut store, &args, &mut results) {
            Ok(()) => CallEnd::Values(results.iter().map(on_wasmi::from_wasmi).collect()),
            Err(error) => match (error.as_trap_code().and_then(wasmi_trap), error.downcast_ref()) {
                (Some(trap), _) => CallEnd::Trap(trap),
                (_, Some(&failure)) => CallEnd::Host(failure),
                _ => CallEnd::Failed(error.to_string()),
            },
        });
    }
    let state = State::of_wasmi(&store, &module, (instance, other));
    let host = uses.at_end().map_err(|error| wasmi::Error::new(error.to_string()))?;
    Ok(Outcome {
        calls,
        faults: Vec::new(),
        fuel: None,
        start_fuel: None,
        state,
        host,
        crossed: 0,
        tiers_used: TierUse::default(),
    })
}

/// wasmi with all that the modules use.
pub fn wasmi_config() -> wasmi::Config {
    let mut config = wasmi::Config::default();
    config.wasm_custom_page_sizes(true).wasm_wide_arithmetic(true).wasm_memory64(true).wasm_multi_memory(true).wasm_simd(true);
    config
}

/// The trap that corresponds to this code of wasmi.
pub fn wasmi_trap(code: wasmi::TrapCode) -> Option<Trap> {
    Some(match code {
        wasmi::TrapCode::UnreachableCodeReached => Trap::UnreachableCodeReached,
        wasmi::TrapCode::MemoryOutOfBounds => Trap::MemoryOutOfBounds,
        wasmi::TrapCode::TableOutOfBounds => Trap::TableOutOfBounds,
        wasmi::TrapCode::IndirectCallToNull => Trap::IndirectCallToNull,
        wasmi::TrapCode::IntegerDivisionByZero => Trap::IntegerDivisionByZero,
        wasmi::TrapCode::IntegerOverflow => Trap::IntegerOverflow,
        wasmi::TrapCode::BadConversionToInteger => Trap::BadConversionToInteger,
        wasmi::TrapCode::StackOverflow => Trap::StackOverflow,
        wasmi::TrapCode::BadSignature => Trap::BadSignature,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_agree_on_the_very_trap() {
        let [table, memory] = [Trap::TableOutOfBounds, Trap::MemoryOutOfBounds].map(CallEnd::Trap);
        assert!(same_end(&table, &CallEnd::Trap(Trap::TableOutOfBounds)));
        assert!(!same_end(&table, &memory));
        assert!(!same_end(&table, &CallEnd::Values(Vec::new())));
    }
}
