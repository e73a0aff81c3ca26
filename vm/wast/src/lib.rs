//! Runs scripts in the specification's `.wast` format: modules, invocations and assertions about both.
//!
//! Each script has a store of its own, with the specification's host module `spectest`. A directive that fails is reported,
//! and the script continues.

mod messages;
mod values;

pub use messages::wordings;

use messages::{Kind, Verdict};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use wast::core::{AbstractHeapType, HeapType, WastArgCore};
use wast::lexer::Lexer;
use wast::parser::{self, ParseBuffer};
use wast::token::Id;
use wast::{QuoteWat, Wast, WastArg, WastDirective, WastExecute, WastInvoke, WastRet, Wat};
use weir::{
    Engine, Error, ExternRef, Global, GlobalType, Instance, InvalidModule, Limits, LinkError, Linker, Memory, MemoryType, Module,
    Mutability, Ref, RefType, Store, Table, TableType, ThrownException, Trap, UnknownImportError, Val, WasmBacktrace,
};
use weir_bytecode::validate::is_well_formed;

/// The outcome of a script.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The number of directives that passed.
    pub passed: u32,
    /// The number of directives that were not tried, because they need an instance whose module is among the failures.
    pub skipped: u32,
    /// The directives that failed, in the order of the script.
    pub failures: Vec<DirectiveFailure>,
    /// Indices into [`wordings`] of the wordings that were needed to accept a message.
    pub wordings: BTreeSet<usize>,
    /// Number of functions of the script's modules that were called.
    pub called: u64,
    /// The number of called functions that have no compiled code.
    pub interpreted: u64,
}

/// A directive that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectiveFailure {
    /// Line in the script, from 1.
    pub line: usize,
    /// A description of the failure, with the expected and the actual result.
    pub message: String,
}

impl fmt::Display for DirectiveFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

/// The tokens of a script, which `wast::parser` parses.
///
/// # Errors
/// The text has a token that the text format lacks.
pub fn buffer(text: &str) -> Result<ParseBuffer<'_>, wast::Error> {
    let mut lexer = Lexer::new(text);
    // The specification's tests of names contain such characters.
    lexer.allow_confusing_unicode(true);
    ParseBuffer::new_with_lexer(lexer)
}

/// Runs a script, with `fuel` units if the engine consumes fuel.
///
/// # Errors
/// The text is not a script.
pub fn run(engine: &Engine, fuel: Option<u64>, text: &str) -> Result<Report, wast::Error> {
    run_changed(engine, fuel, text, |module| module)
}

/// The same with each module that the script loads replaced by what `change` makes of it, in the binary format. Modules that the
/// script expects to be refused stay as they are.
///
/// # Errors
/// The text is not a script.
pub fn run_changed(
    engine: &Engine,
    fuel: Option<u64>,
    text: &str,
    change: fn(Vec<u8>) -> Vec<u8>,
) -> Result<Report, wast::Error> {
    let in_text = |mut error: wast::Error| {
        error.set_text(text);
        error
    };
    let buffer = buffer(text).map_err(in_text)?;
    let script = parser::parse::<Wast<'_>>(&buffer).map_err(in_text)?;
    let mut runner = match Runner::new(engine, fuel, change) {
        Ok(runner) => runner,
        Err(error) => {
            let message = format!("cannot begin: {error}");
            return Ok(Report { failures: vec![DirectiveFailure { line: 1, message }], ..Report::default() });
        }
    };
    let mut report = Report::default();
    for directive in script.directives {
        let span = directive.span();
        match runner.execute(directive) {
            Ok(()) => report.passed += 1,
            Err(Unmet::Skipped) => report.skipped += 1,
            Err(Unmet::Failed(message)) => {
                report.failures.push(DirectiveFailure { line: span.linecol_in(text).0 + 1, message });
            }
        }
    }
    report.wordings = runner.wordings;
    for module in &runner.modules {
        let functions = module.stats().functions;
        report.called += functions.called;
        report.interpreted += functions.interpreted;
    }
    Ok(report)
}

/// Why a directive did not pass.
enum Unmet {
    Failed(String),
    Skipped,
}

impl<T: Into<String>> From<T> for Unmet {
    fn from(message: T) -> Unmet {
        Unmet::Failed(message.into())
    }
}

type Outcome<T = ()> = Result<T, Unmet>;

/// The instances and modules of a script, `None` where one failed.
struct Runner {
    engine: Engine,
    store: Store<()>,
    linker: Linker<()>,
    /// The latest instance, to which directives without a name refer.
    current: Option<Instance>,
    instances: HashMap<String, Option<Instance>>,
    latest_definition: Option<Module>,
    definitions: HashMap<String, Option<Module>>,
    /// Names under which an instance that failed should have been registered.
    missing: HashSet<String>,
    /// Every module that was loaded.
    modules: Vec<Module>,
    /// See [`Report::wordings`].
    wordings: BTreeSet<usize>,
    /// Changes modules before they are loaded.
    change: fn(Vec<u8>) -> Vec<u8>,
}

impl Runner {
    fn new(engine: &Engine, fuel: Option<u64>, change: fn(Vec<u8>) -> Vec<u8>) -> weir::Result<Runner> {
        let mut store = Store::try_new(engine, ())?;
        store.set_epoch_deadline(u64::MAX);
        if let Some(fuel) = fuel {
            store.set_fuel(fuel)?;
        }
        let mut linker = Linker::new(engine);
        linker.allow_shadowing(true);
        define_spectest(&mut linker, &mut store)?;
        Ok(Runner {
            engine: engine.clone(),
            store,
            linker,
            current: None,
            instances: HashMap::new(),
            latest_definition: None,
            definitions: HashMap::new(),
            missing: HashSet::new(),
            modules: Vec::new(),
            wordings: BTreeSet::new(),
            change,
        })
    }

    fn execute(&mut self, directive: WastDirective<'_>) -> Outcome {
        match directive {
            WastDirective::Module(mut module) => {
                let name = module.name();
                let result = self.compile(&mut module).and_then(|module| self.instantiate(&module)?.map_err(failed));
                self.enter(name, result)
            }
            WastDirective::ModuleDefinition(mut module) => {
                let name = module.name();
                let result = self.compile(&mut module);
                self.latest_definition = result.as_ref().ok().cloned();
                if let Some(name) = name {
                    self.definitions.insert(name.name().into(), self.latest_definition.clone());
                }
                result.map(|_| ())
            }
            WastDirective::ModuleInstance { instance, module, .. } => {
                let module = match module {
                    Some(name) => self.definitions.get(name.name()).ok_or("no such module definition")?.clone(),
                    None => self.latest_definition.clone(),
                };
                let result = match module {
                    Some(module) => self.instantiate(&module)?.map_err(failed),
                    None => Err(Unmet::Skipped),
                };
                self.enter(instance, result)
            }
            WastDirective::Register { name, module, .. } => {
                let instance = self.instance(module);
                match &instance {
                    Ok(_) => self.missing.remove(name),
                    Err(_) => self.missing.insert(name.into()),
                };
                self.linker.instance(&mut self.store, name, instance?).map_err(failed).map(|_| ())
            }
            WastDirective::Invoke(invoke) => self.invoke(invoke)?.map_err(failed).map(|_| ()),
            WastDirective::AssertReturn { exec, results, .. } => {
                let found = self.perform(exec)?.map_err(failed)?;
                self.compare(&found, &results)
            }
            WastDirective::AssertTrap { exec, message, .. } => {
                let result = self.perform(exec)?;
                self.trapped(result, message)
            }
            WastDirective::AssertExhaustion { call, message, .. } => {
                let result = self.invoke(call)?;
                self.trapped(result, message)
            }
            WastDirective::AssertUnlinkable { mut module, message, .. } => {
                let module = self.encoded(&mut module)?;
                match self.instantiate(&module)? {
                    Ok(_) => Err(format!("expected \"{message}\", but it links").into()),
                    Err(error)
                        if !message.is_empty()
                            && (error.is::<LinkError>() || error.is::<UnknownImportError>())
                            && chain(&error).starts_with(message) =>
                    {
                        Ok(())
                    }
                    Err(error) => Err(format!("expected \"{message}\", found \"{}\"", chain(&error)).into()),
                }
            }
            WastDirective::AssertInvalid { module, message, .. } | WastDirective::AssertInvalidCustom { module, message, .. } => {
                self.refused(module, Kind::Invalid, message)
            }
            WastDirective::AssertMalformed { module, message, .. }
            | WastDirective::AssertMalformedCustom { module, message, .. } => self.refused(module, Kind::Malformed, message),
            WastDirective::AssertException { exec, .. } => match self.perform(exec)? {
                Ok(found) => Err(format!("expected an exception, found the results {found:?}").into()),
                Err(error) if error.is::<ThrownException>() && self.store.take_pending_exception().is_some() => Ok(()),
                Err(error) => Err(format!("expected an exception, found \"{}\"", chain(&error)).into()),
            },
            WastDirective::AssertSuspension { .. } => Err("suspensions are not supported".into()),
            WastDirective::Thread(_) | WastDirective::Wait { .. } => Err("threads are not supported".into()),
        }
    }

    /// Makes the result of an instantiation the current instance.
    fn enter(&mut self, name: Option<Id<'_>>, result: Outcome<Instance>) -> Outcome {
        self.current = result.as_ref().ok().copied();
        if let Some(name) = name {
            self.instances.insert(name.name().into(), self.current);
        }
        result.map(|_| ())
    }

    fn compile(&mut self, module: &mut QuoteWat<'_>) -> Outcome<Module> {
        let bytes = module.encode().map_err(|error| error.to_string())?;
        self.load(bytes)
    }

    fn encoded(&mut self, module: &mut Wat<'_>) -> Outcome<Module> {
        let bytes = module.encode().map_err(|error| error.to_string())?;
        self.load(bytes)
    }

    fn load(&mut self, bytes: Vec<u8>) -> Outcome<Module> {
        let module = Module::from_binary(&self.engine, &(self.change)(bytes)).map_err(failed)?;
        self.modules.push(module.clone());
        Ok(module)
    }

    fn instantiate(&mut self, module: &Module) -> Outcome<weir::Result<Instance>> {
        let result = self.linker.instantiate(&mut self.store, module);
        if let Err(error) = &result
            && let Some(unknown) = error.downcast_ref::<UnknownImportError>()
            && self.missing.contains(unknown.module())
        {
            return Err(Unmet::Skipped);
        }
        Ok(result)
    }

    /// Checks that a module is rejected with an error of the kind and with the message that the script expects.
    fn refused(&mut self, mut module: QuoteWat<'_>, kind: Kind, message: &str) -> Outcome {
        let (found, text) = match module.encode() {
            Err(error) => (Kind::Text, error.message()),
            Ok(bytes) => match Module::validate(&self.engine, &bytes) {
                Ok(()) => return Err(format!("expected \"{message}\", but the module is accepted").into()),
                Err(error) => match error.downcast_ref::<InvalidModule>() {
                    Some(invalid) if is_well_formed(&bytes) => (Kind::Invalid, invalid.message.clone()),
                    Some(invalid) => (Kind::Malformed, invalid.message.clone()),
                    // The error is a limit of this implementation.
                    None => return Err(failed(error)),
                },
            },
        };
        self.expect((kind, message), (found, &text))
    }

    /// Checks the result of a call or an instantiation that should trap.
    fn trapped(&mut self, result: weir::Result<Vec<Val>>, message: &str) -> Outcome {
        match result {
            Ok(found) => Err(format!("expected the trap \"{message}\", found the results {found:?}").into()),
            Err(error) => match error.downcast_ref::<Trap>() {
                Some(trap) => self.expect((Kind::Trap, message), (Kind::Trap, trap.message())),
                None => Err(format!("expected the trap \"{message}\", found \"{}\"", chain(&error)).into()),
            },
        }
    }

    /// Checks the kind and the message of a failure, and records the [wording](messages) by which it matches.
    fn expect(&mut self, expected: (Kind, &str), found: (Kind, &str)) -> Outcome {
        match messages::compare(expected, found) {
            Verdict::Same => Ok(()),
            Verdict::Worded(row) => {
                self.wordings.insert(row);
                Ok(())
            }
            Verdict::Different => {
                Err(format!("expected {} \"{}\", found {} \"{}\"", expected.0, expected.1, found.0, found.1).into())
            }
        }
    }

    fn instance(&self, name: Option<Id<'_>>) -> Outcome<Instance> {
        let instance = match name {
            Some(name) => *self.instances.get(name.name()).ok_or("no such instance")?,
            None => self.current,
        };
        instance.ok_or(Unmet::Skipped)
    }

    fn perform(&mut self, exec: WastExecute<'_>) -> Outcome<weir::Result<Vec<Val>>> {
        match exec {
            WastExecute::Invoke(invoke) => self.invoke(invoke),
            WastExecute::Wat(mut module) => {
                let module = self.encoded(&mut module)?;
                Ok(self.instantiate(&module)?.map(|_| Vec::new()))
            }
            WastExecute::Get { module, global, .. } => {
                let instance = self.instance(module)?;
                let global = instance.get_global(&mut self.store, global).ok_or("no such global")?;
                Ok(Ok(vec![global.get(&mut self.store)]))
            }
        }
    }

    fn invoke(&mut self, invoke: WastInvoke<'_>) -> Outcome<weir::Result<Vec<Val>>> {
        let instance = self.instance(invoke.module)?;
        let func = instance.get_func(&mut self.store, invoke.name).ok_or("no such function")?;
        let args = invoke.args.iter().map(|arg| self.argument(arg)).collect::<Outcome<Vec<Val>>>()?;
        let mut results = vec![Val::I32(0); func.ty(&self.store).results().len()];
        Ok(func.call(&mut self.store, &args, &mut results).map(|()| results))
    }

    fn argument(&mut self, arg: &WastArg<'_>) -> Outcome<Val> {
        let WastArg::Core(arg) = arg else { return Err("not an argument of a core module".into()) };
        Ok(match arg {
            WastArgCore::I32(value) => Val::I32(*value),
            WastArgCore::I64(value) => Val::I64(*value),
            WastArgCore::F32(value) => Val::F32(value.bits),
            WastArgCore::F64(value) => Val::F64(value.bits),
            WastArgCore::V128(value) => Val::from(u128::from_le_bytes(value.to_le_bytes())),
            WastArgCore::RefNull(HeapType::Abstract { ty: AbstractHeapType::Extern, .. }) => Val::ExternRef(None),
            WastArgCore::RefNull(HeapType::Abstract { ty: AbstractHeapType::Func, .. }) => Val::FuncRef(None),
            WastArgCore::RefNull(HeapType::Abstract { ty: AbstractHeapType::Exn, .. }) => Val::ExnRef(None),
            WastArgCore::RefExtern(value) => Val::from(ExternRef::new(&mut self.store, *value).map_err(failed)?),
            other => return Err(format!("arguments like {other:?} are not supported").into()),
        })
    }

    fn compare(&self, found: &[Val], expected: &[WastRet<'_>]) -> Outcome {
        let matches = found.len() == expected.len()
            && found.iter().zip(expected).all(|(found, expected)| match expected {
                WastRet::Core(expected) => values::matches(&self.store, *found, expected),
                _ => false,
            });
        if matches { Ok(()) } else { Err(format!("expected {expected:?}, found {found:?}").into()) }
    }
}

/// The texts of an error and its causes on one line, without the backtrace and with the details that they lack.
fn chain(error: &Error) -> String {
    let links = error.chain().filter(|link| !link.is::<WasmBacktrace>()).map(ToString::to_string);
    links.chain(error.details().map(str::to_owned)).collect::<Vec<_>>().join(": ")
}

fn failed(error: Error) -> Unmet {
    Unmet::Failed(chain(&error))
}

/// Defines the host module from which the specification's scripts import.
fn define_spectest(linker: &mut Linker<()>, store: &mut Store<()>) -> weir::Result<()> {
    linker.func_wrap("spectest", "print", || ())?;
    linker.func_wrap("spectest", "print_i32", |_: i32| ())?;
    linker.func_wrap("spectest", "print_i64", |_: i64| ())?;
    linker.func_wrap("spectest", "print_f32", |_: f32| ())?;
    linker.func_wrap("spectest", "print_f64", |_: f64| ())?;
    linker.func_wrap("spectest", "print_i32_f32", |_: i32, _: f32| ())?;
    linker.func_wrap("spectest", "print_f64_f64", |_: f64, _: f64| ())?;
    for (name, value) in [
        ("global_i32", Val::I32(666)),
        ("global_i64", Val::I64(666)),
        ("global_f32", Val::from(666.6f32)),
        ("global_f64", Val::from(666.6f64)),
    ] {
        let ty = GlobalType::new(value.ty(&*store)?, Mutability::Const);
        let global = Global::new(&mut *store, ty, value)?;
        linker.define(&mut *store, "spectest", name, global)?;
    }
    for (name, table64) in [("table", false), ("table64", true)] {
        let limits = Limits { min: 10, max: Some(20) };
        let ty = TableType { limits, table64, element: RefType::FUNCREF };
        let table = Table::new(&mut *store, ty, Ref::Func(None))?;
        linker.define(&mut *store, "spectest", name, table)?;
    }
    let limits = Limits { min: 1, max: Some(2) };
    let memory = Memory::new(&mut *store, MemoryType { limits, memory64: false, shared: false, page_size_log2: 16 })?;
    linker.define(&mut *store, "spectest", "memory", memory)?;
    Ok(())
}
