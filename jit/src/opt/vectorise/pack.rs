//! The vector operations of a loop: packs of the copies that the producer made by unrolling.
//!
//! A producer unrolls a loop u times: its stores fall into u classes at the distance of an element, and the trees of
//! operations above them are isomorphic. A *pack* is the u values that correspond; every one of its members is compared, not
//! only the first (comparing the first compiled loops wrongly in another compiler: OpenJDK's issue 15866). A loop that was not
//! unrolled has packs of one value. The elements of consecutive rounds and copies are consecutive lanes.
//!
//! A lane may be narrower than the values: it has their low bits. That is enough for what is stored in it, for sums and products,
//! and for all other operations if [`Bounds`] shows that the remaining bits are zero.

mod conditions;
mod extreme;
mod integers;

use self::extreme::Extreme;
use super::bounds::Bounds;
use super::demand::Demand;
use super::work::{
    Access, Allowed, Combine, Count, Group, Layout, MAX_BLOCK, Narrow, Node, PAIRED, Ramp, Recurrence, Reduction, VectorLoad,
    VectorStore, Work,
};
use crate::analysis::counted::{Counted, Linear};
use crate::ir::family::{Bits, Convert, Family, Float, FloatUnary, Load, Simd};
use crate::ir::{Func, Op, Type, Value, vector_opcode};
use rustc_hash::FxHashMap;
use weir_bytecode::Opcode;
use weir_bytecode::lanes::{self, LaneOp, Lanes, Permute, Shape, Shift, Whole, Widen};

/// The operands of a reduction's tree.
struct Chain {
    combine: Combine,
    lanes: Opcode,
    leaves: Vec<Value>,
    invariants: Vec<Value>,
}

/// Finds the work of a loop, for one layout.
pub struct Packer<'p, 'f, 'a> {
    func: &'f Func<'a>,
    counted: &'p Counted<'f, 'a>,
    bounds: &'p Bounds<'f, 'a>,
    demand: &'p Demand,
    groups: &'p [Group],
    allowed: Allowed<'p>,
    layout: Layout,
    work: Work,
    known: FxHashMap<Vec<Value>, usize>,
    /// The masks of conditions.
    masks: FxHashMap<Vec<Value>, usize>,
    /// The phis of the recurrences of whose vectors operands are being packed.
    open: Vec<Value>,
}

impl<'p, 'f, 'a> Packer<'p, 'f, 'a> {
    /// For this layout.
    pub fn new(
        func: &'f Func<'a>,
        counted: &'p Counted<'f, 'a>,
        bounds: &'p Bounds<'f, 'a>,
        demand: &'p Demand,
        groups: &'p [Group],
        allowed: Allowed<'p>,
        layout: Layout,
    ) -> Packer<'p, 'f, 'a> {
        let (work, known, masks, open) = Default::default();
        Packer { func, counted, bounds, demand, groups, allowed, layout, work, known, masks, open }
    }

    /// What a round does, if all of it can be done on vectors.
    pub fn work(mut self) -> Option<Work> {
        self.stores()?;
        let mut rest = Vec::new();
        for &phi in &self.counted.others {
            match self.chain(phi) {
                Some(chain) => self.reduction(phi, chain)?,
                None => rest.push(phi),
            }
        }
        let recurs = |phi: &Value| self.work.recurrences.iter().any(|recurrence| recurrence.phi == *phi);
        rest.iter().all(recurs).then_some(self.work)
    }

    /// The vector stores: in each group, runs of consecutive elements, one for each copy.
    fn stores(&mut self) -> Option<()> {
        let mut stores = Vec::new();
        for (group, data) in self.groups.iter().enumerate() {
            let mut of_group: Vec<Access> = data.accesses.iter().copied().filter(|access| access.is_store).collect();
            of_group.sort_by_key(|access| access.at);
            // Each copy stores all parts of an element, or the element as a whole.
            let Some(width) = of_group.first().map(|access| access.width) else { continue };
            let parts = (data.element / width) as usize;
            if parts > 1 && !self.are_rows(data.element) {
                return None;
            }
            for run in of_group.chunks(self.layout.unrolled * parts) {
                let consecutive = run.iter().zip(0..).all(|(access, i)| access.at == run[0].at + i * width);
                let ops = run.iter().all(|access| self.func.op(access.value) == self.func.op(run[0].value));
                if run.len() != self.layout.unrolled * parts || !consecutive || !ops || !data.element.is_multiple_of(width) {
                    return None;
                }
                let values: Vec<Value> = run.iter().map(|access| self.func.args(access.value)[1]).collect();
                let of_part = |part| values[part..].iter().copied().step_by(parts).collect::<Vec<Value>>();
                let nodes = (0..parts).map(|part| self.stored(&of_part(part), width)).collect::<Option<Vec<_>>>()?;
                let narrow = nodes[0].1;
                if nodes.iter().any(|node| node.1 != narrow) {
                    return None;
                }
                let parts = nodes.into_iter().map(|node| node.0).collect();
                let position = run.iter().map(|access| access.position).min()?;
                stores.push((position, VectorStore { group, at: run[0].at, parts, width, store: run[0].value, narrow }));
            }
        }
        stores.sort_by_key(|&(position, _)| position);
        self.work.stores = stores.into_iter().map(|(_, store)| store).collect();
        Some(())
    }

    /// The vector for stored values of this width, and how its lanes become numbers in memory.
    fn stored(&mut self, values: &[Value], width: u64) -> Option<(usize, Narrow)> {
        let func = self.func;
        let demotes = || self.operation(values) == Some(Op::Demote);
        if self.layout.lane == 8 && width == 4 && self.allowed.floats && demotes() {
            let doubles = self.args(values, 0);
            return Some((self.pack(&doubles)?, Narrow::Demote));
        }
        if self.layout.lane == PAIRED && width == PAIRED {
            return Some((self.pack(values)?, Narrow::Bits));
        }
        if self.layout.lane == PAIRED {
            let (vectors, lane) = self.lanes_of_vectors(values, width)?;
            return Some((self.pack(&vectors)?, Narrow::Lane(lane)));
        }
        let float = func.ty(values[0]).is_float();
        if float && width != self.layout.lane {
            return None;
        }
        let node = self.pack(values)?;
        // Narrowing saturates numbers, which it reads as signed, so that all other bits must be zero.
        let selects_words = (self.layout.lane, width) == (8, 4);
        let fits = values.iter().all(|&value| self.bounds.fits(value, 8 * width));
        if width == self.layout.lane || selects_words || fits || self.has_zeros_above(node, 8 * width) {
            return Some((node, Narrow::Bits));
        }
        Some((self.low_bytes(node, width)?, Narrow::Bits))
    }

    /// The vectors of the producer's of which the values are lanes of this width, all at one index.
    fn lanes_of_vectors(&self, values: &[Value], width: u64) -> Option<(Vec<Value>, u8)> {
        let first = self.func.inst(values[0]);
        let extracts = match width {
            4 => [Opcode::I32x4ExtractLane, Opcode::F32x4ExtractLane],
            8 => [Opcode::I64x2ExtractLane, Opcode::F64x2ExtractLane],
            _ => return None,
        };
        let alike = |&value: &Value| (self.func.inst(value).aux, self.func.inst(value).imm) == (first.aux, first.imm);
        let opcode = vector_opcode(first.aux).filter(|_| self.operation(values) == Some(Op::Vector))?;
        (extracts.contains(&opcode) && values.iter().all(alike)).then(|| (self.args(values, 0), first.imm as u8))
    }

    /// Whether lanes have no other bits than this many because they were shifted.
    fn has_zeros_above(&self, node: usize, bits: u64) -> bool {
        let &Node::Shift(opcode, _, Count::Number(count)) = &self.work.nodes[node] else { return false };
        let op = opcode.lanes().map(|lanes| lanes.op);
        op == Some(LaneOp::Shift(Shift::ShrU)) && 8 * self.layout.lane - count <= bits
    }

    /// The first bytes of each lane; the others are zero.
    fn low_bytes(&mut self, node: usize, bytes: u64) -> Option<usize> {
        let mask = self.node(Node::Number((1 << (8 * bytes)) - 1));
        Some(self.node(Node::Op(whole(Whole::And)?, vec![node, mask])))
    }

    fn reduction(&mut self, phi: Value, chain: Chain) -> Option<()> {
        let Chain { combine, lanes, mut leaves, invariants } = chain;
        leaves.sort_by_key(|&leaf| self.first_load(leaf));
        let node = self.pack(&leaves)?;
        self.work.reductions.push(Reduction { phi, combine, lanes, node, invariants });
        Some(())
    }

    /// How often the loop uses a value.
    fn uses(&self, value: Value) -> usize {
        let args = self.func.block(self.counted.block).insts.iter().flat_map(|&user| self.func.args(user));
        args.filter(|&&arg| arg == value).count()
    }

    /// The operands of the tree of one operation by which each round changes a phi. Its inner values have no other use in the loop.
    fn chain(&self, phi: Value) -> Option<Chain> {
        let func = self.func;
        let ty = func.ty(phi);
        let last = func.args(phi)[self.counted.back];
        if !matches!((ty, self.layout.lane), (Type::I32, 4) | (Type::I64, 8) | (Type::V128, PAIRED)) {
            return None;
        }
        if func.op(last) == Op::Select {
            return self.extremes(phi, last);
        }
        let (op, aux) = (func.op(last), func.inst(last).aux);
        let (combine, lanes) = if ty == Type::V128 {
            let opcode = vector_opcode(aux).filter(|_| op == Op::Vector)?;
            (Combine::Vector { idempotent: combines(opcode)? }, opcode)
        } else {
            let lanes = [
                (Op::Add, self.lane_op(LaneOp::Integer(lanes::Integer::Add), false)?),
                (Op::And, Opcode::V128And),
                (Op::Or, Opcode::V128Or),
                (Op::Xor, Opcode::V128Xor),
            ];
            (Combine::Op(op), lanes.into_iter().find(|&(reduces, _)| reduces == op)?.1)
        };
        let (mut work, mut leaves, mut phis) = (vec![last], Vec::new(), 0);
        while let Some(value) = work.pop() {
            let same = func.op(value) == op && func.ty(value) == ty && func.inst(value).aux == aux;
            let inner = same && self.counted.position(value).is_some();
            // The last one is used by the phi.
            if value == phi {
                phis += 1;
            } else if inner && self.uses(value) == 1 && !self.counted.is_invariant(value) {
                work.extend(func.args(value));
            } else {
                leaves.push(value);
            }
        }
        // The producer adds constants of all copies at once.
        let mut invariants = Vec::new();
        if op == Op::Add && leaves.len() > self.layout.unrolled {
            let (equal, rest) = leaves.into_iter().partition(|&leaf| self.counted.is_invariant(leaf));
            (invariants, leaves) = (equal, rest);
        }
        let whole = phis == 1 && self.uses(phi) == 1 && leaves.len() == self.layout.unrolled;
        whole.then_some(Chain { combine, lanes, leaves, invariants })
    }

    /// The operands of a chain of selections of the least or greatest one.
    fn extremes(&self, phi: Value, last: Value) -> Option<Chain> {
        let (op, ..) = Extreme::of(self.func, last)?;
        let (mut value, mut leaves) = (last, Vec::new());
        while value != phi {
            let (of, a, b) = Extreme::of(self.func, value)?;
            // The comparison and the selection use it, and the phi the last one.
            let expected = if value == last { 1 } else { 2 };
            if of != op || self.uses(value) != expected || leaves.len() == self.layout.unrolled {
                return None;
            }
            let inner = |value: Value| value == phi || Extreme::of(self.func, value).is_some_and(|found| found.0 == op);
            let (next, leaf) = if inner(a) && a != phi && b == phi || !inner(a) { (b, a) } else { (a, b) };
            value = next;
            leaves.push(leaf);
        }
        let lanes = self.lane_op(LaneOp::Integer(op.lanes()), false)?;
        let whole = self.uses(phi) == 2 && leaves.len() == self.layout.unrolled;
        whole.then_some(Chain { combine: Combine::Extreme(op.compare()), lanes, leaves, invariants: Vec::new() })
    }

    /// The group and the distance of the first load, in the order of operands, on which a value depends.
    fn first_load(&self, value: Value) -> Option<(usize, u64)> {
        let mut value = value;
        for _ in 0..MAX_BLOCK {
            if let Some((group, access)) = self.access(value) {
                return Some((group, access.at));
            }
            let moves = |&&arg: &&Value| {
                self.counted.position(arg).is_some() && self.func.op(arg) != Op::Phi && !self.counted.is_invariant(arg)
            };
            value = *self.func.args(value).iter().find(moves)?;
        }
        None
    }

    /// The group and the access of a load or store.
    fn access(&self, value: Value) -> Option<(usize, Access)> {
        let find = |group: &Group| group.accesses.iter().copied().find(|access| access.value == value);
        self.groups.iter().enumerate().find_map(|(i, group)| Some((i, find(group)?)))
    }

    fn node(&mut self, node: Node) -> usize {
        self.work.nodes.push(node);
        self.work.nodes.len() - 1
    }

    /// The instruction with this operation on the lanes of this loop.
    fn lane_op(&self, op: LaneOp, float: bool) -> Option<Opcode> {
        let shape = shape(self.layout.lane, float)?;
        instruction(Lanes { from: shape, shape, op })
    }

    /// Whether values of the type fill a lane, so that all their bits are in it.
    fn fills_lane(&self, ty: Type) -> bool {
        matches!((ty, self.layout.lane), (Type::I32 | Type::F32, 4) | (Type::I64 | Type::F64, 8) | (Type::V128, PAIRED))
    }

    /// Whether all bits of these values are in a lane, or zero. It is for users that need all of them, by [`Demand`].
    fn are_whole(&self, values: &[Value]) -> bool {
        let whole = |&value: &Value| self.fills_lane(self.func.ty(value)) || self.bounds.fits(value, 8 * self.layout.lane);
        values.iter().all(whole)
    }

    /// The vector whose lanes have the needed low bits of these values, one for each copy.
    fn pack(&mut self, values: &[Value]) -> Option<usize> {
        if let Some(&known) = self.known.get(values) {
            return Some(known);
        }
        let node = self.pack_new(values)?;
        self.known.insert(values.to_vec(), node);
        Some(node)
    }

    fn pack_new(&mut self, values: &[Value]) -> Option<usize> {
        let func = self.func;
        let (first, ty) = (values[0], func.ty(values[0]));
        let fits = self.fills_lane(ty) || matches!((ty, self.layout.lane), (Type::I32, 1 | 2) | (Type::I64, 1 | 2 | 4));
        if !fits || !values.iter().all(|&value| func.ty(value) == ty) {
            return None;
        }
        let same =
            |value: Value| value == first || func.as_const(first).is_some() && func.as_const(first) == func.as_const(value);
        if values.iter().all(|&value| same(value)) && self.counted.is_invariant(first) {
            return self.splat(first);
        }
        let earliest = if self.layout.descends { values[values.len() - 1] } else { first };
        if self.counted.others.contains(&earliest) {
            return self.recurrence(earliest, values);
        }
        if let Some(ramp) = self.ramp(values) {
            self.work.ramps.push(ramp);
            return Some(self.node(Node::Ramp(self.work.ramps.len() - 1)));
        }
        if self.layout.lane == PAIRED && values.iter().all(|&value| self.access(value).is_some()) {
            return self.loads_of_vectors(values);
        }
        let op = self.operation(values)?;
        match op.family() {
            Family::Load(load) => self.loads(load, values),
            Family::Integer(op) => self.integers(op, values),
            Family::Float(op) if self.allowed.floats => {
                let op = match op {
                    Float::Fadd => lanes::Float::Add,
                    Float::Fsub => lanes::Float::Sub,
                    Float::Fmul => lanes::Float::Mul,
                    Float::Fdiv => lanes::Float::Div,
                    Float::Fmin => lanes::Float::Min,
                    Float::Fmax => lanes::Float::Max,
                    Float::Fcopysign => return None,
                };
                self.apply(self.lane_op(LaneOp::Float(op), true)?, values, false)
            }
            Family::FloatUnary(op) if self.allowed.floats => {
                let op = match op {
                    FloatUnary::Fabs => lanes::FloatUnary::Abs,
                    FloatUnary::Fneg => lanes::FloatUnary::Neg,
                    FloatUnary::Fsqrt => lanes::FloatUnary::Sqrt,
                    FloatUnary::Fceil => lanes::FloatUnary::Ceil,
                    FloatUnary::Ffloor => lanes::FloatUnary::Floor,
                    FloatUnary::Ftrunc => lanes::FloatUnary::Trunc,
                    FloatUnary::Fnearest => lanes::FloatUnary::Nearest,
                };
                self.apply(self.lane_op(LaneOp::FloatUnary(op), true)?, values, false)
            }
            Family::Convert(op) => self.conversion(op, values),
            Family::Compare(_) | Family::FloatCompare(_) => {
                let (mask, one) = (self.mask(values)?, self.node(Node::Number(1)));
                Some(self.node(Node::Op(whole(Whole::And)?, vec![mask, one])))
            }
            Family::Leaf(_) if op == Op::Select => self.selection(values),
            Family::Bits(Bits::Sext8) => self.sign_extension(8, values),
            Family::Bits(Bits::Sext16) => self.sign_extension(16, values),
            Family::Bits(Bits::Sext32) => self.sign_extension(32, values),
            Family::Simd(Simd::Vector) => self.pairs(values),
            Family::Bits(_) | Family::Leaf(_) | Family::Float(_) | Family::FloatUnary(_) => None,
            Family::Simd(_) | Family::Reference(_) | Family::Call(_) | Family::Exception(_) => None,
            Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => None,
            Family::Accounting(_) | Family::Terminator(_) => None,
        }
    }

    /// The operation of values that the loop computes, if it is the same for all.
    fn operation(&self, values: &[Value]) -> Option<Op> {
        let op = self.func.op(values[0]);
        let alike = |&value: &Value| self.func.op(value) == op && self.counted.position(value).is_some();
        values.iter().all(alike).then_some(op)
    }

    /// An instruction of the producer on vectors of 128 bits, each of which is a lane.
    fn pairs(&mut self, values: &[Value]) -> Option<usize> {
        let func = self.func;
        let first = func.inst(values[0]);
        let alike = |&value: &Value| (func.inst(value).aux, func.inst(value).imm) == (first.aux, first.imm);
        let opcode = vector_opcode(first.aux)?;
        if let Some(load) = self.widened_vectors(values) {
            return Some(self.node(Node::Load(load)));
        }
        let Lanes { from, shape, op } = opcode.lanes().filter(|lanes| lanes.op.works_on_halves())?;
        if !values.iter().all(alike) || (from.is_float() || shape.is_float()) && !self.allowed.floats {
            return None;
        }
        if op == LaneOp::Permute(Permute::Shuffle) {
            let lanes = self.args(values, 2);
            let same = lanes.iter().all(|&other| func.as_vector(other) == func.as_vector(lanes[0]));
            let [a, b] = [0, 1].map(|i| self.args(values, i));
            let operands = if same { [self.pack(&a)?, self.pack(&b)?] } else { return None };
            return Some(self.node(Node::Shuffle(operands, lanes[0])));
        }
        if !matches!(op, LaneOp::Shift(_)) {
            return self.apply(opcode, values, false);
        }
        let counts = self.args(values, 1);
        let same = counts.iter().all(|&count| count == counts[0]) && self.counted.is_invariant(counts[0]);
        let shifted = self.args(values, 0);
        let node = if same { self.pack(&shifted)? } else { return None };
        Some(self.node(Node::Shift(opcode, node, Count::Value(counts[0]))))
    }

    /// Loads of the producer's vectors, of as many bytes as are used. The rest of one that is loaded in part is zero.
    fn loads_of_vectors(&mut self, values: &[Value]) -> Option<usize> {
        let (group, first) = self.consecutive(values)?;
        if self.groups[group].stride == 0 {
            return self.operation(values).map(|_| self.node(Node::Uniform(values[0])));
        }
        let load = VectorLoad { group, at: first.at, part: 0, width: first.width, load: values[0], widen: Vec::new() };
        Some(self.node(Node::Load(load)))
    }

    /// The load of two vectors of the producer's whose lanes are those in memory, widened until they fill a vector. All lanes of both are then
    /// widened at once.
    fn widened_vectors(&self, values: &[Value]) -> Option<VectorLoad> {
        let (mut inner, mut widen, mut factor) = (values.to_vec(), Vec::new(), 1);
        while !inner.iter().all(|&value| self.access(value).is_some()) {
            let _ = self.operation(&inner).filter(|&op| op == Op::Vector)?;
            let aux = self.func.inst(inner[0]).aux;
            let opcode = vector_opcode(aux).filter(|opcode| opcode.lanes().is_some_and(|lanes| lanes.op.widens_low_half()))?;
            let floats = opcode.lanes().is_some_and(|lanes| lanes.shape.is_float());
            if floats && !self.allowed.floats || !inner.iter().all(|&value| self.func.inst(value).aux == aux) {
                return None;
            }
            widen.push(opcode);
            (inner, factor) = (self.args(&inner, 0), 2 * factor);
        }
        let (group, first) = self.consecutive(&inner)?;
        let (width, stride) = (first.width, self.groups[group].stride);
        widen.reverse();
        let fills = stride != 0 && width * factor == PAIRED && factor > 1;
        fills.then(|| VectorLoad { group, at: first.at, part: 0, width, load: inner[0], widen })
    }

    /// An invariant value in all lanes.
    fn splat(&mut self, value: Value) -> Option<usize> {
        let ty = self.func.ty(value);
        if let (Some(bits), false) = (self.func.as_const(value), ty.is_float()) {
            return Some(self.node(Node::Number(bits)));
        }
        self.has_splat(ty).then(|| self.node(Node::Splat(value)))
    }

    /// Whether there is a splat of numbers of the type: of 64 bits in lanes of 64 bits only.
    fn has_splat(&self, ty: Type) -> bool {
        ty != Type::I64 || self.layout.lane == 8
    }

    /// Values of which the earliest one is that of the last copy of the round before, and each other one that of the copy before
    /// it: the lanes of another vector, moved by one.
    fn recurrence(&mut self, phi: Value, values: &[Value]) -> Option<usize> {
        let func = self.func;
        let (start, last) = (func.args(phi)[self.counted.entry], func.args(phi)[self.counted.back]);
        // The phi's value after the loop comes from a lane.
        if !self.are_whole(&[start, last]) || self.open.contains(&phi) {
            return None;
        }
        self.open.push(phi);
        let mut moved = values.to_vec();
        if self.layout.descends {
            moved.rotate_right(1);
            moved[0] = last;
        } else {
            moved.rotate_left(1);
            moved[values.len() - 1] = last;
        }
        let node = self.pack(&moved)?;
        self.open.pop();
        self.work.recurrences.push(Recurrence { phi, node });
        Some(self.node(Node::Splice(self.work.recurrences.len() - 1)))
    }

    /// Numbers that differ by constants, and that each round increases by the same number. Their distances have half the bits of a
    /// lane.
    fn ramp(&self, values: &[Value]) -> Option<Ramp> {
        if self.func.ty(values[0]) != Type::I32 || self.layout.lane == 1 || self.layout.descends {
            return None;
        }
        let form = self.counted.linear(values[0])?;
        let stride = self.counted.stride(&form).filter(|&stride| stride != 0)?;
        let others = values.iter().map(|&value| self.counted.linear(value).filter(|other| other.terms == form.terms));
        let from_first = |other: Option<Linear>| Some(other?.constant.wrapping_sub(form.constant) as i32);
        let copies = others.map(from_first).collect::<Option<Vec<i32>>>()?;
        let lanes = self.layout.lanes() as usize;
        let limit = 1i64 << (4 * self.layout.lane - 1);
        let offset = |lane: usize| {
            let offset = (lane / copies.len()) as i64 * i64::from(stride as i32) + i64::from(copies[lane % copies.len()]);
            (-limit..limit).contains(&offset).then_some(offset as i16)
        };
        let offsets = (0..lanes).map(offset).collect::<Option<Vec<i16>>>()?;
        let step = stride.wrapping_mul((lanes / copies.len()) as u32);
        lanes.is_multiple_of(copies.len()).then_some(Ramp { form, offsets, step })
    }

    /// The operands with this index.
    fn args(&self, values: &[Value], i: usize) -> Vec<Value> {
        values.iter().map(|&value| self.func.args(value)[i]).collect()
    }

    /// An operation on the packs of the operands. If it may commute, the operands of each copy are first put in the order in
    /// which they resemble those of the first copy.
    fn apply(&mut self, opcode: Opcode, values: &[Value], commutes: bool) -> Option<usize> {
        let func = self.func;
        let args = func.args(values[0]).len();
        let mut packs: Vec<Vec<Value>> = (0..args).map(|i| self.args(values, i)).collect();
        if commutes {
            let alike = |a: Value, b: Value| a == b || func.op(a) == func.op(b) && self.resembles(a, b);
            for copy in 1..values.len() {
                let straight = alike(packs[0][copy], packs[0][0]) && alike(packs[1][copy], packs[1][0]);
                if !straight && alike(packs[1][copy], packs[0][0]) && alike(packs[0][copy], packs[1][0]) {
                    let (a, b) = (packs[0][copy], packs[1][copy]);
                    (packs[0][copy], packs[1][copy]) = (b, a);
                }
            }
        }
        let nodes = packs.iter().map(|pack| self.pack(pack)).collect::<Option<Vec<usize>>>()?;
        Some(self.node(Node::Op(opcode, nodes)))
    }

    /// Whether two values with the same operation may belong to one pack, as far as their accesses show it.
    fn resembles(&self, a: Value, b: Value) -> bool {
        let invariant = self.counted.is_invariant(a) == self.counted.is_invariant(b);
        invariant && self.access(a).map(|access| access.0) == self.access(b).map(|access| access.0)
    }

    /// The accesses of loads of consecutive elements, or of the same part of each: the group, and the first one.
    fn consecutive(&self, values: &[Value]) -> Option<(usize, Access)> {
        let accesses = values.iter().map(|&value| self.access(value)).collect::<Option<Vec<(usize, Access)>>>()?;
        let (group, first) = accesses[0];
        let element = self.groups[group].element;
        let follows = |(&(other, access), i): (&(usize, Access), u64)| {
            other == group && access.at == first.at + i * element && access.width == first.width
        };
        accesses.iter().zip(0..).all(follows).then_some((group, first))
    }

    /// Whether the elements of a vector are whole rows of 16 bytes.
    fn are_rows(&self, element: u64) -> bool {
        (self.layout.lanes() * element).is_multiple_of(16)
    }

    /// The operations that widen integers of `from` bytes to `to` bytes.
    fn widening(from: u64, to: u64, signed: bool) -> Option<Vec<Opcode>> {
        let op = LaneOp::Widen(if signed { Widen::ExtendLowS } else { Widen::ExtendLowU });
        let steps = [1, 2, 4].into_iter().filter(|&width| width >= from && width < to);
        steps.map(|width| instruction(Lanes { from: shape(width, false)?, shape: shape(2 * width, false)?, op })).collect()
    }

    fn loads(&mut self, load: Load, values: &[Value]) -> Option<usize> {
        let (group, first) = self.consecutive(values)?;
        let groups = self.groups;
        let data = &groups[group];
        if data.stride == 0 {
            return self.has_splat(self.func.ty(values[0])).then(|| self.node(Node::Uniform(values[0])));
        }
        let (element, width) = (data.element, first.width);
        let part = data.part(first);
        let (signed, full) = match load {
            Load::Load8S | Load::Load16S | Load::Load32S => (true, false),
            Load::Load8U | Load::Load16U | Load::Load32U | Load::Load64U => (false, false),
            Load::Load => (false, true),
        };
        // A number that a wider lane would hold in part is none of these values.
        if width > self.layout.lane || full && !self.fills_lane(self.func.ty(values[0])) && width < self.layout.lane {
            return None;
        }
        let at = first.at - part;
        // Small parts are cheaper to take from the lanes of whole elements.
        let masked = width < element && matches!(element, 2 | 4 | 8) && element <= self.layout.lane;
        if !masked {
            // Such parts are masked in wider lanes.
            if width < element && (width <= 2 && matches!(element, 2 | 4) || !self.are_rows(element)) {
                return None;
            }
            let widen = Self::widening(width, self.layout.lane, signed)?;
            let load = VectorLoad { group, at, part, width, load: values[0], widen };
            return Some(self.node(Node::Load(load)));
        }
        let widen = Self::widening(element, self.layout.lane, false)?;
        let load = VectorLoad { group, at, part: 0, width: element, load: values[0], widen };
        let node = self.node(Node::Load(load));
        // Bits of the element, which is zero-extended.
        let (before, after) = (8 * part, 8 * (self.layout.lane - part - width));
        if signed {
            let raised = self.shifted(Shift::Shl, node, after)?;
            return self.shifted(Shift::ShrS, raised, before + after);
        }
        let low = self.shifted(Shift::ShrU, node, before)?;
        if part + width == element { Some(low) } else { self.low_bytes(low, width) }
    }

    /// Loads of numbers of at most 4 bytes, widened to 4 bytes each, and then by an operation that fills lanes of 8 bytes.
    fn widened_loads(&mut self, values: &[Value], then: Opcode) -> Option<usize> {
        let op = self.operation(values)?;
        let (group, first) = self.consecutive(values).filter(|_| self.layout.lane == 8)?;
        let (data, width) = (&self.groups[group], first.width);
        if data.stride == 0 || width > 4 {
            return None;
        }
        if width < data.element && !self.are_rows(data.element) {
            return None;
        }
        let part = data.part(first);
        let mut widen = Self::widening(width, 4, matches!(op, Op::Load8S | Op::Load16S))?;
        widen.push(then);
        Some(self.node(Node::Load(VectorLoad { group, at: first.at - part, part, width, load: values[0], widen })))
    }

    fn conversion(&mut self, op: Convert, values: &[Value]) -> Option<usize> {
        let (from, to) = (self.func.operand_type(values[0]), self.func.ty(values[0]));
        let singles = (from, to) == (Type::I32, Type::F32) && self.allowed.floats;
        let doubles = (from, to) == (Type::I32, Type::F64) && self.allowed.floats;
        let integers = (from, to) == (Type::F32, Type::I32) && self.layout.lane == 4;
        let args = self.args(values, 0);
        match op {
            Convert::ConvertS if singles => self.apply(Opcode::F32x4ConvertI32x4S, values, false),
            // Numbers below 2³¹ are equal as signed ones, whose conversion is cheaper.
            Convert::ConvertU if singles && args.iter().all(|&arg| self.bounds.fits(arg, 31)) => {
                self.apply(Opcode::F32x4ConvertI32x4S, values, false)
            }
            Convert::ConvertU if singles => self.apply(Opcode::F32x4ConvertI32x4U, values, false),
            Convert::ConvertS if doubles => self.widened_loads(&args, Opcode::F64x2ConvertLowI32x4S),
            Convert::ConvertU if doubles && args.iter().all(|&arg| self.bounds.fits(arg, 31)) => {
                self.widened_loads(&args, Opcode::F64x2ConvertLowI32x4S)
            }
            Convert::TruncSatS if integers => self.apply(Opcode::I32x4TruncSatF32x4S, values, false),
            Convert::TruncSatU if integers => self.apply(Opcode::I32x4TruncSatF32x4U, values, false),
            Convert::Promote if self.allowed.floats => self.widened_loads(&args, Opcode::F64x2PromoteLowF32x4),
            Convert::ExtendS if self.layout.lane == 8 => self.widened_loads(&args, Opcode::I64x2ExtendLowI32x4S),
            Convert::ExtendU if self.layout.lane == 8 => self.widened_loads(&args, Opcode::I64x2ExtendLowI32x4U),
            // The low bits stay.
            Convert::Reinterpret | Convert::Wrap | Convert::ExtendS | Convert::ExtendU => self.pack(&args),
            Convert::ConvertS | Convert::ConvertU | Convert::TruncSatS | Convert::TruncSatU => None,
            Convert::TruncS | Convert::TruncU | Convert::Demote | Convert::Promote => None,
        }
    }
}

/// Whether an instruction on vectors of integers has no effect if it is repeated. `None` if it is not associative and commutative.
fn combines(opcode: Opcode) -> Option<bool> {
    use lanes::Integer::{Add, MaxS, MaxU, MinS, MinU};
    let op = opcode.lanes()?.op;
    let idempotent =
        [Whole::And, Whole::Or].map(LaneOp::Whole).contains(&op) || [MinS, MinU, MaxS, MaxU].map(LaneOp::Integer).contains(&op);
    let combines = idempotent || op == LaneOp::Whole(Whole::Xor) || op == LaneOp::Integer(Add);
    combines.then_some(idempotent)
}

/// The lanes of this many bytes.
pub fn shape(bytes: u64, float: bool) -> Option<Shape> {
    match (bytes, float) {
        (1, false) => Some(Shape::I8x16),
        (2, false) => Some(Shape::I16x8),
        (4, false) => Some(Shape::I32x4),
        (8, false) => Some(Shape::I64x2),
        (4, true) => Some(Shape::F32x4),
        (8, true) => Some(Shape::F64x2),
        _ => None,
    }
}

/// The instruction with this operation on all bits.
fn whole(op: Whole) -> Option<Opcode> {
    instruction(Lanes { from: Shape::V128, shape: Shape::V128, op: LaneOp::Whole(op) })
}

/// The instruction that does this.
pub fn instruction(lanes: Lanes) -> Option<Opcode> {
    Opcode::ALL.iter().copied().find(|opcode| opcode.lanes() == Some(lanes))
}
