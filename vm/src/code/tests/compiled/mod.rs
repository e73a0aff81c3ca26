//! Functions given as SSA, compiled, and run in code memory against the SSA evaluator: every operation of TABLE 2, and
//! every clause of the contract that compiled code has to keep.

/// Makes these functions tests, once for each back end with signal handlers and without.
macro_rules! each_back_end {
    ($($test:ident)*) => {
        each_back_end! { native, Native, true, $($test)* }
        each_back_end! { native_without_signals, Native, false, $($test)* }
        #[cfg(feature = "cranelift")]
        each_back_end! { cranelift, Cranelift, true, $($test)* }
        #[cfg(feature = "cranelift")]
        each_back_end! { cranelift_without_signals, Cranelift, false, $($test)* }
    };
    ($module:ident, $back_end:ident, $signals:literal, $($test:ident)*) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::super::BACKEND.set(weir_jit::Backend::$back_end);
                super::super::SIGNALS.set($signals);
                super::$test();
            })*
        }
    };
}

mod calls;
mod control;
mod memory;
mod numeric;

use super::Put;
use super::rig::World;
use super::{RETURN, SCRIPT, Script};
use crate::code::{CodeSpace, Grown, Hooks, ModuleCode};
use bumpalo::Bump;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_bytecode::{Module, Trap, ValType};
use weir_contract::{Helper, HelperAddress, InstanceCtx, Status, TrapSite};
use weir_jit::analysis::verify;
use weir_jit::compile::{Options, Refusal, compile_ssa};
use weir_jit::ir::eval::{Callee, EvalError, Outcome, World as _, eval};
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{Func, Type, parse};
use weir_jit::{Backend, Compiled, Request};

/// A module whose functions are given as SSA one by one. The other functions are "interpreted": they return the results
/// of [`Sandbox`].
struct Guest {
    module: Arc<Module>,
    sig_ids: Vec<u32>,
    options: Options,
    code: ModuleCode,
    world: World,
    /// Bytes of native stack that the code may use.
    headroom: usize,
}

/// The calls that leave the code of a [`Guest`].
#[derive(Default)]
struct Outside {
    module: Arc<Module>,
    calls: Vec<(Callee, Vec<u128>)>,
    helpers: Vec<(Helper, Vec<u64>)>,
    /// The number of the poll at which the code has to stop.
    polls: u32,
    /// The status that helpers return.
    status: u64,
}

thread_local! {
    static OUTSIDE: RefCell<Outside> = RefCell::default();
    /// The back end under test.
    static BACKEND: Cell<Backend> = const { Cell::new(Backend::Native) };
    /// Whether its traps are faults.
    static SIGNALS: Cell<bool> = const { Cell::new(true) };
}

type Answer = Result<Vec<u64>, Trap>;

impl Guest {
    fn new(wat: &str) -> Guest {
        Guest::with_options(wat, Options { verify: true, ..Options::default() })
    }

    fn with_options(wat: &str, options: Options) -> Guest {
        let signals = SIGNALS.get();
        let options = Options { signals, guard_regions: options.guard_regions && signals, ..options };
        let bytes = wat::parse_str(wat).unwrap();
        let module = Arc::new(weir_bytecode::validate::parse(bytes.into()).unwrap());
        let space = CodeSpace::new(HOOKS, &helpers(), options.signals, usize::MAX, false).unwrap();
        SCRIPT.set(Script { call: Some(interpret), space: Some(space.clone()), ..Script::default() });
        OUTSIDE.set(Outside { module: module.clone(), ..Outside::default() });
        // Type indices as they are, but not from 0, so that a missing translation shows.
        let sig_ids: Vec<u32> = (0..module.types.len() as u32).map(|i| i + 100).collect();
        let code = space.add_module(1, &module, &sig_ids).unwrap();
        let mut world = World::new(&module);
        world.set_helpers(space.helpers());
        if options.guard_regions {
            world.memories.iter().for_each(|memory| memory.guard());
        }
        Guest { module, sig_ids, options, code, world, headroom: 256 << 10 }
    }

    fn compile(&self, func: &Func<'_>) -> Result<Compiled, Refusal> {
        verify::verify(func, Some(&self.module)).unwrap_or_else(|error| panic!("{error}\n{func}"));
        let request = Request {
            module: &self.module,
            func: func.index,
            entry: func.entry,
            sig_ids: &self.sig_ids,
            backend: BACKEND.get(),
            profile: None,
            callees: None,
            options: &self.options,
        };
        // The compiler consumes a function, which its text copies.
        compile_ssa(parse::parse(&Bump::new(), &func.to_string()).unwrap(), &request)
    }

    fn install(&self, func: &Func<'_>) -> *const u8 {
        self.code.put(func.index, func.entry, &self.compile(func).unwrap()).unwrap()
    }

    /// Compiles and installs a function given as text.
    fn define(&self, text: &str) -> *const u8 {
        self.install(&parse::parse(&Bump::new(), text).unwrap())
    }

    /// Calls function `func` through its entry cell.
    fn call(&mut self, func: u32, args: &[u64]) -> Answer {
        let code = self.code.cell(func).load(Ordering::Relaxed);
        self.enter(func, code, args, false)
    }

    fn enter(&mut self, func: u32, code: *const u8, args: &[u64], osr: bool) -> Answer {
        let ty = self.module.func_type(func);
        let stubs = self.code.space().stubs(ty).unwrap();
        let here = 0_u8;
        self.world.stack.native_limit = (&raw const here).addr() - self.headroom;
        let (status, slots) = self.world.enter(if osr { stubs.enter_osr } else { stubs.enter }, code, args);
        match status {
            Status::Return => Ok(ty.results.iter().zip(slots).map(|(&ty, slot)| truncate(ty, slot)).collect()),
            Status::Trap => Err(self.trap().0),
            Status::Dispatch => unreachable!("stubs dispatch by themselves"),
        }
    }

    /// The trap that has just happened, and its pc.
    fn trap(&self) -> (Trap, u32) {
        // SAFETY: it has just happened, and the code is still there.
        let (site, trap) = unsafe { self.code.space().trap_at(self.world.store.trap_pc) }.unwrap();
        let trap = match trap {
            TrapSite::Trap(trap) => trap,
            TrapSite::Stored => Trap::from_code(self.world.store.trap as u8).unwrap(),
        };
        (trap, site.pc)
    }

    /// Runs a function given as text natively and by the evaluator, which must do the same.
    fn agree(&mut self, text: &str, cases: &[&[u64]]) {
        let arena = Bump::new();
        let func = parse::parse(&arena, text).unwrap();
        self.install(&func);
        for &args in cases {
            self.agree_on(&func, args, &format!("{args:x?} in\n{text}"));
        }
    }

    fn agree_on(&mut self, func: &Func<'_>, args: &[u64], what: &str) {
        let mut sandbox = Sandbox { memories: self.memories(), globals: self.globals(), ..Sandbox::default() };
        OUTSIDE.with_borrow_mut(|outside| outside.calls.clear());
        let wide_args: Vec<u128> = args.iter().map(|&arg| arg.into()).collect();
        let expected = match eval(func, &mut sandbox, &wide_args, 1_000_000) {
            Ok(Outcome::Return(results)) => Ok(results),
            Ok(Outcome::TailCall { callee, args, .. }) => sandbox.call(callee, &args),
            Err(EvalError::Failed { why, .. }) => Err(why),
            Err(EvalError::Steps) => panic!("it does not end: {what}"),
        };
        let narrow = |(&slot, &ty): (&u128, &Type)| if wide(ty) { slot as u64 } else { slot as u32 as u64 };
        let expected: Answer = expected.map(|slots| slots.iter().zip(&func.results).map(narrow).collect());
        let actual = self.call(func.index, args);
        match (&actual, &expected) {
            (Ok(actual), Ok(expected)) => {
                for ((&a, &e), &ty) in actual.iter().zip(expected).zip(&func.results) {
                    assert!(same(ty, a, e), "{actual:x?} for {expected:x?}: {what}");
                }
                assert_eq!(actual.len(), expected.len());
            }
            _ => assert_eq!(actual, expected, "{what}"),
        }
        assert!(self.memories() == sandbox.memories, "the memories differ: {what}");
        assert_eq!(self.globals(), sandbox.globals, "{what}");
        let calls = OUTSIDE.with_borrow(|outside| outside.calls.clone());
        assert_eq!(calls, sandbox.calls, "{what}");
    }

    fn memories(&mut self) -> Vec<Vec<u8>> {
        self.world.memories.iter_mut().map(|memory| memory.bytes().to_vec()).collect()
    }

    fn globals(&mut self) -> Vec<u128> {
        let layout = self.world.layout;
        let imported = self.module.imported_globals;
        (0..self.module.globals.len() as u32)
            .map(|i| match i < imported {
                true => self.world.imported_globals[i as usize],
                false => (*self.world.tail(layout.global(i))).into(),
            })
            .collect()
    }
}

fn wide(ty: Type) -> bool {
    !matches!(ty, Type::I32 | Type::F32)
}

fn truncate(ty: ValType, slot: u64) -> u64 {
    if wide(ty.into()) { slot } else { slot & 0xffff_ffff }
}

/// Equal bits, or two NaNs of which the actual one is quiet.
fn same(ty: Type, actual: u64, expected: u64) -> bool {
    let quiet_nan = match ty {
        Type::F32 => f32::from_bits(expected as u32).is_nan() && actual & 0x7fc0_0000 == 0x7fc0_0000,
        Type::F64 => f64::from_bits(expected).is_nan() && actual & 0x7ff8_0000_0000_0000 == 0x7ff8_0000_0000_0000,
        _ => false,
    };
    actual == expected || quiet_nan
}

/// An "interpreted" function.
fn interpret(_: &mut Script, _: *mut InstanceCtx, func: u32, args: *mut u64) -> weir_contract::Outcome {
    OUTSIDE.with_borrow_mut(|outside| {
        let ty = outside.module.func_type(func);
        // SAFETY: the arguments are there, and room for the results.
        unsafe {
            let values: Vec<u128> = ty.params.iter().enumerate().map(|(i, &ty)| truncate(ty, *args.add(i)).into()).collect();
            let results = (Sandbox::default().call_results)(Callee::Direct(func), &values).unwrap();
            for i in 0..ty.results.len() {
                // The upper half of a narrow value is unspecified.
                *args.add(i) = results[i % 4] as u64 | if wide(ty.results[i].into()) { 0 } else { 0xabc << 32 };
            }
            outside.calls.push((Callee::Direct(func), values));
        }
    });
    RETURN
}

/// The functions that the helper stubs call. They also record the call.
const HOOKS: Hooks = {
    unsafe extern "sysv64" fn poll(instance: *mut InstanceCtx) -> u64 {
        // SAFETY: everything that the convention does not preserve is declared.
        unsafe {
            std::arch::asm!(
                "mov rcx, -1",
                "mov rdx, rcx",
                "mov rsi, rcx",
                "mov rdi, rcx",
                "mov r8, rcx",
                "mov r9, rcx",
                "mov r10, rcx",
                "mov r11, rcx",
                "pcmpeqd xmm0, xmm0",
                "movaps xmm1, xmm0",
                "movaps xmm2, xmm0",
                "movaps xmm7, xmm0",
                "movaps xmm15, xmm0",
                clobber_abi("sysv64")
            );
        }
        let status = OUTSIDE.with_borrow_mut(|outside| {
            outside.helpers.push((Helper::Poll, Vec::new()));
            outside.polls = outside.polls.saturating_sub(1);
            u64::from(outside.polls == 0)
        });
        // SAFETY: the instance runs, and no other code uses its store.
        unsafe { (*(*instance).store).trap = Trap::Interrupt as u64 };
        status
    }

    fn grow(helper: Helper, index: u32, args: &[u64]) -> Grown {
        OUTSIDE.with_borrow_mut(|outside| {
            outside.helpers.push((helper, [&[index.into()], args].concat()));
            Grown { old: outside.status, status: Status::Return }
        })
    }

    unsafe extern "sysv64" fn memory_grow(_: *mut InstanceCtx, memory: u32, delta: u64, _: u64) -> Grown {
        grow(Helper::MemoryGrow, memory, &[delta])
    }

    unsafe extern "sysv64" fn table_grow(_: *mut InstanceCtx, table: u32, reference: u64, delta: u64) -> Grown {
        grow(Helper::TableGrow, table, &[reference, delta])
    }

    unsafe extern "sysv64" fn resume(_: *mut InstanceCtx, _: u64, _: *mut u64) -> weir_contract::Outcome {
        unreachable!()
    }
    Hooks { resume, poll, memory_grow, table_grow, ..super::HOOKS }
};

/// Helpers that only note that they were called.
fn helpers() -> [HelperAddress; Helper::COUNT] {
    type Noted = extern "sysv64" fn(*mut InstanceCtx, u64, u64, u64, u64) -> u64;
    extern "sysv64" fn note<const HELPER: usize>(_: *mut InstanceCtx, a: u64, b: u64, c: u64, d: u64) -> u64 {
        OUTSIDE.with_borrow_mut(|outside| {
            let helper = Helper::ALL[HELPER];
            outside.helpers.push((helper, [a, b, c, d][..helper.arity()].to_vec()));
            outside.status
        })
    }
    let noted: [Noted; Helper::COUNT] = [
        note::<0>, note::<1>, note::<2>, note::<3>, note::<4>, note::<5>, note::<6>, note::<7>, note::<8>, note::<9>, note::<10>,
        note::<11>, note::<12>, note::<13>, note::<14>, note::<15>, note::<16>, note::<17>, note::<18>,
    ];
    noted.map(|noted| noted as HelperAddress)
}
