//! A module that has been loaded in its container, and its run.

use crate::budget::Budget;
use crate::cgroup::{MemoryLimit, MemoryUse, ProcessorLimit};
use crate::code_cache::{Identity, Stored};
use crate::entry::{Entry, START};
use crate::settings::Settings;
use crate::{files, message};
use oci_spec::runtime::Spec;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;
use std::time::Duration;
use weir::{Config, Engine, ExternType, InstancePre, Linker, Module, Store, Trap};
use weir_wasi::{BrokenPipe, I32Exit, WasiCtx, WasiCtxBuilder};

/// The guest's native stack, in bytes: as large as a native program's by default.
const GUEST_STACK: usize = 8 << 20;
/// Stack for Weir's own work on the same thread.
const HOST_STACK: usize = 4 << 20;
/// Address space for the interpreter's frames.
const VALUE_STACK: usize = 64 << 20;
/// The exit status of a guest that trapped, as of a native program that aborts: 128 + SIGABRT.
pub(crate) const ABORTED: i32 = 134;
/// That of one that wrote to a FIFO that nobody reads: 128 + SIGPIPE.
const PIPE_CLOSED: i32 = 141;
/// The time that a program may continue after its time limit: a host function that blocks does not stop for it.
const GRACE: Duration = Duration::from_millis(500);
/// The function that initialises a library.
const INITIALIZE: &str = "_initialize";
/// The random seed of deterministic containers.
const SEED: u64 = 0;

/// The limits of the container's groups.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub memory: Option<MemoryLimit>,
    pub used: Option<MemoryUse>,
    pub processors: Option<ProcessorLimit>,
}

/// The store's data.
struct Host {
    wasi: WasiCtx,
    budget: Budget,
}

/// A module that can be run.
pub(crate) struct Guest {
    engine: Engine,
    module: Module,
    instance: InstancePre<Host>,
    host: Host,
    function: String,
    settings: Settings,
    /// Whether the node has code for the module that could not be used.
    pub refused_code: bool,
}

impl Guest {
    /// Loads the module, checks its imports, its function and its memory, and opens its directories. Nothing of it runs.
    ///
    /// # Errors
    /// The container cannot run: the message says why.
    pub fn load(spec: &Spec, source: Source, limits: Limits) -> Result<Guest, String> {
        let entry = source.entry.clone();
        let settings = Settings::of(spec)?;
        let wasi = context(spec, &settings)?;
        let memory = spec.linux().as_ref().and_then(|linux| linux.resources().as_ref()?.memory().as_ref()?.limit());
        let mut budget = Budget::new(limits.memory, limits.used, memory.and_then(|bytes| u64::try_from(bytes).ok()));
        let engine = engine(&settings, limits.processors.as_ref())?;
        let path = entry.path.display();
        let (module, refused_code) = source.module(&engine).map_err(|error| message::of(&error))?;
        let mut linker = Linker::new(&engine);
        let linked = weir_wasi::p1::add_to_linker_sync(&mut linker, |host: &mut Host| &mut host.wasi);
        let instance = linked.and_then(|()| linker.instantiate_pre(&module));
        let instance = instance.map_err(|error| format!("{path}: {}", message::of(&error)))?;
        check_function(&module, &entry.function).map_err(|message| format!("{path}: {message}"))?;
        budget.module_is_loaded(code_bytes(&module));
        budget.check(initial_memory(&module)).map_err(|refused| format!("{path}: {refused}"))?;
        Ok(Guest {
            engine,
            module,
            instance,
            host: Host { wasi, budget },
            function: entry.function.clone(),
            settings,
            refused_code,
        })
    }

    /// Runs the module on a new thread, which ends the process with the guest's status.
    ///
    /// # Errors
    /// The thread cannot start.
    pub fn start(self) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name("guest".into()).stack_size(GUEST_STACK + HOST_STACK);
        thread.spawn(move || std::process::exit(self.run())).map(drop)
    }

    /// Runs the module, and reports an error on standard error. Returns the exit status of the process.
    fn run(self) -> i32 {
        let Guest { engine, module, instance, host, function, settings, refused_code: _ } = self;
        let mut store = Store::new(&engine, host);
        store.limiter(|host| &mut host.budget);
        if let Some(timeout) = settings.timeout {
            store.set_epoch_deadline(1);
            end_after(engine.clone(), timeout);
        }
        let done = settings.fuel.map_or(Ok(()), |fuel| store.set_fuel(fuel)).and_then(|()| {
            let instance = instance.instantiate(&mut store)?;
            if function != START && is_function(&module, INITIALIZE) {
                instance.get_typed_func::<(), ()>(&mut store, INITIALIZE)?.call(&mut store, ())?;
            }
            instance.get_typed_func::<(), ()>(&mut store, &function)?.call(&mut store, ())
        });
        let Err(error) = done else { return 0 };
        if let Some(exit) = error.downcast_ref::<I32Exit>() {
            // The parent receives eight bits of it.
            return exit.0 & 0xff;
        }
        if error.is::<BrokenPipe>() {
            return PIPE_CLOSED;
        }
        let text = message::of(&error);
        match (settings.timeout, store.data().budget.refused) {
            (Some(limit), _) if error.is::<Trap>() && matches!(error.downcast_ref(), Some(Trap::Interrupt)) => {
                eprintln!("weir: {}: {text}", out_of_time(limit));
            }
            (_, Some(refused)) => eprintln!("weir: {text}\nweir: before that, memory was refused: {refused}"),
            _ => eprintln!("weir: {text}"),
        }
        ABORTED
    }
}

fn out_of_time(limit: Duration) -> String {
    format!("not done within {} s", limit.as_secs_f64())
}

/// Interrupts the engine's guests after `limit`, and ends the process if they do not stop.
fn end_after(engine: Engine, limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        engine.increment_epoch();
        std::thread::sleep(GRACE);
        // Standard error may be full without a reader, and the guest's thread may wait for it and hold its lock.
        let errors = std::io::stderr();
        let _ = rustix::fs::fcntl_setfl(&errors, OFlags::NONBLOCK);
        let _ = rustix::io::write(&errors, format!("weir: {}\n", out_of_time(limit)).as_bytes());
        std::process::exit(ABORTED);
    });
}

/// Where the module is.
#[derive(Debug)]
pub(crate) struct Source {
    pub entry: Entry,
    /// The module, if it is no file that the entry names.
    pub layer: Option<File>,
    /// Its code, if the node has it.
    pub stored: Option<Stored>,
}

impl Source {
    /// Loads the module, or the code that the shim has stored for this file. The second value says that such code could not be used.
    fn module(self, engine: &Engine) -> weir::Result<(Module, bool)> {
        let Source { entry, layer, stored } = self;
        let mut refused = false;
        let file = || layer.as_ref().map_or_else(|| File::open(&entry.path), File::try_clone);
        if let Some(Stored { entry, module }) = stored
            && file().and_then(|file| Identity::of(&file)).is_ok_and(|identity| identity == module)
        {
            // SAFETY: the shim opened it in its cache, to which nobody else can write: it is of `serialize`, by the same program.
            match unsafe { Module::deserialize_open_file(engine, entry) } {
                Ok(module) => return Ok((module, false)),
                // What the system refuses this container is no fault of the entry.
                Err(error) => refused = !error.is::<std::io::Error>(),
            }
        }
        let module = match layer {
            Some(mut layer) => {
                let mut bytes = Vec::new();
                layer.read_to_end(&mut bytes)?;
                Module::new(engine, bytes)
            }
            None => Module::from_file(engine, &entry.path),
        };
        Ok((module?, refused))
    }
}

/// Creates the engine of a container.
///
/// # Errors
/// The settings are not supported here.
pub(crate) fn engine(settings: &Settings, processors: Option<&ProcessorLimit>) -> Result<Engine, String> {
    let mut config = Config::new();
    config.tier(settings.tier).deterministic(settings.deterministic);
    config.consume_fuel(settings.fuel.is_some()).epoch_interruption(settings.timeout.is_some());
    config.max_wasm_stack(GUEST_STACK).value_stack_size(VALUE_STACK);
    if let Some(share) = processors.and_then(ProcessorLimit::read) {
        let own = std::thread::available_parallelism().map_or(1, usize::from);
        config.compiler_threads(compiler_threads(share, own));
    }
    Engine::new(&config).map_err(|error| message::of(&error))
}

/// The number of threads that compile, for a share of the machine's `own` processors: the guest has one to itself if there are several.
fn compiler_threads(share: f64, own: usize) -> usize {
    (share.ceil() as usize).min(own).saturating_sub(1).clamp(1, 4)
}

/// The module's arguments, environment, streams and directories. A program finds its working directory in the variable `PWD`, because
/// preview 1 has none.
fn context(spec: &Spec, settings: &Settings) -> Result<WasiCtx, String> {
    let process = spec.process().as_ref().ok_or("the specification has no process")?;
    let mut builder = WasiCtxBuilder::new();
    builder.inherit_stdio().broken_pipe_ends(true);
    for arg in process.args().iter().flatten() {
        builder.arg_bytes(arg.as_bytes()).map_err(|error| error.to_string())?;
    }
    let variables = process.env().iter().flatten().filter_map(|variable| variable.split_once('='));
    for (name, value) in variables.clone() {
        builder.env_bytes(name.as_bytes(), value).map_err(|error| error.to_string())?;
    }
    if !variables.clone().any(|(name, _)| name == "PWD") {
        let directory = process.cwd().to_string_lossy();
        builder.env_bytes(b"PWD".as_slice(), directory.as_bytes()).map_err(|error| error.to_string())?;
    }
    files::preopen(spec, &mut builder)?;
    if settings.deterministic {
        builder.deterministic(SEED);
    }
    Ok(builder.build())
}

fn is_function(module: &Module, name: &str) -> bool {
    matches!(module.get_export(name), Some(ExternType::Func(_)))
}

/// Checks that the module exports the function, and that it takes and returns nothing.
fn check_function(module: &Module, name: &str) -> Result<(), String> {
    match module.get_export(name) {
        Some(ExternType::Func(ty)) if ty.params().count() + ty.results().count() == 0 => Ok(()),
        Some(ExternType::Func(ty)) => Err(format!("expected that the function `{name}` takes and returns nothing, found {ty}")),
        _ => Err(format!("expected that the module exports the function `{name}`, found {}", functions(module))),
    }
}

/// Names up to twelve of the module's functions.
fn functions(module: &Module) -> String {
    let functions = module.exports().filter(|export| matches!(export.ty(), ExternType::Func(_)));
    let mut names: Vec<String> = functions.map(|export| format!("`{}`", export.name())).collect();
    let more = names.len().saturating_sub(12);
    names.truncate(12);
    match (names.is_empty(), more) {
        (true, _) => "no function".into(),
        (_, 0) => names.join(", "),
        _ => format!("{} and {more} more", names.join(", ")),
    }
}

/// The bytes of a module's functions and declarations: all but its data and custom sections.
fn code_bytes(module: &Module) -> u64 {
    let bytecode = module.bytecode();
    let data: usize = bytecode.data.iter().map(|segment| segment.range.len()).sum();
    let custom: usize = module.custom_sections().map(|(_, content)| content.len()).sum();
    bytecode.bytes.len().saturating_sub(data + custom) as u64
}

/// The bytes of the memories that the module defines, when it starts.
fn initial_memory(module: &Module) -> u64 {
    let bytecode = module.bytecode();
    let own = &bytecode.memories[bytecode.imported_memories as usize..];
    own.iter().map(|memory| memory.limits.min.saturating_mul(1 << memory.page_size_log2)).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_follow_the_quota() {
        for (share, own, threads) in
            [(0.1, 8, 1), (1.0, 8, 1), (1.5, 8, 1), (2.5, 8, 2), (4.0, 8, 3), (1e9, 8, 4), (1e9, 2, 1), (1e9, 1, 1)]
        {
            assert_eq!(compiler_threads(share, own), threads, "{share} of {own}");
        }
    }
}
