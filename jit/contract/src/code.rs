//! The result of the compiler, which the vm places in memory: machine code with its relocations, its trap and call tables and
//! the chains of inlined calls.

use crate::{Entry, TrapSite};
use std::collections::HashMap;

/// The part of the compiler that makes machine code: from SSA or, the baseline compiler, from bytecode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Backend {
    /// The native back end, for x86-64.
    Native,
    /// Cranelift.
    Cranelift,
    /// The baseline compiler, which has no SSA.
    Baseline,
}

/// Instructions that do nothing, added to machine code to measure how its speed depends on addresses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Padding {
    /// This number of bytes at every place of this kind, after layout has placed the code.
    pub after: Option<(PadAt, u32)>,
    /// Shifts functions, jump-table targets and return points by random numbers of bytes from this seed, before layout.
    pub seed: Option<u64>,
}

/// A kind of place for padding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PadAt {
    /// Before the function's first instruction.
    Function,
    /// Before innermost loops and before the blocks that lead to an indirect jump in a loop.
    Head,
    /// Before targets of an indirect jump.
    Arms,
    /// Between the beginning of its block and an indirect jump.
    Jump,
}

/// The roots in the frames of optimised code: at each call, the places of the references into the collected heap that live across it.
/// Baseline code has none: it has such references in the slots of the interpreter's frame.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Roots {
    /// The return offset of each call with roots, ascending, and the index of its list in `places`.
    pub calls: Vec<(u32, u32)>,
    /// Lists, which calls share: the number of places, and then the places, ascending, in words below `rbp`.
    pub places: Vec<u16>,
}

impl Roots {
    /// The roots of these calls, which are ascending, each with its places.
    pub fn of(calls: Vec<(u32, Vec<u16>)>) -> Roots {
        let (mut roots, mut known) = (Roots::default(), HashMap::new());
        for (call, mut places) in calls.into_iter().filter(|call| !call.1.is_empty()) {
            places.sort_unstable();
            let list = *known.entry(places).or_insert_with_key(|places| {
                let list = roots.places.len() as u32;
                roots.places.push(places.len() as u16);
                roots.places.extend(places);
                list
            });
            roots.calls.push((call, list));
        }
        roots
    }
}

/// The place at which exceptions continue that a handler catches. It is that of the calls that return to `call` or, up to the next
/// `call` of the same handler, after it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Landing {
    /// The index of the handler's branch entry.
    pub entry: u32,
    /// A return offset of a call, or 0 for all calls.
    pub call: u32,
    /// The offset in the code.
    pub offset: u32,
}

impl Landing {
    /// Sorts the landings of single calls, and leaves out those that equal the one before.
    pub fn shared(mut landings: Vec<Landing>) -> Vec<Landing> {
        landings.sort_unstable();
        landings.dedup_by(|next, before| (next.entry, next.offset) == (before.entry, before.offset));
        landings
    }

    /// The offset at which an exception continues that the call with this return offset throws, and this handler catches.
    pub fn find(landings: &[Landing], entry: u32, call: u32) -> Option<u32> {
        let after = landings.partition_point(|landing| (landing.entry, landing.call) <= (entry, call));
        let landing = landings[..after].last()?;
        (landing.entry == entry).then_some(landing.offset)
    }
}

/// The layout of a native frame, as far as the stack walker has to know it. Places are in words below `rbp`; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FrameLayout {
    /// Bytes of the frame below `rbp`, at a call.
    pub bytes: u32,
    /// The places of the caller's values of [`PRESERVED_REGS`](crate::PRESERVED_REGS).
    pub preserved: [u16; 4],
    /// The place of the instance.
    pub instance: u16,
    /// The place of the value of `value_sp` at the entry, in code that changes it.
    pub value_sp: u16,
}

/// A relocation: the 32-bit field at `offset` receives `target(index) + addend`, less the field's address if it is relative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reloc {
    /// Offset of the field in the code.
    pub offset: u32,
    /// The kind of target.
    pub target: RelocTarget,
    /// The index in the module of the function or type to which the target belongs.
    pub index: u32,
    /// The addend: -4 for a relative field that ends its instruction.
    pub addend: i32,
}

/// The target of a [`Reloc`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RelocTarget {
    /// The function's entry cell.
    Cell,
    /// The 32-bit counter of ticks that the function's baseline code has left.
    Ticks(Stripe),
    /// The function's branch counters: see the crate's documentation.
    Counters(Stripe),
    /// The engine-wide identity of the type, with which those of table elements are compared; not relative.
    Signature,
}

/// The place of a counter in a [`Reloc`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stripe {
    /// Its address in the first stripe, relative.
    First,
    /// Its offset in any stripe, not relative.
    Any,
}

/// An instruction that may fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrapEntry {
    /// Offset of the instruction in the code.
    pub offset: u32,
    /// The trap that a fault there means.
    pub site: TrapSite,
    /// Offset of the Wasm instruction in the module.
    pub pc: u32,
}

/// The traps and calls of code that are in code of inlined functions. The pc of such an entry is an instruction of
/// the innermost inlined function; the chain says which calls were inlined around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlining {
    /// Index in [`Tables::traps`](crate::tables::Tables::traps) and index of the chain's innermost link in `links`, ascending.
    pub traps: Vec<(u32, u32)>,
    /// Index in [`Tables::calls`](crate::tables::Tables::calls) and index of the chain's innermost link in `links`, ascending.
    pub calls: Vec<(u32, u32)>,
    /// The links of all chains. Entries share the outer links that they have in common.
    pub links: Vec<InlinedCall>,
}

/// A call that was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlinedCall {
    /// The function that was called.
    pub func: u32,
    /// The pc of the call, in the function that the next link names, or in the compiled function.
    pub pc: u32,
    /// The index of the link around this one, which is lower than its own; `None` if the call is in the compiled function itself.
    pub outer: Option<u32>,
}

impl Inlining {
    /// The functions that are active at an entry, innermost first, each with its pc: `func` is the compiled function, `pc` the entry's
    /// pc, and `link` the innermost link of its chain, if it has one.
    pub fn expand(&self, func: u32, pc: u32, link: Option<u32>) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut next = Some((pc, link));
        std::iter::from_fn(move || {
            let (pc, link) = next?;
            let Some(link) = link.map(|link| self.links[link as usize]) else {
                next = None;
                return Some((func, pc));
            };
            next = Some((link.pc, link.outer));
            Some((link.func, pc))
        })
    }

    /// Whether every chain ends.
    pub(crate) fn has_chains(&self) -> bool {
        let Inlining { traps, calls, links } = self;
        let is_link = |&(_, link): &(u32, u32)| (link as usize) < links.len();
        let mut outer = (0..).zip(links);
        outer.all(|(index, link)| link.outer.is_none_or(|outer| outer < index)) && traps.iter().chain(calls).all(is_link)
    }

    /// The innermost link of the trap with this index.
    pub fn of_trap(&self, index: usize) -> Option<u32> {
        Inlining::find(&self.traps, index)
    }

    /// The innermost link of the call with this index.
    pub fn of_call(&self, index: usize) -> Option<u32> {
        Inlining::find(&self.calls, index)
    }

    fn find(entries: &[(u32, u32)], index: usize) -> Option<u32> {
        let i = entries.binary_search_by_key(&index, |&(index, _)| index as usize).ok()?;
        Some(entries[i].1)
    }
}

/// A function as the compiler prints it after any phase. Tests use it in place of the compiler's result after that phase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionText {
    /// The function.
    pub func: u32,
    /// How it is entered.
    pub entry: Entry,
    /// The form of the function.
    pub form: TextForm,
    /// The text.
    pub text: String,
}

/// The form of a function in a [`FunctionText`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextForm {
    /// SSA, for any back end and for the evaluator. It goes to them as it is, without passes.
    Ssa,
    /// Instructions of the native back end.
    Machine,
}
