//! Spill placement: what it moves to memory, and that it costs less.

use super::super::{costs::Costs, intervals::Intervals, resolve, scan};
use super::problem::{self, Problem};
use super::{allocated, random, used, written};
use crate::meter::Meter;
use crate::regalloc::client::{Assignment, Class, Client, Move, Operand, Place, Reg};

/// The assignment without spill placement.
fn scanned(problem: &Problem) -> Assignment {
    let (costs, meter) = (Costs::of(problem), Meter::default());
    let intervals = Intervals::of(problem, &costs, &meter).expect("a possible problem");
    let segments = scan::scan(problem, &intervals, &costs, &meter).expect("a possible problem");
    resolve::resolve(problem, &intervals, &costs, &segments, &meter).expect("a possible problem")
}

/// The loads and stores in a range of blocks.
fn memory_copies(problem: &Problem, assignment: &Assignment, blocks: std::ops::RangeInclusive<usize>) -> usize {
    let insts = problem.insts(*blocks.start()).start..problem.insts(*blocks.end()).end;
    assignment.moves.iter().filter(|m| insts.contains(&m.before) && is_memory_copy(m)).count()
}

fn is_memory_copy(m: &Move) -> bool {
    matches!(m.from, Place::Slot(_)) || matches!(m.to, Place::Slot(_))
}

/// The loads and stores, each as often as its block is executed.
fn weight(problem: &Problem, assignment: &Assignment) -> f64 {
    let blocks = (0..problem.num_blocks()).map(|block| {
        let insts = problem.insts(block);
        let copies = assignment.moves.iter().filter(|m| insts.contains(&m.before) && is_memory_copy(m));
        f64::from(problem.frequency(block)) * copies.count() as f64
    });
    blocks.sum()
}

/// Instructions that need `registers` registers at once, besides those of `reads`.
fn busy(first: u32, registers: u32, reads: &[Reg]) -> Vec<Vec<Operand>> {
    let regs = (first..first + registers).map(|n| Reg::new_virtual(Class::Int, n));
    let writes = regs.clone().map(|reg| vec![written(reg)]);
    let read = reads.iter().map(|&reg| vec![used(reg)]);
    read.chain(writes).chain([regs.map(used).collect()]).chain([vec![]]).collect()
}

/// A loop around a dispatch: of four arms that need all registers, the first and the last read a value. The other two do not load it.
#[test]
fn arms_load_what_they_read() {
    let mut problem = Problem::new(3, 0, 2);
    let [value, selector] = [0, 1].map(|n| Reg::new_virtual(Class::Int, n));
    problem.block(&[1], &[], &[], vec![vec![written(value)], vec![written(selector)], vec![]]);
    problem.block(&[2, 3, 4, 5, 6], &[], &[], vec![vec![used(selector)], vec![]]);
    for arm in 0..4 {
        let reads: &[Reg] = if arm % 3 == 0 { &[value] } else { &[] };
        problem.block(&[1], &[], &[], busy(2 + 3 * arm, 3, reads));
    }
    problem.block(&[], &[], &[], vec![vec![used(value)]]);
    problem.frequencies(&[1.0, 64.0, 16.0, 16.0, 16.0, 16.0, 1.0]);
    let problem = problem.finish();
    let of_others = |assignment: &Assignment| memory_copies(&problem, assignment, 3..=4);
    // The selector is loaded at the end of each arm, or at the head.
    assert!(of_others(&allocated(&problem)) <= 2, "{:?}", allocated(&problem).moves);
    assert!(of_others(&allocated(&problem)) < of_others(&scanned(&problem)), "{:?}", scanned(&problem).moves);
}

/// A loop's variable that only a rare arm reads and changes: the other rounds neither load nor store it.
#[test]
fn a_variable_stays_in_memory_while_it_is_left_alone() {
    let mut problem = Problem::new(3, 0, 2);
    let [first, variable, changed, merged] = [0, 1, 2, 3].map(|n| Reg::new_virtual(Class::Int, n));
    problem.block(&[1], &[], &[first], vec![vec![written(first)], vec![]]);
    problem.block(&[2, 3], &[variable], &[], busy(4, 3, &[]));
    problem.block(&[4], &[], &[variable], vec![vec![]]);
    problem.block(&[4], &[], &[changed], vec![vec![used(variable)], vec![written(changed)], vec![]]);
    problem.block(&[5, 6], &[merged], &[], busy(7, 3, &[]));
    problem.block(&[1], &[], &[merged], vec![vec![]]);
    problem.block(&[], &[], &[], vec![vec![used(merged)]]);
    problem.frequencies(&[1.0, 64.0, 63.0, 1.0, 64.0, 63.0, 1.0]);
    let problem = problem.finish();
    let of_rounds = |assignment: &Assignment| {
        [1..=2, 4..=5].into_iter().map(|blocks| memory_copies(&problem, assignment, blocks)).sum::<usize>()
    };
    assert!(of_rounds(&scanned(&problem)) > 0, "{:?}", scanned(&problem).moves);
    assert_eq!(of_rounds(&allocated(&problem)), 0, "{:?}", allocated(&problem).moves);
}

/// Over many problems it saves loads and stores. In few it adds some: a parameter's place is chosen before those of some of its
/// arguments, and the stores for a parameter do not count where a value is stored.
#[test]
fn it_saves_loads_and_stores() {
    let (mut before, mut after, mut better, mut worse) = (0.0, 0.0, 0, 0);
    for seed in 0..2000 {
        let problem = problem::at_random(&mut random::Random::new(seed));
        let weights = [scanned(&problem), allocated(&problem)].map(|assignment| weight(&problem, &assignment));
        before += weights[0];
        after += weights[1];
        better += usize::from(weights[1] < weights[0]);
        worse += usize::from(weights[1] > weights[0]);
    }
    assert!(after < 0.93 * before && better > 5 * worse, "{before} to {after}; {better} better, {worse} worse");
}
