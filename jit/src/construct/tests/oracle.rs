//! Compares construction and the removal of redundant phis with [`cytron`](super::cytron) on random graphs: both must
//! place the same phis in the same blocks with the same operands, and every read must find the same definition.

use super::cytron::{self, Action, Definition, Program};
use super::random::Random;
use crate::analysis::{Cfg, Dominators, verify};
use crate::construct::braun::{Braun, Variables};
use crate::ir::{Block, Entry, Func, Op, Type, Value, print};
use crate::meter::Meter;
use crate::opt::phis;
use crate::pipeline::{self, Form, Phase, Unit};
use crate::request::Options;
use crate::settings::Search;
use bumpalo::Bump;
use std::collections::{BTreeMap, BTreeSet};

const GRAPHS: u64 = 20_000;
const VARIABLES: u32 = 3;

struct Zeros;

impl Variables for Zeros {
    fn initial(&mut self, func: &mut Func<'_>, _: u32, ty: Type) -> Value {
        let value = func.create(Op::Const, ty, 0, 0, 0, &[]);
        func.prepend(Block::ENTRY, &[value]);
        value
    }

    fn assigned(&self, _: u32, _: u32) -> bool {
        true
    }
}

#[test]
fn phis_are_those_of_the_pruned_minimal_form() {
    let (mut reducible, mut irreducible, mut phis, mut removed) = (0, 0, 0, 0);
    for seed in 0..GRAPHS {
        let mut random = Random::new(seed);
        let arena = Bump::new();
        let mut func = graph(&arena, &mut random);
        let cfg = Cfg::compute(&func);
        let actions: Vec<Vec<Action>> = func.blocks().map(|_| actions(&mut random)).collect();
        let reads = construct(&mut func, &cfg, &actions, &mut random);
        let placed = count_phis(&func);
        let options = Options { verify: true, ..Options::default() };
        let mut unit = Unit::without_module(func, &options);
        let _ = pipeline::run(&mut unit, [Phase::of(&phis::PASS)], &mut ()).unwrap();
        let Form::Ssa(func) = unit.finish().form else { panic!("a pass ends with SSA") };
        verify(&func, None).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", print(&func)));

        compare(&func, &actions, &reads).unwrap_or_else(|what| panic!("seed {seed}: {what}\n{}", print(&func)));
        if is_reducible(&func, &cfg) {
            reducible += 1;
            assert_eq!(placed, count_phis(&func), "seed {seed}: construction alone is minimal\n{}", print(&func));
        } else {
            irreducible += 1;
            removed += placed - count_phis(&func);
        }
        phis += count_phis(&func);
    }
    // The graphs must be worth comparing.
    assert!(reducible > GRAPHS / 4 && irreducible > GRAPHS / 4, "{reducible} {irreducible}");
    assert!(phis > 20_000 && removed > 500, "{phis} {removed}");
}

fn count_phis(func: &Func<'_>) -> usize {
    func.blocks().map(|block| func.phis(block).count()).sum()
}

/// A random graph of 2 to 14 blocks. In half of the graphs most edges are short, so that more of them are reducible. A
/// block with several successors ends with a `br_table`.
fn graph<'a>(arena: &'a Bump, random: &mut Random) -> Func<'a> {
    let mut func = Func::new(arena, 0, Entry::Call, [], []);
    let blocks = 2 + random.below(13);
    let short = [90, 20][random.below(2)];
    for _ in 0..blocks {
        func.create_block();
    }
    for from in 0..blocks {
        for _ in 0..[0, 1, 1, 2, 2, 2, 2, 2, 3, 3][random.below(10)] {
            let near = (from + random.below(5)).saturating_sub(2);
            let to = if random.chance(short) { near.clamp(1, blocks - 1) } else { 1 + random.below(blocks - 1) };
            func.add_edge(Block(from as u32), Block(to as u32));
        }
    }
    // Unreachable blocks have no edges.
    let cfg = Cfg::compute(&func);
    for block in func.blocks() {
        let data = func.block_mut(block);
        data.preds.retain(|pred| cfg.is_reachable(*pred));
        if !cfg.is_reachable(block) {
            data.succs.clear();
        }
    }
    func
}

fn actions(random: &mut Random) -> Vec<Action> {
    let action = |random: &mut Random| {
        let variable = random.below(VARIABLES as usize) as u32;
        if random.chance(45) { Action::Define(variable) } else { Action::Use(variable) }
    };
    (0..random.below(4)).map(|_| action(random)).collect()
}

/// Fills the blocks in order and seals each at some time after its predecessors are filled. Every write has a unique
/// value. Every kind of search is tried. Returns, by block, the values that its writes defined and the instructions
/// that use the values that its reads found.
fn construct(func: &mut Func<'_>, cfg: &Cfg, actions: &[Vec<Action>], random: &mut Random) -> Vec<Vec<Value>> {
    let search = [Search::Plain, Search::Marker, Search::Components][random.below(3)];
    let meter = Meter::default();
    let mut braun = Braun::with(VARIABLES as usize, u64::MAX, &meter, search, random.chance(50));
    let mut open: Vec<Block> = cfg.order().to_vec();
    let mut filled = BTreeSet::new();
    let mut done = vec![Vec::new(); func.num_blocks()];
    let index = (cfg.order().len() > 1).then(|| func.append(Block::ENTRY, Op::Const, Type::I32, 0, 0, 1, &[]));
    for &block in cfg.order() {
        seal(func, &mut braun, &mut open, &filled, |block| block == Block::ENTRY || random.chance(60));
        for &action in &actions[block.index()] {
            let inst = match action {
                Action::Define(variable) => {
                    let value = func.append(block, Op::GlobalGet, Type::I32, 0, 0, 0, &[]);
                    braun.write_variable(variable, block, value);
                    value
                }
                Action::Use(variable) => {
                    let value = braun.read_variable(func, &mut Zeros, variable, block, Type::I32);
                    func.append(block, Op::GlobalSet, Type::Void, 0, 0, 0, &[value])
                }
            };
            done[block.index()].push(inst);
        }
        match func.block(block).succs.len() {
            0 => func.append(block, Op::Return, Type::Void, 0, 0, 0, &[]),
            1 => func.append(block, Op::Jump, Type::Void, 0, 0, 0, &[]),
            _ => func.append(block, Op::BrTable, Type::Void, 0, 0, 0, &[index.unwrap()]),
        };
        filled.insert(block);
    }
    seal(func, &mut braun, &mut open, &filled, |_| true);
    assert!(open.is_empty());
    braun.finish(func);
    func.settle();
    done
}

fn seal(
    func: &mut Func<'_>,
    braun: &mut Braun<'_>,
    open: &mut Vec<Block>,
    filled: &BTreeSet<Block>,
    mut now: impl FnMut(Block) -> bool,
) {
    open.retain(|&block| {
        let ready = func.block(block).preds.iter().all(|pred| filled.contains(pred)) && now(block);
        if ready {
            braun.seal_block(func, &mut Zeros, block);
        }
        !ready
    });
}

/// Matches every definition of the oracle with its value, from the reads through the operands of phis. Checks that the
/// matching is one to one and covers all phis of both.
fn compare(func: &Func<'_>, actions: &[Vec<Action>], done: &[Vec<Value>]) -> Result<(), String> {
    let blocks = |list: &[Block]| list.iter().map(|block| block.index()).collect::<Vec<_>>();
    let preds: Vec<Vec<usize>> = func.blocks().map(|block| blocks(&func.block(block).preds)).collect();
    let succs: Vec<Vec<usize>> = func.blocks().map(|block| blocks(&func.block(block).succs)).collect();
    let program = Program { preds: &preds, succs: &succs, actions, variables: VARIABLES };
    let ssa = cytron::construct(&program);

    let mut work = Vec::new();
    for block in func.blocks().filter(|block| ssa.reachable >> block.index() & 1 == 1) {
        let uses = done[block.index()].iter().filter(|&&inst| func.op(inst) == Op::GlobalSet);
        work.extend(ssa.uses[block.index()].iter().copied().zip(uses.map(|&inst| func.args(inst)[0])));
    }
    let phi_block: BTreeMap<Value, Block> =
        func.blocks().flat_map(|block| func.phis(block).map(move |phi| (phi, block))).collect();
    let (mut value_of, mut definition_of) = (BTreeMap::new(), BTreeMap::new());
    while let Some((definition, value)) = work.pop() {
        let known = value_of.insert(definition, value);
        if known.is_some_and(|known| known != value) || definition_of.insert(value, definition).is_some_and(|d| d != definition) {
            return Err(format!("{definition:?} is {value}, and one of them something else too"));
        }
        let fits = match definition {
            Definition::Initial { .. } => func.as_const(value) == Some(0),
            Definition::Write { block, index } => done[block][index] == value,
            Definition::Phi { block, .. } => phi_block.get(&value) == Some(&Block(block as u32)),
        };
        if !fits {
            return Err(format!("{value} is no {definition:?}"));
        }
        if let Definition::Phi { block, variable } = definition
            && known.is_none()
        {
            let index = ssa.phis[block].iter().position(|&v| v == variable).ok_or("the oracle has a phi without need")?;
            work.extend(ssa.operands[block][index].iter().copied().zip(func.args(value).iter().copied()));
        }
    }
    let matched = value_of.keys().filter(|definition| matches!(definition, Definition::Phi { .. })).count();
    let expected: usize = ssa.phis.iter().map(Vec::len).sum();
    if (matched, matched) != (expected, phi_block.len()) {
        return Err(format!("{} phis, {expected} expected, {matched} of them the same", phi_block.len()));
    }
    Ok(())
}

/// Whether every cycle is entered at a block that dominates it: without the edges to dominators, the graph is acyclic.
fn is_reducible(func: &Func<'_>, cfg: &Cfg) -> bool {
    let dom = Dominators::compute(func, cfg);
    let mut left: BTreeSet<Block> = cfg.order().iter().copied().collect();
    loop {
        let is_source =
            |&&block: &&Block| !func.block(block).preds.iter().any(|&pred| left.contains(&pred) && !dom.dominates(block, pred));
        match left.iter().find(is_source).copied() {
            Some(source) => left.remove(&source),
            None => return left.is_empty(),
        };
    }
}
