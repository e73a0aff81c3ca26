//! Every opcode of TABLE 1 has an arm, and it is the right one.

use super::{assert_none_refused, engines_of_every_instruction, instantiate};
use crate::interp::portable_log;
use crate::{Config, Val, ValType};
use std::collections::BTreeSet;
use weir_bytecode::opcodes::{Immediates, Signature};
use weir_bytecode::semantics::{access, eval, vector};
use weir_bytecode::{Instrs, Opcode, Trap};

/// Bit patterns of each type that distinguish operations.
fn samples(ty: ValType) -> Vec<u64> {
    match ty {
        ValType::I32 => [0, 1, 7, -1, -8, i32::MIN, i32::MAX].map(|value| u64::from(value as u32)).into(),
        ValType::I64 => [0, 1, 7, -1, -8, i64::MIN, i64::MAX, 0x1_0000_0080].map(|value| value as u64).into(),
        ValType::F32 => {
            [0.0f32, -0.0, 1.5, -2.5, 3e9, -1e30, f32::INFINITY, f32::NAN].map(|value| u64::from(value.to_bits())).into()
        }
        ValType::F64 => [0.0f64, -0.0, 1.5, -2.5, 3e9, -1e30, f64::INFINITY, f64::NAN].map(f64::to_bits).into(),
        other => panic!("no numeric instruction has {other}"),
    }
}

fn value(ty: ValType, bits: u64) -> Val {
    match ty {
        ValType::I32 => Val::I32(bits as i32),
        ValType::I64 => Val::I64(bits as i64),
        ValType::F32 => Val::F32(bits as u32),
        _ => Val::F64(bits),
    }
}

/// The bits, with one representation for all NaNs, because the specification does not say which of two NaNs an
/// operation propagates.
fn bits(value: Val) -> u64 {
    match value {
        Val::I32(value) => u64::from(value as u32),
        Val::I64(value) => value as u64,
        Val::F32(bits) if f32::from_bits(bits).is_nan() => u64::from(f32::NAN.to_bits()),
        Val::F32(bits) => u64::from(bits),
        Val::F64(bits) if f64::from_bits(bits).is_nan() => f64::NAN.to_bits(),
        Val::F64(bits) => bits,
        other => panic!("not numeric: {other:?}"),
    }
}

/// Operands of numeric instructions, by their number. In the rows, superinstructions include all operands, some of them, and
/// none.
const GETS: [[&str; 3]; 3] = [
    ["", "local.get 0", "local.get 0 local.get 1"],
    ["", "nop local.get 0", "local.get 0 nop local.get 1"],
    ["", "local.get 0 nop", "local.get 0 nop local.get 1 nop"],
];

#[test]
fn numeric_instructions_do_what_semantics_says() {
    let numeric = |op: &&Opcode| eval(**op, &[6, 3]).is_some();
    let ops: Vec<Opcode> = Opcode::ALL.iter().filter(numeric).copied().collect();
    let [narrow, wide] = ["", "(local v128)"].map(|locals| functions_of(&ops, locals));
    for config in engines_of_every_instruction() {
        portable_log::take();
        numeric_instructions_do_in(&config, &narrow, &ops);
        let of_narrow = portable_log::take();
        numeric_instructions_do_in(&config, &wide, &ops);
        assert_eq!(portable_log::take(), of_narrow, "the handlers for slots of two words leave at the same instructions");
    }
}

/// A module with functions of these instructions, which have also these locals.
fn functions_of(ops: &[Opcode], locals: &str) -> String {
    let mut wat = String::from("(module");
    for op in ops {
        let Signature { operands, result } = op.signature().unwrap();
        let params: Vec<String> = operands.iter().map(ValType::to_string).collect();
        let name = op.mnemonic();
        for (shape, gets) in GETS.iter().enumerate() {
            let (gets, params) = (gets[operands.len()], params.join(" "));
            wat += &format!("(func (export \"{name}{shape}\") (param {params}) (result {result}) {locals} {gets} {name})\n");
        }
    }
    wat + ")"
}

fn numeric_instructions_do_in(config: &Config, wat: &str, ops: &[Opcode]) {
    let (mut store, instance) = instantiate(config, wat);
    for (&op, shape) in ops.iter().flat_map(|op| (0..GETS.len()).map(move |shape| (op, shape))) {
        let Signature { operands, result } = op.signature().unwrap();
        let func = instance.get_func(&mut store, &format!("{}{shape}", op.mnemonic())).unwrap();
        let seconds = operands.get(1).map_or(vec![0], |&ty| samples(ty));
        for a in samples(operands[0]) {
            for &b in &seconds {
                let args: Vec<Val> = operands.iter().zip([a, b]).map(|(&ty, bits)| value(ty, bits)).collect();
                let mut found = [Val::I32(0)];
                let outcome = func.call(&mut store, &args, &mut found);
                match eval(op, &[a, b][..operands.len()]).unwrap() {
                    Ok(expected) => {
                        outcome.unwrap();
                        assert_eq!(bits(found[0]), bits(value(result, expected)), "{} {args:?}", op.mnemonic());
                    }
                    Err(trap) => {
                        assert_eq!(outcome.unwrap_err().downcast_ref::<Trap>(), Some(&trap), "{} {args:?}", op.mnemonic());
                    }
                }
            }
        }
    }
    assert_none_refused(config, &store, instance);
}

/// Functions `f` without parameters whose one i64 result is known, which together have every instruction that is neither numeric
/// nor a load or a store.
const SAMPLES: &[(&str, i64)] = &[
    ("(func (export \"f\") (result i64) nop (return (i64.const 1)) unreachable)", 1),
    (
        "(func (export \"f\") (result i64) (local i64)
            (block (loop
                (br_if 1 (i64.ge_s (local.get 0) (i64.const 10)))
                (local.set 0 (i64.add (local.get 0) (i64.const 3)))
                (br 0)))
            (local.tee 0 (i64.add (local.get 0) (i64.const 1))))",
        13,
    ),
    (
        "(func (export \"f\") (result i64)
            (if (result i64) (i32.const 1)
                (then (if (result i64) (i32.const 0) (then (i64.const 1)) (else (i64.const 2))))
                (else (i64.const 3))))",
        2,
    ),
    ("(func (export \"f\") (result i64) (block (result i64) (i64.const 4) (i32.const 9) (br_table 0 1 0 0 0)))", 4),
    (
        "(func (export \"f\") (result i64)
            (drop (i64.const 7))
            (i64.add
                (select (i64.const 10) (i64.const 20) (i32.const 0))
                (select (result i64) (i64.const 3) (i64.const 4) (i32.const 1))))",
        23,
    ),
    (
        "(global $g (mut i64) (i64.const 40))
         (func (export \"f\") (result i64)
            (global.set $g (i64.add (global.get $g) (i64.const 2)))
            (global.get $g))",
        42,
    ),
    (
        "(type $t (func (param i64) (result i64)))
         (table funcref (elem $twice $tail))
         (func $twice (type $t) (i64.mul (local.get 0) (i64.const 2)))
         (func $tail (type $t) (return_call $twice (i64.add (local.get 0) (i64.const 1))))
         (func $indirect (type $t) (return_call_indirect (type $t) (local.get 0) (i32.const 1)))
         (func (export \"f\") (result i64)
            (i64.add (call $indirect (i64.const 4)) (call_indirect (type $t) (i64.const 50) (i32.const 0))))",
        110,
    ),
    (
        "(table $t 2 10 funcref)
         (table $u 2 externref)
         (elem $e func $g $g)
         (elem declare func $f)
         (func $g)
         (func $f (export \"f\") (result i64)
            (table.set $t (i32.const 0) (ref.func $f))
            (drop (table.grow $t (table.get $t (i32.const 0)) (i32.const 3)))
            (table.init $t $e (i32.const 1) (i32.const 0) (i32.const 1))
            (elem.drop $e)
            (table.copy $t $t (i32.const 2) (i32.const 0) (i32.const 2))
            (table.fill $u (i32.const 0) (ref.null extern) (i32.const 2))
            (i64.extend_i32_u (i32.add
                (i32.mul (i32.const 100) (table.size $t))
                (i32.add
                    (i32.mul (i32.const 10) (ref.is_null (table.get $t (i32.const 4))))
                    (ref.is_null (table.get $u (i32.const 1)))))))",
        501,
    ),
    (
        "(type $t (func (param i64) (result i64)))
         (elem declare func $square $tail)
         (func $square (type $t) (i64.mul (local.get 0) (local.get 0)))
         (func $tail (type $t) (return_call_ref $t (local.get 0) (ref.as_non_null (ref.func $square))))
         (func $or_zero (param (ref null $t)) (result i64)
            (block $null
                (return (call_ref $t (i64.const 3) (br_on_null $null (local.get 0)))))
            (i64.const 0))
         (func $or_one (param (ref null $t)) (result i64)
            (block $there (result (ref $t))
                (br_on_non_null $there (local.get 0))
                (return (i64.const 1)))
            local.set 0
            (call_ref $t (i64.const 4) (local.get 0)))
         (func (export \"f\") (result i64)
            (i64.add
                (i64.add (call $or_zero (ref.null $t)) (call $or_zero (ref.func $square)))
                (i64.add (call $or_one (ref.null $t)) (call $or_one (ref.func $tail)))))",
        9 + 1 + 16,
    ),
    (
        "(func (export \"f\") (result i64) (local i64 i64)
            (i64.add128 (i64.const -1) (i64.const 1) (i64.const 2) (i64.const 3))
            (i64.sub128 (i64.const 2) (i64.const 1))
            local.set 0
            local.set 1
            (i64.mul_wide_s (i64.const -1) (local.get 0))
            i64.add
            (i64.mul_wide_u (i64.const -1) (local.get 1))
            i64.mul
            i64.add)",
        // [1, 5] - [2, 1] = [-1, 3]; -1 * 3 has halves -3 and -1; -1 * -1, unsigned, has 1 and -2.
        -4 - 2,
    ),
    (
        "(memory 1 5)
         (data $d \"\\01\\02\\03\\04\\05\\06\\07\\08\")
         (func (export \"f\") (result i64)
            (memory.init $d (i32.const 0) (i32.const 4) (i32.const 4))
            (data.drop $d)
            (memory.fill (i32.const 4) (i32.const 9) (i32.const 4))
            (memory.copy (i32.const 1) (i32.const 0) (i32.const 5))
            (drop (memory.grow (i32.const 2)))
            (i64.store (i32.const 131072) (i64.load (i32.const 0)))
            (i64.add
                (i64.load (i32.const 131072))
                (i64.extend_i32_u (memory.size))))",
        0x0909_0908_0706_0505 + 3,
    ),
    (
        "(func (export \"f\") (result i64)
            (i64x2.extract_lane 1 (i8x16.shuffle 0 1 2 3 4 5 6 7 24 25 26 27 28 29 30 31
                (v128.const i64x2 1 2)
                (v128.const i64x2 3 4))))",
        4,
    ),
    (
        "(func (export \"f\") (result i64)
            (i64.add
                (i64.add (i64.const -9223372036854775808) (i64.const 9223372036854775807))
                (i64.add
                    (i64.extend_i32_s (i32.add (i32.const -2147483648) (i32.const 2147483647)))
                    (i64.add (i64.trunc_f64_s (f64.const 1e10)) (i64.trunc_f32_s (f32.const -4.75))))))",
        9_999_999_994,
    ),
];

#[test]
fn every_instruction_is_executed_somewhere() {
    let elsewhere = |&op: &Opcode| eval_or_access(op) || EXCEPTIONS.contains(&op);
    let mut covered: BTreeSet<Opcode> = Opcode::ALL.iter().copied().filter(elsewhere).collect();
    for (fields, expected) in SAMPLES {
        for config in engines_of_every_instruction() {
            let (mut store, instance) = instantiate(&config, &format!("(module {fields})"));
            let found: i64 = super::call(&mut store, instance, "f", ()).unwrap_or_else(|error| panic!("{fields}: {error:?}"));
            assert_eq!(found, *expected, "{fields}");
            assert_none_refused(&config, &store, instance);
        }
        let bytes = wat::parse_str(format!("(module {fields})")).unwrap();
        let module = weir_bytecode::validate::parse(bytes.into()).unwrap();
        for body in &module.bodies {
            covered.extend(Instrs::new(&module, body.entry, body.end).map(|instr| instr.op));
        }
    }
    let missing: Vec<&str> = Opcode::ALL.iter().filter(|op| !covered.contains(op)).map(|op| op.mnemonic()).collect();
    assert_eq!(missing, [""; 0]);
}

/// The optimiser refuses functions with these; `tests/exceptions.rs` executes them on every engine.
const EXCEPTIONS: [Opcode; 8] = [
    Opcode::TryTable,
    Opcode::Try,
    Opcode::Catch,
    Opcode::CatchAll,
    Opcode::Delegate,
    Opcode::Throw,
    Opcode::ThrowRef,
    Opcode::Rethrow,
];

/// Whether a table-driven test executes the instruction: the test of numeric instructions, of vectors, or of loads and stores.
fn eval_or_access(op: Opcode) -> bool {
    let vector = vector::eval(op, &[0; 3]).is_some() || vector::eval_lane(op, &[0; 3], 0).is_some();
    let vector_access = matches!(op.immediates(), Immediates::MemArg | Immediates::MemArgLane);
    eval(op, &[6, 3]).is_some() || access(op).is_some() || vector || vector_access
}
