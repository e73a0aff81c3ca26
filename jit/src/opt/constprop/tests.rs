//! Checks every claim about random structured programs against their execution on all small inputs.

use super::tree::Leaf;
use super::{Solution, solve};
use crate::analysis::{Cfg, DefBlocks, Dominators, verify};
use crate::ir::{Block, Entry, Func, Op, Type, Value};
use crate::meter::Meter;
use crate::settings::PropagationLimits;
use bumpalo::Bump;
use weir_bytecode::semantics;

const VARIABLES: usize = 5;
type Env = [Value; VARIABLES];

/// A generator of programs over a few i32 variables: constants, arithmetic, `if`, `select`, `br_table`, and loops that
/// end after a few iterations and may be left early.
struct Program<'a> {
    func: Func<'a>,
    seed: u64,
    /// The block to which code is appended; `None` after a `break`.
    block: Option<Block>,
    env: Env,
    /// Exits of the enclosing loops, each with the environments that arrive there.
    exits: Vec<(Block, Vec<Env>)>,
}

impl<'a> Program<'a> {
    fn generate(arena: &'a Bump, seed: u64) -> Func<'a> {
        let func = Func::new(arena, 0, Entry::Call, [Type::I32; 2], [Type::I32]);
        let seed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut this = Program { func, seed, block: None, env: [Value(0); VARIABLES], exits: Vec::new() };
        this.start(1);
        for i in 0..2 {
            this.env[i] = this.emit(Op::Param, i as u64, &[]);
        }
        for i in 2..VARIABLES {
            this.env[i] = this.constant(i as u64 - 2);
        }
        let count = 4 + this.random(7);
        this.statements(3, count);
        if this.block.is_some() {
            let result = this.any();
            this.end(Op::Return, &[result]);
        }
        this.func
    }

    fn random(&mut self, below: u32) -> u32 {
        self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.seed >> 33) % u64::from(below)) as u32
    }

    fn start(&mut self, blocks: u32) -> Block {
        let first = self.func.create_block();
        (1..blocks).for_each(|_| _ = self.func.create_block());
        self.block = Some(first);
        first
    }

    fn emit(&mut self, op: Op, imm: u64, args: &[Value]) -> Value {
        let block = self.block.expect("code is reachable");
        self.func.append(block, op, Type::I32, 0, 0, imm, args)
    }

    fn end(&mut self, op: Op, args: &[Value]) -> Block {
        let block = self.block.take().expect("code is reachable");
        self.func.append(block, op, Type::Void, 0, 0, 0, args);
        block
    }

    fn constant(&mut self, bits: u64) -> Value {
        self.emit(Op::Const, bits, &[])
    }

    fn any(&mut self) -> Value {
        self.env[self.random(VARIABLES as u32) as usize]
    }

    fn condition(&mut self) -> Value {
        let x = self.any();
        match self.random(4) {
            0 => self.emit(Op::Eqz, 0, &[x]),
            1 => {
                let y = self.any();
                let op = [Op::Eq, Op::Ne, Op::LtS, Op::GeS, Op::GtU, Op::LeU][self.random(6) as usize];
                self.emit(op, 0, &[x, y])
            }
            _ => x,
        }
    }

    /// Continues in `join` with the environments that arrive there, in the order of its predecessors.
    fn join(&mut self, join: Block, arriving: &[Env]) {
        self.block = (!arriving.is_empty()).then_some(join);
        if arriving.is_empty() {
            return;
        }
        for i in 0..VARIABLES {
            let args: Vec<Value> = arriving.iter().map(|env| env[i]).collect();
            self.env[i] = if args.iter().all(|arg| *arg == args[0]) { args[0] } else { self.emit(Op::Phi, 0, &args) };
        }
    }

    fn statements(&mut self, depth: u32, count: u32) {
        for _ in 0..count {
            if self.block.is_none() {
                return;
            }
            let target = self.random(VARIABLES as u32) as usize;
            match self.random(100) {
                0..18 if depth > 0 => self.conditional(depth, false),
                18..22 if depth > 0 => self.conditional(depth, true),
                22..32 if depth > 0 => self.repeat(depth),
                32..38 if !self.exits.is_empty() => self.leave(),
                38..42 => {
                    let args = [self.condition(), self.any(), self.any()];
                    self.env[target] = self.emit(Op::Select, 0, &args);
                }
                42..65 => {
                    let bits = u64::from(self.random(4));
                    self.env[target] = self.constant(bits);
                }
                _ => {
                    const OPS: [Op; 16] = [
                        Op::Add,
                        Op::Sub,
                        Op::Mul,
                        Op::And,
                        Op::Or,
                        Op::Xor,
                        Op::LtS,
                        Op::LtU,
                        Op::GtS,
                        Op::LeU,
                        Op::GeS,
                        Op::Eq,
                        Op::Ne,
                        Op::RemU,
                        Op::ShrS,
                        Op::DivS,
                    ];
                    let op = OPS[self.random(OPS.len() as u32) as usize];
                    let args = [self.any(), self.any()];
                    self.env[target] = self.emit(op, 0, &args);
                }
            }
        }
    }

    /// Generates an `if`, or a `br_table` with three arms.
    fn conditional(&mut self, depth: u32, table: bool) {
        let condition = if table { self.any() } else { self.condition() };
        let from = self.end(if table { Op::BrTable } else { Op::Branch }, &[condition]);
        let before = self.env;
        let arms: Vec<Block> = (0..if table { 3 } else { 2 }).map(|_| self.func.create_block()).collect();
        arms.iter().for_each(|&arm| self.func.add_edge(from, arm));
        let join = self.func.create_block();
        let mut arriving = Vec::new();
        for arm in arms {
            (self.block, self.env) = (Some(arm), before);
            let count = self.random(4);
            self.statements(depth - 1, count);
            if self.block.is_some() {
                arriving.push(self.env);
                let end = self.end(Op::Jump, &[]);
                self.func.add_edge(end, join);
            }
        }
        self.join(join, &arriving);
    }

    /// Generates a loop of at most four iterations, which may also end on a condition.
    fn repeat(&mut self, depth: u32) {
        let [zero, one, four] = [0, 1, 4].map(|bits| self.constant(bits));
        let header = self.func.create_block();
        let exit = self.func.create_block();
        let before = self.end(Op::Jump, &[]);
        self.func.add_edge(before, header);
        self.block = Some(header);
        let init = self.env;
        let counter = self.emit(Op::Phi, 0, &[zero]);
        let phis = init.map(|value| self.emit(Op::Phi, 0, &[value]));
        self.env = phis;
        self.exits.push((exit, Vec::new()));
        let count = 1 + self.random(3);
        self.statements(depth - 1, count);
        if self.block.is_some() {
            let next = self.emit(Op::Add, 0, &[counter, one]);
            let more = self.emit(Op::LtS, 0, &[next, four]);
            let condition = self.condition();
            let truth = self.emit(Op::Ne, 0, &[condition, zero]);
            let again = self.emit(Op::And, 0, &[truth, more]);
            let end = self.end(Op::Branch, &[again]);
            self.func.add_edge(end, header);
            self.func.add_edge(end, exit);
            self.func.set_args(counter, &[zero, next]);
            for (phi, (first, last)) in phis.into_iter().zip(init.into_iter().zip(self.env)) {
                self.func.set_args(phi, &[first, last]);
            }
            let env = self.env;
            self.exits.last_mut().expect("this loop's").1.push(env);
        }
        let (exit, arriving) = self.exits.pop().expect("this loop's");
        self.join(exit, &arriving);
    }

    /// Leaves one of the enclosing loops, perhaps on a condition.
    fn leave(&mut self) {
        let which = self.random(self.exits.len() as u32) as usize;
        let env = self.env;
        let exit = self.exits[which].0;
        self.exits[which].1.push(env);
        if self.random(4) == 0 {
            let from = self.end(Op::Jump, &[]);
            return self.func.add_edge(from, exit);
        }
        let condition = self.condition();
        let from = self.end(Op::Branch, &[condition]);
        let next = self.func.create_block();
        self.func.add_edge(from, exit);
        self.func.add_edge(from, next);
        self.block = Some(next);
    }
}

/// Runs a program and checks every claim against the execution.
struct Check<'c, 's, 'a> {
    func: &'c Func<'a>,
    dom: &'c Dominators,
    known: &'c mut Solution<'s>,
    values: Vec<u64>,
    executed: &'c mut [bool],
}

impl Check<'_, '_, '_> {
    /// Checks the claim about `value` in the current state.
    fn holds(&mut self, value: Value) {
        let tree = self.known.boolean(self.func, self.dom, value);
        let (predicates, values) = (&self.known.predicates, &self.values);
        let leaf = self.known.forest.decide(tree, &mut |var| predicates.evaluate(var, values) != 0);
        let found = self.values[value.index()];
        let right = leaf == Leaf::Bottom || leaf == Leaf::Const(found);
        assert!(right, "{value} = {found} is claimed to be {}\n{}", self.known.forest.show(tree), self.func);
    }

    fn run(&mut self, args: [u64; 2]) {
        let mut block = Block::ENTRY;
        loop {
            assert!(self.known.reaches(block), "{block} is claimed not to be reached\n{}", self.func);
            let mut taken = 0;
            for &value in &self.func.block(block).insts {
                let inst = self.func.inst(value);
                if inst.op == Op::Phi {
                    continue;
                }
                inst.args.iter().for_each(|&arg| self.holds(arg));
                let slots: Vec<u64> = inst.args.iter().map(|arg| self.values[arg.index()]).collect();
                let result = match inst.op {
                    Op::Const => inst.imm,
                    Op::Param => args[inst.imm as usize],
                    Op::Select => slots[if slots[0] != 0 { 1 } else { 2 }],
                    Op::Return => return,
                    Op::Jump => continue,
                    Op::Branch => {
                        taken = usize::from(slots[0] == 0);
                        continue;
                    }
                    Op::BrTable => {
                        taken = (self.func.block(block).succs.len() - 1).min(slots[0] as usize);
                        continue;
                    }
                    op => match semantics::eval(op.opcode(Type::I32, Type::I32).unwrap(), &slots).unwrap() {
                        Ok(bits) => bits & 0xFFFF_FFFF,
                        Err(_) => return,
                    },
                };
                self.values[value.index()] = result;
                self.executed[value.index()] = true;
                self.holds(value);
            }
            block = self.take(block, taken);
        }
    }

    fn take(&mut self, from: Block, succ: usize) -> Block {
        let (to, k) = self.func.edge(from, succ);
        let phis: Vec<Value> = self.func.phis(to).collect();
        phis.iter().for_each(|&phi| self.holds(self.func.args(phi)[k]));
        let new: Vec<u64> = phis.iter().map(|&phi| self.values[self.func.args(phi)[k].index()]).collect();
        for (phi, new) in phis.iter().zip(new) {
            self.values[phi.index()] = new;
            self.executed[phi.index()] = true;
        }
        phis.into_iter().for_each(|phi| self.holds(phi));
        to
    }
}

/// The number of constants found by one configuration, and of edges found never to be taken.
#[derive(Default, Clone, Copy)]
struct Found {
    constants: u32,
    blocks: u32,
    trees: u32,
}

#[test]
fn no_claim_is_wrong() {
    const PROGRAMS: u64 = 20_000;
    let mut arena = Bump::new();
    let mut found = [Found::default(); 4];
    for seed in 0..PROGRAMS {
        arena.reset();
        let func = Program::generate(&arena, seed);
        if seed % 64 == 0 {
            verify(&func, None).unwrap_or_else(|error| panic!("{error}\n{func}"));
        }
        let cfg = Cfg::compute(&func);
        let dom = Dominators::compute(&func, &cfg);
        let def_blocks = DefBlocks::compute(&func);
        for (predicates, found) in found.iter_mut().enumerate() {
            // The last configuration is the one for huge functions.
            let sweep = if predicates == 3 { 0 } else { usize::MAX };
            let mut known = solve(
                &arena,
                &func,
                &cfg,
                &dom,
                &def_blocks,
                PropagationLimits { predicates: predicates.min(2), steps: 10_000, sweep },
                &Meter::default(),
            );
            let mut executed = vec![false; func.num_values()];
            for inputs in 0..16 {
                let values = vec![0xBAD; func.num_values()];
                let mut check = Check { func: &func, dom: &dom, known: &mut known, values, executed: &mut executed };
                check.run([inputs % 4, inputs / 4]);
            }
            for value in (0..func.num_values() as u32).map(Value).filter(|value| executed[value.index()]) {
                if func.op(value) != Op::Const {
                    found.constants += u32::from(known.forest.constant(known.tree(value)).is_some());
                    found.trees += u32::from(known.forest.as_test(known.tree(value)).is_some());
                }
            }
            found.blocks += cfg.order().iter().filter(|&&block| !known.reaches(block)).count() as u32;
        }
    }
    println!("of {PROGRAMS} programs      constants    trees  unreachable blocks");
    for (name, found) in ["plain", "one predicate", "two predicates", "one sweep"].iter().zip(found) {
        println!("{name:20} {:>15} {:>8} {:>19}", found.constants, found.trees, found.blocks);
    }
    let [plain, one, two, sweep] = found.map(|found| (found.constants, found.blocks));
    assert!(sweep < two && plain < one && one < two, "each predicate proves more");
}
