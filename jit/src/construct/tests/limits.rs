//! Functions made to be deep, long or quadratic, on a small stack.

use crate::construct::braun::Braun;
use crate::construct::{BuildStats, build};
use crate::ir::Entry;
use crate::meter::Meter;
use crate::request::{Options, Refusal};
use bumpalo::Bump;
use weir_bytecode::{Module, validate};

const STACK: usize = 256 << 10;

const BLOCK: &[u8] = &[0x02, 0x40];
const LOOP: &[u8] = &[0x03, 0x40];
const IF: &[u8] = &[0x04, 0x40];
const ELSE: &[u8] = &[0x05];
const END: &[u8] = &[0x0B];
const BR_IF_0: &[u8] = &[0x0D, 0];
const GET_0: &[u8] = &[0x20, 0];
const ONE: &[u8] = &[0x41, 1];
const INCREMENT: &[u8] = &[0x20, 0, 0x41, 1, 0x6A, 0x21, 0];
const DROP: &[u8] = &[0x1A];

fn leb(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7F) as u8;
        value >>= 7;
        bytes.push(low | if value == 0 { 0 } else { 0x80 });
        if value == 0 {
            return bytes;
        }
    }
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&leb(bytes.len())[..], bytes].concat()
}

/// A module with one function that has the type `(param i32)`, this many more i32 locals, and this code.
fn module(locals: usize, code: &[u8]) -> Module {
    let body = [&[1][..], &leb(locals), &[0x7F], code, END].concat();
    let section = |id: u8, content: &[u8]| [&[id][..], &sized(content)].concat();
    let bytes = [
        &b"\0asm\x01\0\0\0"[..],
        &section(1, &[1, 0x60, 1, 0x7F, 0]),
        &section(3, &[1, 0]),
        &section(10, &[&[1][..], &sized(&body)].concat()),
    ];
    validate::parse(bytes.concat().into()).unwrap()
}

/// Builds the function on a thread with a small stack. Returns its counters and its number of blocks.
fn build_small(locals: usize, code: Vec<u8>, osr: bool) -> Result<(BuildStats, usize), Refusal> {
    let module = module(locals, &code);
    let entry = if osr { Entry::Osr(module.bodies[0].loops.last().unwrap().pc) } else { Entry::Call };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        let (arena, mut stats) = (Bump::new(), BuildStats::default());
        let func = build(&arena, &module, 0, entry, &Options::default(), &mut stats)?;
        let terminated = func.blocks().filter(|&block| func.terminator(block).is_some()).count();
        Ok((stats, terminated))
    });
    thread.unwrap().join().unwrap()
}

#[test]
fn deeply_nested_blocks() {
    const DEPTH: usize = 100_000;
    let code = [BLOCK.repeat(DEPTH), [GET_0, BR_IF_0, END].concat().repeat(DEPTH), INCREMENT.to_vec()].concat();
    let (stats, blocks) = build_small(0, code, false).unwrap();
    assert_eq!((stats.counters.phis, blocks), (0, 1 + 2 * DEPTH));
}

#[test]
fn deeply_nested_loops() {
    const DEPTH: usize = 100_000;
    let code = [LOOP.repeat(DEPTH), INCREMENT.to_vec(), [GET_0, BR_IF_0, END].concat().repeat(DEPTH)].concat();
    let (stats, blocks) = build_small(0, code.clone(), false).unwrap();
    assert_eq!((stats.counters.phis as usize, stats.counters.trivial_phis, blocks), (DEPTH, 0, 1 + 2 * DEPTH));
    // From an entry in the innermost loop, only the increment leads back to the outer ones.
    let (stats, blocks) = build_small(0, code, true).unwrap();
    assert_eq!((stats.counters.phis, stats.counters.trivial_phis as usize, blocks), (1, DEPTH - 1, 1 + 2 * DEPTH));
}

#[test]
fn a_million_blocks_in_a_row() {
    const BLOCKS: usize = 1_000_000;
    let code = [INCREMENT, &[BLOCK, GET_0, BR_IF_0, END].concat().repeat(BLOCKS), GET_0, DROP].concat();
    let (stats, blocks) = build_small(0, code, false).unwrap();
    assert_eq!((stats.counters.phis, blocks), (0, 1 + 2 * BLOCKS));
}

#[test]
fn a_chain_of_phis() {
    const ARMS: usize = 100_000;
    let code = [GET_0, IF, INCREMENT, ELSE, ONE, DROP, END].concat().repeat(ARMS);
    let (stats, _) = build_small(0, [&code, GET_0, DROP].concat(), false).unwrap();
    assert_eq!((stats.counters.phis as usize, stats.counters.trivial_phis), (ARMS, 0));
}

#[test]
fn a_huge_br_table() {
    const LABELS: usize = 500_000;
    let labels: Vec<u8> = (0..LABELS).map(|i| (i % 3) as u8).collect();
    let table = [&[0x0E][..], &leb(LABELS - 1), &labels].concat();
    let code = [BLOCK, BLOCK, BLOCK, GET_0, &table, END, INCREMENT, END, GET_0, DROP, END, GET_0, DROP].concat();
    let (stats, blocks) = build_small(0, code, false).unwrap();
    assert_eq!((stats.counters.phis, blocks), (2, 4));
}

#[test]
fn construction_that_is_not_wanted_is_exhausted() {
    for wanted in [true, false] {
        let stop = || !wanted;
        let meter = Meter::new(u64::MAX, usize::MAX, &stop);
        let mut ssa = Braun::new(1, u64::MAX, &meter);
        assert!(!ssa.exhausted());
        ssa.spend(10_000);
        assert_eq!((ssa.exhausted(), meter.check().is_err()), (!wanted, !wanted));
        assert_eq!(ssa.exhausted(), !wanted, "it stays so");
    }
}

#[test]
fn quadratic_functions_are_refused() {
    const SIDE: usize = 20_000;
    // Every one of many locals is read after every one of many blocks, and changed before one of them.
    let mut code = Vec::new();
    for local in 1..=SIDE {
        code.extend([&[0x41, 7, 0x21][..], &leb(local)].concat());
    }
    code.extend([BLOCK, GET_0, BR_IF_0, END].concat().repeat(SIDE));
    for local in 1..=SIDE {
        code.extend([&[0x20][..], &leb(local), DROP].concat());
    }
    let refusal = build_small(SIDE, code, false).unwrap_err();
    assert!(matches!(refusal, Refusal::Budget { what: "SSA construction", .. }), "{refusal}");
    // A branch that takes a thousand operands, many times.
    const RESULTS: usize = 1000;
    let results = "i32 ".repeat(RESULTS);
    let branches = "local.get 0 br_if 0 ".repeat(20_000);
    let text = format!(
        "(module (func $f (param i32) (result {results}) unreachable)
        (func (param i32) (result {results}) block (result {results}) local.get 0 call $f {branches} end))"
    );
    let module = validate::parse(wat::parse_str(text).unwrap().into()).unwrap();
    let refusal = build(&Bump::new(), &module, 1, Entry::Call, &Options::default(), &mut BuildStats::default()).unwrap_err();
    assert!(matches!(refusal, Refusal::Budget { .. }), "{refusal}");
}
