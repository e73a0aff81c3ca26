//! Makes native code for functions and loops and remembers, per module, what there is of it.

use super::evaluated;
use super::evict;
use super::listeners::Listeners;
use super::policy::{self, Decision, NEVER, Policy};
use super::queue::{Job, Queue};
use super::reclaim::Reclaimer;
use super::record::Record;
use crate::code::{CodeError, CodeSpace, ModuleCode, RetiredCode, Stubs};
use crate::exec::helpers::{HELPERS, HOOKS};
use crate::records::module::ModuleRecord;
use crate::records::quiescence::Domain;
use crate::records::stack::with_room;
use crate::{Config, Result, Tier};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use weir_bytecode::Module as Bytecode;
use weir_contract::Entry;
use weir_jit::compile::{Context, Options};
use weir_jit::{Backend, Compiled, Refusal, Request};

/// What the tiers keep per engine.
#[derive(Debug)]
pub(crate) struct EngineState {
    pub(super) policy: Policy,
    options: Options,
    max_code_size: usize,
    /// Made with the first module; an error is why there is no native code.
    space: OnceLock<Result<Arc<CodeSpace>, String>>,
    queue: Queue<Compilation>,
    /// What all modules did.
    pub(super) record: Mutex<Record>,
    pub(super) osr_entries: AtomicU64,
    native: bool,
    pub(super) listeners: Listeners,
    /// All code, in the order of the second-chance sweep.
    pub(super) bodies: Mutex<VecDeque<Body>>,
    pub(super) reclaimer: Arc<Reclaimer<RetiredCode>>,
}

impl EngineState {
    /// The state of an engine with these settings, whose stores are in `quiescence`.
    ///
    /// # Errors
    /// What the settings tell of code cannot be told.
    pub fn new(config: &Config, quiescence: &Arc<Domain>) -> Result<EngineState> {
        Ok(EngineState {
            policy: Policy::new(config),
            options: config.compiler(),
            max_code_size: config.max_code_size,
            space: OnceLock::new(),
            queue: Queue::new(config.compiler_threads),
            record: Mutex::default(),
            osr_entries: AtomicU64::new(0),
            native: !matches!(config.tier, Tier::Interpreter | Tier::Ssa),
            listeners: Listeners::new(config)?,
            bodies: Mutex::default(),
            reclaimer: Arc::new(Reclaimer::new(quiescence.clone())),
        })
    }

    /// The engine's code memory, or `None` if it has no native code.
    #[inline]
    pub(super) fn space(&self) -> Option<&Arc<CodeSpace>> {
        if !self.native {
            return None;
        }
        let make = || {
            let space = CodeSpace::new(HOOKS, &HELPERS, self.options.signals, self.max_code_size);
            space.map_err(|error: CodeError| error.to_string())
        };
        self.space.get_or_init(make).as_ref().ok()
    }
}

/// What the tiers keep per module.
#[derive(Debug, Default)]
pub(crate) struct ModuleState {
    /// Made with the first instance; `None` if the engine has no native code or no room for it.
    code: OnceLock<Option<NativeModule>>,
    pub(super) entries: Mutex<Entries>,
    pub(super) record: Mutex<Record>,
    pub(super) osr_entries: AtomicU64,
    pub(super) evaluated: evaluated::Functions,
}

/// A module's cells and code, and the stubs of its types.
#[derive(Debug)]
pub(super) struct NativeModule {
    pub code: ModuleCode,
    /// By type index.
    pub stubs: Box<[Stubs]>,
    reclaimer: Arc<Reclaimer<RetiredCode>>,
}

impl Drop for NativeModule {
    fn drop(&mut self) {
        for code in self.reclaimer.remove(|code| code.is_of(&self.code)) {
            // SAFETY: no instance of the module is left, so nothing runs in its code or refers to it.
            unsafe { code.free(self.code.space()) };
        }
    }
}

/// The entries for which code was asked. A function's cell and [`FuncCode::native`](super::counters::FuncCode::native) are pointed
/// at code that is ready, and away from it, under the lock alone; before that, installing points the cell at it once.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub states: HashMap<(u32, Entry), State>,
    /// How many OSR bodies each function has or waits for.
    pub osr_bodies: HashMap<u32, u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub entry: EntryState,
    /// How often it had to give its code up, or found no room for it.
    pub setbacks: u32,
    /// How often in a row there was no room.
    pub failures: u32,
}

impl State {
    /// Its code is asked for.
    fn used(&mut self) {
        if let EntryState::Ready(_, used) = &mut self.entry {
            *used = true;
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum EntryState {
    #[default]
    Queued,
    /// Whether it was asked for since the last look at whether it is in use.
    Ready(Code, bool),
    /// No back end can do it, and that won't change.
    Refused,
    /// To be asked about so many times before it is compiled again.
    Resting(u32),
}

/// The address of published code, which is immutable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Code(pub *const u8);

// SAFETY: only an address; what it points to never changes while it is ready, and after that until it is reclaimed.
unsafe impl Send for Code {}

/// Code that there is, unless it has been given up since.
#[derive(Debug)]
pub(super) struct Body {
    pub module: Weak<ModuleRecord>,
    pub func: u32,
    pub entry: Entry,
}

/// What there is for an entry when a thread asks.
pub(super) enum Found {
    /// Code.
    Ready(Code),
    /// Nothing yet: ask again after this many ticks.
    Later(i32),
}

impl ModuleState {
    pub(super) fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The module's native side, made when first asked for.
    #[inline]
    pub(super) fn native(&self, module: &ModuleRecord) -> Option<&NativeModule> {
        self.code
            .get_or_init(|| {
                let space = module.engine.record().tier.space()?;
                let code = space.add_module(ptr::from_ref(module).addr(), &module.bytecode).ok()?;
                let stubs = module.bytecode.types.iter().map(|ty| space.stubs(ty)).collect::<Result<_, _>>().ok()?;
                Some(NativeModule { code, stubs, reclaimer: module.engine.record().tier.reclaimer.clone() })
            })
            .as_ref()
    }

    /// Code for an entry; if there is none, the policy decides what to do about it.
    pub(super) fn find(module: &Arc<ModuleRecord>, func: u32, entry: Entry) -> Found {
        let engine = &module.engine.record().tier;
        let policy = &engine.policy;
        let mut entries = module.tier.entries();
        let bytes = module.bytecode.body(func).map_or(0, |body| body.len());
        let mut queued = State::default();
        if let Some(state) = entries.states.get_mut(&(func, entry)) {
            queued = State { entry: EntryState::Queued, ..*state };
            state.used();
            match &mut state.entry {
                EntryState::Ready(code, _) => {
                    if entry == Entry::Call {
                        evict::promote(module, func, *code);
                    }
                    return Found::Ready(*code);
                }
                EntryState::Queued => return Found::Later(policy.next_ticks()),
                EntryState::Refused => return Found::Later(policy.refused_ticks()),
                EntryState::Resting(0) => (),
                EntryState::Resting(questions) => {
                    *questions -= 1;
                    return Found::Later(policy.rest_ticks(bytes));
                }
            }
        }
        if entry != Entry::Call && entries.osr_bodies.get(&func).is_some_and(|&bodies| bodies >= policy::osr_bodies(bytes)) {
            return Found::Later(policy.next_ticks());
        }
        let decision = match module.tier.native(module) {
            Some(_) if entry == Entry::Call && module.engine.config().interprets(&module.bytecode, func) => Decision::Refuse,
            Some(_) => policy.decide(entry),
            None => Decision::Interpret(NEVER),
        };
        let state = match decision {
            Decision::Interpret(ticks) => return Found::Later(ticks),
            Decision::Refuse => State { entry: EntryState::Refused, ..queued },
            Decision::Compile(_) | Decision::Queue(_) => queued,
        };
        entries.states.insert((func, entry), state);
        if entry != Entry::Call {
            *entries.osr_bodies.entry(func).or_default() += 1;
        }
        drop(entries);
        match decision {
            Decision::Compile(backend) => match with_room(COMPILER_STACK, || compile_and_install(module, func, entry, backend)) {
                Some(Some(code)) => {
                    if let Some(state) = module.tier.entries().states.get_mut(&(func, entry)) {
                        state.used();
                    }
                    Found::Ready(code)
                }
                Some(None) => Found::Later(policy.rest_ticks(bytes)),
                // There may be at another call.
                None => {
                    module.tier.entries().set_back(policy, func, entry, 0);
                    Found::Later(policy.rest_ticks(bytes))
                }
            },
            Decision::Queue(backend) => {
                let heat = policy::heat(bytes, entry);
                engine.queue.push(Compilation { module: Arc::downgrade(module), func, entry, backend, heat });
                Found::Later(policy.next_ticks())
            }
            Decision::Interpret(_) | Decision::Refuse => Found::Later(policy.refused_ticks()),
        }
    }

    /// Whether code was ever asked for `func`'s call.
    pub(super) fn was_asked(&self, func: u32) -> bool {
        self.entries().states.contains_key(&(func, Entry::Call))
    }
}

impl Entries {
    /// Leaves an entry without code, to be compiled again after a rest; for want of room for the last `failures` times.
    pub(super) fn set_back(&mut self, policy: &Policy, func: u32, entry: Entry, failures: u32) {
        let setbacks = self.states.get(&(func, entry)).map_or(0, |state| state.setbacks) + 1;
        self.states.insert((func, entry), State { entry: EntryState::Resting(policy.rest(setbacks)), setbacks, failures });
        if let Some(bodies) = self.osr_bodies.get_mut(&func).filter(|_| entry != Entry::Call) {
            *bodies -= 1;
        }
    }
}

/// Native stack that compiling one function is given: the guest may have left its own thread less.
const COMPILER_STACK: usize = 1 << 20;

/// A queued compilation. It does not keep its module alive.
#[derive(Debug)]
pub(super) struct Compilation {
    module: Weak<ModuleRecord>,
    func: u32,
    entry: Entry,
    backend: Backend,
    heat: u64,
}

impl Job for Compilation {
    fn heat(&self) -> u64 {
        self.heat
    }

    fn run(self) {
        if let Some(module) = self.module.upgrade() {
            compile_and_install(&module, self.func, self.entry, self.backend);
        }
    }
}

/// Compiles an entry and makes its code reachable. `None`: every back end refused, or there is no room now.
fn compile_and_install(module: &Arc<ModuleRecord>, func: u32, entry: Entry, backend: Backend) -> Option<Code> {
    let engine = &module.engine.record().tier;
    let (compiled, refusals) = compile(module, func, entry, backend, &engine.options);
    let mut reasons: Vec<String> = refusals.iter().map(Refusal::to_string).collect();
    let native = module.tier.native(module)?;
    let State { setbacks, failures, .. } = module.tier.entries().states.get(&(func, entry)).copied().unwrap_or_default();
    // A second time nothing new would be told of one that finds no room.
    let again = setbacks > 0;
    let mut full = false;
    let installed = compiled.and_then(|compiled| {
        let mut placed = native.code.install(func, entry, &compiled);
        if placed.is_err() && evict::make_room(module, policy::wanted(compiled.code.len(), failures)) {
            placed = native.code.install(func, entry, &compiled);
        }
        match placed {
            Ok(code) => Some((Code(code), compiled)),
            Err(error) => {
                full = true;
                reasons.push(error.to_string());
                None
            }
        }
    });
    if !(again && full) {
        for record in [&module.tier.record, &engine.record] {
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
            record.add(module, func, entry, installed.as_ref().map(|(_, compiled)| compiled), again, &reasons);
        }
        // SAFETY: it is installed, the module is here, and nobody can retire what is not ready.
        unsafe {
            engine.listeners.tell(module, func, entry, installed.as_ref().map(|(code, compiled)| (*code, compiled)), &reasons);
        }
    }
    let code = installed.map(|(code, _)| code);
    let mut entries = module.tier.entries();
    if full {
        entries.set_back(&engine.policy, func, entry, failures + 1);
        return None;
    }
    if let Some(state) = entries.states.get_mut(&(func, entry)) {
        state.entry = code.map_or(EntryState::Refused, |code| EntryState::Ready(code, false));
    }
    if let (Some(code), Entry::Call) = (code, entry) {
        evict::promote(module, func, code);
    }
    drop(entries);
    if code.is_some() {
        evict::ready(module, func, entry);
    }
    code
}

/// Compiles an entry with `backend`, and if Weir's own refuses, with Cranelift; also returns who refused.
fn compile(
    module: &ModuleRecord,
    func: u32,
    entry: Entry,
    backend: Backend,
    options: &Options,
) -> (Option<Compiled>, Vec<Refusal>) {
    thread_local! {
        static CONTEXT: RefCell<Context> = RefCell::default();
    }
    let mut refusals = Vec::new();
    let profile = module.func_code(func).profile();
    let order: &[Backend] = match backend {
        Backend::Native => &[Backend::Native, Backend::Cranelift],
        Backend::Cranelift => &[Backend::Cranelift],
    };
    for &backend in order {
        let bytecode: &Bytecode = &module.bytecode;
        let request =
            Request { module: bytecode, func, entry, sig_ids: &module.sig_ids, backend, profile: profile.as_ref(), options };
        match CONTEXT.with_borrow_mut(|context| weir_jit::compile(context, &request)) {
            Ok(compiled) => return (Some(compiled), refusals),
            Err(refusal) => refusals.push(refusal),
        }
    }
    (None, refusals)
}
