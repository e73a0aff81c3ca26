//! Construction against the definition, on random graphs: phis stand exactly where the pruned minimal form has them
//! (iterated joins of different definitions, where the variable is live). On irreducible graphs there may be more.

use super::random::Random;
use crate::analysis::{Cfg, Dominators};
use crate::build::braun::{Braun, Variables};
use crate::ir::{Block, Entry, Func, Op, Type, Value, print, verify};
use bumpalo::Bump;
use std::collections::BTreeSet;

const BLOCKS: usize = 9;
const VARIABLES: u32 = 3;

/// What a block does, in order.
#[derive(Clone, Copy)]
enum Action {
    Define(u32),
    Use(u32),
}

struct Zeros;

impl Variables for Zeros {
    fn initial(&mut self, func: &mut Func<'_>, _: u32, ty: Type) -> Value {
        let value = func.create(Op::Const, ty, 0, 0, 0, &[]);
        func.block_mut(Block::ENTRY).insts.insert(0, value);
        value
    }

    fn assigned(&self, _: u32, _: u32) -> bool {
        true
    }
}

#[test]
fn phis_are_minimal_and_pruned() {
    let (mut reducible, mut irreducible, mut phis) = (0, 0, 0);
    for seed in 0..6000 {
        let mut random = Random::new(seed);
        let arena = Bump::new();
        let mut func = graph(&arena, &mut random);
        let cfg = Cfg::compute(&func);
        let actions: Vec<Vec<Action>> = (0..BLOCKS).map(|_| actions(&mut random)).collect();
        construct(&mut func, &cfg, &actions, &mut random);
        verify(&func, None).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", print(&func)));

        let placed: usize = cfg.order().iter().map(|&block| func.phis(block).count()).sum();
        let minimal: usize = (0..VARIABLES).map(|variable| pruned_minimal(&func, &cfg, &actions, variable)).sum();
        if is_reducible(&func, &cfg) {
            reducible += 1;
            phis += placed;
            assert_eq!(placed, minimal, "seed {seed}\n{}", print(&func));
        } else {
            irreducible += 1;
            assert!(placed >= minimal, "seed {seed}\n{}", print(&func));
        }
    }
    assert!(reducible > 4000 && irreducible > 600 && phis > 1500, "{reducible} {irreducible} {phis}");
}

/// Random edges; a block with several successors ends with a `br_table`.
fn graph<'a>(arena: &'a Bump, random: &mut Random) -> Func<'a> {
    let mut func = Func::new(arena, 0, Entry::Call, [], []);
    for _ in 0..BLOCKS {
        func.create_block();
    }
    for from in 0..BLOCKS {
        for _ in 0..random.below(5).min(2) {
            let near = from.saturating_sub(2) + random.below(5);
            let to = if random.chance(70) { near.clamp(1, BLOCKS - 1) } else { 1 + random.below(BLOCKS - 1) };
            func.add_edge(Block(from as u32), Block(to as u32));
        }
    }
    // What cannot be reached has no edges.
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

/// Fills the blocks in order and seals each at some time after its predecessors are filled.
fn construct(func: &mut Func<'_>, cfg: &Cfg, actions: &[Vec<Action>], random: &mut Random) {
    let mut braun = Braun::new(VARIABLES as usize, u64::MAX);
    let mut open: Vec<Block> = cfg.order().to_vec();
    let mut filled = BTreeSet::new();
    let index = (cfg.order().len() > 1).then(|| func.append(Block::ENTRY, Op::Const, Type::I32, 0, 0, 1, &[]));
    for &block in cfg.order() {
        seal(func, &mut braun, &mut open, &filled, |block| block == Block::ENTRY || random.chance(60));
        for &action in &actions[block.index()] {
            match action {
                Action::Define(variable) => {
                    let value = func.append(block, Op::GlobalGet, Type::I32, 0, 0, 0, &[]);
                    braun.write_variable(variable, block, value);
                }
                Action::Use(variable) => {
                    let value = braun.read_variable(func, &mut Zeros, variable, block, Type::I32);
                    func.append(block, Op::GlobalSet, Type::Void, 0, 0, 0, &[value]);
                }
            }
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
}

fn seal(
    func: &mut Func<'_>,
    braun: &mut Braun,
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

/// How many phis the pruned minimal form has for `variable`: the entry defines it, and a phi is a definition.
fn pruned_minimal(func: &Func<'_>, cfg: &Cfg, actions: &[Vec<Action>], variable: u32) -> usize {
    let dom = Dominators::compute(func, cfg);
    let defines =
        |block: Block| actions[block.index()].iter().any(|action| matches!(action, Action::Define(v) if *v == variable));
    // Live-in: used before any definition in the block, or live out and not defined.
    let mut live: BTreeSet<Block> = BTreeSet::new();
    let uses_first = |block: Block| {
        let first =
            actions[block.index()].iter().find(|action| matches!(action, Action::Define(v) | Action::Use(v) if *v == variable));
        matches!(first, Some(Action::Use(_)))
    };
    loop {
        let more: Vec<Block> = cfg
            .order()
            .iter()
            .copied()
            .filter(|&block| {
                let live_out = func.block(block).succs.iter().any(|succ| live.contains(succ));
                !live.contains(&block) && (uses_first(block) || live_out && !defines(block))
            })
            .collect();
        if more.is_empty() {
            break;
        }
        live.extend(more);
    }
    let mut phis: BTreeSet<Block> = BTreeSet::new();
    let mut pending: Vec<Block> = cfg.order().iter().copied().filter(|&block| block == Block::ENTRY || defines(block)).collect();
    while let Some(def) = pending.pop() {
        for &join in cfg.order() {
            let in_frontier =
                func.block(join).preds.iter().any(|&pred| dom.dominates(def, pred)) && (def == join || !dom.dominates(def, join));
            if in_frontier && phis.insert(join) {
                pending.push(join);
            }
        }
    }
    phis.intersection(&live).count()
}

/// Whether every cycle is entered at a block that dominates it: without the edges to dominators there is no cycle.
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
