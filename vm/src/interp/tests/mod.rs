//! The interpreter alone, through the public API. Tests that enumerate instructions also run the evaluator, on SSA as
//! built and as optimised.

mod calls;
mod control;
mod fusion;
mod memory;
mod metering;
mod opcodes;
mod vectors;

use crate::api::typed::{WasmParams, WasmResults};
use crate::{Config, Engine, Error, Instance, Module, Result, Store, Tier, Trap};

fn config() -> Config {
    let mut config = Config::new();
    config.tier(Tier::Interpreter);
    config
}

/// The engines that must execute every instruction: the interpreter, its portable loop alone, the evaluator on SSA as built, and as
/// optimised.
fn engines_of_every_instruction() -> Vec<Config> {
    let mut ssa = Config::new();
    ssa.tier(Tier::Ssa);
    let as_built = ssa.clone().rewrite_fuel(Some(0)).clone();
    let evaluated = if cfg!(feature = "jit") { vec![as_built, ssa] } else { vec![] };
    [config(), config().portable_interpreter(true).clone()].into_iter().chain(evaluated).collect()
}

/// Checks that all called functions of the module ran in the requested engine.
fn assert_none_refused(config: &Config, store: &Store<()>, instance: Instance) {
    let functions = instance.module(store).stats().functions;
    assert_eq!(functions.fallbacks, []);
    assert_eq!(functions.evaluated > 0, config.tier == Tier::Ssa, "{functions:?}");
}

/// An instance without imports.
fn instantiate(config: &Config, wat: &str) -> (Store<()>, Instance) {
    let engine = Engine::new(config).unwrap();
    let module = Module::new(&engine, wat).unwrap();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX);
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    (store, instance)
}

fn call<P: WasmParams, R: WasmResults>(store: &mut Store<()>, instance: Instance, name: &str, params: P) -> Result<R> {
    instance.get_typed_func::<P, R>(&mut *store, name)?.call(&mut *store, params)
}

/// The result of function `f` of the module.
fn run<P: WasmParams, R: WasmResults>(wat: &str, params: P) -> Result<R> {
    let (mut store, instance) = instantiate(&config(), wat);
    call(&mut store, instance, "f", params)
}

fn trap(error: &Error) -> Trap {
    *error.downcast_ref::<Trap>().unwrap_or_else(|| panic!("{error:?}"))
}

/// The trap that calling `f` ends with.
fn run_trap<P: WasmParams>(wat: &str, params: P) -> Trap {
    trap(&run::<P, ()>(wat, params).unwrap_err())
}

/// `(function, name of the instruction)` of each frame of the backtrace, innermost first.
fn frames(error: &Error) -> Vec<(u32, &'static str)> {
    let frames = error.wasm_backtrace().expect("a trap has a backtrace").frames();
    frames
        .iter()
        .map(|frame| {
            let module = frame.module().bytecode();
            let pc = frame.module_offset().unwrap() as u32;
            let body = module.body(frame.func_index()).unwrap();
            let instr = weir_bytecode::Instrs::new(module, body.entry, body.end).find(|instr| instr.pc == pc);
            (frame.func_index(), instr.expect("a frame is at an instruction").op.mnemonic())
        })
        .collect()
}
