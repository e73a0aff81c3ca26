//! The trait through which the records and the interpreter use the compiling engine.
//!
//! It has three implementations: `tier` compiles, `exec::ssa` evaluates SSA, `exec::interpreter_only` does neither.
//! `exec::engines` chooses one. All arguments are contexts and plain values, so that this file depends on no record.
//!
//! None of it is used in a call between engines, which reads [`FuncCode`](crate::records::func_code::FuncCode).

use crate::records::error::Result;
use crate::records::frame_tier::FrameTier;
use crate::records::func_code::Enter;
use crate::records::native_search::NativeSearch;
use crate::records::precompiled::work::Left;
use crate::records::stats::Stats;
use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::Arc;
use weir_bytecode::{FuncType, Module as Bytecode};
use weir_contract::code::{FrameLayout, Landing};
use weir_contract::stubs::StubCode;
use weir_contract::tables::Tables;
use weir_contract::{EntryCell, Helper, HelperAddress, InstanceCtx};

/// The interpreter's next step after [`Engines::tier_up`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// Continue interpreting.
    Interpret,
    /// Enter this code: at a function's entry if the request came from a call, and at the loop if it came from a loop.
    Enter(*const u8),
}

/// A frame of native code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeSite {
    /// The address of the function's [`ModuleRecord`](crate::records::module::ModuleRecord).
    pub module: usize,
    /// The function.
    pub func: u32,
    /// Offset in the module of the instruction.
    pub pc: u32,
    /// What the code is.
    pub tier: FrameTier,
    /// The frame pointer.
    pub fp: usize,
    /// The address of the code.
    pub code: usize,
    /// The offset in the code of the return address of its call.
    pub call: u32,
    /// The landings of the code, which live as long as it.
    pub landings: *const [Landing],
    /// Whether several functions are active at the call.
    pub is_inlined: bool,
    /// The layout of the frame.
    pub layout: FrameLayout,
    /// The tables of the code, which live as long as it.
    pub tables: *const Tables,
}

impl NativeSite {
    /// Returns the address of this word below the frame pointer: see [`FrameLayout`].
    pub fn word(&self, word: u16) -> *const usize {
        ptr::with_exposed_provenance::<usize>(self.fp).wrapping_sub(word.into())
    }
}

/// The compiling engine, or its replacement where nothing is compiled. The default methods are those of an engine without native code.
pub(crate) trait Engines: Any + fmt::Debug + Send + Sync {
    /// Creates the data that it keeps per module, in
    /// [`ModuleRecord::tier`](crate::records::module::ModuleRecord::tier).
    fn module_state(&self) -> Box<dyn Any + Send + Sync>;

    /// Returns the bytes that it may keep for a module, but for what it charges later.
    fn module_size(&self, _bytecode: &Bytecode) -> usize {
        0
    }

    /// Returns the ticks of a function with `bytes` of code before [`Engines::tier_up`] is called for it.
    fn first_ticks(&self, bytes: u32) -> i32;

    /// Prepares native code of the instance's module, before the instance's first function runs. Returns whether [`Engines::install_ahead`] is
    /// to be called before that, too.
    ///
    /// # Errors
    /// Native code cannot be made, and the settings do not allow interpreting instead.
    ///
    /// # Safety
    /// `instance` is an instance of a live store.
    unsafe fn prepare_module(&self, _instance: *mut InstanceCtx) -> Result<bool> {
        Ok(false)
    }

    /// Installs code of earlier processes. The argument is the record of a module for which [`Engines::prepare_module`] has returned true.
    fn install_ahead(&self, _module: Arc<dyn Any + Send + Sync>) {}

    /// Decides about function `func` of `instance`, whose ticks ran out at a call of it (`at` is `None`) or at the
    /// `loop` opcode of its loop `at`. Resets the ticks. May compile, synchronously or by queueing.
    ///
    /// # Safety
    /// The guest of a live store runs in `instance`, whose module defines `func`, and the function is validated.
    unsafe fn tier_up(&self, instance: *mut InstanceCtx, func: u32, at: Option<u32>) -> Next;

    /// Returns the stub that enters code of function `func` at a loop. Its `args` are the interpreter's frame, to which the
    /// results are written.
    ///
    /// # Safety
    /// [`Engines::tier_up`] has returned code that is entered at a loop of the function.
    unsafe fn enter_osr(&self, instance: *mut InstanceCtx, func: u32) -> Enter;

    /// Returns the entry cell of function `func`, which lives as long as the instance's module. Called when a reference to the function is
    /// made. Without room for its thunk, that is a cell whose calls fail. Null without native code.
    ///
    /// # Safety
    /// `instance` is an instance of a live store, and its module defines `func`.
    unsafe fn entry_cell(&self, _instance: *mut InstanceCtx, _func: u32) -> *const EntryCell {
        ptr::null()
    }

    /// Returns the entry cell of host functions of type `ty`, which lives as long as the engine. Called when one is added to a store. Without
    /// room for their stub, that is a cell whose calls fail. Null without native code.
    fn host_cell(&self, _ty: &FuncType) -> *const EntryCell {
        ptr::null()
    }

    /// Returns the code of the stubs for functions of type `ty`, or of those that depend on no type: for the checker of machine code. `None`
    /// without native code.
    fn stub_code(&self, _ty: Option<&FuncType>) -> Option<StubCode> {
        None
    }

    /// Returns the value of [`InstanceCtx::helpers`] for the engine's instances. Null without native code.
    fn helpers(&self) -> *const [HelperAddress; Helper::COUNT] {
        ptr::null()
    }

    /// Returns the value of [`InstanceCtx::counters`] for the instances of a store with this stripe. Null without native code.
    fn counters(&self, _stripe: usize) -> *mut u8 {
        ptr::null_mut()
    }

    /// Returns whether [`Engines::prepare_thread`] does anything; it never changes. Asked once, for
    /// [`EngineRecord::prepares_threads`](crate::records::engine::EngineRecord::prepares_threads).
    fn prepares_threads(&self) -> bool {
        false
    }

    /// Prepares this thread to take a trap. Called when Rust enters the guest from outside, on a thread that is not prepared, if
    /// [`Engines::prepares_threads`].
    ///
    /// # Errors
    /// The system does not provide an alternate signal stack.
    fn prepare_thread(&self) -> Result<()> {
        Ok(())
    }

    /// Calls `visit` with the native frames of a segment whose stub has the frame pointer `exit_fp`, innermost first, until it breaks.
    ///
    /// # Safety
    /// As for [`walk`](crate::records::walk::walk): there is such a segment on this thread's stack.
    unsafe fn native_frames(&self, _exit_fp: usize, _visit: &mut dyn FnMut(NativeSite) -> ControlFlow<()>) {}

    /// Leaves the native frames of such a segment as the search for a handler does. Calls `visit` only with frames whose code has
    /// landings and, once the cost is [`NativeSearch::check_at`], with the next one, before each is left. Ends when it breaks.
    ///
    /// # Safety
    /// As for [`Engines::native_frames`].
    unsafe fn search_native(
        &self,
        _exit_fp: usize,
        _search: &mut NativeSearch,
        _visit: &mut dyn FnMut(NativeSite, &mut NativeSearch) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Waits for code of a module for later processes, if that is nearly ready. Returns whether some is still being compiled. `module` is a
    /// [`ModuleRecord`](crate::records::module::ModuleRecord).
    fn wait_for_code(&self, _module: &dyn Any) -> bool {
        false
    }

    /// Returns what this process leaves of a module to later ones. `module` is a [`ModuleRecord`](crate::records::module::ModuleRecord).
    fn left(&self, _module: &dyn Any) -> Left {
        Left::default()
    }

    /// A module is being dropped, which has this [`ModuleRecord::id`](crate::records::module::ModuleRecord::id).
    fn dropped(&self, _module: u64) {}

    /// Adds its statistics to `stats`: of all modules, or of the one with this [`Engines::module_state`].
    fn report(&self, module: Option<&(dyn Any + Send + Sync)>, stats: &mut Stats);
}
