//! Random structured programs: SSA computes the same as the bytecode, from the function's start and from every loop.

use super::reference::{Reference, wide};
use super::{all_options, module, trivial_phi};
use crate::analysis::verify;
use crate::construct::{BuildStats, build};
use crate::ir::sandbox::Sandbox;
use crate::ir::{Entry, EvalError, Func, Outcome, eval, print};
use crate::request::Options;
use crate::settings::{Refinements, Search};
use bumpalo::Bump;
use std::fmt::Write;
use weir_bytecode::{Module, Trap};
use weir_contract::FRAME_HEADER;

/// The number of programs per test run.
const PROGRAMS: u64 = 400;
/// The number of instructions that a program may execute.
const STEPS: u64 = 20_000;
/// The number of arrivals at each loop at which OSR is tried.
const ARRIVALS: usize = 3;

#[test]
fn ssa_does_what_the_bytecode_does() {
    let (mut runs, mut finished, mut executed, mut entered) = (0, 0, 0, 0);
    for seed in 0..PROGRAMS {
        let text = Generator::program(seed);
        let module = module(&text);
        let mut random = Random::new(!seed);
        for _ in 0..3 {
            let options = Options { refinements: refinements(&mut random), ..all_options() };
            let args = [random.next() % 40, random.number(), random.number(), random.number(), random.number()];
            let args = [args[0], args[1] & 0xFFFF_FFFF, args[2], args[3] & 0xFFFF_FFFF, args[4]];
            let compared = compare(&module, &options, &args)
                .unwrap_or_else(|why| panic!("seed {seed}, {args:?}, {:?}: {why}\n{text}", options.refinements));
            runs += 1;
            if let Some(Compared { steps, entries }) = compared {
                finished += 1;
                executed += steps;
                entered += entries;
            }
        }
    }
    // The programs must be worth running: nearly all end within their steps, most execute many, and loops are entered.
    assert!(finished * 100 > runs * 98, "{finished} of {runs} runs were compared");
    assert!(executed > 200 * PROGRAMS, "{executed} instructions were executed in runs that were compared");
    assert!(entered > 2 * PROGRAMS, "{entered} loops entered");
}

/// A random choice of refinements: all, none, or any.
fn refinements(random: &mut Random) -> Refinements {
    match random.below(3) {
        0 => Refinements::ALL,
        1 => Refinements::NONE,
        _ => Refinements {
            search: [Search::Plain, Search::Marker, Search::Components][random.below(3)],
            witnesses: random.chance(50),
            regions: random.chance(50),
            fold: random.chance(50),
            identities: random.chance(50),
            strength: random.chance(50),
            number: random.chance(50),
            prune: random.chance(50),
        },
    }
}

/// The size of a comparison.
struct Compared {
    /// The number of instructions executed, counted by fuel.
    steps: u64,
    /// The number of arrivals at loops from which SSA was entered.
    entries: u64,
}

/// Compares a run of the bytecode with runs of its SSA. Returns `None` if the bytecode takes more than [`STEPS`];
/// nothing is compared then.
fn compare(module: &Module, options: &Options, args: &[u64]) -> Result<Option<Compared>, String> {
    const FUNC: u32 = 3;
    let sandbox = || Sandbox { fuel: Some(1 << 40), polls: Some(1 << 40), ..Sandbox::default() };
    let mut arrivals: Vec<(u32, Vec<u64>, Sandbox)> = Vec::new();
    let mut expected_world = sandbox();
    let expected = Reference::run(module, FUNC, &mut expected_world, args, STEPS, &mut |arrival| {
        if arrivals.iter().filter(|(pc, ..)| *pc == arrival.pc).count() < ARRIVALS {
            let header = [0xDEAD_BEEF_DEAD_BEEF; FRAME_HEADER as usize];
            arrivals.push((arrival.pc, [arrival.locals, &header, arrival.operands].concat(), arrival.world.clone()));
        }
    });
    let expected: Result<Outcome, (Trap, u32)> = match expected {
        Ok(None) => return Ok(None),
        Ok(Some(outcome)) => Ok(outcome),
        Err(trap) => Err(trap),
    };
    let check = |entry, frame: &[u64], mut world: Sandbox, options: &Options| {
        let arena = Bump::new();
        let func = built(&arena, module, FUNC, entry, options)?;
        let actual = match eval(&func, &mut world, &wide(frame.to_vec()), 10 * STEPS) {
            Ok(outcome) => Ok(outcome),
            Err(EvalError::Failed { why, pc }) => Err((why, pc)),
            Err(EvalError::Steps) => return Err(format!("it does not end\n{}", print(&func))),
        };
        if actual != expected {
            return Err(format!("{entry:?}: {actual:?}, expected {expected:?}\n{}", print(&func)));
        }
        if world != expected_world {
            return Err(format!("{entry:?} left the world different\n{}", print(&func)));
        }
        Ok(())
    };
    check(Entry::Call, args, sandbox(), options)?;
    let merged = Options { peel_limit: 0, ..options.clone() };
    let entries = arrivals.len() as u64;
    for (pc, frame, world) in arrivals {
        check(Entry::Osr(pc), &frame, world.clone(), options)?;
        check(Entry::Osr(pc), &frame, world, &merged)?;
    }
    Ok(Some(Compared { steps: (1 << 40) - expected_world.fuel.unwrap(), entries }))
}

fn built<'a>(arena: &'a Bump, module: &Module, func: u32, entry: Entry, options: &Options) -> Result<Func<'a>, String> {
    let func = build(arena, module, func, entry, options, &mut BuildStats::default()).map_err(|refusal| refusal.to_string())?;
    verify(&func, Some(module)).map_err(|error| format!("{error}\n{}", print(&func)))?;
    if let Some(phi) = trivial_phi(&func) {
        return Err(format!("{phi} is trivial\n{}", print(&func)));
    }
    Ok(func)
}

/// xorshift64*
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// A number that is more often small than not.
    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => self.next() << 16 ^ self.next(),
            1 => (self.next() % 5).wrapping_sub(2),
            _ => self.next() % 32,
        }
    }
}

const TYPES: [&str; 4] = ["i32", "i64", "f32", "f64"];

/// A type, as its index in [`TYPES`].
type Ty = usize;

struct Label {
    /// The types of the operands that a branch to it takes.
    takes: Vec<Ty>,
    /// The types on the stack after its `end`, above `base`.
    results: Vec<Ty>,
    base: usize,
}

/// Writes a function that terminates: every loop iteration decrements local 0.
struct Generator {
    random: Random,
    text: String,
    stack: Vec<Ty>,
    labels: Vec<Label>,
    budget: u32,
}

/// Types of the locals, the parameters first.
const LOCALS: [Ty; 10] = [0, 0, 1, 2, 3, 0, 0, 1, 1, 3];
const PARAMS: usize = 5;
const IMPORTS: [(&str, &[Ty], &[Ty]); 3] = [("$f0", &[0, 1], &[0]), ("$f1", &[3], &[]), ("$f2", &[0], &[1, 0, 3])];

impl Generator {
    fn program(seed: u64) -> String {
        let random = Random::new(seed);
        let mut this = Generator { random, text: String::new(), stack: Vec::new(), labels: Vec::new(), budget: 0 };
        this.budget = 40 + this.random.below(160) as u32;
        let results = this.types(3);
        let import =
            |(name, params, results)| format!("(import \"m\" \"{name}\" (func {name} {}))\n", signature(params, results));
        let imports: String = IMPORTS.map(import).concat();
        let globals = "(global (mut i32) (i32.const 0))";
        write!(this.text, "(module\n{imports}(memory 1) {globals}").unwrap();
        let locals: String = LOCALS[PARAMS..].iter().map(|&ty| format!(" {}", TYPES[ty])).collect();
        write!(this.text, "\n(func {} (local{locals})\n", signature(&LOCALS[..PARAMS], &results)).unwrap();
        this.labels.push(Label { takes: results.clone(), results, base: 0 });
        this.body();
        this.text.push_str("))");
        this.text
    }

    fn op(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// A list of at most `most` types.
    fn types(&mut self, most: usize) -> Vec<Ty> {
        (0..self.random.below(most + 1)).map(|_| self.random.below(4)).collect()
    }

    fn base(&self) -> usize {
        self.labels.last().unwrap().base
    }

    fn push(&mut self, ty: Ty) {
        match self.random.below(4) {
            0 => {
                let value = self.random.number() as i64;
                match ty {
                    0 => self.op(&format!("i32.const {}", value as i32)),
                    1 => self.op(&format!("i64.const {value}")),
                    _ => self.op(&format!("{}.const {}", TYPES[ty], value as f32 / 4.0)),
                }
            }
            _ => {
                let local = self.local(ty, false);
                self.op(&format!("local.get {local}"));
            }
        }
        self.stack.push(ty);
    }

    /// A local of this type. Local 0, the limit of iterations, is only read.
    fn local(&mut self, ty: Ty, write: bool) -> usize {
        loop {
            let local = self.random.below(LOCALS.len());
            if LOCALS[local] == ty && !(write && local == 0) {
                return local;
            }
        }
    }

    /// Gives the topmost operands these types, by dropping operands and pushing new ones.
    fn want(&mut self, types: &[Ty]) {
        for have in (0..=types.len()).rev() {
            let start = self.stack.len().checked_sub(have).filter(|&start| start >= self.base());
            if start.is_some_and(|start| self.stack[start..] == types[..have]) {
                types[have..].iter().for_each(|&ty| self.push(ty));
                return;
            }
        }
        unreachable!("no operand at all is always there");
    }

    fn take(&mut self, types: &[Ty]) {
        self.want(types);
        self.stack.truncate(self.stack.len() - types.len());
    }

    /// Writes instructions up to the end of the innermost label. Returns whether the end is reached.
    fn body(&mut self) {
        let mut left = 1 + self.random.below(14);
        while left > 0 && self.budget > 0 {
            left -= 1;
            self.budget -= 1;
            if self.instruction() {
                if self.random.chance(30) {
                    self.op("block loop i32.const 1 br_if 0 end i32.const 2 drop end");
                }
                let Label { results, base, .. } = self.labels.last().unwrap();
                self.stack.truncate(*base);
                self.stack.extend(results);
                return;
            }
        }
        let Label { results, base, .. } = self.labels.last().unwrap();
        let (results, base) = (results.clone(), *base);
        while self.stack.len() > base && self.stack[base..] != results[..] {
            self.op("drop");
            self.stack.pop();
        }
        let have = self.stack.len() - base;
        results[have..].iter().for_each(|&ty| self.push(ty));
    }

    /// Writes one instruction or block. Returns whether the following code is dead.
    fn instruction(&mut self) -> bool {
        match self.random.below(24) {
            0..4 => {
                let ty = self.random.below(4);
                self.push(ty);
            }
            4..8 => {
                let ty = self.random.below(4);
                self.take(&[ty]);
                let local = self.local(ty, true);
                self.op(&format!("local.set {local}"));
            }
            8..12 => self.arithmetic(),
            12 => {
                let ty = self.random.below(4);
                self.take(&[ty, ty, 0]);
                self.op("select");
                self.stack.push(ty);
            }
            13 => self.memory(),
            14 => {
                let (name, params, results) = IMPORTS[self.random.below(3)];
                self.take(params);
                self.op(&format!("call {name}"));
                self.stack.extend(results);
            }
            15..18 => self.block(),
            18 => self.conditional(),
            19 | 20 => self.iteration(),
            21 => {
                let depth = self.random.below(self.labels.len());
                let takes = self.labels[self.labels.len() - 1 - depth].takes.clone();
                self.want(&[&takes[..], &[0]].concat());
                self.stack.pop();
                self.op(&format!("br_if {depth}"));
            }
            22 if self.random.chance(40) => {
                let depth = self.random.below(self.labels.len());
                let takes = self.labels[self.labels.len() - 1 - depth].takes.clone();
                self.take(&takes);
                self.op(&format!("br {depth}"));
                return true;
            }
            23 if self.random.chance(40) => {
                let depth = self.random.below(self.labels.len());
                let takes = self.labels[self.labels.len() - 1 - depth].takes.clone();
                let alike: Vec<usize> =
                    (0..self.labels.len()).filter(|i| self.labels[self.labels.len() - 1 - i].takes == takes).collect();
                self.take(&[&takes[..], &[0]].concat());
                let table: String =
                    (0..1 + self.random.below(4)).map(|_| format!(" {}", alike[self.random.below(alike.len())])).collect();
                self.op(&format!("br_table{table}"));
                return true;
            }
            _ => {
                self.push(0);
                self.op("global.set 0");
                self.stack.pop();
            }
        }
        false
    }

    fn arithmetic(&mut self) {
        const INTEGER: [&str; 10] = ["add", "sub", "mul", "and", "xor", "shl", "shr_s", "rotl", "div_u", "rem_s"];
        const FLOAT: [&str; 6] = ["add", "sub", "mul", "min", "copysign", "div"];
        let ty = self.random.below(4);
        match self.random.below(8) {
            0 => {
                self.take(&[ty, ty]);
                self.op(&format!("{}.{}", TYPES[ty], if ty < 2 { "lt_s" } else { "lt" }));
                self.stack.push(0);
            }
            1 => {
                self.take(&[1]);
                self.op("i32.wrap_i64");
                self.stack.push(0);
            }
            2 => {
                self.take(&[0]);
                self.op("i64.extend_i32_u");
                self.stack.push(1);
            }
            _ => {
                self.take(&[ty, ty]);
                // Divisions trap often, and code after a trap is not tested, so they are rarer.
                let (names, common): (&[&str], usize) = if ty < 2 { (&INTEGER, 8) } else { (&FLOAT, 5) };
                let most = if self.random.chance(10) { names.len() } else { common };
                let name = names[self.random.below(most)];
                self.op(&format!("{}.{name}", TYPES[ty]));
                self.stack.push(ty);
            }
        }
    }

    fn memory(&mut self) {
        let ty = self.random.below(4);
        if self.random.chance(50) {
            self.take(&[0]);
            self.op("i32.const 0xfff i32.and");
            self.op(&format!("{}.load offset=3", TYPES[ty]));
            self.stack.push(ty);
        } else {
            self.take(&[0]);
            self.op("i32.const 0xfff i32.and");
            self.stack.push(0);
            self.push(ty);
            self.stack.truncate(self.stack.len() - 2);
            self.op(&format!("{}.store offset=3", TYPES[ty]));
        }
    }

    fn open(&mut self, opcode: &str, params: &[Ty], results: &[Ty], takes: &[Ty]) {
        self.op(&format!("{opcode} {}", signature(params, results)));
        let base = self.stack.len() - params.len();
        self.labels.push(Label { takes: takes.to_vec(), results: results.to_vec(), base });
    }

    fn close(&mut self) {
        self.op("end");
        self.labels.pop();
    }

    fn block(&mut self) {
        let (params, results) = (self.types(2), self.types(2));
        self.want(&params);
        self.open("block", &params, &results, &results);
        self.body();
        self.close();
    }

    fn conditional(&mut self) {
        let params = self.types(2);
        let two_arms = self.random.chance(60);
        let results = if two_arms { self.types(2) } else { params.clone() };
        self.want(&[&params[..], &[0]].concat());
        self.stack.pop();
        self.open("if", &params, &results, &results);
        self.body();
        if two_arms {
            self.op("else");
            let base = self.base();
            self.stack.truncate(base);
            self.stack.extend(&params);
            self.body();
        }
        self.close();
    }

    fn iteration(&mut self) {
        let (params, results) = (self.types(2), self.types(2));
        self.want(&params);
        self.open("loop", &params, &results, &params);
        // If the limit of iterations is reached, return.
        self.op("local.get 0 i32.const 1 i32.sub local.tee 0 i32.const 0 i32.lt_s if");
        let returned = self.labels[0].results.clone();
        let height = self.stack.len();
        returned.iter().for_each(|&ty| self.push(ty));
        self.stack.truncate(height);
        self.op("return end");
        self.body();
        self.close();
    }
}

fn signature(params: &[Ty], results: &[Ty]) -> String {
    let list = |types: &[Ty]| types.iter().map(|&ty| format!(" {}", TYPES[ty])).collect::<String>();
    format!("(param{}) (result{})", list(params), list(results))
}
