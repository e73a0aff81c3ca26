//! Compares the instances of the data-flow framework with solvers that follow every path, on random functions, one fact
//! at a time. A path is a walk over pairs of a block and the state of that fact there.

use bumpalo::Bump;
use std::collections::HashSet;
use std::hash::Hash;
use weir_jit::analysis::Cfg;
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{Block, Effect, Func, Op, Outcome, Value, eval, parse};
use weir_tests::dataflow::available::{self, Available};
use weir_tests::dataflow::liveness::{LiveSets, Liveness};
use weir_tests::dataflow::reaching::{Definition, Reaching};
use weir_tests::dataflow::uses::Uses;
use weir_tests::random_ssa::function;
use weir_tests::rng::Rng;

const FUNCTIONS: u64 = 1500;
/// Globals below this index count as imported; functions use some of them.
const IMPORTED: u32 = 2;

fn each_function(mut check: impl FnMut(u64, &Func<'_>, &Cfg)) {
    for seed in 0..FUNCTIONS {
        let arena = Bump::new();
        let func = function(&arena, &mut Rng::new(seed));
        check(seed, &func, &Cfg::compute(&func));
    }
}

/// Every state that some path has at the start and at the end of each block, as pairs with the block. A path begins at
/// the entry in state `first`; `through` gives the state after an instruction.
fn follow<S: Copy + Eq + Hash>(func: &Func<'_>, first: S, through: impl Fn(Value, S) -> S) -> [HashSet<(Block, S)>; 2] {
    let (mut starts, mut ends) = (HashSet::new(), HashSet::new());
    let mut work = vec![(Block::ENTRY, first)];
    while let Some((block, state)) = work.pop() {
        if !starts.insert((block, state)) {
            continue;
        }
        let end = func.block(block).insts.iter().fold(state, |state, &value| through(value, state));
        ends.insert((block, end));
        work.extend(func.block(block).succs.iter().map(|&succ| (succ, end)));
    }
    [starts, ends]
}

/// Whether a path from the end of `block` uses `value` before defining it again.
fn used_after(func: &Func<'_>, block: Block, value: Value) -> bool {
    let (mut seen, mut work) = (HashSet::new(), vec![block]);
    while let Some(from) = work.pop() {
        for &succ in &func.block(from).succs {
            let data = func.block(succ);
            let by_phi = |phi: Value| (0..data.preds.len()).any(|i| data.preds[i] == from && func.args(phi)[i] == value);
            if func.phis(succ).any(by_phi) {
                return true;
            }
            if seen.insert(succ) {
                match first_mention(func, succ, value) {
                    Some(used) if used => return true,
                    Some(_) => {}
                    None => work.push(succ),
                }
            }
        }
    }
    false
}

/// The first access of `block` to `value`, arguments of phis excluded: `true` for a use, `false` for the definition.
fn first_mention(func: &Func<'_>, block: Block, value: Value) -> Option<bool> {
    func.block(block).insts.iter().find_map(|&inst| match () {
        () if func.op(inst) != Op::Phi && func.args(inst).contains(&value) => Some(true),
        () if inst == value => Some(false),
        () => None,
    })
}

#[test]
fn phi_arguments_are_live_where_they_come_from() {
    const NESTED: &str = "
func 0 (i32)
b0:
  v0: i32 = param 0
  jump b1
b1:
  v2: i32 = phi b0: v0, b4: v3
  branch v2, b2, b5
b2:
  v3: i32 = phi b1: v2, b3: v4, b2: v3
  branch v0, b2, b3
b3:
  v4: i32 = add v3, v2
  branch v4, b2, b4
b4:
  branch v0, b1, b5
b5:
  v5: i32 = phi b1: v2, b4: v4
  return
";
    let arena = Bump::new();
    let live = Liveness::compute(&parse(&arena, NESTED).unwrap());
    let values = |set: &[Value]| set.iter().map(|value| value.0).collect::<Vec<_>>();
    assert_eq!(values(live.live_in(Block(1))), [0], "the phi itself is defined there");
    assert_eq!(values(live.live_out(Block(1))), [0, 2], "v2 goes to phis and to b3");
    assert_eq!(values(live.live_out(Block(3))), [0, 2, 3, 4]);
    assert_eq!(values(live.live_in(Block(5))), [0; 0]);
}

#[test]
fn liveness() {
    let mut live = 0;
    each_function(|seed, func, cfg| {
        let (sparse, dense) = (Liveness::compute(func), LiveSets::compute(func, cfg));
        for &block in cfg.order() {
            for value in (0..func.num_values() as u32).map(Value) {
                let out = used_after(func, block, value);
                let within = first_mention(func, block, value).unwrap_or(out);
                assert_eq!(dense.live_out(block).contains(value.index()), out, "seed {seed}, {value} after {block}\n{func}");
                assert_eq!(dense.live_in(block).contains(value.index()), within, "seed {seed}, {value} before {block}\n{func}");
                live += usize::from(out);
            }
            let same = |dense: Vec<usize>, sparse: &[Value]| sparse.iter().map(|value| value.index()).eq(dense);
            assert!(same(dense.live_in(block).iter().collect(), sparse.live_in(block)), "seed {seed}, {block}\n{func}");
            assert!(same(dense.live_out(block).iter().collect(), sparse.live_out(block)), "seed {seed}, {block}\n{func}");
        }
    });
    assert!(live > 10_000, "only {live} values were live anywhere");
}

#[test]
fn reaching_definitions() {
    let mut reached = 0;
    each_function(|seed, func, cfg| {
        let reaching = Reaching::compute(func, cfg, IMPORTED);
        for definition in possible_definitions(func) {
            // Whether this definition may be the last write on a path.
            let [starts, ends] = follow(func, definition.by.is_none(), |value, holds| match func.op(value) {
                _ if definition.by == Some(value) => true,
                Op::GlobalSet => holds && func.inst(value).aux != definition.global,
                _ => holds,
            });
            for &block in cfg.order() {
                let expected = (starts.contains(&(block, true)), ends.contains(&(block, true)));
                let at_start = reaching.at_start(block).any(|found| found == definition);
                let at_end = reaching.at_end(block).any(|found| found == definition);
                assert_eq!((at_start, at_end), expected, "seed {seed}, {definition:?}, {block}\n{func}");
                reached += usize::from(at_start && definition.by.is_some());
            }
        }
    });
    assert!(reached > 1000, "only {reached} writes reached any other block");
}

/// The possible definitions of each global that `func` refers to.
fn possible_definitions(func: &Func<'_>) -> Vec<Definition> {
    let insts: Vec<Value> = func.blocks().flat_map(|block| &func.block(block).insts).copied().collect();
    let mentions = |value: &&Value| matches!(func.op(**value), Op::GlobalGet | Op::GlobalSet);
    let globals: HashSet<u32> = insts.iter().filter(mentions).map(|&value| func.inst(value).aux).collect();
    let mut found: Vec<_> = globals.iter().map(|&global| Definition { global, by: None }).collect();
    for &value in &insts {
        let defines = |&&global: &&u32| match func.op(value) {
            Op::Call | Op::CallIndirect => true,
            Op::GlobalSet => func.inst(value).aux == global || func.inst(value).aux < IMPORTED && global < IMPORTED,
            _ => false,
        };
        found.extend(globals.iter().filter(defines).map(|&global| Definition { global, by: Some(value) }));
    }
    found
}

/// Whether an operation may change what another one reads, by their names: the analysis has it by families.
fn may_change(write: Op, read: Op) -> bool {
    let reads = matches!(read.effect(), Effect::Read | Effect::ReadTrap);
    let in_instance = |name: &str| !matches!(name, "global_get" | "fuel_left" | "epoch" | "deadline");
    reads
        && match write.name() {
            "poll" | "call" | "call_indirect" | "call_ref" => true,
            "global_set" => read.name() == "global_get",
            "fuel" => read.name() == "fuel_left",
            "data_drop" | "elem_drop" | "memory_grow" | "memory_fill" | "memory_copy" | "memory_init" => in_instance(read.name()),
            name if name.starts_with("store") || name.starts_with("table_") => {
                write.effect() == Effect::Write && in_instance(read.name())
            }
            _ => false,
        }
}

/// What the host does in a poll decides what a load gives after it: no load is available across a poll.
#[test]
fn a_poll_changes_memory() {
    let text =
        "func 0 (i32) -> (i32, i32)\nb0:\n v0: i32 = param 0\n v1: i32 = load v0\n poll\n v2: i32 = load v0\n return v1, v2";
    let arena = bumpalo::Bump::new();
    let func = parse(&arena, text).unwrap();
    let callback = |world: &mut Sandbox| {
        world.memories[0][8] = 7;
        Ok(())
    };
    let mut world = Sandbox { fuel: Some(5), due_at: vec![5], callback, ..Sandbox::default() };
    assert_eq!(eval(&func, &mut world, &[8], 100), Ok(Outcome::Return(vec![0, 7])));
    let loads = available::may_change(Op::Poll, Op::Load) && may_change(Op::Poll, Op::Load);
    assert!(loads && available::may_change(Op::Poll, Op::GlobalGet) && !available::may_change(Op::Fuel, Op::Load));
}

#[test]
fn available_expressions() {
    let mut found = 0;
    each_function(|seed, func, cfg| {
        let available = Available::compute(func, cfg, &Uses::compute(func));
        let insts = func.blocks().flat_map(|block| &func.block(block).insts).copied();
        for expression in insts.filter(|&value| available.number(value).is_some()) {
            let [starts, ends] = follow(func, false, |value, holds| {
                if func.args(expression).contains(&value) {
                    return false;
                }
                let changed = may_change(func.op(value), func.op(expression));
                available.number(value) == available.number(expression) || holds && !changed
            });
            for &block in cfg.order() {
                let always = |states: &HashSet<(Block, bool)>| !states.contains(&(block, false));
                assert_eq!(available.at_start(block, expression), always(&starts), "seed {seed}, {expression}, {block}\n{func}");
                assert_eq!(available.at_end(block, expression), always(&ends), "seed {seed}, {expression}, {block}\n{func}");
                found += usize::from(available.at_start(block, expression));
            }
        }
    });
    assert!(found > 10_000, "only {found} expressions were available anywhere");
}
