//! The bodies of functions, with the results of their validation.

use crate::account::{ALLOCATION, Allocated, flat};
use crate::part::Part;
use crate::sidetable::{BranchEntry, Handler, LoopInfo, Segment, TryRegion};
use crate::types::ValType;
use crate::validate::InvalidModule;
use std::ops::{Deref, Range};
use std::sync::OnceLock;

/// The body of a function defined in the module: its place and, once it is validated, all of it. It derefs to the
/// [`FuncBody`], and panics there if it is not validated.
///
/// It is small, because a module may have ten thousands of bodies that are never validated: those that have code of an earlier process.
#[derive(Debug)]
pub struct Body {
    range: Range<u32>,
    validated: OnceLock<Result<Box<FuncBody>, Box<InvalidModule>>>,
}

impl Body {
    /// A body in this range of the module's bytes, not validated yet.
    pub(crate) fn unvalidated(range: Range<u32>) -> Body {
        Body { range, validated: OnceLock::new() }
    }

    /// A body in this range, with the results of its validation.
    pub(crate) fn validated(range: Range<u32>, body: FuncBody) -> Body {
        Body { range, validated: Ok(Box::new(body)).into() }
    }

    /// Its bytes in the module, the local declarations included.
    pub fn range(&self) -> Range<u32> {
        self.range.clone()
    }

    /// The offset of its first instruction or, before it is validated, of its local declarations.
    pub fn start(&self) -> u32 {
        self.get().map_or(self.range.start, |body| body.entry)
    }

    /// The result of validation, if the body has been validated and is valid.
    pub fn get(&self) -> Option<&FuncBody> {
        self.validated.get()?.as_ref().ok().map(|body| &**body)
    }

    /// The result of validation, if the body has been validated. That there was no room for its tables is no result.
    pub(crate) fn result(&self) -> Option<Result<&FuncBody, InvalidModule>> {
        Some(self.validated.get()?.as_ref().map(|body| &**body).map_err(|error| InvalidModule::clone(error)))
    }

    /// Sets the result of validation, unless there was no room for it.
    pub(crate) fn set_result(&self, result: Result<FuncBody, InvalidModule>) -> Result<&FuncBody, InvalidModule> {
        match result {
            Err(error) if error.exceeded().is_some() => Err(error),
            result => {
                let validated = self.validated.get_or_init(|| result.map(Box::new).map_err(Box::new));
                validated.as_ref().map(|body| &**body).map_err(|error| InvalidModule::clone(error))
            }
        }
    }
}

impl From<FuncBody> for Body {
    fn from(body: FuncBody) -> Body {
        Body::validated(body.entry..body.end, body)
    }
}

impl Deref for Body {
    type Target = FuncBody;

    fn deref(&self) -> &FuncBody {
        self.get().expect("the body is validated")
    }
}

/// The body of a function defined in the module, with the results of its validation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FuncBody {
    /// Offset of the first instruction, after the local declarations.
    pub entry: u32,
    /// Offset past the final `end`.
    pub end: u32,
    /// Type of every local, the parameters first. The last ones may be exceptions that `rethrow` needs, which no instruction names.
    pub locals: Part<ValType>,
    /// The most operands on the stack at once, in slots.
    pub max_operands: u32,
    /// Whether its values take slots of 16 bytes, because a local, an operand, or a parameter or result of its own or of a
    /// function that it calls may be a v128.
    pub wide: bool,
    /// About how many bytes a call executes, loops excluded; at least 1. The side table has the same of a loop's iteration.
    pub work: u32,
    /// Number of its indirect calls and tail calls, dead ones included.
    pub indirect_calls: u32,
    /// Branch entries: see [`crate::sidetable`].
    pub branches: Part<BranchEntry>,
    /// Loops, ascending by pc.
    pub loops: Part<LoopInfo>,
    /// Fuel segments, ascending by pc; none if [`Options::segments`](crate::validate::Options::segments) is off.
    pub segments: Part<Segment>,
    /// Code whose exceptions have handlers.
    pub regions: Part<TryRegion>,
    /// The handlers of the regions.
    pub handlers: Part<Handler>,
    /// Whether it has an instruction of exception handling, in live or dead code.
    pub exceptions: bool,
}

impl FuncBody {
    /// Bytes of code.
    pub fn len(&self) -> u32 {
        self.end - self.entry
    }

    /// Whether there is no code: never true of a validated body, which has at least its `end`.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that it takes if it shares no table with others, in a box.
    pub(crate) fn size(&self) -> usize {
        let FuncBody { locals, branches, loops, segments, regions, handlers, .. } = self;
        let tables = flat(locals) + flat(branches) + loops.allocated() + flat(segments) + flat(regions) + flat(handlers);
        size_of::<FuncBody>() + ALLOCATION + tables
    }

    /// Whether it may be the body with these bytes, the local declarations included.
    pub(crate) fn is_within(&self, range: Range<u32>) -> bool {
        range.start <= self.entry && self.entry < self.end && self.end == range.end
    }

    /// The words of 8 bytes in a slot of its frame in the interpreter.
    pub fn words(&self) -> usize {
        if self.wide { 2 } else { 1 }
    }

    /// The loop whose `loop` opcode is at `pc`.
    pub fn loop_at(&self, pc: u32) -> Option<&LoopInfo> {
        self.loops.binary_search_by_key(&pc, |info| info.pc).ok().map(|i| &self.loops[i])
    }
}
