//! The SSA container: a CFG of ordered blocks over dense, arena-allocated instructions.
//!
//! Every instruction is named by the value that it defines (of type void if it defines none). Phis are at the head of
//! their block and have one argument per entry of `preds`. `preds` has one entry *per edge*: a block that branches
//! twice to the same successor appears twice in it. An edge is `(block, index into its succs)`; the k-th occurrence of
//! `p` in `preds` corresponds to the k-th occurrence of the block in `p`'s `succs`.

use super::index::{Block, Value};
use super::inlined::Copies;
use super::list::{Args, List};
use super::ops::{Fields, Op, Type, vector_opcode};
use super::probability::Probability;
use crate::meter::used;
use crate::slow_growth;
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use rustc_hash::FxHashMap;
use weir_bytecode::Opcode;
use weir_contract::Entry;

/// One instruction.
#[derive(Debug)]
pub struct Inst<'a> {
    /// Its operation.
    pub op: Op,
    /// The type of its value.
    pub ty: Type,
    /// For a branch, the probability of its first successor, if the profile has one.
    pub probability: Option<Probability>,
    /// The byte offset of its Wasm instruction.
    pub pc: u32,
    /// An index, whose meaning TABLE 2 gives.
    pub aux: u32,
    /// A constant whose meaning TABLE 2 defines. The upper half of an i32 or f32 constant is zero.
    pub imm: u64,
    /// Arguments.
    pub args: Args<'a>,
}

impl Inst<'_> {
    /// `aux` and `imm` packed into the first argument of the helper that the operation calls: the segment, or the memory or
    /// table in the low half and its source or segment in the high half.
    pub fn helper_immediates(&self) -> u64 {
        let aux = u64::from(self.aux);
        match self.op.fields() {
            Fields::Segment | Fields::ElemSegment => self.imm,
            Fields::Memories | Fields::MemorySegment | Fields::Tables | Fields::TableSegment => aux | self.imm << 32,
            Fields::Memory | Fields::Table | Fields::Func | Fields::Global | Fields::Type | Fields::Tag | Fields::Trap => aux,
            Fields::None | Fields::Bits | Fields::Number | Fields::Access => 0,
            Fields::Indirect | Fields::Element | Fields::Vector | Fields::Probability | Fields::Handler => 0,
        }
    }
}

/// One basic block.
#[derive(Debug)]
pub struct BlockData<'a> {
    /// Predecessors, one entry per edge.
    pub preds: List<'a, Block>,
    /// Phis, then other instructions, then one terminator.
    pub insts: List<'a, Value>,
    /// Successors in the terminator's order.
    pub succs: List<'a, Block>,
}

/// A function in SSA form.
#[derive(Debug)]
pub struct Func<'a> {
    /// The arena of its lists: arguments, and the contents and edges of blocks.
    pub arena: &'a Bump,
    /// Its index in the module.
    pub index: u32,
    /// How it is entered.
    pub entry: Entry,
    /// The types of the parameters, in order, also if it is entered by OSR.
    pub params: BumpVec<'a, Type>,
    /// Types of the results.
    pub results: BumpVec<'a, Type>,
    /// The code of inlined functions in it.
    pub copies: Copies,
    /// How often each `br_table` went to each label, of those that the profile counted.
    table_counts: FxHashMap<Value, &'a [u32]>,
    // These are vectors, because an arena would keep every buffer that a growing list leaves.
    insts: Vec<Inst<'a>>,
    blocks: Vec<BlockData<'a>>,
    /// Union-find parents: `parent[v] == v` unless `v` was replaced. Values beyond the end have not been replaced.
    parent: Vec<Value>,
    /// The values replaced since the last [`Func::settle`].
    replaced: Vec<Value>,
}

impl<'a> Func<'a> {
    /// A function without blocks.
    pub fn new(
        arena: &'a Bump,
        index: u32,
        entry: Entry,
        params: impl IntoIterator<Item = Type>,
        results: impl IntoIterator<Item = Type>,
    ) -> Func<'a> {
        Func {
            arena,
            index,
            entry,
            params: BumpVec::from_iter_in(params, arena),
            results: BumpVec::from_iter_in(results, arena),
            copies: Copies::default(),
            table_counts: FxHashMap::default(),
            insts: Vec::new(),
            blocks: Vec::new(),
            parent: Vec::new(),
            replaced: Vec::new(),
        }
    }

    /// The bytes that it takes, with all that has ever been made in its arena.
    pub fn size(&self) -> usize {
        let Func { arena, insts, blocks, parent, replaced, table_counts, .. } = self;
        let vectors = size_of_val(&**insts) + size_of_val(&**blocks) + size_of_val(&**parent) + size_of_val(&**replaced);
        used(arena) + vectors + table_counts.capacity() * size_of::<(Value, &[u32])>()
    }

    /// Makes room for this many additional values and blocks.
    pub fn reserve(&mut self, values: usize, blocks: usize) {
        self.blocks.reserve_exact(blocks);
        self.insts.reserve_exact(values);
    }

    /// Creates a block without predecessors, instructions or successors.
    pub fn create_block(&mut self) -> Block {
        let block = Block(self.blocks.len() as u32);
        slow_growth::push(&mut self.blocks, BlockData { preds: List::new(), insts: List::new(), succs: List::new() });
        block
    }

    /// Creates an instruction that is in no block yet.
    pub fn create(&mut self, op: Op, ty: Type, pc: u32, aux: u32, imm: u64, args: &[Value]) -> Value {
        let value = Value(self.insts.len() as u32);
        slow_growth::push(&mut self.insts, Inst { op, ty, probability: None, pc, aux, imm, args: Args::new(self.arena, args) });
        value
    }

    /// Replaces the operation that computes `value`, whose type stays the same.
    pub fn become_op(&mut self, value: Value, op: Op, imm: u64, args: &[Value]) {
        let args = Args::new(self.arena, args);
        let inst = &mut self.insts[value.index()];
        (inst.op, inst.probability, inst.aux, inst.imm, inst.args) = (op, None, 0, imm, args);
    }

    /// Exchanges the successors of `block`, which ends with a branch, together with their probabilities.
    pub fn swap_arms(&mut self, block: Block) {
        self.block_mut(block).succs.swap(0, 1);
        let branch = self.terminator(block).expect("it ends with a branch");
        let probability = &mut self.insts[branch.index()].probability;
        *probability = probability.map(Probability::complement);
    }

    /// Sets the probability that `branch` goes to its first successor; `None` if it is unknown.
    pub fn set_probability(&mut self, branch: Value, probability: Option<Probability>) {
        debug_assert_eq!(self.op(branch), Op::Branch);
        self.insts[branch.index()].probability = probability;
    }

    /// How often the `br_table` at the end of `block` went to each of its labels; `None` if it is unknown, or the block ends otherwise.
    pub fn table_counts(&self, block: Block) -> Option<&'a [u32]> {
        let last = self.terminator(block).filter(|&last| self.op(last) == Op::BrTable)?;
        self.table_counts.get(&last).copied().filter(|counts| counts.len() == self.block(block).succs.len())
    }

    /// Sets how often a `br_table` went to each of its labels.
    pub fn set_table_counts(&mut self, table: Value, counts: &[u32]) {
        debug_assert_eq!(self.op(table), Op::BrTable);
        self.table_counts.insert(table, self.arena.alloc_slice_copy(counts));
    }

    /// Creates an instruction at the end of `block`.
    #[expect(clippy::too_many_arguments, reason = "they are the fields of an instruction and where it goes")]
    pub fn append(&mut self, block: Block, op: Op, ty: Type, pc: u32, aux: u32, imm: u64, args: &[Value]) -> Value {
        let value = self.create(op, ty, pc, aux, imm, args);
        self.push(block, value);
        value
    }

    /// Adds the edge `from → to`, as `from`'s last successor and `to`'s last predecessor. The caller extends the phis of `to`.
    pub fn add_edge(&mut self, from: Block, to: Block) {
        self.push_succ(from, to);
        self.push_pred(to, from);
    }

    /// Adds `to` as `from`'s last successor. The caller adds the predecessor.
    pub fn push_succ(&mut self, from: Block, to: Block) {
        self.blocks[from.index()].succs.push(self.arena, to);
    }

    /// Adds `from` as `to`'s last predecessor. The caller adds the successor.
    pub fn push_pred(&mut self, to: Block, from: Block) {
        self.blocks[to.index()].preds.push(self.arena, from);
    }

    /// Makes room for this many additional successors of `block`.
    pub fn reserve_succs(&mut self, block: Block, count: usize) {
        self.blocks[block.index()].succs.reserve(self.arena, count);
    }

    /// Adds predecessors to `block`. The caller adds the successors.
    pub fn extend_preds(&mut self, block: Block, preds: impl ExactSizeIterator<Item = Block>) {
        self.blocks[block.index()].preds.extend(self.arena, preds);
    }

    /// Appends `value` to `block`.
    pub fn push(&mut self, block: Block, value: Value) {
        self.blocks[block.index()].insts.push(self.arena, value);
    }

    /// Appends these values to `block`.
    pub fn extend(&mut self, block: Block, values: &[Value]) {
        self.blocks[block.index()].insts.extend(self.arena, values.iter().copied());
    }

    /// The target of the edge `(from, succ)`, where `succ` indexes `from`'s successors, and the edge's index in the target's
    /// predecessors and phi arguments.
    pub fn edge(&self, from: Block, succ: usize) -> (Block, usize) {
        let succs = &self.block(from).succs;
        let to = succs[succ];
        let earlier = succs[..succ].iter().filter(|&&other| other == to).count();
        let mut entries = self.block(to).preds.iter().enumerate().filter(|&(_, &pred)| pred == from);
        let (index, _) = entries.nth(earlier).expect("an edge is listed at both its ends");
        (to, index)
    }

    /// Removes those edges into `block` for whose predecessor `keep` returns false, from the predecessors and from the
    /// arguments of the phis. `keep` is called in order. The caller removes the successors.
    pub fn retain_preds(&mut self, block: Block, keep: impl FnMut(Block) -> bool) {
        let arena = self.arena;
        let data = &mut self.blocks[block.index()];
        let kept = BumpVec::from_iter_in(data.preds.iter().copied().map(keep), arena);
        if kept.iter().all(|&kept| kept) {
            return;
        }
        let mut next = kept.iter();
        data.preds.retain(|_| *next.next().expect("one decision per predecessor"));
        for &phi in &data.insts {
            let inst = &mut self.insts[phi.index()];
            if inst.op != Op::Phi {
                break;
            }
            let args = inst.args.iter().zip(&kept).filter(|&(_, &kept)| kept).map(|(&arg, _)| arg);
            inst.args = Args::new(arena, &BumpVec::from_iter_in(args, arena));
        }
    }

    /// Sets the arguments of `value`.
    pub fn set_args(&mut self, value: Value, args: &[Value]) {
        self.insts[value.index()].args = Args::new(self.arena, args);
    }

    /// The number of values, including those in no block.
    pub fn num_values(&self) -> usize {
        self.insts.len()
    }

    /// The number of blocks.
    pub fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Every block, by number.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = Block> + use<> {
        (0..self.blocks.len() as u32).map(Block)
    }

    /// The instruction that defines `value`.
    pub fn inst(&self, value: Value) -> &Inst<'a> {
        &self.insts[value.index()]
    }

    /// The instruction that defines `value`.
    pub fn inst_mut(&mut self, value: Value) -> &mut Inst<'a> {
        &mut self.insts[value.index()]
    }

    /// The contents of `block`.
    pub fn block(&self, block: Block) -> &BlockData<'a> {
        &self.blocks[block.index()]
    }

    /// The contents of `block`.
    pub fn block_mut(&mut self, block: Block) -> &mut BlockData<'a> {
        &mut self.blocks[block.index()]
    }

    /// The operation that defines `value`.
    pub fn op(&self, value: Value) -> Op {
        self.inst(value).op
    }

    /// The type of `value`.
    pub fn ty(&self, value: Value) -> Type {
        self.inst(value).ty
    }

    /// The arguments of `value`, unresolved: [`Func::find`] resolves them while replacements are pending.
    pub fn args(&self, value: Value) -> &[Value] {
        &self.inst(value).args
    }

    /// The bits of `value` if it is a constant.
    pub fn as_const(&self, value: Value) -> Option<u64> {
        let inst = self.inst(value);
        (inst.op == Op::Const).then_some(inst.imm)
    }

    /// Whether the instruction widens all lanes of a v128, and so gives a v256. Of a v256 it widens lanes of each half.
    pub fn widens(&self, value: Value) -> bool {
        let inst = self.inst(value);
        let lanes = || vector_opcode(inst.aux).and_then(Opcode::lanes);
        inst.ty == Type::V256
            && inst.op == Op::Vector
            && lanes().is_some_and(|lanes| lanes.op.widens_low_half())
            && inst.args.first().is_some_and(|&arg| self.ty(arg) == Type::V128)
    }

    /// The bits of `value` if it is a constant vector.
    pub fn as_vector(&self, value: Value) -> Option<u128> {
        let inst = self.inst(value);
        if let Some(bits) = self.as_const(value) {
            return Some(bits.into());
        }
        if inst.op != Op::Vector || inst.aux != Opcode::V128Const as u32 {
            return None;
        }
        let &[low, high] = &inst.args[..] else { return None };
        Some(u128::from(self.as_const(low)?) | u128::from(self.as_const(high)?) << 64)
    }

    /// The terminator of `block`, if it has one.
    pub fn terminator(&self, block: Block) -> Option<Value> {
        self.block(block).insts.last().copied().filter(|&last| self.op(last).is_terminator())
    }

    /// The `catch` of `block`, if it is a landing block.
    pub fn catch(&self, block: Block) -> Option<Value> {
        self.block(block)
            .insts
            .iter()
            .copied()
            .find(|&value| self.op(value) != Op::Phi)
            .filter(|&first| self.op(first) == Op::Catch)
    }

    /// The number of edges from `block` that lead to landing blocks. They are its first successors.
    pub fn exceptional_edges(&self, block: Block) -> usize {
        let succs = self.block(block).succs.len();
        match self.terminator(block).map(|last| self.op(last)) {
            Some(Op::Throw | Op::ThrowRef) => succs,
            Some(Op::Try) => succs.saturating_sub(1),
            Some(_) | None => 0,
        }
    }

    /// The phis of `block`.
    pub fn phis(&self, block: Block) -> impl Iterator<Item = Value> + '_ {
        self.block(block).insts.iter().copied().take_while(|&value| self.op(value) == Op::Phi)
    }

    /// Whether the value or an argument of the instruction is a v256.
    pub fn has_v256(&self, value: Value) -> bool {
        let inst = self.inst(value);
        inst.ty == Type::V256 || inst.args.iter().any(|&arg| self.ty(arg) == Type::V256)
    }

    /// The type of the operand that selects the Wasm instruction of a numeric operation or access: argument 0, or the stored
    /// value for a store, and the result for a load.
    pub fn operand_type(&self, value: Value) -> Type {
        let inst = self.inst(value);
        match inst.op.access_width(inst.ty) {
            Some(_) if inst.args.len() == 2 => self.ty(inst.args[1]),
            Some(_) => inst.ty,
            None => inst.args.first().map_or(Type::Void, |&arg| self.ty(arg)),
        }
    }

    /// From now on, every use of `old` means `new`. [`Func::settle`] rewrites uses; until then read them through
    /// [`Func::find`].
    pub fn replace(&mut self, old: Value, new: Value) {
        let (old, new) = (self.find(old), self.find(new));
        if old != new {
            self.extend_parents();
            self.parent[old.index()] = new;
            self.replaced.push(old);
        }
    }

    fn extend_parents(&mut self) {
        self.parent.extend((self.parent.len() as u32..self.insts.len() as u32).map(Value));
    }

    fn parent(&self, value: Value) -> Value {
        self.parent.get(value.index()).copied().unwrap_or(value)
    }

    /// Like [`Func::find`], but without shortening the path.
    pub fn root(&self, mut value: Value) -> Value {
        loop {
            let up = self.parent(value);
            if up == value {
                return value;
            }
            value = up;
        }
    }

    /// The replacement of `value`, or `value` itself; halves the path to it.
    pub fn find(&mut self, mut value: Value) -> Value {
        loop {
            let up = self.parent(value);
            if up == value {
                return value;
            }
            let above = self.parent(up);
            self.parent[value.index()] = above;
            value = above;
        }
    }

    /// Replaces every argument of `value` by its replacement.
    pub fn resolve_args(&mut self, value: Value) {
        if self.replaced.is_empty() {
            return;
        }
        for i in 0..self.args(value).len() {
            let arg = self.args(value)[i];
            self.insts[value.index()].args[i] = self.find(arg);
        }
    }

    /// Inserts each of these values before the given index in `block`; the list is ordered by index.
    pub fn insert(&mut self, block: Block, values: &[(usize, Value)]) {
        let insts = &mut self.blocks[block.index()].insts;
        let mut from = insts.len();
        insts.extend(self.arena, values.iter().map(|&(_, value)| value));
        // From the end, so that no entry is moved twice.
        for (earlier, &(at, value)) in values.iter().enumerate().rev() {
            insts.copy_within(at..from, at + earlier + 1);
            insts[at + earlier] = value;
            from = at;
        }
    }

    /// Inserts these values before all others in `block`.
    pub fn prepend(&mut self, block: Block, values: &[Value]) {
        self.blocks[block.index()].insts.insert(self.arena, 0, values);
    }

    /// Whether `value` was replaced by another.
    pub fn is_replaced(&self, value: Value) -> bool {
        self.parent(value) != value
    }

    /// Replaces every argument by its replacement, and removes replaced instructions from their blocks. No replacement is
    /// pending afterwards. Cost: O(values + arguments), or nothing if no replacement is pending.
    pub fn settle(&mut self) {
        if self.replaced.is_empty() {
            return;
        }
        self.extend_parents();
        // After this, every path has at most one step; most have none.
        for i in 0..self.replaced.len() {
            let value = self.replaced[i];
            self.parent[value.index()] = self.find(value);
        }
        let parent = &mut self.parent;
        for inst in &mut self.insts {
            inst.args.iter_mut().for_each(|arg| *arg = parent[arg.index()]);
        }
        let stays = |value: &Value| parent[value.index()] == *value;
        for block in &mut self.blocks {
            if !block.insts.iter().all(stays) {
                block.insts.retain(stays);
            }
        }
        for value in self.replaced.drain(..) {
            parent[value.index()] = value;
        }
    }
}

/// Functions are equal if they have the same instructions in the same blocks in the same order, and values have the
/// same numbers. Instructions in no block, empty blocks at the end, and the numbers of void instructions, which cannot
/// be referred to, do not count.
impl PartialEq for Func<'_> {
    fn eq(&self, other: &Func<'_>) -> bool {
        let signature = |func: &Func<'_>| (func.index, func.entry);
        if signature(self) != signature(other) || self.params != other.params || self.results != other.results {
            return false;
        }
        if self.copies != other.copies {
            return false;
        }
        let (short, long) = if self.num_blocks() <= other.num_blocks() { (self, other) } else { (other, self) };
        let empty = |data: &BlockData<'_>| data.insts.is_empty() && data.preds.is_empty() && data.succs.is_empty();
        long.blocks[short.num_blocks()..].iter().all(empty)
            && (0..).map(Block).zip(self.blocks.iter().zip(&other.blocks)).all(|(block, (a, b))| {
                a.preds == b.preds
                    && self.table_counts(block) == other.table_counts(block)
                    && a.succs == b.succs
                    && a.insts.len() == b.insts.len()
                    && a.insts.iter().zip(&b.insts).all(|(&v, &w)| {
                        let (i, j) = (self.inst(v), other.inst(w));
                        (v == w || i.ty == Type::Void)
                            && (i.op, i.ty, i.probability, i.pc, i.aux, i.imm) == (j.op, j.ty, j.probability, j.pc, j.aux, j.imm)
                            && i.args == j.args
                    })
            })
    }
}
