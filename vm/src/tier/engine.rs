//! The tier's implementation of the trait through which the layers below see it.

use super::publish::enter;
use super::state::{EngineState, ModuleState, NativeModule, state_of};
use super::tier_up::tier_up;
use super::unwind::{native_site, search_segment, visit_functions};
use super::{earlier, evict, fill};
use crate::code::{Crossings, ModuleCode};
use crate::records::engines::{Engines, NativeSite, Next};
use crate::records::error::{Error, Result};
use crate::records::func_code::Enter;
use crate::records::instance::instance_of;
use crate::records::module::ModuleRecord;
use crate::records::native_search::NativeSearch;
use crate::records::precompiled::work::Left;
use crate::records::stats::Stats;
use std::any::Any;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use weir_bytecode::{FuncType, Module as Bytecode};
use weir_contract::stubs::StubCode;
use weir_contract::{EntryCell, Helper, HelperAddress, InstanceCtx};

/// Returns whether this processor executes the instructions that the native back end emits.
pub(crate) fn has_processor() -> bool {
    weir_jit::x64::check_processor().is_ok()
}

impl Engines for EngineState {
    fn module_size(&self, bytecode: &Bytecode) -> usize {
        ModuleCode::size(bytecode.types.len())
    }

    fn module_state(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(ModuleState::default())
    }

    fn first_ticks(&self, bytes: u32) -> i32 {
        self.policy.first_ticks(bytes)
    }

    unsafe fn prepare_module(&self, instance: *mut InstanceCtx) -> Result<bool> {
        // SAFETY: the caller's promise.
        let module = unsafe { instance_of(instance) }.module.record();
        let state = state_of(module);
        // Without room after all, this fails again, and the reason is kept.
        let _ = evict::with_room(self, || state.prepare(module));
        let Err(reason) = state.native(module) else {
            return Ok(module.shelf.is_some() && !state.prepared.swap(true, Ordering::Relaxed));
        };
        if !state.no_native_reported.swap(true, Ordering::Relaxed) {
            self.listeners.report_no_native(module, reason);
        }
        if self.policy.must_compile() { Err(Error::msg(format!("there is no native code: {reason}"))) } else { Ok(false) }
    }

    fn install_ahead(&self, module: Arc<dyn Any + Send + Sync>) {
        let module = module.downcast().expect("the argument is a module's record");
        earlier::install_ahead(&module);
        fill::begin(&module);
    }

    unsafe fn tier_up(&self, instance: *mut InstanceCtx, func: u32, at: Option<u32>) -> Next {
        // SAFETY: the caller's promise.
        tier_up(unsafe { instance_of(instance) }.module.record(), func, at)
    }

    unsafe fn enter_osr(&self, instance: *mut InstanceCtx, func: u32) -> Enter {
        // SAFETY: the caller's promise.
        let module = unsafe { instance_of(instance) }.module.record();
        enter(native_of(module).stubs(module, func).enter_osr)
    }

    unsafe fn entry_cell(&self, instance: *mut InstanceCtx, func: u32) -> *const EntryCell {
        // SAFETY: the caller's promise.
        let module = unsafe { instance_of(instance) }.module.record();
        match state_of(module).native(module) {
            Ok(native) => native.code.cell(func),
            Err(_) => self.no_entry(),
        }
    }

    fn host_cell(&self, ty: &FuncType) -> *const EntryCell {
        let stubs = self.space().ok().and_then(|space| evict::with_room(self, || space.stubs(ty)).ok());
        stubs.map_or_else(|| self.no_entry(), |stubs| stubs.host)
    }

    fn stub_code(&self, ty: Option<&FuncType>) -> Option<StubCode> {
        self.space().ok()?.stub_code(ty).ok()
    }

    fn dropped(&self, module: u64) {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).end(module);
    }

    fn helpers(&self) -> *const [HelperAddress; Helper::COUNT] {
        self.space().map_or(ptr::null(), |space| space.helpers())
    }

    fn counters(&self, stripe: usize) -> *mut u8 {
        self.space().map_or(ptr::null_mut(), |space| space.stripe(stripe))
    }

    fn prepares_threads(&self) -> bool {
        self.options.signals
    }

    fn prepare_thread(&self) -> Result<()> {
        match self.space() {
            Ok(space) => space.prepare_thread().map_err(refused),
            Err(_) => Ok(()),
        }
    }

    unsafe fn native_frames(&self, exit_fp: usize, visit: &mut dyn FnMut(NativeSite) -> ControlFlow<()>) {
        let Ok(space) = self.space() else { return };
        // SAFETY: the caller's promise.
        unsafe {
            space.frames(exit_fp, |site, frame| visit(native_site(site, frame)));
        }
    }

    unsafe fn search_native(
        &self,
        exit_fp: usize,
        search: &mut NativeSearch,
        visit: &mut dyn FnMut(NativeSite, &mut NativeSearch) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Ok(space) = self.space() else { return ControlFlow::Continue(()) };
        // SAFETY: the caller's promise.
        unsafe { search_segment(space, exit_fp, search, |call, fp, search| visit_functions(call, fp, search, &mut *visit)) }
    }

    fn wait_for_code(&self, module: &dyn Any) -> bool {
        fill::wait_for_code(module.downcast_ref().expect("the argument is a module's record"))
    }

    fn left(&self, module: &dyn Any) -> Left {
        fill::left(module.downcast_ref().expect("the argument is a module's record"))
    }

    fn report(&self, module: Option<&(dyn Any + Send + Sync)>, stats: &mut Stats) {
        let (record, osr_entries, resumed, osr_exits) = match module {
            Some(state) => {
                let state: &ModuleState = state.downcast_ref().expect("the module's engine has this tier");
                stats.freed_bytes += state.freed_bytes();
                (&state.record, &state.osr_entries, &state.resumed, &state.osr_exits)
            }
            None => {
                stats.freed_bytes += self.space().map_or(0, |space| space.freed_bytes());
                (&self.record, &self.osr_entries, &self.resumed, &self.osr_exits)
            }
        };
        record.lock().unwrap_or_else(PoisonError::into_inner).report(stats);
        if module.is_none() {
            stats.compiler_panics += self.queue.panics();
            stats.crossings = self.space().ok().and_then(|space| space.crossings()).map_or_else(Vec::new, Crossings::values);
        }
        stats.osr_entries += osr_entries.load(Ordering::Relaxed);
        stats.resumed += resumed.load(Ordering::Relaxed);
        stats.osr_exits += osr_exits.load(Ordering::Relaxed);
    }
}

#[cold]
fn refused(error: std::io::Error) -> Error {
    Error::new(error)
}

/// Returns the `reenter` stub that dispatches to function `func` of `module`, or to an OSR body of it if `osr` is set.
pub(crate) fn reenter_stub(module: &ModuleRecord, func: u32, osr: bool) -> *const u8 {
    let native = native_of(module);
    if osr { native.code.space().reenter_osr() } else { native.stubs(module, func).reenter.as_ptr() }
}

/// Returns the address of the entry cell of function `func` of `module`.
pub(crate) fn cell_address(module: &ModuleRecord, func: u32) -> usize {
    native_of(module).code.cell(func).as_ptr() as usize
}

fn native_of(module: &ModuleRecord) -> &NativeModule {
    state_of(module).native(module).expect("a module with native code has its stubs")
}
