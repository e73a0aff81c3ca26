use super::*;
use crate::analysis::verify;
use crate::ir::sandbox::Sandbox;
use crate::ir::{Entry, Outcome, eval, print};
use crate::opt::apply;
use crate::request::Options;
use bumpalo::Bump;

/// Xorshift (Marsaglia, 2003).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// A number whose halves are often at a limit.
    fn number(&mut self) -> u64 {
        const HALVES: [u64; 6] = [0, 1, 2, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF];
        let mut half = || if self.one_in(2) { self.next() & LOWER } else { HALVES[self.below(6) as usize] };
        half() << HALF | half()
    }
}

/// Writes a function that computes a half of a product from products of halves.
struct Writer<'f, 'a> {
    func: &'f mut Func<'a>,
    rng: &'f mut Rng,
    /// One in this many instructions gets another operation or another constant than it should; 0 for none.
    damage: u64,
    damaged: bool,
}

impl Writer<'_, '_> {
    fn constant(&mut self, bits: u64) -> Value {
        self.func.append(Block::ENTRY, Op::Const, Type::I64, 0, 0, bits, &[])
    }

    fn is_damaged(&mut self) -> bool {
        let now = self.damage != 0 && self.rng.one_in(self.damage);
        self.damaged |= now;
        now
    }

    /// An operation, of which the arguments have any order if that does not matter.
    fn op(&mut self, op: Op, mut args: [Value; 2]) -> Value {
        let op = if self.is_damaged() { [Op::Add, Op::Mul, Op::Xor, Op::Or][self.rng.below(4) as usize] } else { op };
        let constant = args.iter().any(|&arg| self.func.op(arg) == Op::Const);
        if op.mirror() == Some(op) && !constant && self.rng.one_in(2) {
            args.swap(0, 1);
        }
        self.func.append(Block::ENTRY, op, Type::I64, 0, 0, 0, &args)
    }

    fn with(&mut self, op: Op, value: Value, bits: u64) -> Value {
        let bits = if self.is_damaged() { bits ^ 1 << self.rng.below(6) } else { bits };
        let constant = self.constant(bits);
        self.op(op, [value, constant])
    }

    fn lower(&mut self, value: Value) -> Value {
        if let Some(bits) = self.func.as_const(value) {
            return self.constant(bits & LOWER);
        }
        if self.rng.one_in(2) {
            let narrow = self.func.append(Block::ENTRY, Op::Wrap, Type::I32, 0, 0, 0, &[value]);
            return self.func.append(Block::ENTRY, Op::ExtendU, Type::I64, 0, 0, 0, &[narrow]);
        }
        self.with(Op::And, value, LOWER)
    }

    fn upper(&mut self, value: Value) -> Value {
        match self.func.as_const(value) {
            Some(bits) => self.constant(bits >> HALF),
            None => self.with(Op::ShrU, value, HALF),
        }
    }

    /// The product of a value that may be a constant.
    fn product(&mut self, a: Value, b: Value) -> Value {
        let args = if self.func.op(a) == Op::Const { [b, a] } else { [a, b] };
        self.op(Op::Mul, args)
    }

    /// The sum, in any order.
    fn sum(&mut self, mut terms: Vec<Value>) -> Value {
        while let [_, _, ..] = terms[..] {
            let args = [(); 2].map(|()| terms.swap_remove(self.rng.below(terms.len() as u64) as usize));
            let sum = self.op(Op::Add, args);
            terms.push(sum);
        }
        terms[0]
    }

    /// A half of `a · b`, with these other terms if it is the upper one.
    fn write(&mut self, a: Value, b: Value, upper: bool, others: &[Value]) -> Value {
        let [(a0, a1), (b0, b1)] = [a, b].map(|factor| (self.lower(factor), self.upper(factor)));
        let least = self.product(a0, b0);
        let (mut first, mut second) = (self.product(a1, b0), self.product(a0, b1));
        if self.rng.one_in(2) {
            (first, second) = (second, first);
        }
        let above = self.upper(least);
        let (middle, carry) = if self.rng.one_in(2) {
            let middle = self.sum(vec![above, first]);
            let lower = self.lower(middle);
            (middle, self.sum(vec![lower, second]))
        } else {
            let lower = self.lower(first);
            (first, self.sum(vec![above, lower, second]))
        };
        if upper {
            let most = self.product(a1, b1);
            let (middle, carry) = (self.upper(middle), self.upper(carry));
            let others = others.to_vec();
            if others.is_empty() || self.rng.one_in(2) {
                let high = self.sum(vec![most, middle, carry]);
                return self.sum([vec![high], others].concat());
            }
            // A sum that ends with a carry.
            let first = self.sum([vec![most, middle], others].concat());
            return self.op(Op::Add, [first, carry]);
        }
        let (carry, least) = (self.with(Op::Shl, carry, HALF), self.lower(least));
        let op = if self.rng.one_in(2) { Op::Or } else { Op::Add };
        self.op(op, [carry, least])
    }
}

/// The function of a seed, and whether it is what the pass must recognise.
fn function<'a>(arena: &'a Bump, rng: &mut Rng, upper: bool) -> (Func<'a>, bool) {
    let mut func = Func::new(arena, 0, Entry::Call, [Type::I64; 4], [Type::I64]);
    func.create_block();
    let params = [0, 1, 2, 3].map(|i| func.append(Block::ENTRY, Op::Param, Type::I64, 0, 0, i, &[]));
    let damage = [0, 0, 30, 8][rng.below(4) as usize];
    let mut writer = Writer { func: &mut func, rng, damage, damaged: false };
    let b = match writer.rng.below(4) {
        0 => {
            // Halves of 0 leave fewer products.
            let bits = writer.rng.number() | 1 << HALF | 2;
            writer.constant(bits)
        }
        1 => params[0],
        _ => params[1],
    };
    let others = if upper { &params[..writer.rng.below(4) as usize] } else { &[] };
    let result = writer.write(params[0], b, upper, others);
    let damaged = writer.damaged;
    func.append(Block::ENTRY, Op::Return, Type::Void, 0, 0, 0, &[result]);
    (func, !damaged)
}

fn run_with(func: &Func<'_>, args: &[u128]) -> Outcome {
    eval(func, &mut Sandbox::default(), args, 1000).expect("it ends")
}

/// Every form is recognised, and whatever is recognised keeps its meaning.
#[test]
fn halves_of_products() {
    for upper in [false, true] {
        let mut rng = Rng(0x9E37_79B9_7F4A_7C15);
        let (mut recognised, mut near) = (0, 0);
        for _ in 0..6000 {
            let arena = Bump::new();
            let (mut func, whole) = function(&arena, &mut rng, upper);
            let inputs: Vec<[u128; 4]> = (0..8).map(|_| [(); 4].map(|()| rng.number().into())).collect();
            let before = print(&func);
            let expected: Vec<Outcome> = inputs.iter().map(|args| run_with(&func, args)).collect();
            let options = Options::default();
            let Changed(changed) = apply(&PASS, &mut func, &mut Context::new(&options));
            verify::verify(&func, None).unwrap();
            let found: Vec<Outcome> = inputs.iter().map(|args| run_with(&func, args)).collect();
            assert!(found == expected, "before\n{before}\nafter\n{func}");
            assert!(!whole || changed == 1, "this is not recognised:\n{before}");
            *if whole { &mut recognised } else { &mut near } += changed;
        }
        assert!(recognised > 3000, "{recognised} functions were rewritten");
        assert!(near > 0, "no function that is nearly one was rewritten in part");
    }
}
