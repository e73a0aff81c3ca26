//! Random counted loops over memory, as producers make them: unrolled or not, with indices, pointers or counters that ascend from a
//! negative number, and with copies that differ in the order of commutative operands. The arrays' elements may be narrower than the
//! values. Some copies differ in more, and some loops have what no vector loop can have.

use crate::rng::Rng;
use bumpalo::Bump;
use weir_jit::ir::{Block, Entry, Func, Op, Type, Value};

/// What a loop is like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The number of copies of the body.
    pub copies: u32,
    /// The bytes of an element of each array.
    pub elements: [u32; 3],
    /// The bytes of an access to each array. Loads from the third may be of fewer. If they are fewer than those of an element, a store
    /// comes with those of the other parts of the element.
    pub widths: [u32; 3],
    /// The type of the values.
    pub ty: Type,
    /// Whether a sum is computed instead of a store, or besides it.
    pub reduces: bool,
    /// Whether the sum is the least or the greatest value instead.
    pub extreme: bool,
    /// Whether a loaded value is used in the next copy, or the next round.
    pub recurs: bool,
    /// Whether the counter is used as a value.
    pub ramps: bool,
    /// Whether the loop stores.
    pub stores: bool,
    /// Whether it stores, or adds to the sum, in arms of branches only.
    pub arms: bool,
    /// Whether it loads what nothing uses, also in arms that do nothing else.
    pub unused: bool,
    /// Whether what the loop passes from round to round is returned as it was in the last round, too, and not only as the next one would have it.
    pub before: bool,
    /// Whether it polls.
    pub polls: bool,
    /// The cost of a round, or 0.
    pub cost: u64,
    /// The way in which rounds are counted.
    pub counter: Counter,
    /// The number of rounds, if first value and bound are constants.
    pub rounds: Option<u32>,
    /// Whether something in one copy is made different.
    pub damaged: bool,
}

/// The way in which rounds are counted. The parameters are the addresses of three arrays, first value, bound, and numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// An index that ascends to the bound; addresses are sums.
    Index(Op),
    /// Pointers, and a counter that descends.
    Down(Op),
    /// An index that descends to the bound; each copy accesses the element below that of the copy before it.
    Backward(Op),
    /// A negative number that ascends to zero is added to the ends of the arrays.
    Negative,
}

/// The parameters of a loop.
pub const PARAMS: [Type; 9] = [Type::I32, Type::I32, Type::I32, Type::I32, Type::I32, Type::I32, Type::I64, Type::F32, Type::F64];

struct Maker<'m, 'a> {
    func: Func<'a>,
    rng: &'m mut Rng,
    block: Block,
    pc: u32,
    params: Vec<Value>,
    /// The counter.
    index: Option<Value>,
    /// An integer of one byte, of the type of the values.
    small: Option<Value>,
    shape: Shape,
}

/// A shape.
pub fn shape(rng: &mut Rng) -> Shape {
    let copies = *rng.pick(&[1, 1, 2, 3, 4, 8]);
    let (ty, element) = *rng.pick(&[
        (Type::I32, 1),
        (Type::I32, 1),
        (Type::I32, 2),
        (Type::I32, 4),
        (Type::I64, 8),
        (Type::F32, 4),
        (Type::F64, 8),
    ]);
    let mut elements = [element; 3];
    if rng.percent(40) {
        let sizes: &[u32] = match ty {
            Type::I64 => &[1, 2, 4, 8],
            Type::F64 => &[4, 8],
            _ => &[1, 2, 4],
        };
        elements = [0; 3].map(|_| *rng.pick(sizes));
    }
    let widths = elements;
    if rng.percent(25) {
        let times = *rng.pick(&[2, 2, 3, 4]);
        elements[2] *= times;
        if rng.percent(50) {
            elements[0] *= *rng.pick(&[2, 2, 3]);
        }
    }
    let reduces = rng.percent(40);
    let counter = match rng.below(5) {
        0 | 1 => Counter::Index(*rng.pick(&[Op::Ne, Op::LtS, Op::LtU, Op::LeS, Op::LeU])),
        2 => Counter::Down(*rng.pick(&[Op::Ne, Op::GtS, Op::GtU, Op::GeS])),
        3 => Counter::Backward(*rng.pick(&[Op::Ne, Op::GtS, Op::GtU])),
        _ if elements == [elements[0]; 3] => Counter::Negative,
        _ => Counter::Index(Op::Ne),
    };
    Shape {
        copies,
        elements,
        widths,
        ty,
        reduces: reduces && !ty.is_float(),
        extreme: ty == Type::I32 && rng.percent(60),
        recurs: rng.percent(25),
        ramps: matches!(ty, Type::I32 | Type::F32) && rng.percent(25),
        arms: rng.percent(25),
        unused: rng.percent(15),
        stores: !reduces || ty.is_float() || rng.percent(50),
        before: rng.percent(20),
        polls: rng.percent(60),
        cost: if rng.percent(60) { 1 + u64::from(rng.below(9)) } else { 0 },
        counter,
        rounds: rng.percent(15).then(|| 1 + (rng.below(64) >> rng.below(4))),
        damaged: rng.percent(10),
    }
}

/// A function with one loop of this shape. It returns what the loop passes from round to round.
pub fn function<'a>(arena: &'a Bump, rng: &mut Rng, shape: Shape) -> Func<'a> {
    let func = Func::new(arena, 0, Entry::Call, PARAMS, []);
    let mut maker = Maker { func, rng, block: Block(0), pc: 1, params: Vec::new(), index: None, small: None, shape };
    for block in 0..3 {
        assert_eq!(maker.func.create_block(), Block(block));
    }
    for (i, &ty) in PARAMS.iter().enumerate() {
        let param = maker.inst(Op::Param, ty, i as u64, &[]);
        maker.params.push(param);
    }
    if let Some(rounds) = shape.rounds {
        let (first, last) = counts(shape, rounds, least(shape));
        maker.params[3] = maker.number(Type::I32, first.into());
        maker.params[4] = maker.number(Type::I32, last.into());
    }
    maker.make();
    maker.func
}

/// The usual lowest value of the counter.
fn least(shape: Shape) -> u32 {
    // The bound of an index that descends is below the first one.
    u32::from(matches!(shape.counter, Counter::Backward(_)))
}

/// The first value of the counter and its bound, for about `rounds` rounds from, or down to, about `edge`.
fn counts(shape: Shape, rounds: u32, edge: u32) -> (u32, u32) {
    let beyond = edge.wrapping_add(rounds * shape.copies);
    match shape.counter {
        Counter::Index(_) => (edge, beyond),
        Counter::Backward(_) => (beyond.wrapping_sub(1), edge.wrapping_sub(1)),
        Counter::Down(_) => (edge.wrapping_add(rounds), edge),
        Counter::Negative => ((rounds * shape.copies * shape.elements[0]).wrapping_neg(), 0),
    }
}

/// The number that each array's address and the first and last value of the counter are for about `rounds` rounds; `at` gives the
/// arrays.
pub fn arguments(rng: &mut Rng, shape: Shape, at: [u32; 3], rounds: u32) -> Vec<u128> {
    let rounds = shape.rounds.unwrap_or(rounds);
    let spread = *rng.pick(&[0, 0, 0, 1, 1 << 31, u32::MAX]);
    let usual = rng.percent(60) || shape.rounds.is_some();
    let edge = if usual { least(shape) } else { spread.wrapping_sub(rng.below(1 + 2 * rounds)) };
    let (first, last) = counts(shape, rounds, edge);
    let at = match shape.counter {
        // An index of elements: addresses are made so that the lowest access is at `at`.
        Counter::Index(_) | Counter::Backward(_) => {
            let mut scaled = at.into_iter().zip(shape.elements).map(|(at, element)| at.wrapping_sub(edge.wrapping_mul(element)));
            [(); 3].map(|()| scaled.next().expect("there are three arrays"))
        }
        Counter::Down(_) => at,
        Counter::Negative => at.map(|at| at.wrapping_sub(first)),
    };
    let numbers = [first, last, rng.bits() as u32].map(u128::from);
    let mut args: Vec<u128> = at.map(u128::from).into_iter().chain(numbers).collect();
    args.extend([
        rng.bits().into(),
        u128::from((rng.below(9) as f32 - 4.5).to_bits()),
        (f64::from(rng.below(9)) / 3.0).to_bits().into(),
    ]);
    args
}

impl Maker<'_, '_> {
    fn inst(&mut self, op: Op, ty: Type, imm: u64, args: &[Value]) -> Value {
        self.pc += 1;
        self.func.append(self.block, op, ty, self.pc, 0, imm, args)
    }

    fn number(&mut self, ty: Type, bits: u64) -> Value {
        self.inst(Op::Const, ty, bits, &[])
    }

    fn make(&mut self) {
        let Shape { copies, elements, ty, reduces, extreme, recurs, stores, polls, cost, counter, .. } = self.shape;
        let params = self.params.clone();
        if !ty.is_float() {
            self.small = Some(self.number(ty, 200));
        }
        self.inst(Op::Jump, Type::Void, 0, &[]);
        self.func.add_edge(Block(0), Block(1));
        self.block = Block(1);
        let index = self.inst(Op::Phi, Type::I32, 0, &[]);
        let pointers: Option<[Value; 3]> =
            matches!(counter, Counter::Down(_)).then(|| [(); 3].map(|()| self.inst(Op::Phi, Type::I32, 0, &[])));
        let sum = reduces.then(|| self.inst(Op::Phi, ty, 0, &[]));
        let before = recurs.then(|| self.inst(Op::Phi, ty, 0, &[]));
        if polls {
            self.inst(Op::Poll, Type::Void, 0, &[]);
        }
        if cost > 0 {
            self.inst(Op::Fuel, Type::Void, cost, &[]);
        }
        let arrays = match pointers {
            Some(pointers) => pointers,
            None => [0, 1, 2].map(|i| {
                let mut scaled = index;
                if matches!(counter, Counter::Index(_) | Counter::Backward(_)) && elements[i] > 1 {
                    let (op, by) = match elements[i].is_power_of_two() {
                        true => (Op::Shl, elements[i].trailing_zeros()),
                        false => (Op::Mul, elements[i]),
                    };
                    let by = self.number(Type::I32, by.into());
                    scaled = self.inst(op, Type::I32, 0, &[index, by]);
                }
                self.inst(Op::Add, Type::I32, 0, &[params[i], scaled])
            }),
        };
        self.index = Some(index);
        let tree = self.rng.bits();
        let damaged = self.shape.damaged.then(|| self.rng.below(copies));
        let reduction = *self.rng.pick(&[Op::Add, Op::Add, Op::Xor, Op::Or, Op::And]);
        let order = *self.rng.pick(&[Op::LtS, Op::LtU, Op::GtS, Op::GtU, Op::LeS, Op::GeU]);
        let (mut total, mut last) = (sum, before);
        for copy in 0..copies {
            let mut local = Rng::new(if damaged == Some(copy) { tree ^ 77 } else { tree });
            let mut value = self.tree(&mut local, arrays, copy, 3);
            if let Some(before) = last {
                let op = if ty.is_float() { *local.pick(&[Op::Fsub, Op::Fadd]) } else { *local.pick(&[Op::Sub, Op::Xor]) };
                value = self.inst(op, ty, 0, &[value, before]);
                last = Some(self.load(&mut local, arrays, 1, copy));
            }
            if self.shape.unused {
                self.load_unused(&mut local, arrays, copy);
            }
            let arm = self.shape.arms.then(|| self.branch(&mut local, arrays, copy));
            if stores {
                let which = local.below(2) as usize;
                let rest = self.shape.elements[which] / self.shape.widths[which] - 1;
                let near = local.bits();
                self.store(&mut Rng::new(near), arrays, which, copy, 0, value);
                for part in 1..=rest {
                    let value = self.tree(&mut local, arrays, copy, 1);
                    self.store(&mut Rng::new(near), arrays, which, copy, part, value);
                }
            }
            let before = total;
            total = total.map(|so_far| {
                let args = if self.rng.percent(50) { [so_far, value] } else { [value, so_far] };
                if !extreme {
                    return self.inst(reduction, ty, 0, &args);
                }
                let compare = if args[0] == value { order } else { order.mirror().expect("an order") };
                let condition = self.inst(compare, Type::I32, 0, &args);
                let exchanged = self.rng.one_in(8);
                self.inst(
                    Op::Select,
                    ty,
                    0,
                    &if exchanged { [condition, args[1], args[0]] } else { [condition, args[0], args[1]] },
                )
            });
            if let Some(branch) = arm {
                total = self.meet(branch, before.zip(total));
            }
        }
        if let Some(so_far) = total.filter(|_| !extreme && self.rng.one_in(4)) {
            let constant = self.number(ty, 12);
            total = Some(self.inst(reduction, ty, 0, &[so_far, constant]));
        }
        self.close(index, pointers, sum.zip(total), before.zip(last));
    }

    /// Loads what nothing uses, as its producer may have written it, or as other passes leave it.
    fn load_unused(&mut self, rng: &mut Rng, arrays: [Value; 3], copy: u32) {
        let which = 1 + rng.below(2) as usize;
        if !self.shape.arms || rng.percent(30) {
            self.load(rng, arrays, which, copy);
            return;
        }
        let arm = self.branch(rng, arrays, copy);
        if rng.percent(50) {
            self.load(rng, arrays, which, copy);
        }
        self.meet(arm, None);
    }

    /// Branches to a new block, the arm, which follows; returns the block of the branch.
    fn branch(&mut self, rng: &mut Rng, arrays: [Value; 3], copy: u32) -> Block {
        let ty = self.shape.ty;
        let loaded = self.load(rng, arrays, 1, copy);
        let condition = match ty {
            Type::I32 if rng.percent(30) => {
                let mask = self.number(ty, 3);
                self.inst(Op::And, ty, 0, &[loaded, mask])
            }
            _ => {
                let op = if ty.is_float() { Op::Flt } else { *rng.pick(&[Op::LtS, Op::GtU, Op::Ne]) };
                self.inst(op, Type::I32, 0, &[loaded, self.params[param_of(ty)]])
            }
        };
        let block = self.block;
        self.inst(Op::Branch, Type::Void, 0, &[condition]);
        self.block = self.func.create_block();
        block
    }

    /// Ends the arm, whose edges are made here: the join follows. The values are those without and with the arm.
    fn meet(&mut self, from: Block, values: Option<(Value, Value)>) -> Option<Value> {
        let (arm, join) = (self.block, self.func.create_block());
        self.inst(Op::Jump, Type::Void, 0, &[]);
        let mut edges = [(from, arm), (from, join)];
        if self.rng.percent(50) {
            edges.swap(0, 1);
        }
        for (from, to) in edges {
            self.func.add_edge(from, to);
        }
        self.func.add_edge(arm, join);
        self.block = join;
        values.map(|(without, with)| {
            let ty = self.func.ty(with);
            self.inst(Op::Phi, ty, 0, &[without, with])
        })
    }

    /// The ends of the phis, the branch, and the block after the loop.
    fn close(
        &mut self,
        index: Value,
        pointers: Option<[Value; 3]>,
        sum: Option<(Value, Value)>,
        recurrence: Option<(Value, Value)>,
    ) {
        let Shape { copies, elements, ty, counter, before, .. } = self.shape;
        let params = self.params.clone();
        let step = match counter {
            Counter::Index(_) => copies,
            Counter::Down(_) => u32::MAX,
            Counter::Backward(_) => copies.wrapping_neg(),
            Counter::Negative => copies * elements[0],
        };
        let step = self.number(Type::I32, step.into());
        let next = self.inst(Op::Add, Type::I32, 0, &[index, step]);
        self.func.set_args(index, &[params[3], next]);
        let both = |phi, next| if before { vec![phi, next] } else { vec![next] };
        let mut returned = both(index, next);
        for (i, pointer) in pointers.into_iter().flatten().enumerate() {
            let by = self.number(Type::I32, (copies * elements[i]).into());
            let next = self.inst(Op::Add, Type::I32, 0, &[pointer, by]);
            self.func.set_args(pointer, &[params[i], next]);
            returned.push(pointer);
        }
        if let Some((phi, total)) = sum {
            let start = params[param_of(ty)];
            self.func.set_args(phi, &[start, total]);
            returned.extend(both(phi, total));
        }
        if let Some((phi, last)) = recurrence {
            let start = if self.rng.percent(60) { self.small } else { None };
            let start = start.unwrap_or(params[param_of(ty)]);
            self.func.set_args(phi, &[start, last]);
            returned.extend(both(phi, last));
        }
        // Some loops test the value before the step.
        let tested = if self.rng.one_in(5) { index } else { next };
        let condition = match counter {
            Counter::Index(op) | Counter::Down(op) | Counter::Backward(op) => {
                if self.rng.one_in(4) {
                    let mirror = op.mirror().expect("an order or an equality");
                    self.inst(mirror, Type::I32, 0, &[params[4], tested])
                } else {
                    self.inst(op, Type::I32, 0, &[tested, params[4]])
                }
            }
            Counter::Negative => tested,
        };
        let (condition, first) = match self.rng.below(3) {
            0 => (self.inst(Op::Eqz, Type::I32, 0, &[condition]), Block(2)),
            _ => (condition, Block(1)),
        };
        self.inst(Op::Branch, Type::Void, 0, &[condition]);
        let latch = self.block;
        self.func.add_edge(latch, first);
        self.func.add_edge(latch, if first == Block(1) { Block(2) } else { Block(1) });
        self.block = Block(2);
        self.func.results.extend(returned.iter().map(|&value| self.func.ty(value)).collect::<Vec<_>>());
        self.inst(Op::Return, Type::Void, 0, &returned);
    }

    /// The address of an element of a copy, or of a part of it, and the offset of the access.
    fn address(&mut self, rng: &mut Rng, arrays: [Value; 3], which: usize, copy: u32, part: u32) -> (Value, u64) {
        let (element, base) = (self.shape.elements[which], arrays[which]);
        let near = if rng.percent(70) { 0 } else { element * rng.below(4) };
        let backward = matches!(self.shape.counter, Counter::Backward(_));
        let of_copy = if backward { (copy * element).wrapping_neg() } else { copy * element };
        let distance = of_copy.wrapping_add(near + part);
        match rng.below(3) {
            0 if distance > 0 => {
                let by = self.number(Type::I32, distance.into());
                (self.inst(Op::Add, Type::I32, 0, &[base, by]), 0)
            }
            1 => {
                // Behind the address, and ahead by an offset.
                let by = self.number(Type::I32, u64::from(distance.wrapping_sub(16)));
                (self.inst(Op::Add, Type::I32, 0, &[base, by]), 16)
            }
            _ if distance as i32 >= 0 => (base, distance.into()),
            _ => {
                let by = self.number(Type::I32, distance.into());
                (self.inst(Op::Add, Type::I32, 0, &[base, by]), 0)
            }
        }
    }

    /// A load of an element, converted to the type of the values.
    fn load(&mut self, rng: &mut Rng, arrays: [Value; 3], which: usize, copy: u32) -> Value {
        let Shape { ty, elements, widths, .. } = self.shape;
        let element = elements[which];
        let mut width = widths[which];
        if which == 2 && width > 1 && rng.percent(40) {
            width /= 2;
        }
        let part = if width < element { rng.below(element - width + 1) } else { 0 };
        let single = ty == Type::F32 && width == 4 && rng.percent(60) || ty == Type::F64 && width == 4 && rng.percent(50);
        let loaded = match ty {
            Type::F32 | Type::F64 if single => Type::F32,
            Type::F64 if width == 8 => Type::F64,
            Type::I64 => Type::I64,
            _ => Type::I32,
        };
        let signed = rng.percent(40);
        let op = match (width, signed) {
            (1, true) => Op::Load8S,
            (1, false) => Op::Load8U,
            (2, true) => Op::Load16S,
            (2, false) => Op::Load16U,
            (4, true) if loaded == Type::I64 => Op::Load32S,
            (4, false) if loaded == Type::I64 => Op::Load32U,
            _ => Op::Load,
        };
        let convert = if rng.percent(50) { Op::ConvertS } else { Op::ConvertU };
        let (address, offset) = self.address(rng, arrays, which, copy, part);
        let value = self.inst(op, loaded, offset, &[address]);
        match (loaded, ty) {
            (Type::F32, Type::F64) => self.inst(Op::Promote, ty, 0, &[value]),
            (Type::I32, Type::F32 | Type::F64) => self.inst(convert, ty, 0, &[value]),
            _ => value,
        }
    }

    /// A store of a value, converted to a part of an element.
    fn store(&mut self, rng: &mut Rng, arrays: [Value; 3], which: usize, copy: u32, part: u32, value: Value) {
        let Shape { ty, widths, .. } = self.shape;
        let element = widths[which];
        let value = match ty {
            Type::F64 if element == 4 => self.inst(Op::Demote, Type::F32, 0, &[value]),
            Type::F32 if element < 4 || rng.percent(20) => self.inst(Op::TruncSatS, Type::I32, 0, &[value]),
            Type::I32 | Type::I64 if element < 4 && rng.percent(40) => self.shifted(rng, ty, element, value),
            _ => value,
        };
        let op = match (element, self.func.ty(value)) {
            (1, _) => Op::Store8,
            (2, _) => Op::Store16,
            (4, Type::I64) => Op::Store32,
            _ => Op::Store,
        };
        let (address, offset) = self.address(rng, arrays, which, copy, part * element);
        self.inst(op, Type::Void, offset, &[address, value]);
    }

    /// A product shifted to the right, of which more bits than those of an element are not zero.
    fn shifted(&mut self, rng: &mut Rng, ty: Type, element: u32, value: Value) -> Value {
        let factor = self.number(ty, u64::from(1 + (rng.below(0x1_0000) >> rng.below(16))));
        let product = self.inst(Op::Mul, ty, 0, &[value, factor]);
        let count = self.number(ty, u64::from(1 + rng.below(8 * element)));
        let shifted = self.inst(*rng.pick(&[Op::ShrU, Op::ShrS]), ty, 0, &[product, count]);
        match rng.below(3) {
            // Not all bits of the sum are right in a narrow lane.
            0 => {
                let addend = self.number(ty, u64::from(rng.below(0x100)));
                self.inst(Op::Add, ty, 0, &[shifted, addend])
            }
            1 => {
                let bits = *rng.pick(&[4, 8, 12, 16, 20]);
                let mask = self.number(ty, (1 << bits) - 1);
                self.inst(Op::And, ty, 0, &[shifted, mask])
            }
            _ => shifted,
        }
    }

    /// A tree of operations on loads, invariant values and constants. `rng` is the same for each copy.
    fn tree(&mut self, rng: &mut Rng, arrays: [Value; 3], copy: u32, depth: u32) -> Value {
        let Shape { ty, widths, .. } = self.shape;
        let element = widths.into_iter().max().expect("there are three");
        if depth == 0 || rng.one_in(4) {
            return self.leaf(rng, arrays, copy);
        }
        let a = self.tree(rng, arrays, copy, depth - 1);
        let float = ty.is_float();
        let kind = rng.below(if float { 9 } else { 16 });
        let shift = |rng: &mut Rng| u64::from(rng.below(8 * element));
        match (float, kind) {
            (true, 0) => return self.inst(*rng.pick(&[Op::Fabs, Op::Fneg, Op::Fsqrt, Op::Fceil]), ty, 0, &[a]),
            (false, 0) => {
                let by = shift(rng);
                let count = self.number(ty, by);
                return self.inst(*rng.pick(&[Op::Shl, Op::ShrU, Op::ShrS]), ty, 0, &[a, count]);
            }
            (false, 1) if ty == Type::I32 => {
                return self.inst(*rng.pick(&[Op::Shl, Op::ShrU, Op::ShrS]), ty, 0, &[a, self.params[5]]);
            }
            (false, 12..) => {
                let (op, by) = match kind {
                    12 => (*rng.pick(&[Op::Rotl, Op::Rotr]), u64::from(rng.below(70))),
                    13 => (Op::DivS, 1 << rng.below(20)),
                    14 => (Op::DivU, u64::from(1 + rng.below(1000))),
                    _ => return self.inst(*rng.pick(&[Op::Sext8, Op::Sext16]), ty, 0, &[a]),
                };
                let by = self.number(ty, by);
                return self.inst(op, ty, 0, &[a, by]);
            }
            _ => {}
        }
        let b = self.tree(rng, arrays, copy, depth - 1);
        if kind == 2 {
            let op = match float {
                true => *rng.pick(&[Op::Flt, Op::Fge, Op::Feq]),
                false => *rng.pick(&[Op::LtS, Op::LtU, Op::GeS, Op::Ne, Op::GtU]),
            };
            let mut condition = self.inst(op, Type::I32, 0, &[a, b]);
            match rng.below(6) {
                0 => condition = self.inst(Op::Eqz, Type::I32, 0, &[condition]),
                1 if !float => {
                    let zero = self.inst(Op::Eqz, Type::I32, 0, &[a]);
                    condition = self.inst(*rng.pick(&[Op::And, Op::Or]), Type::I32, 0, &[condition, zero]);
                }
                2 if ty == Type::I32 => return condition,
                _ => {}
            }
            return self.inst(Op::Select, ty, 0, &[condition, a, b]);
        }
        let op = match float {
            true => *rng.pick(&[Op::Fadd, Op::Fsub, Op::Fmul, Op::Fdiv, Op::Fmin, Op::Fmax]),
            false => *rng.pick(&[Op::Add, Op::Add, Op::Sub, Op::Mul, Op::And, Op::Or, Op::Xor]),
        };
        // The producer may order commutative operands of integers as it likes.
        let exchanged = !float && op.is_commutative() && self.rng.one_in(3);
        self.inst(op, ty, 0, &if exchanged { [b, a] } else { [a, b] })
    }

    fn leaf(&mut self, rng: &mut Rng, arrays: [Value; 3], copy: u32) -> Value {
        let ty = self.shape.ty;
        match rng.below(9) {
            0 => self.params[param_of(ty)],
            1 => {
                let bits = match ty {
                    Type::I32 => u64::from(rng.bits() as u32 >> rng.below(32)),
                    Type::I64 => rng.bits() >> rng.below(64),
                    Type::F32 => (rng.below(7) as f32 - 2.5).to_bits().into(),
                    _ => (f64::from(rng.below(7)) - 2.5).to_bits(),
                };
                self.number(ty, bits)
            }
            // From one address in all rounds.
            2 if rng.one_in(3) => self.inst(Op::Load, ty, 8, &[self.params[2]]),
            3 if self.shape.ramps => {
                let further = self.number(Type::I32, (copy * 3).into());
                let index = self.index.expect("it was made before");
                let value = self.inst(Op::Add, Type::I32, 0, &[index, further]);
                if ty == Type::F32 { self.inst(Op::ConvertS, ty, 0, &[value]) } else { value }
            }
            _ => {
                let which = rng.below(3) as usize;
                self.load(rng, arrays, which, copy)
            }
        }
    }
}

/// The index of a parameter of this type that is not an address.
fn param_of(ty: Type) -> usize {
    match ty {
        Type::I32 => 5,
        Type::I64 => 6,
        Type::F32 => 7,
        _ => 8,
    }
}

/// The function as a module that exports it and its memory of one page as `f` and `memory`. Polls and charges are the engine's own.
pub fn wat(func: &Func<'_>) -> String {
    let mut out = String::from("(module (memory (export \"memory\") 1 4) (func (export \"f\")");
    out.extend(PARAMS.iter().map(|ty| format!(" (param {ty})")));
    out.extend(func.results.iter().map(|ty| format!(" (result {ty})")));
    let all = || func.blocks().flat_map(|block| func.block(block).insts.iter().copied());
    let phis: Vec<Value> = func.phis(Block(1)).collect();
    let entry = func.block(Block(1)).preds.iter().position(|&pred| pred == Block(0)).expect("the loop is entered");
    for value in all().filter(|&value| func.ty(value) != Type::Void && func.op(value) != Op::Param) {
        out += &format!(" (local ${value} {})", func.ty(value));
    }
    // The values of phis in the last round, which are returned.
    phis.iter().for_each(|&phi| out += &format!(" (local $last_{phi} {})", func.ty(phi)));
    for &phi in &phis {
        out += &format!("\n (local.set ${phi} {})", get(func, func.args(phi)[entry]));
    }
    out += "\n (loop $again";
    phis.iter().for_each(|&phi| out += &format!("\n  (local.set $last_{phi} (local.get ${phi}))"));
    let mut block = Block(1);
    loop {
        out += &body(func, block);
        let last = func.terminator(block).expect("a block ends");
        let succs = &func.block(block).succs;
        if succs.contains(&Block(1)) {
            break;
        }
        // The arm is the successor that jumps on to the other one.
        let jumps = |arm: usize| func.block(succs[arm]).succs[..] == [succs[1 - arm]];
        let arm = if jumps(0) { 0 } else { 1 };
        let join = succs[1 - arm];
        let sets = |from: Block| -> String {
            let pred = func.block(join).preds.iter().position(|&pred| pred == from).expect("it leads there");
            func.phis(join).map(|phi| format!("\n  (local.set ${phi} {})", get(func, func.args(phi)[pred]))).collect()
        };
        let taken = format!("{}{}", body(func, succs[arm]), sets(succs[arm]));
        let arms = if arm == 0 { [taken, sets(block)] } else { [sets(block), taken] };
        out += &format!("\n  (if {} (then{}) (else{}))", get(func, func.args(last)[0]), arms[0], arms[1]);
        block = join;
    }
    let branch = func.terminator(block).expect("the loop ends with a branch");
    phis.iter().for_each(|&phi| out += &format!("\n  {}", get(func, func.args(phi)[1 - entry])));
    phis.iter().rev().for_each(|phi| out += &format!("\n  (local.set ${phi})"));
    let condition = get(func, func.args(branch)[0]);
    let again = if func.block(block).succs[0] == Block(1) { condition } else { format!("(i32.eqz {condition})") };
    out += &format!("\n  (br_if $again {again}))");
    let returned = func.terminator(Block(2)).expect("it returns");
    for &value in func.args(returned) {
        out += &if phis.contains(&value) { format!("\n (local.get $last_{value})") } else { format!("\n {}", get(func, value)) };
    }
    out + "))"
}

/// Reads a value.
fn get(func: &Func<'_>, value: Value) -> String {
    match func.op(value) {
        Op::Param => format!("(local.get {})", func.inst(value).imm),
        _ => format!("(local.get ${value})"),
    }
}

/// The instructions of a block, without its phis and its end.
fn body(func: &Func<'_>, block: Block) -> String {
    let mut out = String::new();
    for &value in &func.block(block).insts {
        let inst = func.inst(value);
        let args: Vec<String> = inst.args.iter().map(|&arg| get(func, arg)).collect();
        let expression = match inst.op {
            Op::Phi | Op::Poll | Op::Fuel | Op::Branch | Op::Jump | Op::Param | Op::Return => continue,
            Op::Const if inst.ty.is_float() => {
                let int = if inst.ty == Type::F32 { "i32" } else { "i64" };
                format!("({}.reinterpret_{int} ({int}.const {}))", inst.ty, inst.imm)
            }
            Op::Const => format!("({}.const {})", inst.ty, inst.imm),
            Op::Select => format!("(select {} {} {})", args[1], args[2], args[0]),
            op => {
                let operand = func.operand_type(value);
                let result = if op.access_width(operand).is_some() { operand } else { inst.ty };
                let name = op.opcode(operand, result).expect("the generator makes Wasm instructions").mnemonic();
                let offset = if op.access_width(operand).is_some() { format!(" offset={}", inst.imm) } else { String::new() };
                format!("({name}{offset} {})", args.join(" "))
            }
        };
        out +=
            &if inst.ty == Type::Void { format!("\n  {expression}") } else { format!("\n  (local.set ${value} {expression})") };
    }
    out
}
