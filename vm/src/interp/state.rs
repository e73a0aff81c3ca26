//! The state of the loop between two instructions, and the ways in which the loop continues or ends.

use super::exit::Exit;
use super::frame::{self, Header};
use crate::records::body::Body;
use crate::records::scope::Scope;
use crate::records::walk::{self, Position};
use std::mem::offset_of;
use std::ptr;
use weir_bytecode::FuncBody;
use weir_bytecode::sidetable::BranchEntry;

/// The state of the loop between two instructions.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct State {
    /// The next instruction; while one executes, the address of its opcode.
    pub pc: *const u8,
    /// The first free operand slot.
    pub sp: *mut u64,
    /// Local 0.
    pub fp: *mut u64,
    /// The running function.
    pub body: *const Body,
    /// The instance in which it runs.
    pub scope: *const Scope,
    /// The next branch entry.
    pub stp: *const BranchEntry,
    /// Address of memory 0.
    pub base: *mut u8,
    /// Length of memory 0; reloaded after anything that may grow it.
    pub len: u64,
}

// A state begins with a position, so that a pointer to the state is also a pointer to the position.
const _: () = assert!(
    offset_of!(State, pc) == offset_of!(Position, pc)
        && offset_of!(State, sp) == offset_of!(Position, sp)
        && offset_of!(State, fp) == offset_of!(Position, fp)
        && offset_of!(State, body) == offset_of!(Position, body)
        && offset_of!(State, scope) == offset_of!(Position, scope)
);

/// The state with which the loop starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// At the entry of a function, or at the head of another segment, which is still to be charged.
    Segment,
    /// Within a segment that has been charged, or at a place that no segment begins with if it is reached in this way: a `loop` opcode by a
    /// back edge, the function's label by a branch.
    Instruction,
}

/// The continuation of the loop after an out-of-line function.
pub(super) enum Step {
    /// With this state, at the head of a segment.
    Continue(State),
    /// It ends.
    Leave(End),
}

/// The end of the loop.
pub(super) enum End {
    /// The activation ends.
    Exit(Exit),
    /// The loop for the other width of slots continues with this state, at a function's entry or at the head of a
    /// segment.
    Switch(State),
    /// The loop for a width of slots continues with this state, at a `loop` opcode to which a back edge has led, or at the function's label.
    Repeat(State),
}

impl State {
    /// # Safety
    /// The instance is live.
    #[inline(always)]
    pub unsafe fn reload_memory(&mut self) {
        // SAFETY: the caller's promise.
        (self.base, self.len) = unsafe { (*self.scope).memory() };
    }

    /// Records this as the position of the activation, before a call that may walk the stack.
    ///
    /// # Safety
    /// The state is valid, and does not change during that call.
    #[inline(always)]
    pub unsafe fn record_position(&self) {
        // SAFETY: the caller's promise; the loop runs in an activation.
        unsafe { walk::record_position((*(*self.scope).ctx).stack, ptr::from_ref(self).cast()) };
    }

    /// Switches to an instance, which may be the current one.
    ///
    /// # Safety
    /// It is live.
    #[inline(always)]
    pub unsafe fn switch(&mut self, scope: *const Scope) {
        if scope != self.scope {
            self.scope = scope;
            // SAFETY: the caller's promise.
            unsafe { self.reload_memory() };
        }
    }

    /// Restores the caller's state, except `sp`.
    ///
    /// # Safety
    /// `caller` is the header of the frame that returns.
    #[inline(always)]
    pub unsafe fn return_to(&mut self, caller: Header) {
        // SAFETY: the caller's promise.
        unsafe {
            self.switch(caller.scope);
            (self.fp, self.body) = (caller.fp(), caller.body);
            self.pc = (*self.scope).bytes.add(caller.pc as usize);
            self.stp = (*caller.body).branches.add(caller.stp as usize);
        }
    }

    /// Returns the header of a frame called from here, which returns to `next`.
    ///
    /// # Safety
    /// The state is valid, `next` is in the same body.
    #[inline(always)]
    pub unsafe fn header(&self, next: *const u8) -> Header {
        // SAFETY: the caller's promise.
        unsafe {
            let pc = next.offset_from_unsigned((*self.scope).bytes) as u32;
            let stp = self.stp.offset_from_unsigned((*self.body).branches) as u32;
            Header::new(self.fp, pc, stp, self.body, self.scope)
        }
    }

    /// Returns `fp` of the base frame.
    ///
    /// # Safety
    /// The state is valid. It is O(depth).
    pub unsafe fn base(&self) -> *mut u64 {
        let (mut fp, mut body) = (self.fp, self.body);
        loop {
            // SAFETY: the caller's promise: the frames down to the base are intact.
            let caller = unsafe { *frame::header(fp, body, (*body).words()) };
            if caller.is_base() {
                return fp;
            }
            (fp, body) = (caller.fp(), caller.body);
        }
    }

    /// Returns the state at the entry of `body` in the instance of `scope`, as the base frame of an activation, with
    /// its parameters at `fp`.
    ///
    /// # Safety
    /// Both are live, and the frame does not overflow the value stack.
    pub unsafe fn at_entry(scope: *const Scope, body: *const Body, fp: *mut u64) -> State {
        // SAFETY: the caller's promise.
        unsafe {
            let (base, len) = (*scope).memory();
            let words = (*body).words();
            frame::relayout(fp, (*body).params.into(), (*body).param_words.into(), words);
            let sp = frame::push(fp, body, Header::BASE, words);
            State { pc: (*body).entry, sp, fp, stp: (*body).branches, base, len, body, scope }
        }
    }

    /// Returns the state at the `loop` opcode of the loop of `body` with this index, in the instance of `scope`. The frame
    /// at `fp` becomes the base frame of an activation: its header is written.
    ///
    /// # Safety
    /// Both are live, and the frame's locals and operands are in their slots.
    pub unsafe fn at_loop(scope: *const Scope, body: *const Body, fp: *mut u64, index: u32) -> State {
        // SAFETY: the caller's promise.
        unsafe {
            let source: &FuncBody = &*(*body).source;
            let info = &source.loops[index as usize];
            debug_assert!(frame::is_at_loop((*(*scope).ctx).stack, body, fp, info.height), "a frame at {fp:p} for {info:?}");
            let words = (*body).words();
            let header = frame::header(fp, body, words);
            *header = Header::BASE;
            let sp = header.add(1).cast::<u64>().add(info.height as usize * words);
            let (base, len) = (*scope).memory();
            let pc = (*scope).bytes.add(info.pc as usize);
            State { pc, sp, fp, stp: (*body).branches.add(info.stp as usize), base, len, body, scope }
        }
    }
}
