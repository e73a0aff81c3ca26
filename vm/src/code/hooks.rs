//! The functions of Rust, and of the interpreter, that stubs call.

use weir_contract::{InstanceCtx, Outcome, StackCtx, Status};

/// An `enter` stub: calls `code` with the arguments in slots at `args` and stores the results there. It is linked as a
/// boundary of `stack` during the call.
pub(crate) type Enter =
    unsafe extern "sysv64" fn(code: *const u8, args: *mut u64, instance: *mut InstanceCtx, stack: *mut StackCtx) -> Status;

/// Called by `to_rust` stubs: runs function `func` of `instance`, which has no native code. Arguments and results are
/// in slots at `args`, which is `value_sp`; `value_sp` must have the same value at the return.
pub(crate) type ToRust = unsafe extern "sysv64" fn(instance: *mut InstanceCtx, func: u32, args: *mut u64) -> Outcome;

/// Called by `resume` stubs: continues the function in the lower half of `at` in the interpreter, at the loop whose index is
/// in the upper half. Its frame is at `fp`, without a header, and its results are written there.
pub(crate) type Resume = unsafe extern "sysv64" fn(instance: *mut InstanceCtx, at: u64, fp: *mut u64) -> Outcome;

/// Called before each unwinding, while the native frames are still there, so that it can take a backtrace (see
/// [`super::CodeSpace::frames`]). `pc` is the instruction that trapped, or 0 if Rust code returned [`Status::Trap`] to
/// a `to_rust` stub; `fp` is the trapping frame's `rbp`, or the stub's. `preserved` are the values of the preserved registers. Returns
/// whether a frame catches an exception. The stub then continues there, with these registers; otherwise it unwinds to the innermost
/// boundary that is not passed.
pub(crate) type OnUnwind =
    unsafe extern "sysv64" fn(instance: *mut InstanceCtx, pc: usize, fp: usize, registers: &mut Registers) -> u32;

/// The registers at the landing of an exception.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Registers {
    /// Those of [`PRESERVED_REGS`](weir_contract::PRESERVED_REGS).
    pub preserved: [u64; 4],
    /// The frame pointer.
    pub rbp: usize,
    /// The stack pointer.
    pub rsp: usize,
    /// The pinned register.
    pub instance: *mut InstanceCtx,
    /// The address of the landing.
    pub target: usize,
}

/// Implements [`Helper::Throw`](weir_contract::Helper::Throw), given the tag, and
/// [`Helper::ThrowRef`](weir_contract::Helper::ThrowRef), given the reference. Continues as [`OnUnwind`] does.
pub(crate) type Throw = unsafe extern "sysv64" fn(instance: *mut InstanceCtx, what: u64, registers: &mut Registers) -> u32;

/// Implements [`Helper::Poll`](weir_contract::Helper::Poll); returns a [`Status`].
pub(crate) type Poll = unsafe extern "sysv64" fn(instance: *mut InstanceCtx) -> u64;

/// Implements [`Helper::Tick`](weir_contract::Helper::Tick): the function, and in the upper half the loop, or what
/// [`MISSED`](weir_contract::MISSED) says. `frame` is the
/// value of `rbp`. Returns the address at which the code continues, or null.
pub(crate) type Tick = unsafe extern "sysv64" fn(instance: *mut InstanceCtx, at: u64, frame: *const *mut u64) -> *const u8;

/// Implements [`Helper::OsrTarget`](weir_contract::Helper::OsrTarget): the function, and in the upper half the loop. `frame` is
/// the value of `rbp`. Returns the address at which the code continues, or null.
pub(crate) type OsrTarget = unsafe extern "sysv64" fn(instance: *mut InstanceCtx, at: u64, frame: *const usize) -> *const u8;

/// Implements a helper that grows a memory or table, given its index and two numbers.
pub(crate) type Grow = unsafe extern "sysv64" fn(instance: *mut InstanceCtx, index: u32, a: u64, b: u64) -> Grown;

/// Called by the entry of functions without a stub of their own: stores the reason why the call fails. The stub then unwinds. `instance` is
/// a [`weir_contract::HostCtx`] if the function is the host's.
pub(crate) type NoEntry = unsafe extern "sysv64" fn(instance: *mut InstanceCtx);

/// The result of growing, in `rax` and `rdx`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grown {
    /// The instruction's result.
    pub old: u64,
    /// [`Status::Return`], or [`Status::Trap`] to unwind.
    pub status: Status,
}

/// The functions that stubs call. They must not unwind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hooks {
    pub to_rust: ToRust,
    pub resume: Resume,
    pub on_unwind: OnUnwind,
    pub poll: Poll,
    pub tick: Tick,
    pub osr_target: OsrTarget,
    pub memory_grow: Grow,
    pub table_grow: Grow,
    pub throw: Throw,
    pub throw_ref: Throw,
    pub no_entry: NoEntry,
    /// The entry of the interpreter's assembly, if it runs.
    pub assembly: Option<Assembly>,
}

/// The interpreter's assembly, as `to_rust` stubs enter it without Rust.
///
/// It is called at `[table + begin]` with `rax` = what the thunk loads, `rbx` = the arguments' slots, which are at `value_sp`, `rdi` = the
/// first operand slot of a frame without more locals, `r10` = the stack, `r11` = [`InstanceCtx::owner`] of the callee, and `r15` =
/// `table`. The stub has pushed `rbp` and `rbx`, and restores them. It returns with `r15` = the instance and
///
/// - carry clear: the results are in slots below `rdi`, the last one also in `rax`;
/// - carry set, `eax` = 0: the results are at `value_sp`;
/// - carry set, `eax` = 1: nothing has happened, and `esi` is the function's index.
///
/// Or it restores the registers, and jumps to the target of an [`Outcome`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assembly {
    /// The address of the table of handlers for such activations.
    pub table: usize,
    pub begin: i32,
    /// The value that the thunk of a module's function loads is the function's position in the module, multiplied by this.
    pub scale: u32,
}
