//! Tests of the exact side tables of small modules, of sections as plain data, and that no input causes a panic.

use super::{InvalidModule, Options, Proposal, Proposals, parse, parse_with};
use crate::module::{ConstExpr, ConstOp, ElemItems, ElemMode, ExternIndex, ExternType, FuncBody, Module};
use crate::opcodes::Opcode;
use crate::sidetable::{BranchEntry, LocalSet};
use crate::types::{HeapType, RefType};
use crate::{Instrs, ValType};

fn module(wat: &str) -> Module {
    parse(wat::parse_str(wat).expect("the test's text is well formed").into()).expect("the test's module is valid")
}

/// The module with one function of this type and body.
fn function(body: &str) -> Module {
    module(&format!("(module (func {body}))"))
}

/// Offsets of the instructions of function 0 with this mnemonic.
fn pcs(module: &Module, mnemonic: &str) -> Vec<u32> {
    let body = &module.bodies[0];
    let instrs = Instrs::new(module, body.entry, body.end);
    instrs.filter(|instr| instr.op.mnemonic() == mnemonic).map(|instr| instr.pc).collect()
}

/// Offset of the instruction after the `n`-th with this mnemonic.
fn after(module: &Module, mnemonic: &str, n: usize) -> u32 {
    let body = &module.bodies[0];
    let mut instrs = Instrs::new(module, body.entry, body.end);
    instrs.by_ref().filter(|instr| instr.op.mnemonic() == mnemonic).nth(n).expect("the instruction is there");
    instrs.pc()
}

fn entry(pc: u32, stp: u32, keep: u32, drop: u32) -> BranchEntry {
    BranchEntry { pc, stp, keep, drop }
}

/// The segments of function 0 as (index of the instruction at the head, cost). That of a loop begins within the `loop` instruction.
fn segments(module: &Module) -> Vec<(usize, u32)> {
    let body = &module.bodies[0];
    let pcs: Vec<u32> = Instrs::new(module, body.entry, body.end).map(|instr| instr.pc).collect();
    let place = |pc: u32| {
        pcs.binary_search(&pc).unwrap_or_else(|after| {
            assert!(body.loop_at(pc - 1).is_some(), "a segment begins at an instruction, or after the opcode of a loop");
            after - 1
        })
    };
    body.segments.iter().map(|s| (place(s.pc), s.cost)).collect()
}

fn assigned(module: &Module) -> Vec<LocalSet> {
    module.bodies[0].loops.iter().map(|info| info.assigned.clone()).collect()
}

fn only(locals: &[u32]) -> LocalSet {
    LocalSet::Only(locals.into())
}

#[test]
fn branches_out_of_nested_blocks_drop_what_lies_between() {
    let m = function(
        "(param i32) (result i32)
        (block (result i32)
            i32.const 1
            i32.const 2
            (block
                i32.const 3
                i32.const 4
                local.get 0
                br_if 1
                local.get 0
                br_if 0
                drop
                drop)
            drop
            drop
            i32.const 7)",
    );
    let ends = pcs(&m, "end");
    let body = &m.bodies[0];
    assert_eq!(&*body.branches, [entry(ends[1] + 1, 2, 1, 3), entry(ends[0] + 1, 2, 0, 2)]);
    assert_eq!(body.max_operands, 5);
    assert!(body.loops.is_empty());
}

#[test]
fn the_functions_own_label_is_its_final_end() {
    let m = function("(param i32) (result i64 i64) i32.const 0 i64.const 1 i64.const 2 local.get 0 br_if 0 br 0");
    let end = *pcs(&m, "end").last().unwrap();
    assert_eq!(&*m.bodies[0].branches, [entry(end, 0, 2, 1), entry(end, 0, 2, 1)]);
    assert_eq!(end + 1, m.bodies[0].end);
}

#[test]
fn if_and_else_own_an_entry_each() {
    let m = function("(param i32) local.get 0 if nop else nop end local.get 0 if nop end");
    assert_eq!(
        &*m.bodies[0].branches,
        [entry(after(&m, "else", 0), 2, 0, 0), entry(after(&m, "end", 0), 2, 0, 0), entry(after(&m, "end", 1), 3, 0, 0),]
    );
}

#[test]
fn arms_with_values_keep_them_and_drop_nothing() {
    let m = function(
        "(param i32) (result i32)
        i32.const 9
        i32.const 5
        local.get 0
        (if (param i32) (result i32 i32)
            (then i32.const 1)
            (else drop i32.const 2 i32.const 3 br 0))
        drop drop",
    );
    let end = after(&m, "end", 0);
    assert_eq!(&*m.bodies[0].branches, [entry(after(&m, "else", 0), 2, 1, 0), entry(end, 3, 2, 0), entry(end, 3, 2, 0)]);
}

#[test]
fn loops_own_an_entry_and_back_edges_land_on_it() {
    let m = function(
        "(param i32) (local i64 i64)
        i64.const 1
        i64.const 2
        (loop (param i64) (result i64)
            i64.const 3
            local.get 0
            br_if 0
            (loop (param i64) (result i64)
                local.get 0
                br_if 1)
            drop)
        drop drop",
    );
    let [outer, inner] = pcs(&m, "loop")[..] else { panic!("two loops") };
    let body = &m.bodies[0];
    assert_eq!(&*body.branches, [entry(0, 0, 0, 9), entry(outer, 0, 1, 1), entry(1, 0, 0, 6), entry(outer, 0, 1, 1)]);
    assert_eq!((body.loops[0].pc, body.loops[0].stp, body.loops[0].height, body.loops[0].parent), (outer, 0, 2, None));
    assert_eq!((body.loops[1].pc, body.loops[1].stp, body.loops[1].height, body.loops[1].parent), (inner, 2, 3, Some(0)));
    assert_eq!(body.loop_at(inner), Some(&body.loops[1]));
    assert_eq!(body.loop_at(inner + 1), None);
}

#[test]
fn br_table_owns_an_entry_per_label_and_one_for_the_default() {
    let m = function(
        "(param i32)
        (block
            (loop
                (block
                    local.get 0
                    br_table 0 1 2 0 3)
                nop))",
    );
    let ends = pcs(&m, "end");
    let head = pcs(&m, "loop")[0];
    assert_eq!(
        &*m.bodies[0].branches,
        [
            entry(0, 0, 0, 13),
            entry(ends[0] + 1, 6, 0, 0),
            entry(head, 0, 0, 0),
            entry(ends[2] + 1, 6, 0, 0),
            entry(ends[0] + 1, 6, 0, 0),
            entry(ends[3], 0, 0, 0),
        ]
    );
}

#[test]
fn dead_branches_own_entries_that_lead_to_themselves() {
    let m = function(
        "(param i32) (local i32)
        (block
            br 0
            br_if 0
            (loop (local.set 1 (i32.const 1)) br 0)
            (if (then br 1) (else (br_table 0 1 0 (i32.const 0)))))
        local.get 0
        br_if 0",
    );
    let body = &m.bodies[0];
    let (br, br_if, br_table) = (pcs(&m, "br"), pcs(&m, "br_if"), pcs(&m, "br_table"));
    let (if_pc, else_pc) = (pcs(&m, "if")[0], pcs(&m, "else")[0]);
    let ends = pcs(&m, "end");
    assert_eq!(
        &*body.branches,
        [
            entry(ends[2] + 1, 10, 0, 0),
            entry(br_if[0], 1, 0, 0),
            entry(0, 0, 0, 1),
            entry(br[1], 3, 0, 0),
            entry(if_pc, 4, 0, 0),
            entry(br[2], 5, 0, 0),
            entry(else_pc, 6, 0, 0),
            entry(br_table[0], 7, 0, 0),
            entry(br_table[0], 7, 0, 0),
            entry(br_table[0], 7, 0, 0),
            entry(ends[3], 0, 0, 0),
        ]
    );
    assert_eq!(assigned(&m), [only(&[])], "dead code writes nothing");
    // `br` costs one unit; after the block, `local.get` and `br_if` cost two.
    assert_eq!(body.segments.iter().map(|s| s.cost).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(body.max_operands, 1);
}

#[test]
fn code_is_live_again_after_else_and_end() {
    let m = function(
        "(param i32) (result i32)
        local.get 0
        (if (result i32)
            (then unreachable)
            (else i32.const 1 local.get 0 br_if 0))
        local.get 0
        br_if 0",
    );
    let ends = pcs(&m, "end");
    let else_pc = pcs(&m, "else")[0];
    assert_eq!(
        &*m.bodies[0].branches,
        [
            entry(else_pc + 1, 2, 1 - 1, 0),
            // The first arm's end is dead, and so is its jump over the second.
            entry(else_pc, 1, 0, 0),
            entry(ends[0] + 1, 3, 1, 0),
            entry(ends[1], 0, 1, 0),
        ]
    );
}

#[test]
fn operands_of_dead_code_are_not_counted() {
    let m = function("unreachable i32.const 1 i32.const 2 i32.const 3 drop drop drop");
    assert_eq!(m.bodies[0].max_operands, 0);
    let m = function("(block (result i32 i32 i32) unreachable) drop drop drop");
    assert_eq!(m.bodies[0].max_operands, 3);
    // More is popped in dead code than was ever pushed; the one operand is the result.
    let m = function("(result i32) unreachable i32.add i32.eqz select i32.const 0 i32.const 1 i32.const 2 drop drop drop");
    assert_eq!(m.bodies[0].max_operands, 1);
}

#[test]
fn calls_count_their_results() {
    let m = module(
        "(module
            (func call 1 drop drop drop)
            (func (result i32 i32 i32) i32.const 1 i32.const 2 i32.const 3))",
    );
    assert_eq!(m.bodies[0].max_operands, 3);
}

#[test]
fn functions_that_mention_vectors_are_wide() {
    let m = module(
        "(module
            (type $v (func (result v128)))
            (table 1 funcref)
            (global $n i32 (i32.const 0))
            (global $g (mut v128) (v128.const i64x2 1 2))
            (func $local (local v128))
            (func $param (param v128))
            (func $result (result v128) unreachable)
            (func $operand (drop (i8x16.splat (i32.const 0))))
            (func $get (drop (global.get $g)))
            (func $call (drop (call $result)))
            (func $indirect (drop (call_indirect (type $v) (i32.const 0))))
            (func $tail (result v128) (return_call $result))
            (func $neither (param i32) (local f64) (drop (global.get $n)) (call $local) (drop (call $scalar)))
            (func $scalar (result i32) (i32.const 0)))",
    );
    let narrow: Vec<usize> = (0..m.bodies.len()).filter(|&i| !m.bodies[i].wide).collect();
    assert_eq!(narrow, [8, 9]);
    assert_eq!(m.global_inits[1].0, [ConstOp::V128((1u128 | 2 << 64).to_le_bytes())].into());
}

#[test]
fn segments_begin_where_control_may_arrive_and_after_conditional_branches_and_calls() {
    let m = module(
        "(module (func (param i32)
            local.get 0
            drop
            (block
                local.get 0
                br_if 0
                nop
                local.get 0
                call 0
                local.get 0
                drop)))",
    );
    // 0 get, 1 drop, 2 block, 3 get, 4 br_if | 5 nop, 6 get, 7 call | 8 get, 9 drop, 10 end | 11 end
    assert_eq!(segments(&m), [(0, 4), (5, 2), (8, 2)]);

    let m = function("(param i32) (loop local.get 0 br_if 0 local.get 0 drop) local.get 0 drop");
    // 0 loop, 1 get, 2 br_if | 3 get, 4 drop, 5 end, 6 get, 7 drop, 8 end: nothing arrives after a loop's end
    assert_eq!(segments(&m), [(0, 2), (3, 4)]);

    let m = function("(param i32) local.get 0 if nop local.get 0 drop else local.get 0 drop end local.get 0 drop return nop");
    // 0 get, 1 if | 2 nop, 3 get, 4 drop | 5 else | 6 get, 7 drop | 8 end | 9 get, 10 drop, 11 return
    assert_eq!(segments(&m), [(0, 2), (2, 2), (6, 2), (9, 3)]);

    let m = function("(param i32) local.get 0 drop (loop (loop local.get 0 drop br 1))");
    // 0 get, 1 drop | 2 loop | 3 loop, 4 get, 5 drop, 6 br
    assert_eq!(segments(&m), [(0, 2), (3, 3)]);
}

#[test]
fn loops_know_the_locals_assigned_inside() {
    let m = function(
        "(param i32 i32) (local i32 i32 i32 i32)
        (local.set 5 (i32.const 0))
        (loop
            (local.set 4 (i32.const 0))
            (loop
                (local.set 2 (i32.const 0))
                (local.set 2 (i32.const 1))
                (drop (local.tee 0 (i32.const 1)))
                (br_if 1 (local.get 0)))
            (loop
                (local.set 4 (i32.const 0)))
            (local.set 2 (i32.const 0)))
        (loop
            (br_if 0 (local.get 3)))",
    );
    assert_eq!(assigned(&m), [only(&[0, 2, 4]), only(&[0, 2]), only(&[4]), only(&[])]);
    assert!(assigned(&m)[0].contains(4) && !assigned(&m)[0].contains(3));
}

#[test]
fn local_sets_do_not_leak_into_the_next_function() {
    let m = module(
        "(module
            (func (local i32) (loop (local.set 0 (i32.const 1))))
            (func (local i32 i32) (loop (local.set 1 (i32.const 1)) (loop (local.set 0 (i32.const 1))))))",
    );
    assert_eq!(m.bodies[0].loops[0].assigned, only(&[0]));
    assert_eq!(m.bodies[1].loops[0].assigned, only(&[0, 1]));
    assert_eq!(m.bodies[1].loops[1].assigned, only(&[0]));
}

#[test]
fn local_sets_give_up_where_they_would_cost_too_much() {
    let (depth, locals) = (100, 200);
    let writes: String = (0..locals).map(|local| format!("(local.set {local} (i32.const 0))")).collect();
    let m = function(&format!("(local {}) {} {writes} {}", "i32 ".repeat(locals), "loop ".repeat(depth), "end ".repeat(depth)));
    let sets = assigned(&m);
    let exact = only(&(0..locals as u32).collect::<Vec<_>>());
    assert_eq!(sets[depth - 1], exact);
    assert_eq!(sets[0], LocalSet::All);
    let members: usize = sets.iter().map(|set| if let LocalSet::Only(set) = set { set.len() } else { 0 }).sum();
    assert!(members <= 4 * m.bodies[0].len() as usize);
    let given_up = sets.iter().position(|set| *set == exact).unwrap();
    assert!(sets[..given_up].iter().all(|set| *set == LocalSet::All));
    assert!(sets[given_up..].iter().all(|set| *set == exact));
}

#[test]
fn tail_calls_that_may_leave_the_instance_are_noticed() {
    let tail = |call: &str| {
        module(&format!("(module (type $t (func)) (import \"m\" \"f\" (func)) (table 1 funcref) (func) (func {call}))"))
            .effects
            .foreign_tail_calls
    };
    assert!(tail("return_call 0"));
    assert!(tail("i32.const 0 return_call_indirect (type $t)"));
    assert!(!tail("return_call 1"));
    assert!(!tail("call 0"));
    assert!(!tail("i32.const 0 call_indirect (type $t)"));
}

#[test]
fn sections_become_plain_data() {
    let m = module(
        r#"(module $shop
            (type (func (param i32 f64) (result i64)))
            (import "env" "f" (func $f (type 0)))
            (import "env" "g" (global $g i32))
            (import "env" "m" (memory 1 2))
            (import "env" "t" (table 3 funcref))
            (func $own (type 0) (local f32 f32) (local externref) i64.const 5)
            (func $start)
            (table $tab 1 10 externref)
            (memory i64 4)
            (global (mut i64) (i64.add (i64.const -1) (i64.const 2)))
            (global f32 (f32.const nan:0x200001))
            (export "own" (func $own))
            (export "mem" (memory 1))
            (start $start)
            (elem (i32.const 2) $own $f)
            (elem func $own)
            (elem declare funcref (ref.func $own) (ref.null func))
            (data (memory 1) (i64.const 7) "abc")
            (data "passive"))"#,
    );
    assert_eq!(m.types.len(), 2);
    assert_eq!(m.types[0].to_string(), "[i32 f64] -> [i64]");
    assert_eq!(*m.funcs, [0, 0, 1]);
    assert_eq!((m.imported_funcs, m.imported_globals, m.imported_memories, m.imported_tables), (1, 1, 1, 1));
    assert_eq!(m.imports[0].ty, ExternType::Func(0));
    assert_eq!((&*m.imports[1].module, &*m.imports[1].name), ("env", "g"));
    assert_eq!((m.memories[0].limits.min, m.memories[0].limits.max, m.memories[0].memory64), (1, Some(2), false));
    assert_eq!((m.memories[1].limits.min, m.memories[1].limits.max, m.memories[1].memory64), (4, None, true));
    assert_eq!(m.memories[1].page_size_log2, 16);
    assert_eq!((m.tables[1].ty.limits.max, m.tables[1].ty.element), (Some(10), crate::types::RefType::EXTERNREF));
    assert_eq!(m.globals.len(), 3);
    assert!(m.globals[1].mutable && !m.globals[2].mutable);
    assert_eq!(*m.global_inits[0].0, [ConstOp::I64(-1), ConstOp::I64(2), ConstOp::Binary(Opcode::I64Add)]);
    assert_eq!(*m.global_inits[1].0, [ConstOp::F32(0x7FA0_0001)]);
    assert_eq!((&*m.exports[0].name, m.exports[0].item), ("own", ExternIndex::Func(1)));
    assert_eq!(m.exports[1].item, ExternIndex::Memory(1));
    assert_eq!(m.start, Some(2));
    let ElemMode::Active { table: 0, offset } = &m.elems[0].mode else { panic!("active") };
    assert_eq!(*offset.0, [ConstOp::I32(2)]);
    assert_eq!(m.elems[0].items, ElemItems::Funcs([1, 0].into()));
    assert!(matches!(m.elems[1].mode, ElemMode::Passive));
    assert!(matches!(m.elems[2].mode, ElemMode::Declared));
    let ElemItems::Exprs(exprs) = &m.elems[2].items else { panic!("expressions") };
    assert_eq!(*exprs[1].0, [ConstOp::RefNull]);
    let bytes = |i: usize| &m.bytes[m.data[i].range.start as usize..m.data[i].range.end as usize];
    assert_eq!((bytes(0), bytes(1)), (&b"abc"[..], &b"passive"[..]));
    assert_eq!(m.data[0].active, Some((1, ConstExpr([ConstOp::I64(7)].into()))));
    assert_eq!(m.data[1].active, None);
    assert_eq!(*m.bodies[0].locals, [ValType::I32, ValType::F64, ValType::F32, ValType::F32, ValType::EXTERNREF]);
    assert_eq!(m.name(), Some("shop"));
    assert_eq!((m.func_name(0), m.func_name(1), m.func_name(2)), (Some("f"), Some("own"), Some("start")));
    assert_eq!((m.func_at(m.bodies[0].entry), m.func_at(m.bodies[1].end)), (Some(1), None));
}

fn custom_section(name: &str, contents: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, (1 + name.len() + contents.len()) as u8, name.len() as u8];
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(contents);
    bytes
}

#[test]
fn malformed_names_are_left_out() {
    let plain = wat::parse_str("(module (func) (func) (func))").unwrap();
    let with_names = |contents: &[u8]| {
        let bytes: Vec<u8> = plain.iter().copied().chain(custom_section("name", contents)).collect();
        parse(bytes.into()).expect("names don't decide about validity")
    };
    // A duplicate and an index out of range, then a name that isn't UTF-8.
    let m = with_names(&[1, 16, 5, 0, 1, b'a', 0, 1, b'x', 2, 1, b'c', 9, 1, b'z', 10, 1, 0xFF]);
    assert_eq!([0, 1, 2, 3, 9, 10].map(|func| m.func_name(func)), [Some("a"), None, Some("c"), None, None, None]);
    // A subsection that claims to be longer than the section.
    assert_eq!(with_names(&[1, 99, 1]).func_name(0), None);
    assert_eq!(with_names(&[0, 2, 1, b'm', 1, 99]).name(), Some("m"));
}

fn refusal(wat: &str) -> InvalidModule {
    parse(wat::parse_str(wat).expect("the test's text is well formed").into()).expect_err("the module is refused")
}

#[test]
fn branches_on_null_take_the_operands_that_their_labels_do() {
    let m = module(
        "(module (type $t (func)) (func (param (ref null $t)) (result i32)
        (block (result i32)
            i32.const 1
            i32.const 2
            local.get 0
            br_on_null 0
            drop
            drop
            (block (result i32 (ref $t))
                i32.const 3
                i32.const 4
                local.get 0
                br_on_non_null 0
                return)
            drop
            drop)))",
    );
    let [on_null, on_non_null] = &*m.bodies[0].branches else { panic!("two branches") };
    // Below the null are the label's value and one that is dropped.
    assert_eq!(*on_null, entry(after(&m, "end", 1), 2, 1, 1));
    assert_eq!(*on_non_null, entry(after(&m, "end", 0), 2, 2, 1));
    assert_eq!(segments(&m).iter().map(|(_, cost)| cost).sum::<u32>(), 13);
    assert_eq!(m.bodies[0].max_operands, 4);
}

#[test]
fn types_of_references_and_memories_are_kept() {
    let m = module(
        "(module (type $t (func)) (memory i64 0 (pagesize 1)) (memory 2 3 (pagesize 1))
        (table 1 (ref $t) (ref.func $f)) (table i64 1 4 (ref null $t)) (func $f (type $t)) (elem declare func $f))",
    );
    assert_eq!((m.memories[0].memory64, m.memories[0].page_size_log2), (true, 0));
    assert_eq!((m.memories[1].limits.min, m.memories[1].limits.max, m.memories[1].page_size_log2), (2, Some(3), 0));
    let [first, second] = &*m.tables else { panic!("two tables") };
    assert_eq!(first.ty.element, RefType { nullable: false, heap: HeapType::Concrete(0) });
    assert_eq!(first.init, Some(ConstExpr([ConstOp::RefFunc(0)].into())));
    assert_eq!((second.ty.table64, second.ty.element.nullable, second.ty.limits.max), (true, true, Some(4)));
}

#[test]
fn unsupported_features_are_refused_by_name() {
    for (wat, name) in [
        ("(module (memory 1 1 shared))", "threads"),
        ("(module (memory 1) (func (drop (i32.atomic.load (i32.const 0)))))", "threads"),
        ("(module (type (struct)))", "gc"),
        ("(module (rec (type (func)) (type (func))))", "gc"),
        ("(module (func (drop (ref.i31 (i32.const 0)))))", "garbage collection"),
    ] {
        let error = refusal(wat);
        assert!(error.message.contains("not supported") && error.message.contains(name), "{wat}: {error}");
        assert!(error.offset >= 8, "{wat}: {error}");
    }
    assert!(parse(wat::parse_str("(component)").unwrap().into()).is_err());
}

/// The work of a call and of an iteration of each loop.
fn works(locals_and_code: &str) -> (u32, Vec<u32>) {
    let module = function(locals_and_code);
    let body = &module.bodies[0];
    (body.work, body.loops.iter().map(|info| body.branches[info.stp as usize].drop).collect())
}

#[test]
fn work_is_the_bytes_that_are_expected_to_be_executed() {
    let nops = |count: usize| "nop ".repeat(count);
    // The final `end` is a byte, `local.get` and `br` have two.
    assert_eq!(works(&nops(100)), (101, vec![]));
    // A condition is as likely to hold as not.
    let arms = format!("(param i32) local.get 0 if {} else {} end", nops(100), nops(300));
    assert_eq!(works(&arms), (4 + 50 + 150 + 1 + 1, vec![]));
    let arm = format!("(param i32) local.get 0 if {} end {}", nops(100), nops(20));
    assert_eq!(works(&arm), (4 + 50 + 21, vec![]));
    let left = format!("(param i32) block local.get 0 br_if 0 {} end {}", nops(100), nops(20));
    assert_eq!(works(&left), (6 + 50 + 21, vec![]));
    // Code after an instruction that never falls through is not executed.
    assert_eq!(works(&format!("{} return {}", nops(10), nops(50))), (11, vec![]));
    // The labels of a table share its weight.
    let table = format!(
        "(param i32) block block block block local.get 0 br_table 0 1 2 3 end {} br 2 end {} br 1 end {} end",
        nops(100),
        nops(100),
        nops(200)
    );
    assert_eq!(works(&table), (8 + 2 + 6 + 25 + 25 + 50 + 2, vec![]));
}

#[test]
fn work_of_a_loop_is_that_of_an_iteration() {
    let nops = |count: usize| "nop ".repeat(count);
    // Bytes of a loop are its own. Code after it is executed as often as code before it, whichever way control leaves it.
    let nested = format!(
        "(param i32) {} block loop {} loop {} local.get 0 br_if 0 local.get 0 br_if 2 end {} br 0 end end {}",
        nops(10),
        nops(20),
        nops(30),
        nops(40),
        nops(50)
    );
    assert_eq!(works(&nested), (10 + 2 + 51, vec![2 + 20 + 40 + 2, 2 + 30 + 4 + 2]));
}

#[test]
fn errors_say_where() {
    let error = refusal("(module (func (result i32) i64.const 1))");
    assert_eq!(error.to_string(), "type mismatch: expected i32, found i64 (at offset 0x1a)");
    assert!(parse([].into()).is_err());
    assert!(parse(b"\0asm\x01\0\0\0".as_slice().into()).is_ok());
}

/// `funcs` functions of about 900 bytes, each with a loop, a branch and locals; `broken` of them, from the middle on, ill typed.
fn large_module(funcs: usize, broken: usize) -> Vec<u8> {
    let mut wat = String::from("(module (type $t (func (param i32) (result i32)))");
    for i in 0..funcs {
        let sum = format!("(local.set 1 (i64.add (local.get 1) (i64.const {i})))").repeat(100 + i % 7);
        let value = if i >= funcs / 2 && i < funcs / 2 + broken { "i64.const 0" } else { "local.get 0" };
        wat += &format!("(func (type $t) (local i64) (loop {sum} (br_if 0 (i64.eqz (local.get 1)))) {value})\n");
    }
    wat::parse_str(wat + ")").expect("the test's text is well formed")
}

#[test]
fn threads_validate_what_one_thread_does() {
    let bytes = large_module(1000, 0);
    let parse = |options| super::parse_with(bytes.clone().into(), options).expect("the module is valid");
    let alone = parse(Options::default());
    for threads in [2, 5] {
        let shared = parse(Options { threads, ..Options::default() });
        assert_eq!(format!("{:?}", alone.bodies), format!("{:?}", shared.bodies));
        check_consistent(&shared);
    }
    let lazy = parse(Options { lazy: true, ..Options::default() });
    assert!(lazy.effects.foreign_tail_calls && lazy.bodies.iter().all(|body| body.get().is_none()));
    for func in 0..1000 {
        assert_eq!(lazy.func_at(alone.bodies[func as usize].entry), Some(func));
        let body = lazy.validated_body(func).expect("it is defined here").expect("it is valid");
        assert_eq!(format!("{body:?}"), format!("{:?}", *alone.bodies[func as usize]));
    }
}

#[test]
fn the_first_invalid_body_is_reported() {
    let bytes = large_module(1000, 300);
    let parse = |options| super::parse_with(bytes.clone().into(), options);
    let alone = parse(Options::default()).expect_err("some bodies are invalid");
    for threads in [2, 5] {
        assert_eq!(parse(Options { threads, ..Options::default() }).expect_err("some bodies are invalid"), alone);
    }
    let lazy = parse(Options { lazy: true, ..Options::default() }).expect("bodies are validated later");
    assert!(lazy.validated_body(499).expect("it is defined here").is_ok());
    for _ in 0..2 {
        assert_eq!(lazy.validated_body(500).expect("it is defined here").expect_err("it is invalid"), alone);
    }
    assert!(lazy.body(500).is_none() && lazy.validated_body(800).is_some_and(|body| body.is_ok()));
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// `funcs` functions with `locals` i32 locals each.
fn many_locals(funcs: usize, locals: usize) -> Vec<u8> {
    let body = [&[1], &*leb128(locals), &[0x7F, 0x0B]].concat();
    let section = |id: u8, contents: &[u8]| [&[id], &*leb128(contents.len()), contents].concat();
    let code = [leb128(body.len()), body].concat();
    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &[1, 0x60, 0, 0]),
        section(3, &[leb128(funcs), vec![0; funcs]].concat()),
        section(10, &[leb128(funcs), code.repeat(funcs)].concat()),
    ]
    .concat()
}

#[test]
fn locals_are_bounded() {
    assert_eq!(parse(many_locals(2, 50_000).into()).unwrap().bodies[1].locals.len(), 50_000);
    assert!(parse(many_locals(1, 50_001).into()).unwrap_err().message.contains("locals"));
    // Two million, and four for each byte.
    assert!(parse(many_locals(40, 50_000).into()).is_ok());
    assert!(parse(many_locals(41, 50_000).into()).unwrap_err().message.contains("locals in all functions together"));
    assert!(parse(many_locals(10_000, 220).into()).is_ok());
}

/// A module with every kind of section and immediate, to be damaged.
const SAMPLE: &str = r#"(module $sample
    (type $pair (func (param i32 i64) (result i64 i32)))
    (import "env" "f" (func (param f32)))
    (memory 1) (memory i64 1)
    (table $t 4 funcref) (table $x 1 externref)
    (global $g (mut i32) (i32.const 3))
    (export "main" (func 1))
    (elem (table $t) (i32.const 0) func 1 2)
    (elem $passive func 1)
    (data (i32.const 8) "some data")
    (func $main (type $pair) (local f32 f64 funcref)
        (block $out (result i32)
            (loop $again (result i32)
                (br_if $again (i32.eqz (local.get 0)))
                (br_table $again $again (i32.const 1)))
            unreachable)
        drop
        (if (result i64) (global.get $g)
            (then (i64.const -9223372036854775808))
            (else (i64.load offset=3 align=1 (i32.const 0))))
        (select (result f64) (f64.const 1) (local.get 3) (i32.const 0))
        (call_indirect $t (type $pair) (i32.trunc_sat_f64_s) (i64.const 1) (i32.const 5))
        (local.set 0)
        drop
        (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 1))
        (memory.copy 0 1 (i32.const 0) (i64.const 0) (i32.const 1))
        (table.set $t (i32.const 0) (ref.func 1))
        (drop (ref.is_null (ref.null extern)))
        (call 0 (f32.const 1.5))
        (i32.store16 1 offset=70000 (i64.const 0) (local.get 0))
        (local.get 0))
    (func (param i32 i64) (result i64 i32) (return_call $main (local.get 0) (local.get 1))))"#;

/// Walks and uses everything in a module, all of which must agree with its code.
fn check_consistent(m: &Module) {
    for body in &m.bodies {
        let pcs: Vec<u32> = Instrs::new(m, body.entry, body.end).map(|instr| instr.pc).collect();
        let at_instr = |pc: u32| pcs.binary_search(&pc).is_ok();
        let loop_entries: Vec<u32> = body.loops.iter().map(|info| info.stp).collect();
        for (i, branch) in body.branches.iter().enumerate() {
            if loop_entries.contains(&(i as u32)) {
                assert_eq!(body.loops[branch.pc as usize].stp, i as u32);
            } else {
                assert!(at_instr(branch.pc) && branch.stp as usize <= body.branches.len());
            }
        }
        assert!(body.segments.is_sorted_by(|a, b| a.pc < b.pc));
        let begins = |pc: u32| at_instr(pc) || body.loop_at(pc - 1).is_some();
        assert!(body.segments.iter().all(|segment| begins(segment.pc) && segment.cost > 0));
        assert!(body.loops.is_sorted_by(|a, b| a.pc < b.pc));
        assert_eq!(entries_owned(m, body), body.branches.len());
    }
}

fn entries_owned(m: &Module, body: &FuncBody) -> usize {
    Instrs::new(m, body.entry, body.end).map(|instr| instr.branch_entries()).sum()
}

/// Parses bytes that may not be a module. They must be accepted exactly if the validator alone accepts them. Returns
/// whether they are.
fn agrees_with_validator(bytes: &[u8]) -> bool {
    let features = super::FEATURES.union(wasmparser::WasmFeatures::LEGACY_EXCEPTIONS);
    let valid = wasmparser::Validator::new_with_features(features).validate_all(bytes).is_ok();
    let parsed = parse(bytes.into());
    assert_eq!(parsed.is_ok(), valid, "{:?}", parsed.err());
    if let Ok(module) = parsed {
        check_consistent(&module);
    }
    valid
}

#[test]
fn damaged_modules_never_panic() {
    let bytes = wat::parse_str(SAMPLE).expect("the sample is well formed");
    check_consistent(&parse(bytes.clone().into()).expect("the sample is valid"));
    for len in 0..bytes.len() {
        agrees_with_validator(&bytes[..len]);
    }
    let mut valid = 0;
    for at in 8..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            valid += u32::from(agrees_with_validator(&damaged));
        }
    }
    assert!(valid > 500, "only {valid} damaged modules are valid: the test has become too weak");
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    for _ in 0..3_000 {
        let mut damaged = bytes.clone();
        for _ in 0..3 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let at = 8 + (seed >> 16) as usize % (bytes.len() - 8);
            damaged[at] = seed as u8;
        }
        agrees_with_validator(&damaged);
    }
}

#[test]
fn a_number_after_one_prefix_does_not_name_an_instruction_of_the_other() {
    let mut bytes = wat::parse_str("(module (func (param v128) local.get 0 f32x4.abs drop))").expect("well formed");
    let at = bytes.windows(3).position(|window| window == [0xFD, 0xE0, 0x01]).expect("f32x4.abs");
    bytes[at..at + 3].copy_from_slice(&[0xFC, 0xE0, 0x03]);
    let refused =
        [true, false].map(|accept| super::parse_with(bytes.as_slice().into(), Options { accept, ..Options::default() }));
    let [fast, slow] = refused.map(|result| result.expect_err("not an instruction"));
    assert_eq!((fast.offset, &fast.message), (slow.offset, &slow.message));
    assert_eq!(fast.offset, at);
}

#[test]
fn data_sections_that_are_read_faster_are_those_that_are_valid() {
    let text =
        r#"(module (memory 1) (data (i32.const 300000) "abc") (data (i32.const -7) "") (data (i32.const 5) "defg") (data "xy"))"#;
    let bytes = wat::parse_str(text).unwrap();
    let expected = [(Some(300_000), 3), (Some(-7), 0), (Some(5), 4), (None, 2)];
    let read: Vec<_> = module(text).data.iter().map(|data| (data.active.clone(), data.range.len())).collect();
    assert_eq!(read, expected.map(|(at, len)| (at.map(|at| (0, ConstExpr([ConstOp::I32(at)].into()))), len)));
    let text = text.replace("(data (i32.const -7)", "(data (memory 0) (offset (i32.add (i32.const -8) (i32.const 1)))");
    assert_eq!(module(&text).data.len(), expected.len(), "a segment of another form");

    // Each byte of the section, and of the memory's type, gets every value.
    for bulk_memory in [true, false] {
        let proposals = Proposals::default().with(Proposal::BulkMemory, bulk_memory);
        let options = || Options { proposals, ..Options::default() };
        let is_valid = |bytes: &[u8]| parse_with(bytes.into(), options()).is_ok();
        let verdict = |bytes: &[u8]| wasmparser::Validator::new_with_features(options().features()).validate_all(bytes).is_ok();
        assert_eq!(is_valid(&bytes), bulk_memory);
        for at in 8..bytes.len() {
            for value in 0..=u8::MAX {
                let mut changed = bytes.clone();
                changed[at] = value;
                assert_eq!(is_valid(&changed), verdict(&changed), "{value:#x} at {at:#x}");
            }
            assert_eq!(is_valid(&bytes[..at]), verdict(&bytes[..at]), "truncated at {at:#x}");
        }
    }
}
