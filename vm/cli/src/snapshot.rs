//! `weir snapshot`: a module that begins where its initialiser has ended.

use crate::args::Snapshot;
use crate::failure::{Done, Failure};
use crate::limits::{Expired, MemoryBudget};
use crate::run::{GUEST_STACK, HOST_STACK, Host, VALUE_STACK, of_instantiation};
use crate::{limits, load, output, progress, wasi_context};
use std::io::{self, Write};
use weir::error::Context;
use weir::{Engine, Linker, Module, SnapshotError, Store};
use weir_wasi::{I32Exit, Nondeterminism};

/// Runs the initialiser, on a thread with a stack that is large enough, and writes the module.
pub(crate) fn snapshot(args: Snapshot) -> Done {
    let guest = std::thread::Builder::new().name("guest".into()).stack_size(GUEST_STACK + HOST_STACK);
    let thread = guest.spawn(move || run(&args)).map_err(|error| Failure::Module(error.into()))?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn run(args: &Snapshot) -> Done {
    let mut config = args.engine.config();
    config.epoch_interruption(args.timeout.is_some()).max_wasm_stack(GUEST_STACK).value_stack_size(VALUE_STACK);
    let engine = Engine::new(&config).map_err(Failure::of_engine)?;
    let expired = args.timeout.map(|limit| limits::interrupt_after(engine.clone(), limit, || ()));
    let path = args.module.display();
    // All of it, also the debugging information that a run reads only for a backtrace.
    let bytes = load::bytes(&args.module)?;
    if Engine::detect_precompiled(&bytes).is_some() {
        return Err(Failure::Usage(format!(
            "{path} is a precompiled module; a snapshot is made of the module that it was compiled from"
        )));
    }
    let module = Module::new(&engine, bytes).with_context(|| format!("loading {path}")).map_err(Failure::Module)?;

    let mut linker = Linker::new(&engine);
    weir_wasi::p1::add_to_linker_sync(&mut linker, |host: &mut Host| &mut host.wasi).map_err(Failure::Module)?;
    let memory = MemoryBudget::new(args.max_memory.unwrap_or(usize::MAX));
    let host = Host { wasi: wasi_context::of_initialiser(args)?, memory };
    let mut store = Store::try_new(&engine, host).map_err(Failure::Module)?;
    store.limiter(|host| &mut host.memory);
    if let Some(fuel) = args.engine.fuel {
        store.set_fuel(fuel).map_err(Failure::Module)?;
    }
    if let Some(expired) = &expired {
        expired.limit(&mut store)?;
    }

    let what = || Some(format!("initialising {path}"));
    let bytes = progress::during(what, || take(args, &mut store, &linker, &module))?;
    expired.iter().for_each(Expired::end);
    output::write(&args.output, &bytes).map_err(|error| Failure::Profile(format!("{}: {error}", args.output.display())))?;
    writeln!(io::stderr(), "weir: {}: {} bytes", args.output.display(), bytes.len())?;
    Ok(0)
}

/// Initialises the module, and returns the bytes of the new one.
fn take(args: &Snapshot, store: &mut Store<Host>, linker: &Linker<Host>, module: &Module) -> Result<Vec<u8>, Failure> {
    let mut snapshot = weir::Snapshot::new();
    snapshot.keep_init(args.keep_init);
    if let Some(init) = &args.init {
        snapshot.init(init);
    }
    for (new, old) in &args.renames {
        snapshot.rename(new, old);
    }
    let instance = snapshot.instantiate(&mut *store, linker, module).map_err(|error| failure(args, store, error))?;
    let open: Vec<String> = store.data().wasi.open_descriptors().map(|(fd, name)| format!("{fd} ({name})")).collect();
    if !open.is_empty() {
        let message = format!("the initialiser has left open, which a snapshot cannot hold: descriptor {}", open.join(", "));
        return Err(Failure::Module(weir::Error::msg(message)));
    }
    snapshot.take(&*store, instance).map_err(|error| failure(args, store, error))
}

fn failure(args: &Snapshot, store: &Store<Host>, error: weir::Error) -> Failure {
    if let Some(I32Exit(status)) = error.downcast_ref() {
        return Failure::Exit(*status);
    }
    if error.is::<Nondeterminism>() {
        let reason = "all copies of the snapshot would have the same; use --allow-nondeterminism if they may";
        return Failure::Guest(error.context(reason));
    }
    match (error.downcast_ref(), args.timeout) {
        (Some(SnapshotError::Export(message)), _) => Failure::Usage(message.clone()),
        (Some(SnapshotError::Call { .. }), _) => Failure::Guest(error),
        (Some(_), _) => Failure::Module(error),
        (None, limit) => match (of_instantiation(error, store, args.module.as_os_str()), limit) {
            (Failure::Guest(error), Some(limit)) => limits::out_of_time(error, limit),
            (failure, _) => failure,
        },
    }
}
