//! The code of stubs as data, for the checker of machine code.

use super::stubs::{Shape, Stubs};
use super::{CodeError, CodeSpace};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_bytecode::FuncType;
use weir_contract::stubs::{Callee, Stub, StubCode};

impl CodeSpace {
    /// Returns the code of the stubs for functions of type `ty`, which stay as long as the engine, or of those that depend on no type.
    ///
    /// # Errors
    /// [`CodeError::Full`].
    pub fn stub_code(&self, ty: Option<&FuncType>) -> Result<StubCode, CodeError> {
        match ty {
            Some(ty) => self.typed_stub_code(ty),
            None => Ok(self.common_stub_code()),
        }
    }

    fn typed_stub_code(&self, ty: &FuncType) -> Result<StubCode, CodeError> {
        let Stubs { enter, enter_osr, to_rust, reenter, resume, .. } = self.stubs(ty)?;
        let (code, len) = {
            let mut shapes = self.shapes.lock();
            let shaped = self.shaped(&mut shapes, Arc::new(Shape::of(ty)))?;
            (shaped.code, shaped.len)
        };
        let mut listed = self.listed(code, len);
        let word = |at: usize| usize::from_ne_bytes(listed.code[at..at + 8].try_into().expect("eight bytes"));
        let stubs = [
            (Stub::Enter, enter as usize),
            (Stub::EnterOsr, enter_osr as usize),
            (Stub::InterpreterCall(2), word(8)),
            (Stub::InterpreterCall(1), word(16)),
            (Stub::Host, word(0)),
            (Stub::ToRust, to_rust.addr().get()),
            (Stub::Resume, resume.addr().get()),
            (Stub::Reenter, reenter.addr().get()),
        ];
        listed.stubs = stubs.map(|(stub, at)| (stub, (at - listed.address) as u32)).into();
        Ok(listed)
    }

    fn common_stub_code(&self) -> StubCode {
        let common = &self.common;
        let mut listed = self.listed(common.code, common.len);
        // SAFETY: the cell never changes, and holds the address of code.
        let no_entry = unsafe { NonNull::new_unchecked((*common.no_entry).load(Ordering::Relaxed)) };
        let stubs = [
            (Stub::ReenterOsr, common.reenter_osr),
            (Stub::Trap, common.trap),
            (Stub::Unwind, common.unwind),
            (Stub::Raise, common.raise),
            (Stub::Poll, common.poll),
            (Stub::Tick, common.tick),
            (Stub::OsrTarget, common.osr_target),
            (Stub::MemoryGrow, common.memory_grow),
            (Stub::TableGrow, common.table_grow),
            (Stub::Throw, common.throw),
            (Stub::ThrowRef, common.throw_ref),
            (Stub::NoEntry, no_entry),
            (Stub::Relocate, common.relocate),
        ];
        listed.stubs = stubs.map(|(stub, at)| (stub, (at.addr().get() - listed.address) as u32)).into();
        listed.relocated = (common.relocated.addr().get() - listed.address) as u32;
        listed
    }

    fn listed(&self, code: NonNull<u8>, len: usize) -> StubCode {
        let hooks = &self.hooks;
        let callees = vec![
            (Callee::ToRust, hooks.to_rust as usize),
            (Callee::Resume, hooks.resume as usize),
            (Callee::OnUnwind, hooks.on_unwind as usize),
            (Callee::Poll, hooks.poll as usize),
            (Callee::Tick, hooks.tick as usize),
            (Callee::OsrTarget, hooks.osr_target as usize),
            (Callee::MemoryGrow, hooks.memory_grow as usize),
            (Callee::TableGrow, hooks.table_grow as usize),
            (Callee::Throw, hooks.throw as usize),
            (Callee::ThrowRef, hooks.throw_ref as usize),
            (Callee::NoEntry, hooks.no_entry as usize),
            (Callee::Unwind, self.common.unwind.addr().get()),
        ];
        StubCode {
            address: code.addr().get(),
            // SAFETY: they are the bytes of stubs, which the engine keeps, and which do not change.
            code: unsafe { std::slice::from_raw_parts(code.as_ptr(), len) }.to_vec(),
            stubs: Vec::new(),
            callees,
            relocated: 0,
            assembly: hooks.assembly.map(|assembly| (assembly.table, assembly.begin)),
        }
    }
}
