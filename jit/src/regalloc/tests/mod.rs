//! Random allocation problems, solved by both allocators and verified by the checker.

mod placement;
mod problem;
mod random;
mod scale;
mod simulate;

use super::checker::{self, CheckError};
use super::client::{Class, Client, Constraint, Move, Operand, Place, Position, Reg, Role, SlotWidth};
use super::{Assignment, allocate};
use crate::meter::Meter;
use problem::Problem;

fn operand(reg: Reg, constraint: Constraint, role: Role, position: Position) -> Operand {
    Operand { reg, constraint, role, position }
}

fn used(reg: Reg) -> Operand {
    operand(reg, Constraint::Reg, Role::Use, Position::Early)
}

fn written(reg: Reg) -> Operand {
    operand(reg, Constraint::Reg, Role::Def, Position::Late)
}

fn allocated(problem: &Problem) -> Assignment {
    let assignment = allocate(problem, &Meter::default()).expect("a possible problem");
    checker::check(problem, &assignment).unwrap_or_else(|wrong| panic!("{wrong}\n{problem:?}\n{assignment:?}"));
    assignment
}

/// The number of copies between registers, to memory, and from memory.
fn counts(moves: &[Move]) -> (usize, usize, usize) {
    let count = |is: fn(&Move) -> bool| moves.iter().filter(|m| is(m)).count();
    (
        count(|m| matches!((m.from, m.to), (Place::Reg(_), Place::Reg(_)))),
        count(|m| matches!(m.to, Place::Slot(_))),
        count(|m| matches!(m.from, Place::Slot(_))),
    )
}

#[test]
fn straight_code_needs_no_copies() {
    let mut problem = Problem::new(4, 0, 4);
    let [a, b, c] = [0, 1, 2].map(|n| Reg::new_virtual(Class::Int, n));
    problem.block(
        &[],
        &[],
        &[],
        vec![
            vec![written(a)],
            vec![written(b)],
            vec![used(a), operand(c, Constraint::Reuse(0), Role::Def, Position::Late), used(b)],
            vec![used(c)],
        ],
    );
    let assignment = allocated(&problem.finish());
    assert!(assignment.moves.is_empty(), "{:?}", assignment.moves);
    assert!(assignment.slots.is_empty());
}

/// Values that are live through a loop but not used in it are spilled outside the loop, in favour of values used there.
#[test]
fn spills_around_a_loop_and_not_in_it() {
    let mut problem = Problem::new(4, 0, 4);
    let regs: Vec<Reg> = (0..8).map(|n| Reg::new_virtual(Class::Int, n)).collect();
    let (through, inside) = regs.split_at(4);
    problem.block(&[1], &[], &[], regs.iter().map(|&reg| vec![written(reg)]).chain([vec![]]).collect());
    problem.block(&[2, 3], &[], &[], inside.iter().map(|&reg| vec![used(reg)]).chain([vec![]]).collect());
    problem.block(&[1], &[], &[], vec![vec![]]);
    problem.block(&[], &[], &[], through.iter().map(|&reg| vec![used(reg)]).chain([vec![]]).collect());
    problem.frequencies(&[1.0, 8.0, 8.0, 1.0]);
    let problem = problem.finish();
    let assignment = allocated(&problem);
    let body = problem.insts(1).start..problem.insts(2).end;
    let inside: Vec<&Move> = assignment.moves.iter().filter(|m| body.contains(&m.before)).collect();
    // A copy at the head of the loop's first block may be executed only on entry to the loop.
    assert!(inside.is_empty(), "{inside:?} of {:?}", assignment.moves);
    assert_eq!(counts(&assignment.moves), (0, 4, 4));
}

/// A value that is live across a call and not used before it costs one store and one load, or a callee-saved register
/// and no copy.
#[test]
fn crossing_a_call() {
    for (others, expected) in [(0, (0, 1, 1)), (1, (0, 0, 0))] {
        let mut problem = Problem::new(3, others, 2);
        let [a, b] = [0, 1].map(|n| Reg::new_virtual(Class::Int, n));
        problem.block(&[], &[], &[], vec![vec![written(a)], vec![], vec![written(b)], vec![used(a), used(b)]]);
        problem.clobber(1, (0..3).map(Reg::int).collect());
        let assignment = allocated(&problem.finish());
        assert_eq!(counts(&assignment.moves), expected, "{:?}", assignment.moves);
    }
}

/// A vector takes a slot of 16 bytes and does not share it with a number, though the two are never live together.
#[test]
fn slots_have_the_width_of_what_they_hold() {
    for wide in [false, true] {
        let mut problem = Problem::new(3, 0, 2);
        let number = Reg::new_virtual(Class::Float, 0);
        let vector = if wide { Reg::new_wide(1) } else { Reg::new_virtual(Class::Float, 1) };
        let insts = [number, vector].into_iter().flat_map(|reg| [vec![written(reg)], vec![], vec![used(reg)]]);
        problem.block(&[], &[], &[], insts.collect());
        [1, 4].into_iter().for_each(|call| problem.clobber(call, (0..2).map(Reg::float).collect()));
        let problem = problem.finish();
        let assignment = allocated(&problem);
        let expected: &[SlotWidth] = if wide { &[SlotWidth::Word, SlotWidth::Wide] } else { &[SlotWidth::Word] };
        assert_eq!(assignment.slots, expected);
        if wide {
            let narrow = Assignment { slots: vec![SlotWidth::Word; 2], ..allocated(&problem) };
            assert!(matches!(checker::check(&problem, &narrow), Err(CheckError::Missing { reg, .. }) if reg == vector));
        }
    }
}

/// A loop that swaps its two parameters needs a cycle of copies, with a free register and without one.
#[test]
fn swap_in_a_loop() {
    for (registers, wide) in [(2, false), (3, false), (2, true), (3, true)] {
        let mut problem = if wide { Problem::new(2, 0, registers) } else { Problem::new(registers, 0, 2) };
        let reg = |n| if wide { Reg::new_wide(n) } else { Reg::new_virtual(Class::Int, n) };
        let [a, b, x, y] = [0, 1, 2, 3].map(reg);
        problem.block(&[1], &[], &[a, b], vec![vec![written(a)], vec![written(b)], vec![]]);
        problem.block(&[2, 3], &[x, y], &[], vec![vec![used(x), used(y)]]);
        problem.block(&[1], &[], &[y, x], vec![vec![]]);
        problem.block(&[], &[], &[], vec![vec![used(x)]]);
        problem.frequencies(&[1.0, 8.0, 8.0, 1.0]);
        let assignment = allocated(&problem.finish());
        let copies = counts(&assignment.moves);
        assert_eq!(copies, if registers == 3 { (3, 0, 0) } else { (1, 1, 1) }, "{:?}", assignment.moves);
        let width = if wide { SlotWidth::Wide } else { SlotWidth::Word };
        assert!(assignment.slots.iter().all(|&slot| slot == width), "{:?}", assignment.slots);
    }
}

/// The checker finds all damage that matters: after a random change to a place, a copy or a slot, either the checker
/// fails or every operand still has its value on every [simulated](simulate) path.
#[test]
fn the_checker_finds_damage() {
    let (mut found, mut wrong, mut damaged) = (0, 0, 0);
    for seed in 0..3000 {
        let mut random = random::Random::new(seed);
        let problem = problem::at_random(&mut random);
        let mut assignment = allocated(&problem);
        if !problem::damage(&mut random, &mut assignment) {
            continue;
        }
        damaged += 1;
        let verdict = checker::check(&problem, &assignment);
        found += usize::from(verdict.is_err());
        if let Err(value) = simulate::paths(&problem, &assignment, &mut random) {
            wrong += 1;
            assert!(verdict.is_err(), "seed {seed}: {value}, but the checker finds nothing\n{problem:?}\n{assignment:?}");
        }
    }
    // Damage that no path shows may still break a constraint, or a path that no walk took.
    assert!(damaged > 2000 && wrong * 2 > damaged && found * 10 > damaged * 7, "{found} and {wrong} of {damaged}");
}

/// The checker finds all damage to roots that matters. What remains is a root in another slot that has the same value.
#[test]
fn the_checker_finds_damaged_roots() {
    let (mut damaged, mut found, mut wrong) = (0, 0, 0);
    for seed in 0..4000 {
        let mut random = random::Random::new(seed);
        let problem = problem::at_random(&mut random);
        let mut assignment = allocated(&problem);
        if !problem::damage_roots(&mut random, &problem, &mut assignment) {
            continue;
        }
        damaged += 1;
        let verdict = checker::check(&problem, &assignment);
        let path = simulate::paths(&problem, &assignment, &mut random);
        wrong += usize::from(path.is_err());
        found += usize::from(verdict.is_err());
        assert!(verdict.is_err() || path.is_ok(), "seed {seed}: {path:?}\n{problem:?}\n{assignment:?}");
    }
    assert!(damaged > 1000 && wrong > 300 && found * 100 > damaged * 98, "{found} and {wrong} of {damaged}");
}

/// A traced value that lives across a safepoint is in a slot, though a register is preserved, and is loaded again after it. One that
/// dies there is no root.
#[test]
fn roots_are_in_slots() {
    for traced in [false, true] {
        let mut problem = Problem::new(3, 1, 2);
        let reg = |n| if traced { Reg::new_traced(n) } else { Reg::new_virtual(Class::Int, n) };
        let [a, b] = [0, 1].map(reg);
        let passed = operand(b, Constraint::Fixed(Reg::int(0)), Role::Use, Position::Early);
        problem.block(&[], &[], &[], vec![vec![written(a)], vec![written(b)], vec![passed], vec![used(a)]]);
        problem.clobber(2, (0..3).map(Reg::int).collect());
        problem.safepoint(2);
        let assignment = allocated(&problem.finish());
        assert_eq!(assignment.roots, if traced { vec![(2, 0)] } else { Vec::new() });
        let (_, stores, loads) = counts(&assignment.moves);
        assert_eq!((stores, loads), if traced { (1, 1) } else { (0, 0) }, "{:?}", assignment.moves);
    }
}

#[test]
fn the_checker_wants_every_copy() {
    for seed in 0..100 {
        let mut random = random::Random::new(seed);
        let problem = problem::at_random(&mut random);
        let assignment = allocated(&problem);
        if assignment.moves.is_empty() {
            continue;
        }
        let without = Assignment { moves: Vec::new(), ..allocated(&problem) };
        let verdict = checker::check(&problem, &without);
        assert!(matches!(verdict, Err(CheckError::Missing { .. } | CheckError::Unrooted { .. })), "seed {seed}: {verdict:?}");
    }
}

/// The checker accepts the linear scan's result for many problems. It accepts the results of the other allocator
/// too, which shares no code with the linear scan.
#[test]
fn random_problems() {
    let count = std::env::var("WEIR_ALLOCATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(3000);
    let mut spills = 0;
    for seed in 0..count {
        let mut random = random::Random::new(seed);
        let problem = problem::at_random(&mut random);
        let assignment = allocate(&problem, &Meter::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{problem:?}"));
        checker::check(&problem, &assignment).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}\n{problem:?}\n{assignment:?}"));
        let again = allocate(&problem, &Meter::default()).expect("as before");
        assert_eq!((&assignment.places, &assignment.moves), (&again.places, &again.moves), "seed {seed}: not deterministic");
        simulate::paths(&problem, &assignment, &mut random)
            .unwrap_or_else(|value| panic!("seed {seed}: {value}\n{problem:?}\n{assignment:?}"));
        spills += counts(&assignment.moves).1;
        if seed % 8 == 0 && !problem.has_traced() {
            let other = super::regalloc2::allocate(&problem, true);
            let other = other.unwrap_or_else(|error| panic!("seed {seed}: regalloc2: {error}\n{problem:?}"));
            checker::check(&problem, &other).unwrap_or_else(|wrong| panic!("seed {seed}: regalloc2: {wrong}\n{problem:?}"));
        }
    }
    assert!(spills as u64 > count, "{spills} stores in {count} problems: too easy");
}
