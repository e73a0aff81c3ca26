//! `weir run`: one module, as a program or as a library of functions.

use crate::args::{Run, UnknownImports};
use crate::ending::Ending;
use crate::failure::{self, Done, Failure};
use crate::guest::{self, Events, Profiling};
use crate::limits::{Expired, MemoryBudget};
use crate::profile_kind::ProfileKind;
use crate::{advice, cache, coredump, invoke, limits, load, output, profile, sys, units, wasi_context};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use weir::{Engine, ExternType, Instance, Linker, Module, ProfilingStrategy, Store, Trap, Val};
use weir_bytecode::names::Plain;
use weir_wasi::{I32Exit, WasiCtx};

/// The guest's native stack, as large as a native program's default, unless `--max-stack` has another size.
pub(crate) const GUEST_STACK: usize = 8 << 20;
/// Stack for Weir's own work on the same thread: validation, compilation, host functions.
pub(crate) const HOST_STACK: usize = 4 << 20;
/// Address space for the interpreter's frames. Six times the native stack: the interpreter reaches at least the depth of native code, and a
/// guest that recurses without end takes less memory than any module may.
pub(crate) const VALUE_STACK: usize = 48 << 20;
/// The largest guest's stack for which the first thread's may grow: see [`sys::grow_stack`].
const MAX_FIRST_STACK: usize = (64 << 20) - HOST_STACK;

/// The entry point of a program, and the initialiser of a library.
const START: &str = "_start";
const INITIALIZE: &str = "_initialize";

/// Runs the module on this thread, the process's first, or if its stack cannot be large enough, on another. That thread also
/// ends the process: waking this one first would take longer, as does starting a thread.
pub(crate) fn run(args: Run) -> Done {
    let started = Instant::now();
    let ending = Ending::new(&args, started);
    // The engine is made first, because it prepares the process for barriers: that takes long once there are threads.
    let (engine, events) = engine(&args, &ending)?;
    let stack = guest_stack(&args);
    if stack <= MAX_FIRST_STACK && sys::grow_stack(stack + HOST_STACK) {
        return run_here(&args, engine, events, &ending);
    }
    let guest = std::thread::Builder::new().name("guest".into()).stack_size(stack.saturating_add(HOST_STACK));
    let run = move || std::process::exit(failure::status(run_here(&args, engine, events, &ending)).into());
    let asked =
        |error| weir::Error::from(error).context(format!("starting a thread with a stack of {}", units::show(stack as u64)));
    let thread = guest.spawn(run).map_err(|error| Failure::Module(asked(error)))?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the size of the guest's native stack.
fn guest_stack(args: &Run) -> usize {
    args.max_stack.unwrap_or(GUEST_STACK)
}

/// The store's data: the state of host functions and limits.
pub(crate) struct Host {
    pub wasi: WasiCtx,
    pub memory: MemoryBudget,
}

/// Creates the engine with the settings of the arguments.
fn engine(args: &Run, ending: &Arc<Ending>) -> Result<(Engine, Events), Failure> {
    let mut config = args.code.config(args.profile_save.is_some());
    // The interpreter's frames have as much more room than native ones as by default.
    let values = guest_stack(args).saturating_mul(VALUE_STACK / GUEST_STACK);
    config.max_wasm_stack(guest_stack(args)).value_stack_size(values);
    if !args.no_cache {
        config.cache(cache::of_user());
        let ending = ending.clone();
        // Something was compiled, which later runs can use.
        config.on_tier_event(move |_| ending.on_signals());
    }
    config.coredump_on_trap(args.coredump.is_some());
    let mut events = Events::default();
    match &args.profile {
        Some(ProfileKind::Counts) => _ = config.profile(true),
        Some(ProfileKind::Perfmap) => _ = config.profiler(ProfilingStrategy::PerfMap),
        Some(ProfileKind::Jitdump) => _ = config.profiler(ProfilingStrategy::JitDump),
        Some(ProfileKind::Guest(guest)) => events = guest::configure(&mut config, guest),
        None => (),
    }
    Ok((Engine::new(&config).map_err(Failure::of_engine)?, events))
}

fn run_here(args: &Run, engine: Engine, events: Events, ending: &Arc<Ending>) -> Done {
    run_module(args, engine, events, ending).map_err(|failure| advice::explain(failure, args))
}

/// Begins the profile of the guest that the arguments ask for.
fn profiling(args: &Run, path: &OsStr, module: &Module, events: Events) -> Result<Option<Profiling>, Failure> {
    let interval = args.profile_interval.as_deref();
    let wrong = |expected: String| Failure::Usage(format!("--profile-interval: {expected}"));
    match &args.profile {
        Some(ProfileKind::Guest(guest)) => {
            let name = Path::new(path).file_name().unwrap_or(path).to_string_lossy();
            Profiling::begin(guest, guest.interval(interval).map_err(wrong)?, &name, module, events).map(Some)
        }
        _ if interval.is_some() => Err(wrong("it is for --profile guest".into())),
        _ => Ok(None),
    }
}

/// Fails if a file that is written after the run cannot be, as far as that is known before it.
fn check_outputs(args: &Run) -> Result<(), Failure> {
    let guest_profile = match &args.profile {
        Some(ProfileKind::Guest(guest)) => guest.file.as_ref().map(|(file, _)| ("--profile guest", file)),
        _ => None,
    };
    let saved = args.profile_save.as_ref().map(|file| ("--profile-save", file));
    let dump = args.coredump.as_ref().map(|file| ("--coredump", file));
    for (option, file) in [guest_profile, saved, dump].into_iter().flatten() {
        output::has_folder(file).map_err(|error| Failure::Profile(format!("{option} {}: {error}", file.display())))?;
    }
    Ok(())
}

fn run_module(args: &Run, engine: Engine, events: Events, ending: &Arc<Ending>) -> Done {
    check_outputs(args)?;
    if args.profile.is_none() {
        // Dropping an engine waits for its compiler threads; a program that has finished need not wait.
        std::mem::forget(engine.clone());
    }
    let interrupt_after = |limit| {
        let ending = ending.clone();
        // The failure is that of the guest.
        limits::interrupt_after(engine.clone(), limit, move || _ = ending.run(true))
    };
    let expired = args.code.timeout.map(interrupt_after);
    let (path, guest_args) = args.module_and_args.split_first().ok_or_else(|| Failure::Usage("no module".into()))?;
    // First, because validation of a large module takes longer than finding a wrong `--dir`.
    let wasi = wasi_context::context(args, path, guest_args)?;
    let module = load::program(&engine, path, args.allow_precompiled)?;
    if args.verbose {
        let state = module.stats().stored.cache;
        let state = state.map_or_else(|| "the cache is not used".into(), |state| format!("cache: {state}"));
        writeln!(std::io::stderr(), "weir: {}: {state}", path.display())?;
    }
    profile::use_from(args.code.profile_use.as_deref(), &module)?;
    ending.add(&module);
    if args.stats.is_some() || args.profile_save.is_some() {
        ending.on_signals();
    }

    let mut linker = Linker::new(&engine);
    weir_wasi::p1::add_to_linker_sync(&mut linker, |host: &mut Host| &mut host.wasi).map_err(Failure::Module)?;
    let memory = MemoryBudget::new(args.max_memory.unwrap_or(usize::MAX));
    let host = Host { wasi, memory };
    let mut store = Store::try_new(&engine, host).map_err(Failure::Module)?;
    store.limiter(|host| &mut host.memory);
    let profiling = profiling(args, path, &module, events)?;
    let by_fuel = matches!(&args.profile, Some(ProfileKind::Guest(guest)) if guest.by_fuel);
    if let Some(fuel) = args.code.engine.fuel.or(by_fuel.then_some(u64::MAX)) {
        store.set_fuel(fuel).map_err(Failure::Module)?;
    }
    if let Some(profiling) = &profiling {
        profiling.attach(&mut store, expired.clone())?;
    }
    if let Some(expired) = &expired {
        expired.limit(&mut store)?;
    }

    let done = preload(args, &mut linker, &mut store, profiling.as_ref(), ending)
        .and_then(|()| define_unknown(args, &module, &mut linker, &mut store))
        .and_then(|()| execute(args, guest_args, &module, &linker, &mut store));
    expired.iter().for_each(Expired::end);
    let done = match (done, args.code.timeout) {
        (Err(Failure::Guest(error)), Some(limit)) => Err(limits::out_of_time(error, limit)),
        (done, _) => done,
    };
    let has_run = !matches!(done, Err(Failure::Usage(_)));
    if has_run && matches!(args.profile, Some(ProfileKind::Counts)) {
        profile::print(&module)?;
    }
    // Also if the program failed.
    let saved = ending.run(matches!(&done, Err(Failure::Guest(error)) if error.is::<Trap>()));
    let saved = profiling.map_or(Ok(()), Profiling::finish).and(saved);
    let saved = saved.and(match (&done, &args.coredump) {
        (Err(Failure::Guest(error)), Some(file)) => coredump::save(file, error, &mut store, path),
        _ => Ok(()),
    });
    if args.profile.is_none() {
        // The process ends now: nothing needs to be freed.
        std::mem::forget((store, linker, module));
    }
    match (done, saved) {
        // The program's own failure takes precedence over that of writing its profile or core dump.
        (Err(failure), Err(lost)) if failure.status() != 0 => {
            lost.message().map_or(Ok(()), |message| writeln!(std::io::stderr(), "{message}"))?;
            Err(failure)
        }
        (_, Err(lost)) => Err(lost),
        (done, Ok(())) => done,
    }
}

/// Instantiates the modules of `--preload`.
fn preload(
    args: &Run,
    linker: &mut Linker<Host>,
    store: &mut Store<Host>,
    profiling: Option<&Profiling>,
    ending: &Ending,
) -> Result<(), Failure> {
    for preload in &args.preloads {
        let bytes = preload.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=');
        let wrong = || Failure::Usage(format!("--preload {}: expected NAME=FILE", preload.display()));
        let at = at.ok_or_else(wrong)?;
        let name = str::from_utf8(&bytes[..at]).map_err(|_| wrong())?;
        let file = OsStr::from_bytes(&bytes[at + 1..]);
        let module = load::program(linker.engine(), file, args.allow_precompiled)?;
        if let Some(profiling) = profiling {
            profiling.add_module(name, &module);
        }
        ending.add(&module);
        let instance = instantiate(linker, store, &module, file)?;
        if is_function(&module, INITIALIZE) {
            call(&instance, store, INITIALIZE, &[])?;
        }
        linker.instance(&*store, name, instance).map_err(Failure::Module)?;
    }
    Ok(())
}

/// Defines what the module imports and nothing exports, as `--unknown-imports` says.
fn define_unknown(args: &Run, module: &Module, linker: &mut Linker<Host>, store: &mut Store<Host>) -> Result<(), Failure> {
    let defined = match args.unknown_imports {
        None => Ok(()),
        Some(UnknownImports::Trap) => linker.define_unknown_imports_as_traps(module),
        Some(UnknownImports::Default) => linker.define_unknown_imports_as_default_values(store, module),
    };
    defined.map_err(Failure::Module)
}

/// Instantiates the module in `file`. An error is the guest's if guest code, a segment or a limit caused it, else the module's.
fn instantiate(linker: &Linker<Host>, store: &mut Store<Host>, module: &Module, file: &OsStr) -> Result<Instance, Failure> {
    linker.instantiate(&mut *store, module).map_err(|error| of_instantiation(error, store, file))
}

/// Classifies the error of instantiating the module in `file`.
pub(crate) fn of_instantiation(error: weir::Error, store: &Store<Host>, file: &OsStr) -> Failure {
    if error.is::<Trap>() || error.is::<I32Exit>() || error.wasm_backtrace().is_some() {
        return Failure::Guest(error);
    }
    let error = error.context(format!("instantiating {}", file.display()));
    if store.data().memory.exceeded { Failure::Guest(error) } else { Failure::Module(error) }
}

/// Instantiates the module and calls its entry point.
fn execute(args: &Run, guest_args: &[OsString], module: &Module, linker: &Linker<Host>, store: &mut Store<Host>) -> Done {
    let entry = entry(args, module)?;
    let instance = instantiate(linker, store, module, &args.module_and_args[0])?;
    if entry != Some(START) && is_function(module, INITIALIZE) {
        call(&instance, store, INITIALIZE, &[])?;
    }
    match entry {
        Some(name) => call(&instance, store, name, if name == START && args.invoke.is_none() { &[] } else { guest_args }),
        None => Ok(0),
    }
}

/// Returns the function to call; `None` if instantiation alone runs the module.
fn entry<'a>(args: &'a Run, module: &Module) -> Result<Option<&'a str>, Failure> {
    if let Some(name) = &args.invoke {
        return if is_function(module, name) { Ok(Some(name)) } else { Err(no_function(module, name)) };
    }
    if is_function(module, START) {
        return Ok(Some(START));
    }
    if module.bytecode().start.is_some() { Ok(None) } else { Err(no_function(module, START)) }
}

fn is_function(module: &Module, name: &str) -> bool {
    matches!(module.get_export(name), Some(ExternType::Func(_)))
}

/// The number of functions that an error lists. A module may export thousands.
const NAMES_LISTED: usize = 12;

/// Creates the error for a missing function; it lists functions that exist.
fn no_function(module: &Module, name: &str) -> Failure {
    let functions = module.exports().filter(|export| matches!(export.ty(), ExternType::Func(_)));
    let mut names: Vec<String> = functions.map(|export| format!("`{}`", Plain(export.name()))).collect();
    let more = names.len().saturating_sub(NAMES_LISTED);
    names.truncate(NAMES_LISTED);
    let mut list = names.join(", ");
    if more > 0 {
        let _ = write!(list, " and {more} more, which `weir dump` lists");
    }
    let message = match (name, list.is_empty()) {
        (_, true) => "the module exports no function".to_string(),
        (START, false) => format!("the module is not a program: it exports no `{START}`; use --invoke with one of {list}"),
        (_, false) => format!("the module exports no function `{name}`; it exports {list}"),
    };
    Failure::Usage(message)
}

/// Calls an exported function and prints its results.
fn call(instance: &Instance, store: &mut Store<Host>, name: &str, args: &[OsString]) -> Done {
    let func = instance.get_func(&mut *store, name).ok_or_else(|| Failure::Usage(format!("no function `{name}`")))?;
    let ty = func.ty(&*store);
    let shape = invoke::shape(args);
    let args = invoke::parse_args(&ty, args).map_err(|message| Failure::Usage(format!("{name}: {message}")))?;
    let mut results = vec![Val::I32(0); ty.results().len()];
    func.call(&mut *store, &args, &mut results).map_err(Failure::Guest)?;
    let mut out = std::io::stdout().lock();
    for result in &results {
        writeln!(out, "{}", invoke::show(result, shape))?;
    }
    Ok(0)
}
