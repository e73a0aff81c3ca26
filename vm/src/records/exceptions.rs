//! Exceptions: tags, exception objects, and the exception that is being thrown.
//!
//! An exception that is thrown has no object at first: its payload is in [`StackCtx::overflow`](weir_contract::StackCtx::overflow),
//! like the parameters of a call, and its tag in [`InFlight`]. An object is made when something asks for a reference: a clause with
//! `_ref`, a handler with `rethrow`, or the host.
//!
//! Objects are in the store's [collected heap](super::heap). Their addresses are valid until the next collection, which changes those
//! in the store's record.

use crate::records::body::Body;
use crate::records::native_search::Unwound;
use crate::records::object::{Header, Kind};
use crate::records::scope::Scope;
use std::ptr;
use std::sync::Arc;
use weir_bytecode::sidetable::{Handler, TryRegion};
use weir_bytecode::{FuncBody, FuncType};
use weir_contract::code::FrameLayout;
use weir_contract::{InstanceCtx, LANDING_FP, slot_words};

/// A tag. Two tags are the same if and only if their addresses are equal.
#[derive(Debug)]
pub(crate) struct TagRecord {
    /// The engine-wide identity of its type.
    pub sig: u32,
    /// The type of that identity. Its parameters are the payload.
    pub ty: Arc<FuncType>,
    /// The words of each value of the payload where it is in slots.
    words: usize,
}

impl TagRecord {
    /// Creates a tag with the type of this identity.
    pub fn new(sig: u32, ty: Arc<FuncType>) -> TagRecord {
        TagRecord { sig, words: slot_words(&ty.params), ty }
    }

    /// Returns the number of values of the payload.
    pub fn fields(&self) -> usize {
        self.ty.params.len()
    }

    /// Returns the words of each value of the payload where it is in slots.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Calls `visit` with the slots of a payload, which is at `payload`, that hold references into the heap.
    pub fn references(&self, payload: *mut u64, mut visit: impl FnMut(*mut u64)) {
        let collected = self.ty.params.iter().enumerate().filter(|(_, ty)| ty.is_collected());
        collected.for_each(|(i, _)| visit(payload.wrapping_add(i * self.words())));
    }
}

/// The place of a throw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// The instance; null if the host has made the exception.
    pub instance: *mut InstanceCtx,
    /// Offset in the module of the instruction.
    pub pc: u32,
}

impl Site {
    /// The host.
    pub const HOST: Site = Site { instance: ptr::null_mut(), pc: 0 };
}

/// The beginning of an exception object, to which an `exnref` refers. The payload follows.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ExnRecord {
    header: Header,
    tag: *const TagRecord,
    instance: *mut InstanceCtx,
    pc: u32,
    /// A reference to the backtrace of the throw, a host value; null without
    /// [`Config::backtrace_on_throw`](crate::Config::backtrace_on_throw).
    backtrace: u32,
}

impl ExnRecord {
    /// Returns the words of an object with this tag.
    ///
    /// # Safety
    /// The tag is live.
    pub unsafe fn words(tag: *const TagRecord) -> usize {
        // SAFETY: the caller's promise.
        unsafe { size_of::<ExnRecord>() / size_of::<u64>() + (*tag).fields() * (*tag).words() }
    }

    /// Writes an object at `at`, whose payload is in slots at `payload`.
    ///
    /// # Safety
    /// There is room for an object with this tag, which is live, and the slots have values of its types.
    pub unsafe fn write(at: *mut ExnRecord, tag: *const TagRecord, site: Site, payload: *const u64) {
        // SAFETY: the caller's promise.
        unsafe {
            let Site { instance, pc } = site;
            at.write(ExnRecord { header: Header::new(Kind::Exn), tag, instance, pc, backtrace: 0 });
            ptr::copy_nonoverlapping(payload, at.add(1).cast(), (*tag).fields() * (*tag).words());
        }
    }

    /// Calls `visit` with the slots of an object that hold references into the heap.
    ///
    /// # Safety
    /// There is an object.
    pub unsafe fn references(object: *mut ExnRecord, mut visit: impl FnMut(*mut u64)) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut backtrace = u64::from((*object).backtrace);
            visit(&raw mut backtrace);
            (*object).backtrace = backtrace as u32;
            (*(*object).tag).references(object.add(1).cast(), visit);
        }
    }

    /// Returns the reference to the backtrace of the throw; 0 if there is none.
    pub fn backtrace(&self) -> u32 {
        self.backtrace
    }

    /// Sets the reference to the backtrace of the throw, which is a host value.
    pub fn set_backtrace(&mut self, reference: u32) {
        self.backtrace = reference;
    }

    /// Returns its tag.
    pub fn tag(&self) -> *const TagRecord {
        self.tag
    }

    /// Returns the place at which it was thrown first.
    pub fn site(&self) -> Site {
        Site { instance: self.instance, pc: self.pc }
    }

    /// Returns the payload of an object, in slots.
    pub fn payload(object: *const ExnRecord) -> *const u64 {
        object.wrapping_add(1).cast()
    }
}

/// The exception that is being thrown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// Its tag.
    pub tag: *const TagRecord,
    /// Its object; null if it has none, and the payload is in the overflow slots.
    pub object: *mut ExnRecord,
    /// The place of the throw.
    pub site: Site,
}

impl InFlight {
    /// No exception.
    pub const NONE: InFlight = InFlight { tag: ptr::null(), object: ptr::null_mut(), site: Site::HOST };
}

/// The handler of the exception that is being thrown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Landing {
    /// The frame's engine.
    pub place: Place,
    /// Local 0 of the frame; null for optimised code, which has its locals elsewhere.
    pub fp: *mut u64,
    /// What the handler does.
    pub clause: Clause,
}

/// A clause that catches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clause {
    /// The function.
    pub source: *const FuncBody,
    /// The region around the call or throw, of this function.
    pub region: *const TryRegion,
    /// The handler, of this function.
    pub handler: *const Handler,
}

/// The place in an engine at which an exception is caught.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// A frame of the interpreter.
    Interp {
        /// The activation of the frame.
        activation: *const (),
        /// The function.
        body: *const Body,
        /// The instance in which it runs.
        scope: *const Scope,
    },
    /// A frame of native code, in the segment inside this boundary.
    Native { boundary: usize, frame: CatchingFrame },
}

/// A frame of native code that catches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CatchingFrame {
    /// Its frame pointer.
    pub rbp: usize,
    /// The lowest address of the frame.
    pub end: usize,
    /// The address of the landing.
    pub target: usize,
    /// The instance in which it runs.
    pub instance: *mut InstanceCtx,
    /// The value of `value_sp` at its entry, if it changes that, and its frame is that of the interpreter.
    pub value_sp: Option<*mut u64>,
    /// The state at its call.
    pub unwound: Unwound,
}

impl CatchingFrame {
    /// Creates the record of a frame, with local 0 for [`Landing::fp`].
    ///
    /// # Safety
    /// Code with landings and this layout has a frame with this frame pointer, on this thread's stack, and is about to continue at the
    /// landing at `target`.
    #[inline]
    pub unsafe fn new(rbp: usize, layout: &FrameLayout, target: usize, unwound: Unwound) -> (CatchingFrame, *mut u64) {
        let word = |word: u16| ptr::with_exposed_provenance::<*mut u64>(rbp - 8 * usize::from(word));
        // SAFETY: the caller's promise.
        unsafe {
            let instance = word(layout.instance).cast::<*mut InstanceCtx>().read();
            let (mut fp, mut value_sp) = (ptr::null_mut(), None);
            if layout.value_sp != 0 {
                fp = word((-LANDING_FP / 8) as u16).read();
                value_sp = Some(word(layout.value_sp).read());
            }
            (CatchingFrame { rbp, end: rbp - layout.bytes as usize, target, instance, value_sp, unwound }, fp)
        }
    }
}
