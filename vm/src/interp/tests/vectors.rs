//! Vector instructions, and calls between functions whose slots have different widths.

use super::{assert_none_refused, call, config, engines_of_every_instruction, frames, instantiate, run, trap};
use crate::interp::portable_log;
use crate::{Config, Engine, Error, Func, FuncType, Global, GlobalType, Instance, Module, Store, Trap, V128, Val, ValType};
use std::collections::BTreeSet;
use weir_bytecode::opcodes::Immediates;
use weir_bytecode::semantics::nan;
use weir_bytecode::semantics::vector::{Wide, eval, eval_lane};
use weir_bytecode::{Opcode, for_each_lane_access, for_each_vector_load};

/// Bits that distinguish operations: extremes of every width, floats in and out of range of every integer type.
fn samples(ty: ValType) -> Vec<u128> {
    match ty {
        ValType::I32 => [0, 1, 7, 33, 0xFFFF_FFFF, 0x8000_0000].into(),
        ValType::I64 => [0, 1, u64::MAX.into(), 0x8000_0000_0000_0001].into(),
        ValType::F32 => [-0.0f32, 1.5, 3e9].map(|x| x.to_bits().into()).into(),
        ValType::F64 => [-0.0f64, 1.5, -1e300].map(|x| x.to_bits().into()).into(),
        _ => vec![
            0,
            u128::MAX,
            0x8000_7FFF_0102_FEFF_8000_0000_7FFF_FFFF,
            0x0123_4567_89AB_CDEF_FEDC_BA98_7654_3210,
            0x7F80_8001_1010_0F0F_0000_0000_0000_0080,
            [-0.0f32, 1.5, -3e9, 1e30].into_wide(),
            [2.5f32, f32::INFINITY, -7.0, 0.0].into_wide(),
            [-2.5f64, 1e300].into_wide(),
            [3e9f64, -0.0].into_wide(),
        ],
    }
}

fn value(ty: ValType, bits: u128) -> Val {
    match ty {
        ValType::I32 => Val::I32(bits as i32),
        ValType::I64 => Val::I64(bits as i64),
        ValType::F32 => Val::F32(bits as u32),
        ValType::F64 => Val::F64(bits as u64),
        _ => Val::from(bits),
    }
}

/// The bits, with one representation for all NaNs in lanes that the instruction computes as floats.
fn bits(op: Opcode, value: Val) -> u128 {
    let shape = op.mnemonic().split('.').next().unwrap();
    match value {
        Val::I32(x) => u128::from(x as u32),
        Val::I64(x) => u128::from(x as u64),
        Val::F32(x) => x.into(),
        Val::F64(x) => x.into(),
        Val::V128(x) if shape == "f32x4" => {
            <[f32; 4]>::from_wide(x.into()).map(|x| if x.is_nan() { f32::NAN } else { x }).into_wide()
        }
        Val::V128(x) if shape == "f64x2" => {
            <[f64; 2]>::from_wide(x.into()).map(|x| if x.is_nan() { f64::NAN } else { x }).into_wide()
        }
        Val::V128(x) => x.into(),
        other => panic!("{other:?}"),
    }
}

/// The lane of instructions on one.
const LANE: u8 = 1;

/// The result of an instruction without immediates, or with a lane as its only one; `None` for others.
fn meaning(op: Opcode, args: &[u128]) -> Option<u128> {
    match op.immediates() {
        Immediates::Lane => eval_lane(op, args, LANE),
        Immediates::None => eval(op, args),
        _ => None,
    }
}

/// The instructions with a [`meaning`], and a module with a function of each.
fn functions_with_meaning() -> (Vec<Opcode>, String) {
    let ops: Vec<Opcode> = Opcode::ALL.iter().copied().filter(|&op| meaning(op, &[0; 3]).is_some()).collect();
    assert_eq!(ops.len(), 218 + 14);
    let mut wat = String::from("(module");
    for &op in &ops {
        let signature = op.signature().unwrap();
        let params: Vec<String> = signature.operands.iter().map(ValType::to_string).collect();
        let gets: String = (0..params.len()).map(|i| format!("local.get {i} ")).collect();
        let (name, lane) = (op.mnemonic(), if op.immediates() == Immediates::Lane { "1" } else { "" });
        let (params, result) = (params.join(" "), signature.result);
        wat += &format!("(func (export \"{name}\") (param {params}) (result {result}) {gets} {name} {lane})\n");
    }
    wat += ")";
    (ops, wat)
}

#[test]
fn instructions_do_what_semantics_says() {
    let (ops, wat) = functions_with_meaning();
    for config in engines_of_every_instruction() {
        let (mut store, instance) = instantiate(&config, &wat);
        ops.iter().for_each(|&op| agrees(&mut store, instance, op));
        assert_none_refused(&config, &store, instance);
    }
}

/// The handlers in assembly, and Rust that they call, execute everything but instructions whose result is a NaN that they do not
/// determine.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_portable_loop_executes_vector_instructions_with_nan_only() {
    if !is_x86_feature_detected!("avx") {
        return;
    }
    let (ops, wat) = functions_with_meaning();
    let open: BTreeSet<Opcode> = ops.iter().copied().filter(|&op| nan::open(op).is_some()).collect();
    let extrema: BTreeSet<Opcode> =
        open.iter().copied().filter(|op| ["min", "max"].iter().any(|name| op.mnemonic().ends_with(name))).collect();
    assert_eq!(extrema.len(), 8);
    for (config, expected) in [
        (config(), &extrema),
        (config().profile(true).clone(), &extrema),
        (config().deterministic(true).clone(), &open),
        (config().consume_fuel(true).clone(), &open),
    ] {
        let (mut store, instance) = instantiate(&config, &wat);
        let _ = store.set_fuel(u64::MAX);
        portable_log::take();
        ops.iter().for_each(|&op| agrees(&mut store, instance, op));
        let left: BTreeSet<Opcode> = portable_log::take().into_iter().filter(|op| op.is_vector()).collect();
        assert_eq!(left, *expected, "{config:?}");
    }
}

/// An opcode with more bytes than it needs has another length than the one for which its handler is written.
#[test]
fn opcodes_may_be_longer_than_necessary() {
    let wat = "(module (func (export \"f\") (param v128 v128) (result v128)
        local.get 0 v128.not nop local.get 1 i32x4.add nop))";
    let mut bytes = wat::parse_str(wat).unwrap();
    // The last byte, a `nop`, becomes part of the opcode.
    for (short, long) in
        [(&[0xFD, 0x4D, 0x01][..], &[0xFD, 0xCD, 0x00][..]), (&[0xFD, 0xAE, 0x01, 0x01], &[0xFD, 0xAE, 0x81, 0x00])]
    {
        let at = bytes.windows(short.len()).position(|bytes| bytes == short).unwrap();
        bytes[at..at + long.len()].copy_from_slice(long);
    }
    for config in engines_of_every_instruction() {
        let engine = Engine::new(&config).unwrap();
        let module = Module::new(&engine, &bytes).unwrap();
        let mut store = Store::new(&engine, ());
        store.set_epoch_deadline(u64::MAX);
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let args = [[-2i32, 7, i32::MAX, 0], [1, 1, 5, 9]].map(|lanes| V128::from(lanes.into_wide()));
        let found: V128 = call(&mut store, instance, "f", (args[0], args[1])).unwrap();
        assert_eq!(found.as_u128(), [2i32, -7, i32::MIN + 5, 8].into_wide());
    }
}

/// Accesses within bounds with immediates of one byte and, but for lanes, of more.
#[cfg(target_arch = "x86_64")]
#[test]
fn accesses_within_bounds_stay_in_assembly() {
    let access = |name: &str, offset: u32, lane: &str, result: bool| {
        let vector = if result && lane.is_empty() { "" } else { "(local.get 0)" };
        let text = format!("({name} offset={offset} {lane} (i32.const 16) {vector})");
        if result { format!("(local.set 0 {text})\n") } else { text + "\n" }
    };
    let mut body = String::new();
    macro_rules! loads {
        ($($op:ident, $width:literal, $name:ident;)*) => {
            $(for offset in [0, 127, 128, 40_000] {
                body += &access(Opcode::$op.mnemonic(), offset, "", true);
            })*
        };
    }
    macro_rules! lanes {
        ($($op:ident, $kind:ident, $width:literal, $name:ident;)*) => {
            $(for offset in [0, 127] {
                body += &access(Opcode::$op.mnemonic(), offset, "1", stringify!($kind) == "load");
            })*
        };
    }
    for_each_vector_load!(loads);
    for_each_lane_access!(lanes);
    body += &access("v128.store", 70, "", false);
    body += &access("v128.store", 300, "", false);
    body += "(local.set 0 (i8x16.shuffle 0 1 2 3 4 5 6 7 24 25 26 27 28 29 30 31 (local.get 0) (v128.const i64x2 3 4)))";
    let (mut store, instance) = instantiate(&config(), &format!("(module (memory 1) (func (export \"f\") (local v128) {body}))"));
    portable_log::take();
    call::<_, ()>(&mut store, instance, "f", ()).unwrap();
    assert_eq!(portable_log::take(), BTreeSet::from([Opcode::End]), "only the return from the base frame leaves");
}

/// Checks the function named after `op` on samples.
fn agrees(store: &mut Store<()>, instance: Instance, op: Opcode) {
    let signature = op.signature().unwrap();
    let func = instance.get_func(&mut *store, op.mnemonic()).unwrap();
    let choices: Vec<Vec<u128>> = signature.operands.iter().map(|&ty| samples(ty)).collect();
    let count = choices.iter().map(Vec::len).product::<usize>();
    for n in 0..count {
        let mut rest = n;
        let args: Vec<u128> = (choices.iter())
            .map(|choice| {
                let picked = choice[rest % choice.len()];
                rest /= choice.len();
                picked
            })
            .collect();
        let vals: Vec<Val> = signature.operands.iter().zip(&args).map(|(&ty, &bits)| value(ty, bits)).collect();
        let mut found = [Val::I32(0)];
        func.call(&mut *store, &vals, &mut found).unwrap();
        let wanted = value(signature.result, meaning(op, &args).unwrap());
        assert_eq!(bits(op, found[0]), bits(op, wanted), "{} {args:x?}", op.mnemonic());
    }
}

/// Loads and stores at the memory's end with short and long immediates, in and out of bounds.
#[test]
fn accesses_are_checked_by_their_width() {
    engines_of_every_instruction().iter().for_each(accesses_are_checked_in);
}

fn accesses_are_checked_in(config: &Config) {
    let check = |name: &str, width: usize, lane: &str, stores: bool| {
        let vector = "(v128.const i64x2 0x1122334455667788 0x99AABBCCDDEEFF00)";
        let operand = if stores || !lane.is_empty() { vector } else { "" };
        let result = if stores { "" } else { "(result v128)" };
        for offset in [0, 5, 4000] {
            let wat = format!(
                "(module (memory (export \"m\") 1) (func (export \"f\") (param i32) {result}
                    ({name} offset={offset} {lane} (local.get 0) {operand})))"
            );
            let (mut store, instance) = instantiate(config, &wat);
            let memory = instance.get_memory(&mut store, "m").unwrap();
            let last = 65536 - width;
            let bytes: Vec<u8> = (1..=width as u8).collect();
            memory.data_mut(&mut store)[last..].copy_from_slice(&bytes);
            let func = instance.get_func(&mut store, "f").unwrap();
            let mut results = [Val::I32(0)];
            let results = if stores { &mut results[..0] } else { &mut results[..] };
            func.call(&mut store, &[Val::I32((last - offset) as i32)], results).unwrap();
            if stores {
                assert_ne!(memory.data(&store)[last..], bytes, "{name}");
            } else {
                let loaded = results[0].unwrap_v128().as_u128();
                assert!(loaded.to_le_bytes().contains(&(width as u8)), "{name}: {loaded:x}");
            }
            for address in [last + 1 - offset, 0xFFFF_FFFF] {
                let error = func.call(&mut store, &[Val::I32(address as u32 as i32)], results).unwrap_err();
                assert_eq!(trap(&error), Trap::MemoryOutOfBounds, "{name}");
            }
        }
    };
    macro_rules! loads {
        ($($op:ident, $width:literal, $name:ident;)*) => {
            $(check(Opcode::$op.mnemonic(), $width, "", false);)*
        };
    }
    macro_rules! lanes {
        ($($op:ident, $kind:ident, $width:literal, $name:ident;)*) => {
            $(check(Opcode::$op.mnemonic(), $width, "1", stringify!($kind) == "store");)*
        };
    }
    for_each_vector_load!(loads);
    for_each_lane_access!(lanes);
    check("v128.store", 16, "", true);
}

#[test]
fn vectors_go_wherever_values_go() {
    let wat = "(module
        (type $swap (func (param v128 v128) (result v128 v128)))
        (global $g (mut v128) (v128.const i32x4 1 2 3 4))
        (table funcref (elem $swap))
        (func $swap (type $swap) (local.get 1) (local.get 0))
        (func $pick (param i32) (result v128)
            (block $a (result v128)
                (block $b (result v128)
                    (v128.const i32x4 10 0 0 0)
                    (br_table $a $b (local.get 0)))
                (i32x4.add (global.get $g))))
        (func (export \"f\") (param i32) (result i32) (local v128 v128)
            (local.set 1 (i32x4.splat (i32.const 100)))
            (call_indirect (type $swap) (call $pick (local.get 0)) (local.get 1) (i32.const 0))
            (block (param v128 v128) (result v128 v128) (call $swap))
            (local.set 2)
            (local.set 1)
            (global.set $g (select (local.get 1) (local.get 2) (local.get 0)))
            (drop (select (result v128) (local.get 1) (local.get 2) (local.get 0)))
            (loop (local.tee 2 (i32x4.add (local.get 2) (global.get $g))) (drop)
                (br_if 0 (i32.lt_s (i32x4.extract_lane 0 (local.get 2)) (i32.const 1000))))
            (i32x4.extract_lane 0 (local.get 2))))";
    // pick(0) is 10, and the loop adds 100 until 1000; pick(1) is 10 + 1, and it adds 11.
    assert_eq!(run::<_, i32>(wat, 0).unwrap(), 1000);
    assert_eq!(run::<_, i32>(wat, 1).unwrap(), 1002);
}

/// Two functions of one type that call each other until a counter is 0; the value that the wide one keeps in a vector meanwhile
/// is added to the last result.
const CROSSING: &str = "(module
    (type $t (func (param i32 i64 f64) (result f64 i64 i32)))
    (func $narrow (export \"narrow\") (type $t)
        (if (i32.eqz (local.get 0)) (then (return (local.get 2) (local.get 1) (i32.const 5))))
        (call $wide
            (i32.sub (local.get 0) (i32.const 1))
            (i64.add (local.get 1) (i64.const 3))
            (f64.add (local.get 2) (f64.const 0.5))))
    (func $wide (export \"wide\") (type $t) (local v128)
        (if (i32.eqz (local.get 0)) (then (return (local.get 2) (local.get 1) (i32.const 7))))
        (local.set 3 (i32x4.splat (local.get 0)))
        (call $narrow
            (i32.sub (local.get 0) (i32.const 1))
            (i64.add (local.get 1) (i64.const 5))
            (f64.add (local.get 2) (f64.const 0.25)))
        (i32.add (i32x4.extract_lane 3 (local.get 3)))))";

#[test]
fn calls_convert_between_widths() {
    let (mut store, instance) = instantiate(&config(), CROSSING);
    for n in [0, 1, 2, 7, 1000] {
        let half = i64::from(n) / 2;
        let odd = i64::from(n) % 2;
        let narrow = call::<_, (f64, i64, i32)>(&mut store, instance, "narrow", (n, 1i64, 8.0f64)).unwrap();
        // The wide function is entered with n - 1, n - 3, …
        let sum = (0..n).rev().step_by(2).sum::<i32>();
        let end = if odd == 0 { 5 } else { 7 };
        assert_eq!(narrow, (8.0 + 0.75 * half as f64 + 0.5 * odd as f64, 1 + 8 * half + 3 * odd, sum + end));
        let wide = call::<_, (f64, i64, i32)>(&mut store, instance, "wide", (n, 1i64, 8.0f64)).unwrap();
        let sum = (1..=n).rev().step_by(2).sum::<i32>();
        let end = if odd == 0 { 7 } else { 5 };
        assert_eq!(wide, (8.0 + 0.75 * half as f64 + 0.25 * odd as f64, 1 + 8 * half + 5 * odd, sum + end));
    }
}

#[test]
fn frames_of_both_widths_overflow_the_stack() {
    let (mut store, instance) = instantiate(&config(), CROSSING);
    for name in ["narrow", "wide"] {
        let error = call::<_, (f64, i64, i32)>(&mut store, instance, name, (i32::MAX, 0i64, 0f64)).unwrap_err();
        assert_eq!(trap(&error), Trap::StackOverflow);
    }
    assert_eq!(call::<_, (f64, i64, i32)>(&mut store, instance, "wide", (0, 0i64, 0f64)).unwrap().2, 7);
}

/// Functions of three shapes, two of them wide, that tail-call each other in turn, the middle one through a table and with
/// a vector.
const TAIL_CALLS: &str = "(module
    (type $v (func (param v128 i32 i64 i64) (result i64 i32)))
    (table funcref (elem $vector))
    (func $narrow (export \"narrow\") (param i32 i64) (result i64 i32)
        (if (i32.eqz (local.get 0)) (then (return (local.get 1) (i32.const 1))))
        (return_call $wide (local.get 1) (i32.sub (local.get 0) (i32.const 1))))
    (func $wide (export \"wide\") (param i64 i32) (result i64 i32) (local v128)
        (if (i32.eqz (local.get 1)) (then (return (local.get 0) (i32.const 2))))
        (return_call_indirect (type $v)
            (i64x2.splat (i64.add (local.get 0) (i64.const 1)))
            (i32.sub (local.get 1) (i32.const 1)) (i64.const 0) (i64.const 1) (i32.const 0)))
    (func $vector (export \"vector\") (type $v)
        (if (i32.eqz (local.get 1)) (then (return (i64x2.extract_lane 1 (local.get 0)) (i32.const 3))))
        (return_call $narrow
            (i32.sub (local.get 1) (i32.const 1))
            (i64.add (local.get 3) (i64x2.extract_lane 1 (local.get 0)))))
    (func $plain (result i64 i32) (call $narrow (i32.const 10) (i64.const 100)))
    (func (export \"from_narrow\") (result i64 i32) (call $plain))
    (func (export \"from_wide\") (result i64 i32) (local v128)
        (local.set 0 (i32x4.splat (i32.const 9)))
        (call $wide (i64.const 100) (i32.const 10))
        (i32.add (i32x4.extract_lane 2 (local.get 0)))))";

#[test]
fn tail_calls_convert_between_widths_in_constant_stack() {
    let mut config = config();
    config.value_stack_size(8 * 200);
    let (mut store, instance) = instantiate(&config, TAIL_CALLS);
    let n = 3 * 200_000;
    assert_eq!(call::<_, (i64, i32)>(&mut store, instance, "narrow", (n, 0i64)).unwrap(), (400_000, 1));
    assert_eq!(call::<_, (i64, i32)>(&mut store, instance, "narrow", (n + 1, 0i64)).unwrap(), (400_000, 2));
    assert_eq!(call::<_, (i64, i32)>(&mut store, instance, "narrow", (n + 2, 0i64)).unwrap(), (400_001, 3));
    assert_eq!(call::<_, (i64, i32)>(&mut store, instance, "wide", (0i64, n)).unwrap(), (400_000, 2));
    let args = (V128::from(5 << 64), n, 0i64, 1i64);
    assert_eq!(call::<_, (i64, i32)>(&mut store, instance, "vector", args).unwrap(), (400_005, 3));
    assert_eq!(call::<_, (i64, i32)>(&mut store, instance, "from_narrow", ()).unwrap(), (106, 2));
    assert_eq!(call::<_, (i64, i32)>(&mut store, instance, "from_wide", ()).unwrap(), (107, 3 + 9));
}

#[test]
fn backtraces_cross_widths() {
    let wat = "(module
        (func $a (export \"f\") (call $b (i32.const 1)))
        (func $b (param i32) (local v128) (call $c (local.get 0)))
        (func $c (param i32) (i64.store (local.get 0) (i64.const 0)))
        (memory 0))";
    let error = run::<_, ()>(wat, ()).unwrap_err();
    assert_eq!(trap(&error), Trap::MemoryOutOfBounds);
    assert_eq!(frames(&error), [(2, "i64.store"), (1, "call"), (0, "call")]);
}

#[test]
fn host_functions_take_and_give_vectors() {
    let engine = Engine::new(&config()).unwrap();
    let module = Module::new(
        &engine,
        "(module
            (import \"h\" \"typed\" (func $typed (param i32 v128 f32) (result v128 i32)))
            (import \"h\" \"dynamic\" (func $dynamic (param v128 v128) (result v128)))
            (import \"h\" \"plain\" (func $plain (param i32 i64) (result i64 i32)))
            (import \"h\" \"g\" (global $g v128))
            (global (export \"copy\") (mut v128) (global.get $g))
            (func (export \"typed\") (param i32 v128 f32) (result v128 i32)
                (call $typed (local.get 0) (local.get 1) (local.get 2)))
            (func (export \"dynamic\") (param v128) (result v128) (return_call $dynamic (local.get 0) (global.get $g)))
            (func (export \"plain\") (param v128) (result i64 i32)
                (call $plain (i32x4.extract_lane 0 (local.get 0)) (i64x2.extract_lane 1 (local.get 0))))
            (func (export \"tail\") (param v128) (result i64 i32)
                (return_call $plain (i32x4.extract_lane 0 (local.get 0)) (i64x2.extract_lane 1 (local.get 0)))))",
    )
    .unwrap();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX);
    let typed = Func::wrap(&mut store, |a: i32, v: V128, b: f32| (V128::from(v.as_u128() + b as u128), a + 1));
    let ty = FuncType::new(&engine, [ValType::V128; 2], [ValType::V128]);
    let dynamic = Func::new(&mut store, ty, |_, args, results| {
        results[0] = Val::from(args[0].unwrap_v128().as_u128() ^ args[1].unwrap_v128().as_u128());
        Ok(())
    });
    let plain = Func::wrap(&mut store, |a: i32, b: i64| (b + 1, a + 1));
    let g = Global::new(&mut store, GlobalType::new(ValType::V128, crate::Mutability::Const), Val::from(u128::MAX)).unwrap();
    let imports = [typed.into(), dynamic.into(), plain.into(), g.into()];
    let instance = Instance::new(&mut store, &module, &imports).unwrap();
    let big = 1u128 << 100;
    let found: (V128, i32) = call(&mut store, instance, "typed", (1, V128::from(big), 3f32)).unwrap();
    assert_eq!((found.0.as_u128(), found.1), (big + 3, 2));
    let found: V128 = call(&mut store, instance, "dynamic", V128::from(big)).unwrap();
    assert_eq!(found.as_u128(), !big);
    for name in ["plain", "tail"] {
        let found: (i64, i32) = call(&mut store, instance, name, V128::from(big | 7)).unwrap();
        assert_eq!(found, ((1 << 36) + 1, 8), "{name}");
    }
    let copy = instance.get_global(&mut store, "copy").unwrap();
    assert_eq!(copy.get(&mut store).unwrap_v128().as_u128(), u128::MAX);
    copy.set(&mut store, Val::from(big)).unwrap();
    assert_eq!(copy.get(&mut store).v128(), Some(V128::from(big)));
}

#[test]
fn metering_goes_on_across_widths() -> Result<(), Error> {
    let mut config = config();
    config.consume_fuel(true).epoch_interruption(true);
    let (mut store, instance) = instantiate(&config, CROSSING);
    store.set_epoch_deadline(1);
    store.set_fuel(1_000_000)?;
    call::<_, (f64, i64, i32)>(&mut store, instance, "wide", (2, 0i64, 0f64))?;
    let used = 1_000_000 - store.get_fuel()?;
    store.set_fuel(used)?;
    call::<_, (f64, i64, i32)>(&mut store, instance, "wide", (2, 0i64, 0f64))?;
    assert_eq!(store.get_fuel()?, 0);
    store.set_fuel(used - 1)?;
    let error = call::<_, (f64, i64, i32)>(&mut store, instance, "wide", (2, 0i64, 0f64)).unwrap_err();
    assert_eq!(trap(&error), Trap::OutOfFuel);
    store.set_fuel(1_000_000)?;
    store.engine().increment_epoch();
    let error = call::<_, (f64, i64, i32)>(&mut store, instance, "wide", (2, 0i64, 0f64)).unwrap_err();
    assert_eq!(trap(&error), Trap::Interrupt);
    Ok(())
}
