//! Random counted loops over memory, as producers make them: unrolled or not, with indices, pointers or counters that ascend from a
//! negative number, and with copies that differ in the order of commutative operands. Some copies differ in more, and some loops
//! have what no vector loop can have.

use crate::rng::Rng;
use bumpalo::Bump;
use weir_jit::ir::{Block, Entry, Func, Op, Type, Value};

/// What a loop is like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The number of copies of the body.
    pub copies: u32,
    /// The bytes of an element.
    pub element: u32,
    /// The type of the values.
    pub ty: Type,
    /// Whether a sum is computed instead of a store, or besides it.
    pub reduces: bool,
    /// Whether the loop stores.
    pub stores: bool,
    /// Whether it polls.
    pub polls: bool,
    /// The cost of a round, or 0.
    pub cost: u64,
    /// The way in which rounds are counted.
    pub counter: Counter,
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
    shape: Shape,
}

/// A shape.
pub fn shape(rng: &mut Rng) -> Shape {
    let copies = *rng.pick(&[1, 1, 2, 3, 4, 8]);
    let (ty, element) =
        *rng.pick(&[(Type::I32, 1), (Type::I32, 2), (Type::I32, 4), (Type::I64, 8), (Type::F32, 4), (Type::F64, 8)]);
    let whole = matches!((ty, element), (Type::I32, 4) | (Type::I64, 8));
    let reduces = whole && rng.percent(40);
    let counter = match rng.below(3) {
        0 => Counter::Index(*rng.pick(&[Op::Ne, Op::LtS, Op::LtU, Op::LeS, Op::LeU])),
        1 => Counter::Down(*rng.pick(&[Op::Ne, Op::GtS, Op::GtU, Op::GeS])),
        _ => Counter::Negative,
    };
    Shape {
        copies,
        element,
        ty,
        reduces,
        stores: !reduces || rng.percent(50),
        polls: rng.percent(60),
        cost: if rng.percent(60) { 1 + u64::from(rng.below(9)) } else { 0 },
        counter,
        damaged: rng.percent(10),
    }
}

/// A function with one loop of this shape. It returns all that the loop passes from round to round.
pub fn function<'a>(arena: &'a Bump, rng: &mut Rng, shape: Shape) -> Func<'a> {
    let func = Func::new(arena, 0, Entry::Call, PARAMS, []);
    let mut maker = Maker { func, rng, block: Block(0), pc: 1, params: Vec::new(), shape };
    for block in 0..3 {
        assert_eq!(maker.func.create_block(), Block(block));
    }
    for (i, &ty) in PARAMS.iter().enumerate() {
        let param = maker.inst(Op::Param, ty, i as u64, &[]);
        maker.params.push(param);
    }
    maker.make();
    maker.func
}

/// The number that each array's address and the first and last value of the counter are for about `rounds` rounds; `at` gives the
/// arrays.
pub fn arguments(rng: &mut Rng, shape: Shape, at: [u32; 3], rounds: u32) -> Vec<u128> {
    let stride = shape.copies * shape.element;
    let spread = *rng.pick(&[0, 0, 0, 1, 1 << 31, u32::MAX]);
    let edge = |rng: &mut Rng| spread.wrapping_sub(rng.below(1 + 2 * rounds));
    let (first, last, at) = match shape.counter {
        // An index of elements: addresses are made so that the first access is at `at`.
        Counter::Index(_) => {
            let first = if rng.percent(60) { 0 } else { edge(rng) };
            let last = first.wrapping_add(rounds * shape.copies);
            (first, last, at.map(|at| at.wrapping_sub(first.wrapping_mul(shape.element))))
        }
        Counter::Down(_) => {
            let last = if rng.percent(60) { 0 } else { edge(rng) };
            (last.wrapping_add(rounds), last, at)
        }
        Counter::Negative => {
            let first = (rounds * stride).wrapping_neg();
            (first, 0, at.map(|at| at.wrapping_sub(first)))
        }
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
        let Shape { copies, element, ty, reduces, stores, polls, cost, counter, .. } = self.shape;
        let stride = copies * element;
        let params = self.params.clone();
        self.inst(Op::Jump, Type::Void, 0, &[]);
        self.func.add_edge(Block(0), Block(1));
        self.block = Block(1);
        let index = self.inst(Op::Phi, Type::I32, 0, &[]);
        let pointers: Option<[Value; 3]> =
            matches!(counter, Counter::Down(_)).then(|| [(); 3].map(|()| self.inst(Op::Phi, Type::I32, 0, &[])));
        let sum = reduces.then(|| self.inst(Op::Phi, ty, 0, &[]));
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
                if matches!(counter, Counter::Index(_)) && element > 1 {
                    let by = self.number(Type::I32, element.trailing_zeros().into());
                    scaled = self.inst(Op::Shl, Type::I32, 0, &[index, by]);
                }
                self.inst(Op::Add, Type::I32, 0, &[params[i], scaled])
            }),
        };
        let tree = self.rng.bits();
        let damaged = self.shape.damaged.then(|| self.rng.below(copies));
        let reduction = *self.rng.pick(&[Op::Add, Op::Add, Op::Xor, Op::Or, Op::And]);
        let mut total = sum;
        for copy in 0..copies {
            let mut local = Rng::new(if damaged == Some(copy) { tree ^ 77 } else { tree });
            let value = self.tree(&mut local, arrays, copy, 3);
            if stores {
                let op = match (ty, element) {
                    (Type::I32, 1) => Op::Store8,
                    (Type::I32, 2) => Op::Store16,
                    _ => Op::Store,
                };
                let which = local.below(2) as usize;
                let (address, offset) = self.address(&mut local, arrays[which], copy);
                self.inst(op, Type::Void, offset, &[address, value]);
            }
            if let Some(so_far) = total {
                let args = if self.rng.percent(50) { [so_far, value] } else { [value, so_far] };
                total = Some(self.inst(reduction, ty, 0, &args));
            }
        }
        if let Some(so_far) = total.filter(|_| self.rng.one_in(4)) {
            let constant = self.number(ty, 12);
            total = Some(self.inst(reduction, ty, 0, &[so_far, constant]));
        }
        self.close(index, pointers, sum.zip(total), stride);
    }

    /// The ends of the phis, the branch, and the block after the loop.
    fn close(&mut self, index: Value, pointers: Option<[Value; 3]>, sum: Option<(Value, Value)>, stride: u32) {
        let Shape { copies, ty, counter, .. } = self.shape;
        let params = self.params.clone();
        let step = match counter {
            Counter::Index(_) => copies,
            Counter::Down(_) => u32::MAX,
            Counter::Negative => stride,
        };
        let step = self.number(Type::I32, step.into());
        let next = self.inst(Op::Add, Type::I32, 0, &[index, step]);
        self.func.set_args(index, &[params[3], next]);
        let mut returned = vec![index, next];
        for (i, pointer) in pointers.into_iter().flatten().enumerate() {
            let by = self.number(Type::I32, stride.into());
            let next = self.inst(Op::Add, Type::I32, 0, &[pointer, by]);
            self.func.set_args(pointer, &[params[i], next]);
            returned.push(pointer);
        }
        if let Some((phi, total)) = sum {
            let start = params[if ty == Type::I32 { 5 } else { 6 }];
            self.func.set_args(phi, &[start, total]);
            returned.extend([phi, total]);
        }
        // Some loops test the value before the step.
        let tested = if self.rng.one_in(5) { index } else { next };
        let condition = match counter {
            Counter::Index(op) | Counter::Down(op) => {
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
        self.func.add_edge(Block(1), first);
        self.func.add_edge(Block(1), if first == Block(1) { Block(2) } else { Block(1) });
        self.block = Block(2);
        self.func.results.extend(returned.iter().map(|&value| self.func.ty(value)).collect::<Vec<_>>());
        self.inst(Op::Return, Type::Void, 0, &returned);
    }

    /// The address of an element of a copy, and the offset of the access.
    fn address(&mut self, rng: &mut Rng, base: Value, copy: u32) -> (Value, u64) {
        let element = self.shape.element;
        let near = if rng.percent(70) { 0 } else { element * rng.below(4) };
        let distance = copy * element + near;
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
            _ => (base, distance.into()),
        }
    }

    /// A tree of operations on loads, invariant values and constants. `rng` is the same for each copy.
    fn tree(&mut self, rng: &mut Rng, arrays: [Value; 3], copy: u32, depth: u32) -> Value {
        let Shape { ty, element, .. } = self.shape;
        if depth == 0 || rng.one_in(4) {
            return self.leaf(rng, arrays, copy);
        }
        let a = self.tree(rng, arrays, copy, depth - 1);
        let float = ty.is_float();
        let kind = rng.below(if float { 9 } else { 12 });
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
            _ => {}
        }
        let b = self.tree(rng, arrays, copy, depth - 1);
        if kind == 2 {
            let op = match float {
                true => *rng.pick(&[Op::Flt, Op::Fge, Op::Feq]),
                false => *rng.pick(&[Op::LtS, Op::LtU, Op::GeS, Op::Ne, Op::GtU]),
            };
            let condition = self.inst(op, Type::I32, 0, &[a, b]);
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
        let Shape { ty, element, .. } = self.shape;
        match rng.below(8) {
            0 => {
                let which = match ty {
                    Type::I32 => 5,
                    Type::I64 => 6,
                    Type::F32 => 7,
                    _ => 8,
                };
                self.params[which]
            }
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
            _ => {
                let op = match (ty, element) {
                    (Type::I32, 1) => *rng.pick(&[Op::Load8U, Op::Load8U, Op::Load8S]),
                    (Type::I32, 2) => *rng.pick(&[Op::Load16U, Op::Load16U, Op::Load16S]),
                    _ => Op::Load,
                };
                let which = rng.below(3) as usize;
                let (address, offset) = self.address(rng, arrays[which], copy);
                self.inst(op, ty, offset, &[address])
            }
        }
    }
}

/// The function as a module that exports it and its memory of one page as `f` and `memory`. Polls and charges are the engine's own.
pub fn wat(func: &Func<'_>) -> String {
    let mut out = String::from("(module (memory (export \"memory\") 1 4) (func (export \"f\")");
    out.extend(PARAMS.iter().map(|ty| format!(" (param {ty})")));
    out.extend(func.results.iter().map(|ty| format!(" (result {ty})")));
    let all = || (0..3).flat_map(|block| func.block(Block(block)).insts.iter().copied());
    let phis: Vec<Value> = func.phis(Block(1)).collect();
    let entry = func.block(Block(1)).preds.iter().position(|&pred| pred == Block(0)).expect("the loop is entered");
    for value in all().filter(|&value| func.ty(value) != Type::Void && func.op(value) != Op::Param) {
        out += &format!(" (local ${value} {})", func.ty(value));
    }
    // The values of phis in the last round, which are returned.
    phis.iter().for_each(|&phi| out += &format!(" (local $last_{phi} {})", func.ty(phi)));
    let get = |value: Value| match func.op(value) {
        Op::Param => format!("(local.get {})", func.inst(value).imm),
        _ => format!("(local.get ${value})"),
    };
    for &phi in &phis {
        out += &format!("\n (local.set ${phi} {})", get(func.args(phi)[entry]));
    }
    out += "\n (loop $again";
    phis.iter().for_each(|&phi| out += &format!("\n  (local.set $last_{phi} (local.get ${phi}))"));
    for &value in &func.block(Block(1)).insts {
        let inst = func.inst(value);
        let args: Vec<String> = inst.args.iter().map(|&arg| get(arg)).collect();
        let expression = match inst.op {
            Op::Phi | Op::Poll | Op::Fuel | Op::Branch => continue,
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
    let branch = func.terminator(Block(1)).expect("the loop ends with a branch");
    phis.iter().for_each(|&phi| out += &format!("\n  {}", get(func.args(phi)[1 - entry])));
    phis.iter().rev().for_each(|phi| out += &format!("\n  (local.set ${phi})"));
    let condition = get(func.args(branch)[0]);
    let again = if func.block(Block(1)).succs[0] == Block(1) { condition } else { format!("(i32.eqz {condition})") };
    out += &format!("\n  (br_if $again {again}))");
    let returned = func.terminator(Block(2)).expect("it returns");
    for &value in func.args(returned) {
        out += &if phis.contains(&value) { format!("\n (local.get $last_{value})") } else { format!("\n {}", get(value)) };
    }
    out + "))"
}
