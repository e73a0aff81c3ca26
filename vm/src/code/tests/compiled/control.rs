//! Branches, phis, traps, fuel, polls and entry by OSR.

use super::{Guest, OUTSIDE, Options};
use std::sync::atomic::Ordering;
use weir_bytecode::Trap;
use weir_contract::Helper;

fn loops_and_phis_that_swap() {
    let mut guest = Guest::new("(module (func (param i32 i64 i64) (result i64 i64) unreachable))");
    guest.agree(
        "func 0 (i32, i64, i64) -> (i64, i64)
         b0:
           v0: i32 = param 0
           v1: i64 = param 1
           v2: i64 = param 2
           v3: i32 = const 1
           jump b1
         b1: preds b0, b2
           v4: i64 = phi b0: v1, b2: v5
           v5: i64 = phi b0: v2, b2: v4
           v6: i32 = phi b0: v0, b2: v7
           branch v6, b2, b3
         b2:
           v7: i32 = sub v6, v3
           jump b1
         b3:
           return v4, v5",
        &[&[0, 10, 20], &[1, 10, 20], &[7, 10, 20]],
    );
}

fn both_edges_of_a_branch_to_one_block() {
    let mut guest = Guest::new("(module (func (param i32) (result i32) unreachable))");
    guest.agree(
        "func 0 (i32) -> i32
         b0:
           v0: i32 = param 0
           v1: i32 = const 11
           v2: i32 = const 22
           branch v0, b1, b1
         b1: preds b0, b0
           v3: i32 = phi b0: v1, b0: v2
           return v3",
        &[&[0], &[5], &[0xffff_ffff]],
    );
}

fn tables_of_branches() {
    let mut guest = Guest::new("(module (func (param i32) (result i32) unreachable))");
    guest.agree(
        "func 0 (i32) -> i32
         b0:
           v0: i32 = param 0
           v1: i32 = const 100
           br_table v0 [b1, b2, b1, b3]
         b1: preds b0, b0
           v2: i32 = phi b0: v0, b0: v1
           return v2
         b2:
           v3: i32 = const 200
           return v3
         b3:
           v4: i32 = const 300
           return v4",
        &[&[0], &[1], &[2], &[3], &[4], &[0x8000_0000], &[0xffff_ffff]],
    );
    guest.agree(
        "func 0 (i32) -> i32
         b0:
           v0: i32 = param 0
           br_table v0 [b1]
         b1:
           return v0",
        &[&[0], &[9]],
    );
}

fn selects_of_every_type() {
    let mut guest = Guest::new("(module (func (param i32 i64 f32 f64 funcref) (result i32 i64 f32 f64 funcref) unreachable))");
    guest.agree(
        "func 0 (i32, i64, f32, f64, ref) -> (i32, i64, f32, f64, ref)
         b0:
           v0: i32 = param 0
           v1: i64 = param 1
           v2: f32 = param 2
           v3: f64 = param 3
           v4: ref = param 4
           v5: i32 = const 9
           v6: i64 = const 9
           v7: f32 = const 9.5
           v8: f64 = const 9.5
           v9: ref = const null
           v10: i32 = select v0, v0, v5
           v11: i64 = select v0, v1, v6
           v12: f32 = select v0, v2, v7
           v13: f64 = select v0, v3, v8
           v14: ref = select v0, v4, v9
           return v10, v11, v12, v13, v14",
        &[&[0, 1, 2, 3, 4], &[5, 1, 2, 3, 4]],
    );
}

fn traps_have_their_pc() {
    let mut guest = Guest::new("(module (func (param i32 i32) (result i32) unreachable))");
    guest.define(
        "func 0 (i32, i32) -> i32
         b0:
           v0: i32 = param 0
           v1: i32 = param 1
           v2: i32 = div_s v0, v1 @0x20
           branch v2, b1, b2 @0x21
         b1:
           return v2 @0x22
         b2:
           trap UnreachableCodeReached @0x23",
    );
    assert_eq!(guest.call(0, &[6, 2]), Ok(vec![3]));
    assert_eq!(guest.call(0, &[1, 0]), Err(Trap::IntegerDivisionByZero));
    assert_eq!(guest.trap().1, 0x20);
    assert_eq!(guest.call(0, &[0x8000_0000, 0xffff_ffff]), Err(Trap::IntegerOverflow));
    assert_eq!(guest.trap().1, 0x20);
    assert_eq!(guest.call(0, &[1, 2]), Err(Trap::UnreachableCodeReached));
    assert_eq!(guest.trap().1, 0x23);
}

fn fuel_is_charged_before_the_effects_and_not_refunded() {
    let options = Options { fuel: true, verify: true, ..Options::default() };
    let mut guest = Guest::with_options("(module (global (mut i32) (i32.const 0)) (func (param i32) unreachable))", options);
    guest.define(
        "func 0 (i32)
         b0:
           v0: i32 = param 0
           v1: i32 = const 1
           fuel 3
           jump b1
         b1: preds b0, b1
           v2: i32 = phi b0: v0, b1: v3
           fuel 10 @0x30
           global_set g0 v2
           v3: i32 = sub v2, v1
           branch v3, b1, b2
         b2:
           return",
    );
    guest.world.store.fuel = 23;
    assert_eq!(guest.call(0, &[2]), Ok(vec![]));
    assert_eq!((guest.world.store.fuel, guest.globals()), (0, vec![1]));
    guest.world.store.fuel = 22;
    assert_eq!(guest.call(0, &[2]), Err(Trap::OutOfFuel));
    assert_eq!((guest.world.store.fuel, guest.globals()), (-1, vec![2]));
    assert_eq!(guest.trap(), (Trap::OutOfFuel, 0x30));
}

/// The counter is exact when something else traps, too: no charge is moved or merged across it.
fn fuel_is_exact_at_other_traps() {
    let options = Options { fuel: true, verify: true, ..Options::default() };
    let mut guest = Guest::with_options("(module (memory 1) (func (param i32) unreachable))", options);
    guest.define(
        "func 0 (i32)
         b0:
           v0: i32 = param 0
           fuel 3
           v1: i32 = load v0
           fuel 4
           v2: i32 = div_u v1, v0
           fuel 5
           return",
    );
    for (address, left, end) in
        [(8, 88, Ok(vec![])), (0, 93, Err(Trap::IntegerDivisionByZero)), (70000, 97, Err(Trap::MemoryOutOfBounds))]
    {
        guest.world.store.fuel = 100;
        assert_eq!((guest.call(0, &[address]), guest.world.store.fuel), (end, left));
    }
}

/// An endless loop without effects: only the poll can observe the change of the epoch, so it must read the epoch in
/// each iteration.
fn polls_see_other_threads() {
    let options = Options { poll: true, verify: true, ..Options::default() };
    let mut guest = Guest::with_options("(module (func unreachable))", options);
    guest.define(
        "func 0 ()
         b0:
           poll
           jump b1
         b1: preds b0, b1
           poll @0x44
           jump b1",
    );
    guest.world.store.deadline = 5;
    let epoch = &raw const *guest.world.epoch as usize;
    let other = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        // SAFETY: the guest lives until this thread has been joined.
        unsafe { &*(epoch as *const std::sync::atomic::AtomicU64) }.store(5, Ordering::Relaxed);
    });
    assert_eq!(guest.call(0, &[]), Err(Trap::Interrupt));
    assert_eq!(guest.trap(), (Trap::Interrupt, 0x44));
    other.join().unwrap();
    guest.world.epoch.store(4, Ordering::Relaxed);
    guest.world.store.deadline = 4;
    assert_eq!(guest.call(0, &[]), Err(Trap::Interrupt), "at the deadline, not only beyond it");
}

/// If the host lets the code continue, all registers have the values that they had before the poll.
fn polls_preserve_all_registers() {
    const INTS: usize = 14;
    const FLOATS: usize = 16;
    let options = Options { poll: true, verify: true, ..Options::default() };
    let params = format!("{} {}", "i64 ".repeat(INTS), "f64 ".repeat(FLOATS));
    let mut guest = Guest::with_options(&format!("(module (func (param {params}) (result i64 f64) unreachable))"), options);
    let types: Vec<&str> = [["i64"; INTS].as_slice(), ["f64"; FLOATS].as_slice()].concat();
    let mut text = format!("func 0 ({}) -> (i64, f64)\nb0:\n", types.join(", "));
    for (i, ty) in types.iter().enumerate() {
        text += &format!("  v{i}: {ty} = param {i}\n");
    }
    text += "  poll\n";
    let mut next = types.len();
    let mut sum = |first: usize, count: usize, ty: &str, op: &str| {
        let mut last = first;
        for i in first + 1..first + count {
            text += &format!("  v{next}: {ty} = {op} v{last}, v{i}\n");
            (last, next) = (next, next + 1);
        }
        last
    };
    let (int, float) = (sum(0, INTS, "i64", "add"), sum(INTS, FLOATS, "f64", "fadd"));
    text += &format!("  return v{int}, v{float}");
    guest.define(&text);
    (guest.world.store.deadline, guest.headroom) = (0, 1 << 20);
    OUTSIDE.with_borrow_mut(|outside| outside.polls = 2);
    let ints = (0..INTS as u64).map(|i| 1 << (3 * i));
    let floats = (0..FLOATS).map(|i| f64::from(1 << i).to_bits());
    let args: Vec<u64> = ints.clone().chain(floats).collect();
    assert_eq!(guest.call(0, &args), Ok(vec![ints.sum(), f64::from((1 << FLOATS) - 1).to_bits()]));
    assert_eq!(OUTSIDE.with_borrow(|outside| outside.helpers.clone()), [(Helper::Poll, vec![])]);
}

fn osr_bodies_start_from_the_frame() {
    let mut guest = Guest::new("(module (func (param i32 f64) (result f64 i32) unreachable))");
    let code = guest.define(
        "func 0 (i32, f64) -> (f64, i32) osr @0x20
         b0:
           v0: i32 = osr_slot 0
           v1: f64 = osr_slot 1
           v2: i64 = osr_slot 7
           v3: i32 = const 1
           jump b1
         b1: preds b0, b1
           v4: i32 = phi b0: v0, b1: v6
           v5: f64 = phi b0: v1, b1: v7
           v6: i32 = sub v4, v3
           v7: f64 = fadd v5, v5
           branch v6, b1, b2
         b2:
           v8: i32 = wrap v2
           return v7, v8",
    );
    let mut frame = [0; 8];
    frame[0] = 0xabcd_0000_0003;
    frame[1] = 1.5_f64.to_bits();
    frame[7] = 0x1_0000_0042;
    assert_eq!(guest.enter(0, code, &frame, true), Ok(vec![12.0_f64.to_bits(), 0x42]));
}

/// Unlike a tail call, recursion needs stack, and its end is a trap.
fn endless_recursion_is_a_trap() {
    let mut guest = Guest::new("(module (func (param i64) (result i64) unreachable))");
    guest.define(
        "func 0 (i64) -> i64
         b0:
           v0: i64 = param 0
           v1: i64 = call f0(v0) @0x50
           v2: i64 = add v1, v0
           return v2",
    );
    assert_eq!(guest.call(0, &[1]), Err(Trap::StackOverflow));
    let depth = super::SCRIPT.with_borrow_mut(|script| script.backtraces.pop().unwrap());
    assert!(depth.len() > 1000);
    assert!(depth[1..].iter().all(|site| site.pc == 0x50));
}

each_back_end! {
    loops_and_phis_that_swap
    both_edges_of_a_branch_to_one_block
    tables_of_branches
    selects_of_every_type
    traps_have_their_pc
    fuel_is_charged_before_the_effects_and_not_refunded
    fuel_is_exact_at_other_traps
    polls_see_other_threads
    polls_preserve_all_registers
    osr_bodies_start_from_the_frame
    endless_recursion_is_a_trap
}
