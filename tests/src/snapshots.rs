//! Snapshots of random programs, between two calls: what follows is the same in the instance and in one that is made from its snapshot, on
//! another engine.

use crate::differential::{AMPLE_FUEL, wasmi_config};
use crate::engines::engine;
use crate::failure::reasons;
use crate::generate::{Program, generate, switching, throwing};
use crate::host::{Uses, instantiate, to_val};
use crate::smith;
use std::fmt;
use std::ops::{AddAssign, Range};
use weir::{Config, Extern, ExternType, Instance, Linker, Module, Snapshot, SnapshotError, Store, StoreLimits, Trap, Val};

/// A module, and the calls of its exports that are made of one instance.
#[derive(Clone, Debug)]
pub struct Calls {
    /// The module.
    pub wasm: Vec<u8>,
    /// Names and arguments.
    pub calls: Vec<(String, Vec<Val>)>,
    /// An exported function to call as initialiser.
    init: Option<&'static str>,
    /// Whether wasmi must accept a snapshot.
    for_wasmi: bool,
}

impl Calls {
    /// A program of the kind that this seed chooses; `None` if wasm-smith makes none.
    pub fn random(seed: u64) -> Option<Calls> {
        let of_seed = seed / 4;
        match seed % 4 {
            0 => Some(generate(of_seed).into()),
            1 => Some(switching(of_seed).into()),
            2 => Some(throwing(of_seed).into()),
            _ => {
                let wasm = smith::module(of_seed)?;
                let calls = smith::calls(&wasm, of_seed).ok()?;
                Some(Calls { wasm, calls, init: None, for_wasmi: true })
            }
        }
    }

    /// The first call that is made after the snapshot.
    fn half(&self) -> usize {
        self.calls.len() / 2
    }
}

impl From<Program> for Calls {
    fn from(program: Program) -> Calls {
        let mut calls = Vec::new();
        for call in &program.calls {
            calls.push(("reset".to_owned(), Vec::new()));
            calls.push((format!("f{}", call.func), call.args.iter().map(|&arg| to_val(arg)).collect()));
        }
        Calls { wasm: program.wasm, calls, init: Some("reset"), for_wasmi: !program.beyond_wasmi }
    }
}

/// What was compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Snapshots that were taken.
    pub taken: u64,
    /// Those that differ from their module.
    pub changed: u64,
    /// Instances of which no snapshot can be taken, because they hold references of the host.
    pub refused: u64,
    /// Modules that import from another instance, or memories, tables or globals, so that some state is not in a snapshot, and those that cannot
    /// be instantiated.
    pub left_out: u64,
    /// Calls after the snapshot, in both instances.
    pub calls: u64,
    /// Those of them that returned.
    pub returned: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        let Tally { taken, changed, refused, left_out, calls, returned } = other;
        self.taken += taken;
        self.changed += changed;
        self.refused += refused;
        self.left_out += left_out;
        self.calls += calls;
        self.returned += returned;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { taken, changed, refused, left_out, calls, returned } = self;
        writeln!(f, "{taken} snapshots, {changed} of which differ from their module; {refused} refused, {left_out} left out")?;
        write!(f, "{calls} calls compared, {returned} of which returned")
    }
}

/// Makes the first half of the calls in an instance on an engine with the settings `first`, takes a snapshot, and compares the other half
/// with that in an instance of the snapshot on an engine with the settings `second`. With `initialises`, an initialiser is called first.
///
/// # Errors
/// A difference, or an engine's refusal of a module.
pub fn compare(program: &Calls, [first, second]: [&Config; 2], initialises: bool) -> Result<Tally, String> {
    let described = |error: weir::Error| format!("{error:?}");
    let init = program.init.filter(|_| initialises);
    let mut tally = Tally::default();
    let module = load(first, &program.wasm).map_err(described)?;
    let is_state = |ty: ExternType| matches!(ty, ExternType::Memory(_) | ExternType::Table(_) | ExternType::Global(_));
    let has_state_elsewhere = module.imports().any(|import| import.module() == "o" || is_state(import.ty()));
    let Some(mut original) = Guest::new(&module, init).filter(|_| !has_state_elsewhere) else {
        return Ok(Tally { left_out: 1, ..tally });
    };
    let half = program.half();
    original.make(&program.calls[..half]);
    let mut snapshot = Snapshot::new();
    if let Some(init) = init {
        snapshot.init(init).keep_init(true);
    }
    let bytes = match snapshot.take(&original.store, original.instance) {
        Ok(bytes) => bytes,
        Err(error) => {
            return match error.downcast_ref() {
                Some(SnapshotError::Reference { .. } | SnapshotError::Exception) => Ok(Tally { refused: 1, ..tally }),
                _ => Err(format!("no snapshot: {error:?}")),
            };
        }
    };
    (tally.taken, tally.changed) = (1, u64::from(bytes != program.wasm));
    if program.for_wasmi {
        let engine = wasmi::Engine::new(&wasmi_config());
        wasmi::Module::new(&engine, &bytes).map_err(|error| format!("wasmi refuses the snapshot: {error}"))?;
    }
    let module = load(second, &bytes).map_err(|error| format!("the snapshot: {error:?}"))?;
    let mut copy = Guest::new(&module, None).ok_or("the snapshot cannot be instantiated")?;
    same(original.state(), copy.state(), "before the other calls")?;
    let Range { start, end } = half..program.calls.len();
    for call in start..end {
        let one = &program.calls[call..=call];
        let (ended, again) = (original.make(one).pop(), copy.make(one).pop());
        if ended != again {
            return Err(format!("call {call}, {:?}: {ended:?} and, in the snapshot, {again:?}", one[0]));
        }
        tally.calls += 1;
        tally.returned += u64::from(ended.is_some_and(|ended| ended.is_ok()));
    }
    same(original.state(), copy.state(), "at the end")?;
    Ok(tally)
}

fn same(original: State, copy: State, when: &str) -> Result<(), String> {
    let differs = original.values.iter().zip(&copy.values).find(|(a, b)| a != b);
    match differs {
        Some((a, b)) => Err(format!("{when}: {a:?} and, in the snapshot, {b:?}")),
        None if original == copy => Ok(()),
        None => Err(format!("{when}: the memories, or the number of exports")),
    }
}

fn load(config: &Config, wasm: &[u8]) -> weir::Result<Module> {
    let mut config = config.clone();
    // The second engine may compile what the first interprets.
    config.wasm_legacy_exceptions(true).cranelift_nan_canonicalization(true);
    config.max_wasm_stack(smith::STACK).value_stack_size(smith::STACK);
    Module::new(&engine(&config)?, wasm)
}

/// An instance with its store.
struct Guest {
    store: Store<StoreLimits>,
    instance: Instance,
}

/// What can be seen of an instance between two calls.
#[derive(PartialEq)]
struct State {
    /// Names of exports; values of globals, and sizes of tables with which of their elements are null.
    values: Vec<(String, String)>,
    memories: Vec<Vec<u8>>,
}

/// The end of a call: its results, or why it failed.
type End = Result<String, String>;

impl Guest {
    /// Instantiates a module and calls the initialiser; `None` if that fails.
    fn new(module: &Module, init: Option<&str>) -> Option<Guest> {
        let mut store = Store::new(module.engine(), smith::limits());
        store.limiter(|limits| limits);
        store.set_epoch_deadline(u64::MAX);
        let _ = store.set_fuel(AMPLE_FUEL);
        let uses = Uses::default();
        let instance = match init {
            Some(init) if module.imports().len() == 0 => {
                Snapshot::new().init(init).instantiate(&mut store, &Linker::new(module.engine()), module)
            }
            _ => instantiate(&mut store, module, &uses).map(|instances| instances.first),
        };
        Some(Guest { instance: instance.ok()?, store })
    }

    fn make(&mut self, calls: &[(String, Vec<Val>)]) -> Vec<End> {
        calls.iter().map(|(name, args)| self.call(name, args)).collect()
    }

    fn call(&mut self, name: &str, args: &[Val]) -> End {
        let Guest { store, instance } = self;
        let func = instance.get_func(&mut *store, name).ok_or("it is not exported")?;
        let _ = store.set_fuel(AMPLE_FUEL);
        let mut results = vec![Val::I32(0); func.ty(&*store).results().len()];
        match func.call(&mut *store, args, &mut results) {
            Ok(()) => Ok(results.iter().map(show).collect()),
            Err(error) => Err(match error.downcast_ref::<Trap>() {
                Some(trap) => format!("{trap:?}"),
                None => reasons(&error),
            }),
        }
    }

    fn state(&mut self) -> State {
        let Guest { store, instance } = self;
        let module = instance.module(&*store).clone();
        let mut state = State { values: Vec::new(), memories: Vec::new() };
        for export in module.exports() {
            let name = export.name();
            let value = match instance.get_export(&mut *store, name) {
                Some(Extern::Global(global)) => show(&global.get(&mut *store)),
                Some(Extern::Table(table)) => {
                    let elements = 0..table.size(&*store);
                    let is_null = |i| table.get(&mut *store, i).is_none_or(|element| element.is_null());
                    format!("null: {:?}", elements.map(is_null).collect::<Vec<_>>())
                }
                Some(Extern::Memory(memory)) => {
                    state.memories.push(memory.data(&*store).to_vec());
                    continue;
                }
                _ => continue,
            };
            state.values.push((name.to_owned(), value));
        }
        state
    }
}

/// The text of a value; of a reference, whether it is null.
fn show(value: &Val) -> String {
    match value {
        Val::FuncRef(func) => format!("null: {} ", func.is_none()),
        Val::ExternRef(value) => format!("null: {} ", value.is_none()),
        Val::ExnRef(exception) => format!("null: {} ", exception.is_none()),
        number => format!("{number:x?} "),
    }
}
