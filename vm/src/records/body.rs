//! Functions as the interpreter sees them: data shared by the interpreter, the tiers and calls between them.

use crate::records::func_code::FuncCode;
use crate::records::stack::MAX_VALUE_WORDS;
use std::cell::UnsafeCell;
use std::ptr;
use std::slice;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, PoisonError};
use weir_bytecode::module::FuncBody;
use weir_bytecode::sidetable::BranchEntry;
use weir_bytecode::validate::InvalidModule;
use weir_bytecode::{Module as Bytecode, Opcode, fusion};
use weir_contract::{FRAME_HEADER, slot_words};

/// The fields of a function that calls, loops and returns read, together in one cache line. They point into the
/// module's record, which owns this.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Body {
    /// The first instruction.
    pub entry: *const u8,
    /// The final `end`.
    pub last: *const u8,
    /// The first branch entry.
    pub branches: *const BranchEntry,
    /// Ticks and native code.
    pub code: *const FuncCode,
    /// The result of validation.
    pub source: *const FuncBody,
    /// Number of slots that are parameters.
    pub params: u16,
    /// Number of slots that are results.
    pub results: u16,
    /// Words of a parameter's slot when the caller is not the interpreter.
    pub param_words: u8,
    /// Words of a result's slot when the caller is not the interpreter.
    pub result_words: u8,
    /// Whether it has locals that are not parameters.
    pub clears: bool,
    /// Number of slots that are locals, parameters included.
    pub locals: u32,
    /// Words of the whole frame with slots of one word and of two. For the width that the function does not use, this
    /// is larger than any value stack. The check for overflow, which every call makes, therefore also detects calls
    /// between functions of different widths.
    pub sizes: [u32; 2],
    /// The function's index.
    pub func: u32,
}

const _: () = assert!(size_of::<Body>() == 64);

/// See [`Body::sizes`].
const OTHER_WIDTH: u32 = u32::MAX;

const _: () = assert!(OTHER_WIDTH as usize > MAX_VALUE_WORDS);

// SAFETY: the pointers are to data that is immutable or atomic, and owned by the record that owns this.
unsafe impl Send for Body {}

/// The sizes of a function that is not ready: larger than any value stack.
const NO_FRAME: [u32; 2] = [OTHER_WIDTH; 2];

impl Body {
    /// Creates the body of function `func` of `module`, which is not ready.
    fn new(module: &Bytecode, func: u32, code: &FuncCode) -> Body {
        let ty = module.func_type(func);
        Body {
            entry: ptr::null(),
            last: ptr::null(),
            branches: ptr::null(),
            code,
            source: ptr::null(),
            params: ty.params.len() as u16,
            results: ty.results.len() as u16,
            param_words: slot_words(&ty.params) as u8,
            result_words: slot_words(&ty.results) as u8,
            clears: true,
            locals: 0,
            sizes: NO_FRAME,
            func,
        }
    }

    /// Returns the number of words of a slot; meaningless before it is ready.
    #[inline(always)]
    pub fn words(&self) -> usize {
        if self.sizes[0] == OTHER_WIDTH { 2 } else { 1 }
    }

    /// Returns whether the function can run.
    fn is_ready(&self) -> bool {
        self.sizes != NO_FRAME
    }

    /// Makes a validated function ready. Its code is at its offset from `bytes`.
    ///
    /// # Safety
    /// `body` is that of `source`, `bytes` has its code, and no other thread reads the fields that are written here.
    unsafe fn make_ready(body: *mut Body, bytes: *const u8, source: &FuncBody) {
        let locals = source.locals.len() as u32;
        let slots = locals + source.max_operands;
        // SAFETY: the caller's promise.
        unsafe {
            (*body).entry = bytes.add(source.entry as usize);
            (*body).last = bytes.add(source.end as usize - 1);
            (*body).branches = source.branches.as_ptr();
            (*body).source = source;
            (*body).clears = locals != u32::from((*body).params);
            (*body).locals = locals;
            (*body).sizes = match source.wide {
                false => [FRAME_HEADER + slots, OTHER_WIDTH],
                true => [OTHER_WIDTH, FRAME_HEADER + 2 * slots],
            };
        }
    }
}

/// The functions defined in a module.
#[derive(Debug)]
pub(crate) struct Bodies {
    bodies: Box<[UnsafeCell<Body>]>,
    /// The cost of entering each segment, at the offset at which it begins: 255 for 255 or more, 0 at other offsets. It is
    /// also 255 at a `loop` opcode and at the body's last `end`, where a segment begins with them, so that the portable
    /// loop executes the branches that lead there: only it tells those that enter the segment from back edges, and from
    /// branches to the function's label. Empty unless the interpreter's assembly runs and the engine consumes fuel.
    costs: Box<[UnsafeCell<u8>]>,
    /// The code of the functions that are ready, with superinstructions, at the offsets that it has in the module. Empty
    /// if the interpreter executes none. Only pages of functions that were called take memory.
    fused: Box<[UnsafeCell<u8>]>,
    /// Held while a body is validated and made ready; `None` if all are ready. It holds the last refusal of a body for want of
    /// memory: there may be room again when the call's error is made.
    lazy: Option<Mutex<Option<InvalidModule>>>,
}

// SAFETY: a body that is not ready, the costs of its segments and its fused code are written by one thread at a time,
// under the lock. Other threads read them only after they have read the function's ticks, which that thread stored with
// release order. A ready body is not written again.
unsafe impl Sync for Bodies {}

impl Bodies {
    /// Creates the bodies of `module` and, if `fuel` is set, the costs of segments. If `fuse` is set, every function gets its
    /// superinstructions when it is made ready, at its first call.
    ///
    /// They point into `module`'s boxes and to `code`: the record that owns all three must not replace any of them.
    pub fn new(module: &Bytecode, code: &[FuncCode], fuel: bool, fuse: bool) -> Bodies {
        assert_eq!(module.bodies.len(), code.len());
        let bodies = code.iter().zip(module.imported_funcs..).map(|(code, func)| Body::new(module, func, code));
        let (costs, fused) = Bodies::tables(module, fuel, fuse);
        let bodies = Bodies {
            bodies: bodies.map(UnsafeCell::new).collect(),
            costs: zeros(costs),
            fused: zeros(fused),
            lazy: (fuse || module.unvalidated.is_some()).then(Mutex::default),
        };
        if bodies.lazy.is_none() && !module.bodies.is_empty() {
            let bytes = (*module.bytes).as_ptr();
            for (body, source) in bodies.bodies.iter().zip(&module.bodies) {
                // SAFETY: there is no other reference to the body and the costs.
                unsafe {
                    bodies.write_costs(module, source);
                    Body::make_ready(body.get(), bytes, source);
                }
            }
        }
        bodies
    }

    /// Returns the bytes that those of `module` take. The other arguments are those of [`Bodies::new`].
    pub fn size(module: &Bytecode, fuel: bool, fuse: bool) -> usize {
        let (costs, fused) = Bodies::tables(module, fuel, fuse);
        module.bodies.len() * size_of::<Body>() + costs + fused
    }

    /// The bytes of the costs and of the fused code.
    fn tables(module: &Bytecode, fuel: bool, fuse: bool) -> (usize, usize) {
        let end = module.bodies.last().map_or(0, |body| body.range().end as usize);
        (if fuel { module.bytes.len() } else { 0 }, if fuse { end } else { 0 })
    }

    /// Returns the address of the code that the interpreter executes, less its offset in `module`, whose bodies these are.
    pub fn bytes(&self, module: &Bytecode) -> *const u8 {
        if self.fused.is_empty() { module.bytes.as_ptr() } else { self.fused.as_ptr().cast() }
    }

    /// Writes the fused code of a function, if the interpreter executes superinstructions.
    ///
    /// # Safety
    /// The function is of `module`, whose bodies these are, and no other thread reads its fused code now.
    unsafe fn write_fused(&self, module: &Bytecode, source: &FuncBody) {
        if self.fused.is_empty() {
            return;
        }
        let code = &self.fused[source.entry as usize..source.end as usize];
        // SAFETY: there is no other reference to the cells, by the caller's promise.
        let code = unsafe { slice::from_raw_parts_mut(UnsafeCell::raw_get(code.as_ptr()), code.len()) };
        fusion::fuse(module, source, code);
    }

    /// Writes the costs of a function's segments, if there is a table of costs.
    ///
    /// # Safety
    /// The function is of `module`, whose bodies these are, and no other thread reads these costs now.
    unsafe fn write_costs(&self, module: &Bytecode, source: &FuncBody) {
        if self.costs.is_empty() {
            return;
        }
        let code = module.bytes.part(source.entry as usize..source.end as usize);
        for segment in &source.segments {
            // The second byte of a `loop` may be equal to its first.
            let is_loop =
                code[(segment.pc - source.entry) as usize] == Opcode::Loop as u8 && source.loop_at(segment.pc).is_some();
            let is_last = segment.pc == source.end - 1;
            let cost = if is_loop || is_last { u8::MAX } else { u8::try_from(segment.cost).unwrap_or(u8::MAX) };
            // SAFETY: the caller's promise.
            unsafe { *self.costs[segment.pc as usize].get() = cost };
        }
    }

    /// Returns the address of the costs.
    pub fn costs(&self) -> *const u8 {
        self.costs.as_ptr().cast()
    }

    /// Returns the address of the first body.
    pub fn as_ptr(&self) -> *const Body {
        self.bodies.as_ptr().cast()
    }

    /// Makes function `func` of `module`, whose bodies these are, ready, after validation if it is not validated. `publish`
    /// stores, with release order, the word that lets other threads call a function that has just become ready.
    pub fn prepare(&self, module: &Bytecode, func: u32, publish: impl FnOnce(&FuncBody)) -> Readiness {
        let Some(lock) = &self.lazy else { return Readiness::Before };
        let mut refused = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let body = self.bodies[(func - module.imported_funcs) as usize].get();
        // SAFETY: the lock is held, so no other thread writes it.
        if unsafe { (*body).is_ready() } {
            return Readiness::Before;
        }
        let source = match module.validated_body(func) {
            Some(Ok(source)) => source,
            Some(Err(error)) => {
                if error.exceeded().is_some() {
                    *refused = Some(error);
                }
                return Readiness::Invalid;
            }
            None => return Readiness::Invalid,
        };
        // SAFETY: the lock is held. A thread without it reads the fields written here only after the word that
        // `publish` stores, and the costs only after that or the frame's size.
        unsafe {
            self.write_costs(module, source);
            self.write_fused(module, source);
            fence(Ordering::Release);
            Body::make_ready(body, self.bytes(module), source);
        }
        publish(source);
        Readiness::Now
    }

    /// Returns whether function `func` of `module`, whose bodies these are, is ready.
    #[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
    pub fn is_ready(&self, module: &Bytecode, func: u32) -> bool {
        let _lock = self.lazy.as_ref().map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: nobody writes it: the lock is held, or all are ready.
        unsafe { (*self.bodies[(func - module.imported_funcs) as usize].get()).is_ready() }
    }

    /// Returns the reason why function `func` of `module` could not be made ready, if it is not. If only memory was lacking, the next call may
    /// succeed.
    pub fn refusal(&self, module: &Bytecode, func: u32) -> Option<InvalidModule> {
        let refused = self.lazy.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let body = self.bodies[(func - module.imported_funcs) as usize].get();
        // SAFETY: the lock is held, so no other thread writes it.
        if unsafe { (*body).is_ready() } {
            return None;
        }
        match module.validated_body(func)? {
            Ok(_) => refused.clone(),
            Err(error) => Some(error),
        }
    }
}

/// Zeros, whose pages take memory once they are written.
fn zeros(len: usize) -> Box<[UnsafeCell<u8>]> {
    let zeros = Box::new_zeroed_slice(len);
    // SAFETY: zeros are bytes.
    unsafe { zeros.assume_init() }
}

/// The result of [`Bodies::prepare`].
pub(crate) enum Readiness {
    /// The function was ready before.
    Before,
    /// The function has become ready now.
    Now,
    /// The function is invalid, or there is no room for its tables.
    Invalid,
}
