//! Load forwarding: replaces loads and reads of globals whose value was loaded or stored before.
//!
//! ```text
//! store v0, v1                store v0, v1
//! v2: i32 = load v0           v3: i32 = load v0 +8
//! v3: i32 = load v0 +8   →    v4: i32 = add v1, v3
//! v4: i32 = add v2, v3
//! ```
//!
//! It works within extended basic blocks, with the data-flow framework: facts at the end of a block hold at the start
//! of blocks whose only predecessor it is. The most recent accesses are remembered, each with a value whose low bytes
//! equal the bytes in memory, until an instruction may change them, which [`crate::analysis::alias`] decides. A
//! replaced load would not have trapped, because an earlier access to its bytes did not, and memories never shrink. A
//! store of the bytes that memory is known to hold is removed too.
//!
//! It runs before value numbering, which then finds values equal that are computed from equal loads. Construction has
//! already shared addresses within blocks. Cost: O(accesses × remembered entries), and the second factor is constant.

use super::pass::{Analysis, Changed, Context, Pass};
use crate::analysis::alias::{Access, Changes, changes, globals_may_be_one};
use crate::analysis::dataflow::BlockEndFacts;
use crate::ir::family::{Family, Load};
use crate::ir::{Effect, Fields, Func, Op, Type, Value};
use weir_bytecode::Module;

/// Forwarding of loaded and stored values.
pub const PASS: Pass = Pass { name: "load_forwarding", run, needs: &[Analysis::Cfg], keeps: Analysis::OF_BLOCKS };

/// The number of accesses remembered at a time.
const ENTRIES: usize = 16;

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let mut facts = BlockEndFacts::new(&cx.scratch, func.num_blocks());
    let mut recent = RecentAccesses::default();
    let mut changed = 0;
    for &block in cx.cfg().order() {
        let known = facts.enter(func, block);
        if !cx.goes_on(1 + known.len()) {
            break;
        }
        // Nothing is forgotten where no operation acts on memory, and nothing is learnt where none accesses it.
        let any = |what: fn(Op) -> bool| func.block(block).insts.iter().any(|&value| what(func.op(value)));
        if !any(uses_state) || (known.is_empty() && !any(accesses_state)) {
            if !cx.goes_on(func.block(block).insts.len()) {
                break;
            }
            continue;
        }
        recent.set(known);
        let mut forward = Forward { func: &mut *func, cx, known: &mut recent, constants: Vec::new(), changed: 0 };
        let mut dropped = false;
        for i in 0..forward.func.block(block).insts.len() {
            if !cx.goes_on(1) {
                break;
            }
            let value = forward.func.block(block).insts[i];
            if uses_state(forward.func.op(value)) && !forward.keeps(i, value) {
                forward.func.block_mut(block).insts[i] = DROPPED;
                dropped = true;
            }
        }
        let Forward { constants, changed: made, .. } = forward;
        func.insert(block, &constants);
        if dropped {
            func.block_mut(block).insts.retain(|&value| value != DROPPED);
        }
        changed += made;
        facts.leave(func, block, recent.entries());
    }
    func.settle();
    Changed(changed)
}

/// Marks an instruction that is removed.
const DROPPED: Value = Value(u32::MAX);

/// Whether an operation may read or change a memory or a global.
fn uses_state(op: Op) -> bool {
    !matches!(op.effect(), Effect::Pure | Effect::Trap | Effect::Terminator)
}

/// The most recent accesses, oldest first.
#[derive(Default)]
struct RecentAccesses {
    /// Entries before `first` are forgotten.
    all: Vec<Entry>,
    first: usize,
}

impl RecentAccesses {
    fn set(&mut self, entries: &[Entry]) {
        self.all.clear();
        self.all.extend_from_slice(entries);
        self.first = 0;
    }

    fn entries(&self) -> &[Entry] {
        &self.all[self.first..]
    }

    fn push(&mut self, entry: Entry) {
        if self.first == 4 * ENTRIES {
            self.all.drain(..self.first);
            self.first = 0;
        }
        self.all.push(entry);
        if self.entries().len() > ENTRIES {
            self.first += 1;
        }
    }

    fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        let mut kept = self.first;
        for i in self.first..self.all.len() {
            if keep(&self.all[i]) {
                self.all.swap(kept, i);
                kept += 1;
            }
        }
        self.all.truncate(kept);
    }
}

/// Whether an operation reads or writes the contents of a memory or a global.
fn accesses_state(op: Op) -> bool {
    matches!(op.fields(), Fields::Access | Fields::Global)
}

#[derive(Clone, Copy)]
enum Place {
    /// The low bytes of the value, as many as the access is wide, are those of the memory.
    Bytes(Access),
    Global(u32),
}

#[derive(Clone, Copy)]
struct Entry {
    place: Place,
    value: Value,
    /// The load that produced the value, if one did.
    loaded: Option<Op>,
}

struct Forward<'f, 'a, 'c> {
    func: &'f mut Func<'a>,
    cx: &'f Context<'c>,
    known: &'f mut RecentAccesses,
    /// New constants, each with the index in the block before which it is inserted.
    constants: Vec<(usize, Value)>,
    changed: u32,
}

impl Forward<'_, '_, '_> {
    fn spend(&mut self) -> bool {
        let may = self.cx.spend();
        self.changed += u32::from(may);
        may
    }

    /// Visits the next instruction that acts on memory, at `index` in the block. Returns whether it stays.
    fn keeps(&mut self, index: usize, value: Value) -> bool {
        let op = self.func.op(value);
        if accesses_state(op) {
            self.func.resolve_args(value);
        }
        if op == Op::GlobalGet {
            return self.global_get(value);
        }
        if op == Op::GlobalSet {
            let (global, stored) = (self.func.inst(value).aux, self.func.args(value)[0]);
            self.forget(Changes::Global(global));
            self.remember(Entry { place: Place::Global(global), value: stored, loaded: None });
            return true;
        }
        match Access::of(self.func, value).filter(|access| !is_shared(self.cx.module, access.memory)) {
            Some(access) if self.func.ty(value) == Type::Void => self.store(value, access),
            Some(access) => self.load(index, value, access),
            None => {
                self.forget(changes(self.func, value));
                true
            }
        }
    }

    fn remember(&mut self, entry: Entry) {
        self.known.push(entry);
    }

    fn forget(&mut self, changed: Changes) {
        let module = self.cx.module;
        let constant = |global: u32| module.is_some_and(|module| !module.globals[global as usize].mutable);
        self.known.retain(|entry| match (changed, entry.place) {
            (Changes::Nothing, _) => true,
            (Changes::Bytes(changed), Place::Bytes(known)) => changed.is_apart(&known, module),
            (Changes::Global(changed), Place::Global(known)) => !globals_may_be_one(changed, known, module),
            (Changes::Bytes(_) | Changes::Memories, Place::Global(_)) | (Changes::Global(_), Place::Bytes(_)) => true,
            (Changes::Everything, Place::Global(known)) => constant(known),
            (Changes::Memories | Changes::Everything, Place::Bytes(_)) => false,
        });
    }

    fn global_get(&mut self, value: Value) -> bool {
        let (global, ty) = (self.func.inst(value).aux, self.func.ty(value));
        let at_hand = |entry: &&Entry| matches!(entry.place, Place::Global(known) if known == global);
        let known = self.known.entries().iter().find(at_hand).map(|entry| entry.value);
        if let Some(known) = known.filter(|&known| self.func.ty(known) == ty)
            && self.spend()
        {
            self.func.replace(value, known);
            return false;
        }
        if known.is_none() {
            self.remember(Entry { place: Place::Global(global), value, loaded: None });
        }
        true
    }

    fn load(&mut self, index: usize, value: Value, access: Access) -> bool {
        let op = self.func.op(value);
        let covers = |entry: &Entry| match entry.place {
            Place::Bytes(known) => known.same_start(&access) && known.width >= access.width,
            Place::Global(_) => false,
        };
        let ty = self.func.ty(value);
        for i in (0..self.known.entries().len()).rev() {
            let entry = &self.known.entries()[i];
            if !covers(entry) {
                continue;
            }
            let entry = *entry;
            if entry.loaded == Some(op) && self.func.ty(entry.value) == ty {
                if self.spend() {
                    self.func.replace(value, entry.value);
                    return false;
                }
                return true;
            }
            if let Some(extraction) = extraction(op, ty, self.func.ty(entry.value), access.width)
                && self.spend()
            {
                return self.extract(index, value, entry.value, extraction);
            }
        }
        self.remember(Entry { place: Place::Bytes(access), value, loaded: Some(op) });
        true
    }

    /// Replaces the load `value` by an operation on `known`. Returns whether the instruction stays.
    fn extract(&mut self, index: usize, value: Value, known: Value, extraction: Extraction) -> bool {
        match extraction {
            Extraction::Same => {
                self.func.replace(value, known);
                return false;
            }
            Extraction::Unary(op) => self.func.become_op(value, op, 0, &[known]),
            Extraction::Mask(bits) => {
                let (ty, pc) = (self.func.ty(value), self.func.inst(value).pc);
                let mask = self.func.create(Op::Const, ty, pc, 0, bits, &[]);
                self.constants.push((index, mask));
                self.func.become_op(value, Op::And, 0, &[known, mask]);
            }
        }
        true
    }

    fn store(&mut self, value: Value, access: Access) -> bool {
        let stored = self.func.args(value)[1];
        let is_there = |entry: &Entry| match entry.place {
            Place::Bytes(known) => known.same_start(&access) && known.width >= access.width && entry.value == stored,
            Place::Global(_) => false,
        };
        if self.known.entries().iter().any(is_there) && self.spend() {
            return false;
        }
        self.forget(Changes::Bytes(access));
        self.remember(Entry { place: Place::Bytes(access), value: stored, loaded: None });
        true
    }
}

fn is_shared(module: Option<&Module>, memory: u32) -> bool {
    module.is_some_and(|module| module.memories[memory as usize].shared)
}

/// The computation of a loaded value from a value that starts with its bytes.
enum Extraction {
    /// It is that value.
    Same,
    /// By one operation.
    Unary(Op),
    /// By a mask.
    Mask(u64),
}

/// The computation of the result of `op`, which loads `width` bytes as a `ty`, from a value of type `from`; `None` if
/// one operation does not suffice.
fn extraction(op: Op, ty: Type, from: Type, width: u32) -> Option<Extraction> {
    let same_integers = ty == from && matches!(ty, Type::I32 | Type::I64);
    match op.family() {
        Family::Load(load) => match load {
            Load::Load if ty == from => Some(Extraction::Same),
            Load::Load => match (ty, from) {
                (Type::I32, Type::I64) => Some(Extraction::Unary(Op::Wrap)),
                (Type::I32, Type::F32) | (Type::F32, Type::I32) => Some(Extraction::Unary(Op::Reinterpret)),
                (Type::I64, Type::F64) | (Type::F64, Type::I64) => Some(Extraction::Unary(Op::Reinterpret)),
                _ => None,
            },
            Load::Load32U if (ty, from) == (Type::I64, Type::I32) => Some(Extraction::Unary(Op::ExtendU)),
            Load::Load32S if (ty, from) == (Type::I64, Type::I32) => Some(Extraction::Unary(Op::ExtendS)),
            Load::Load8U | Load::Load16U | Load::Load32U => same_integers.then_some(Extraction::Mask((1 << (8 * width)) - 1)),
            Load::Load8S => same_integers.then_some(Extraction::Unary(Op::Sext8)),
            Load::Load16S => same_integers.then_some(Extraction::Unary(Op::Sext16)),
            Load::Load32S => (same_integers && ty == Type::I64).then_some(Extraction::Unary(Op::Sext32)),
            // It loads half a vector.
            Load::Load64U => None,
        },
        Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Compare(_) | Family::FloatCompare(_) => None,
        Family::Float(_) | Family::FloatUnary(_) | Family::Convert(_) | Family::Simd(_) | Family::Reference(_) => None,
        Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => None,
        Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => None,
    }
}
