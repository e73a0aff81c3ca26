//! Reaching definitions: the writes of a global that may be the last one before a block's start or end.
//!
//! SSA values have one definition each, so the question arises only for state. A `global_set` defines its global. A
//! call may define any global, and a `global_set` of an imported global may define any other imported one, because two
//! imports may be the same global. At the function's entry, the caller's value is the definition. An instance of
//! [`super::solver`]: forward, sets of definitions, meet by union. Cost: a bit per block and pair of a definition and a
//! global that it may define.

use super::solver::{BitSet, Direction, GenKill, Problem, Solution, solve};
use weir_jit::analysis::Cfg;
use weir_jit::ir::{Block, Func, Op, Value};

/// A definition of a global.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Definition {
    /// The global that is written.
    pub global: u32,
    /// The `global_set` or call that writes it; `None` for the value at the function's entry.
    pub by: Option<Value>,
}

/// The definitions that reach each block's start and end.
#[derive(Clone, Debug)]
pub struct Reaching {
    definitions: Vec<Definition>,
    solution: Solution<BitSet>,
}

impl Reaching {
    /// Solves for `func`; globals with indices below `imported` are imported.
    pub fn compute(func: &Func<'_>, cfg: &Cfg, imported: u32) -> Reaching {
        let definitions = definitions(func, imported);
        let mut transfer = GenKill::new(func.num_blocks(), definitions.len());
        let number = |definition| definitions.binary_search(&definition).expect("every definition is numbered");
        let of = |global| {
            let below = |limit| definitions.partition_point(|definition| definition.global < limit);
            below(global)..below(global + 1)
        };
        for block in func.blocks() {
            for &value in &func.block(block).insts {
                if func.op(value) == Op::GlobalSet {
                    of(func.inst(value).aux).for_each(|number| transfer.kill(block, number));
                }
                let globals = definitions.chunk_by(|a, b| a.global == b.global).map(|same| same[0].global);
                for global in globals.filter(|&global| may_define(func, value, global, imported)) {
                    transfer.generate(block, number(Definition { global, by: Some(value) }));
                }
            }
        }
        let solution = solve(&Writes { transfer, definitions: &definitions }, func, cfg);
        Reaching { definitions, solution }
    }

    /// Definitions that may be the last at the start of `block`, ascending.
    pub fn at_start(&self, block: Block) -> impl Iterator<Item = Definition> + '_ {
        self.solution.at_start(block).iter().map(|number| self.definitions[number])
    }

    /// Definitions that may be the last at the end of `block`, ascending.
    pub fn at_end(&self, block: Block) -> impl Iterator<Item = Definition> + '_ {
        self.solution.at_end(block).iter().map(|number| self.definitions[number])
    }
}

/// Whether `value` may write `global`.
fn may_define(func: &Func<'_>, value: Value, global: u32, imported: u32) -> bool {
    let inst = func.inst(value);
    let sets = inst.op == Op::GlobalSet && (inst.aux == global || inst.aux.max(global) < imported);
    sets || inst.op.calls_function()
}

/// All definitions of globals that `func` refers to, ascending.
fn definitions(func: &Func<'_>, imported: u32) -> Vec<Definition> {
    let insts = || func.blocks().flat_map(|block| &func.block(block).insts).copied();
    let mentions = |&value: &Value| matches!(func.op(value), Op::GlobalGet | Op::GlobalSet);
    let mut globals: Vec<u32> = insts().filter(mentions).map(|value| func.inst(value).aux).collect();
    globals.sort_unstable();
    globals.dedup();
    let mut definitions: Vec<_> = globals.iter().map(|&global| Definition { global, by: None }).collect();
    for value in insts() {
        let defined = globals.iter().filter(|&&global| may_define(func, value, global, imported));
        definitions.extend(defined.map(|&global| Definition { global, by: Some(value) }));
    }
    definitions.sort_unstable();
    definitions
}

struct Writes<'d> {
    transfer: GenKill,
    definitions: &'d [Definition],
}

impl Problem for Writes<'_> {
    type Fact = BitSet;
    const DIRECTION: Direction = Direction::Forward;

    fn top(&self) -> BitSet {
        BitSet::empty(self.definitions.len())
    }

    fn boundary(&self) -> BitSet {
        let mut found = self.top();
        let at_entry = self.definitions.iter().enumerate().filter(|(_, definition)| definition.by.is_none());
        at_entry.for_each(|(number, _)| found.insert(number));
        found
    }

    fn meet(&self, fact: &mut BitSet, other: &BitSet) {
        fact.unite(other);
    }

    fn transfer(&self, block: Block, fact: &mut BitSet) {
        self.transfer.apply(block, fact);
    }
}
