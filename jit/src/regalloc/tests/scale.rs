//! Large problems: time must be about linear in the code, not quadratic.

use super::{allocate, operand, problem::Problem, used, written};
use crate::meter::Meter;
use crate::regalloc::client::{Class, Constraint, Position, Reg, Role};
use std::time::Duration;

/// The limit for one test, in processor time of this thread. Each test takes well below a second in an optimised build;
/// a quadratic algorithm would take minutes.
const PATIENCE: Duration = Duration::from_secs(20);

/// The processor time of this thread, which other threads and processes do not affect.
fn processor_time() -> Duration {
    let status = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts it");
    Duration::from_nanos(status.split(' ').next().and_then(|time| time.parse().ok()).expect("nanoseconds"))
}

fn allocates_in_time(problem: Problem) {
    let start = processor_time();
    let assignment = allocate(&problem.finish(), &Meter::default()).expect("a possible problem");
    assert!(!assignment.places.is_empty());
    let elapsed = processor_time() - start;
    assert!(elapsed < PATIENCE, "{elapsed:?}");
}

fn int(n: u32) -> Reg {
    Reg::new_virtual(Class::Int, n)
}

/// 100,000 values are live at once.
#[test]
fn many_values_at_once() {
    let mut problem = Problem::new(12, 4, 4);
    let values = 100_000;
    let defs = (0..values).map(|n| vec![written(int(n))]);
    let uses = (0..values).map(|n| vec![used(int(n))]);
    problem.block(&[], &[], &[], defs.chain(uses).collect());
    allocates_in_time(problem);
}

/// Some values are live across 20,000 calls and used between them.
#[test]
fn many_calls() {
    let mut problem = Problem::new(12, 4, 4);
    let values = 16;
    let calls = 20_000;
    let defs = (0..values).map(|n| vec![written(int(n))]);
    let body = (0..2 * calls).map(|i| if i % 2 == 0 { vec![] } else { vec![used(int(i / 2 % values))] });
    let uses = (0..values).map(|n| vec![used(int(n))]);
    problem.block(&[], &[], &[], defs.chain(body).chain(uses).collect());
    for call in 0..calls as usize {
        problem.clobber(values as usize + 2 * call, (0..12).map(Reg::int).collect());
    }
    allocates_in_time(problem);
}

/// A loop around a switch with 5,000 cases, each of which uses some of 200 values that are live throughout.
#[test]
fn many_blocks() {
    let mut problem = Problem::new(12, 4, 4);
    let (values, cases) = (200, 5_000);
    let state = int(values);
    problem.block(&[1], &[], &[], (0..values).map(|n| vec![written(int(n))]).chain([vec![]]).collect());
    let mut next = values + 1;
    let mut fresh = || {
        next += 1;
        int(next - 1)
    };
    let first = fresh();
    problem.block(
        &(2..2 + cases).collect::<Vec<u32>>(),
        &[],
        &[],
        vec![vec![written(state)], vec![written(first), used(state)], vec![]],
    );
    for case in 0..cases {
        let sum = fresh();
        let reuse = operand(sum, Constraint::Reuse(0), Role::Def, Position::Late);
        let body = vec![vec![used(int(case * 7 % values)), reuse, used(int(case * 13 % values))], vec![used(sum)], vec![]];
        problem.block(&[1], &[], &[], body);
    }
    problem.frequencies(&[1.0].into_iter().chain(std::iter::repeat_n(8.0, cases as usize + 1)).collect::<Vec<f32>>());
    allocates_in_time(problem);
}

/// Loops nested 300 deep, with values that are used only outside all of them, and in the innermost.
#[test]
fn deep_nests() {
    let mut problem = Problem::new(12, 4, 4);
    let (values, depth) = (40, 300);
    problem.block(&[1], &[], &[], (0..values).map(|n| vec![written(int(n))]).chain([vec![]]).collect());
    for head in 1..=depth {
        problem.block(&[head + 1], &[], &[], vec![vec![]]);
    }
    let body = (0..20).map(|n| vec![used(int(n))]).chain([vec![]]).collect();
    problem.block(&[depth + 2], &[], &[], body);
    // Each latch leads back to its loop's header and out to the next latch, through a block of its own.
    for latch in 0..depth {
        let this = depth + 2 + 3 * latch;
        problem.block(&[this + 1, this + 2], &[], &[], vec![vec![]]);
        problem.block(&[depth - latch], &[], &[], vec![vec![]]);
        problem.block(&[this + 3], &[], &[], vec![vec![]]);
    }
    problem.block(&[], &[], &[], (0..values).map(|n| vec![used(int(n))]).collect());
    allocates_in_time(problem);
}

/// A loop of 500 parameters, each of which gets the value of the next one.
#[test]
fn many_parameters_of_a_loop() {
    let mut problem = Problem::new(12, 4, 4);
    let count = 500;
    let [first, params, passed] = [0, 1, 2].map(|group| (group * count..(group + 1) * count).map(int).collect::<Vec<Reg>>());
    let enter = first.iter().map(|&reg| vec![written(reg)]).chain([vec![]]).collect();
    problem.block(&[1], &[], &first, enter);
    let body = params.iter().zip(&passed).map(|(&param, &next)| vec![used(param), written(next)]).chain([vec![]]).collect();
    problem.block(&[2, 3], &params, &[], body);
    let rotated: Vec<Reg> = passed[1..].iter().chain(&passed[..1]).copied().collect();
    problem.block(&[1], &[], &rotated, vec![vec![]]);
    problem.block(&[], &[], &[], params.iter().map(|&reg| vec![used(reg)]).collect());
    problem.frequencies(&[1.0, 8.0, 8.0, 1.0]);
    allocates_in_time(problem);
}

/// A switch with 1,000 cases, each of which passes 50 values of its own to one block, around which 100 values live.
#[test]
fn many_cases_that_pass_values() {
    let mut problem = Problem::new(12, 4, 4);
    let (around, cases, passed) = (100, 1_000, 50);
    let last = cases + 1;
    let param = |n: u32| int(around + n);
    problem.block(
        &(1..last).collect::<Vec<u32>>(),
        &[],
        &[],
        (0..around).map(|n| vec![written(int(n))]).chain([vec![]]).collect(),
    );
    for case in 0..cases {
        let args: Vec<Reg> = (0..passed).map(|n| int(around + passed * (case + 1) + n)).collect();
        let body = args.iter().map(|&arg| vec![written(arg), used(int(case % around))]).chain([vec![]]).collect();
        problem.block(&[last], &[], &args, body);
    }
    let params: Vec<Reg> = (0..passed).map(param).collect();
    let uses = params.iter().copied().chain((0..around).map(int)).map(|reg| vec![used(reg)]).collect();
    problem.block(&[], &params, &[], uses);
    allocates_in_time(problem);
}
