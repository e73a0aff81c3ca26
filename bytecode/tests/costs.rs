//! The segments of fuel of modules that are validated with a table of costs.

use std::sync::Arc;
use weir_bytecode::cost::{Costs, OperatorCost};
use weir_bytecode::validate::{Options, parse_with};
use weir_bytecode::{Instrs, Module};

/// The segments of function 0 as (index of the instruction at the head, cost). That of a loop begins within the `loop` instruction.
fn segments(module: &Module) -> Vec<(usize, u32)> {
    let body = module.body(0).unwrap();
    let pcs: Vec<u32> = Instrs::new(module, body.entry, body.end).map(|instr| instr.pc).collect();
    let place = |pc: u32| pcs.binary_search(&pc).unwrap_or_else(|after| after - 1);
    body.segments.iter().map(|s| (place(s.pc), s.cost)).collect()
}

/// Each instruction has a cost of its own in the sums, a `loop` in that before it, and a call costs a unit.
#[test]
fn segments_cost_what_a_table_has() {
    let mut costs = OperatorCost { LocalGet: 1, Drop: 2, Loop: 4, BrIf: 8, End: 16, Block: 32, Else: 64, ..OperatorCost::new() };
    (costs.If, costs.Return, costs.MemoryFill, costs.I8x16Splat) = (128, 100, 200, 201);
    let segments_of = |text: &str, costs: &OperatorCost| {
        let wasm = wat::parse_str(format!(
            "(module (memory 1) (type (func)) (type (func)) (type (func)) (type (func (param i32))) (func {text}))"
        ))
        .expect("the text is right");
        let both = [true, false].map(|accept| {
            let options = Options { accept, costs: Some(Arc::new(Costs::from(costs))), ..Options::default() };
            segments(&parse_with(wasm.as_slice().into(), options).expect("the module is valid"))
        });
        assert_eq!(both[0], both[1]);
        both[0].clone()
    };
    let found = segments_of("(param i32) (loop local.get 0 br_if 0 local.get 0 drop) local.get 0 drop", &costs);
    assert_eq!(found, [(0, 1 + 4), (0, 1 + 8), (3, 1 + 2 + 16 + 1 + 2 + 16)]);
    // The second byte of the loop is equal to its first, the opcode: the index of its type.
    let found = segments_of("(param i32) local.get 0 local.get 0 if (param i32) (loop (type 3) drop) else return end", &costs);
    assert_eq!(found, [(0, 1 + 2 + 128), (3, 4), (3, 2 + 16 + 64), (7, 100), (9, 16)]);
    let found = segments_of("(loop) (block (loop (loop)))", &costs);
    assert_eq!(found, [(0, 1 + 4), (0, 16 + 32 + 4), (3, 4), (4, 3 * 16), (8, 16)]);
    let bulk = "(memory.fill (i32.const 0) (i32.const 0) (i32.const 0)) (drop (i8x16.splat (i32.const 0)))";
    assert_eq!(segments_of(bulk, &costs), [(0, 1 + 3 + 200 + 1 + 201 + 2 + 16)]);
    // The last `end` is a segment of its own, of which the branch to the function's label is no part.
    let found = segments_of("(param i32) (block (br_if 1 (local.get 0)) (br_if 0 (local.get 0)))", &costs);
    assert_eq!(found, [(0, 1 + 32 + 1 + 8), (3, 1 + 8), (5, 16), (6, 16)]);
    let dear = OperatorCost { Nop: 255, ..costs };
    assert_eq!(segments_of(&"nop ".repeat(1_000), &dear), [(0, 1 + 255_000 + 16)]);
}
