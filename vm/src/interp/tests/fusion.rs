//! Superinstructions have the effect of their instructions one after another. The portable loop, which executes each
//! instruction alone, is the reference.

use super::{config, instantiate};
use crate::{Config, Val};
use std::collections::BTreeSet;
use weir_bytecode::fusion;
use weir_bytecode::validate::parse;

/// Bodies of functions from two i32 to an i64 with locals `$x i32 $y i64 $z f64`, once for each of the operators in place of
/// `OP`.
const SHAPES: &[(&str, &[&str])] = &[
    ("local.get 0 local.get 1 OP i64.extend_i32_u", BINARY),
    ("local.get 0 i32.const 300 OP i64.extend_i32_u", BINARY),
    ("local.get 0 nop local.get 1 OP i64.extend_i32_u", BINARY),
    ("local.get 0 nop i32.const -7 OP i64.extend_i32_u", BINARY),
    ("local.get 0 nop i32.const -70000 OP i64.extend_i32_u", BINARY),
    ("local.get 0 nop i32.const 0x7fffffff OP i64.extend_i32_u", BINARY),
    // The branch, if taken, keeps one value and drops one; in the next bodies it keeps none.
    ("block (result i32) i32.const 1 i32.const 2 local.get 0 local.get 1 OP br_if 0 i32.sub end i64.extend_i32_s", COMPARISONS),
    (
        "block (result i32) i32.const 1 i32.const 2 local.get 0 nop local.get 1 nop OP br_if 0 i32.sub end i64.extend_i32_s",
        COMPARISONS,
    ),
    ("block i64.const 3 local.get 0 local.get 1 OP br_if 0 return end i64.const 4", COMPARISONS),
    ("block i64.const 3 local.get 0 nop local.get 1 nop OP br_if 0 return end i64.const 4", COMPARISONS),
    ("block (result i32) i32.const 1 i32.const 2 local.get 0 nop OP br_if 0 i32.sub end i64.extend_i32_s", &["i32.eqz"]),
    ("block i64.const 3 local.get 0 OP br_if 0 return end i64.const 4", &["nop", "i32.eqz"]),
    ("block (result i32) i32.const 1 i32.const 2 local.get 0 br_if 0 i32.sub end i64.extend_i32_s", &[""]),
    ("block i64.const 3 local.get 0 br_if 0 return end i64.const 4", &[""]),
    // Branches that keep more than one value.
    (
        "block (result i32 i32) i32.const 1 i32.const 2 i32.const 3 local.get 0 local.get 1 OP br_if 0
         i32.add end i32.sub i64.extend_i32_s",
        COMPARISONS,
    ),
    ("i64.const 9 local.get 0 local.get 1 i32.add OP i64.extend_i32_u i64.add", &["local.set $x local.get $x", "local.tee $x"]),
    (
        "i64.const 9 local.get 0 nop local.get 1 nop i32.add OP i64.extend_i32_u i64.add",
        &["local.set $x local.get $x", "local.tee $x"],
    ),
    ("i64.const 5 local.get 0 OP local.get $x i64.extend_i32_u i64.add", &["local.set $x", "local.tee $x drop"]),
    ("local.get 0 OP", &["i32.load offset=3 i64.extend_i32_s", "i32.load8_u offset=4 i64.extend_i32_u", "i64.load offset=1"]),
    ("i64.const 2 local.get 0 OP i64.add", &["i64.load offset=65535", "i64.load offset=100000"]),
    ("local.get 0 OP i64.reinterpret_f64", &["f64.load", "f64.load offset=127"]),
    // An address and a value.
    ("local.get 0 local.get 1 OP local.get 0 i64.load8_u", &["i32.store8", "i32.store16 offset=1", "i32.store offset=0x1000"]),
    ("i64.const 1 local.get 0 nop local.get 1 OP i32.const 7 i64.load i64.add", &["i32.store", "i32.store offset=7"]),
    ("i64.const 1 local.get 0 i32.const 0x12345678 OP i32.const 7 i64.load i64.add", &["i32.store", "i32.store offset=7"]),
    ("local.get 0 local.get $y OP i32.const 7 i64.load", &["i64.store", "i64.store32 offset=5", "i64.store16", "i64.store8"]),
    ("local.get 0 local.get $z OP i32.const 7 i64.load", &["f64.store"]),
    ("local.get $y local.get $y OP", &["i64.add", "i64.mul", "i64.shl", "i64.rotr", "i64.lt_s i64.extend_i32_u"]),
    ("local.get $y nop local.get $y OP", &["i64.sub", "i64.xor", "i64.shr_s", "i64.eq i64.extend_i32_u"]),
    ("local.get $z local.get $z OP i64.reinterpret_f64", &["f64.add", "f64.sub", "f64.mul", "f64.div"]),
    ("local.get 0 i32.const OP i32.add i64.extend_i32_u", &["5", "-1", "-65", "70000", "0x7fffffff"]),
    (
        "i64.const 5 local.get 0 i32.const -70000 i32.add OP local.get $x i64.extend_i32_s i64.add i64.sub",
        &["local.set $x i64.const 3", "local.tee $x i64.extend_i32_u"],
    ),
    (
        "i64.const 5 local.get 0 nop i32.const 300 OP i64.extend_i32_u i64.sub",
        &["i32.add", "i32.and", "i32.shl", "i32.shr_u", "i32.rotl"],
    ),
    (
        "i64.const 5 local.get 0 nop i32.const -3 OP i64.extend_i32_u i64.sub",
        &["i32.add", "i32.and", "i32.shl", "i32.shr_u", "i32.rotl"],
    ),
    (
        "i64.const 5 local.get 0 nop i32.const 70000 i32.add OP local.get $x i64.extend_i32_s i64.add i64.sub",
        &["local.set $x i64.const 3", "local.tee $x i64.extend_i32_u"],
    ),
    ("i64.const 5 local.get 0 nop local.get 1 OP i64.extend_i32_u i64.sub", &["i32.xor"]),
    ("local.get $z nop local.get $z OP i64.reinterpret_f64", &["f64.add", "f64.mul"]),
    ("i64.const 5 local.get $z local.get $z OP i64.reinterpret_f64 i64.sub", &["f64.mul"]),
    ("f64.const 0.5 local.get 0 f64.load OP i64.reinterpret_f64", &["f64.add", "offset=9 f64.add"]),
    (
        "i64.const 5 local.get 0 local.get 1 i32.add OP i64.extend_i32_u i64.sub",
        &["i32.load", "i32.load offset=7", "i32.load8_u offset=4"],
    ),
    ("i64.const 5 local.get 0 nop local.get 1 nop i32.add OP i64.extend_i32_u i64.sub", &["i32.load offset=7", "i32.load8_u"]),
    (
        "i64.const 5 local.get 0 i32.load offset=OP local.get $x i64.extend_i32_s i64.add",
        &["3 local.set $x", "9 local.tee $x drop"],
    ),
    // A local of a load is better off without the local before it; one of a call is not.
    ("local.get 1 local.get 0 i32.load i32.add i64.extend_i32_u", &[""]),
    ("local.get 0 local.get 1 local.get 0 call $three", &[""]),
];

/// The same for functions that also have the locals `$v v128 $w v128`, and therefore slots of two words.
const WIDE_SHAPES: &[(&str, &[&str])] = &[
    ("local.get $v local.get $w OP i64x2.extract_lane 1", &["i64x2.add", "v128.xor", "i8x16.sub", "i32x4.lt_s"]),
    ("local.get $v i32.const 300 OP i64x2.extract_lane 1", &["i64x2.shl", "i32x4.shr_s", "i8x16.shr_u"]),
    ("local.get $v local.get 0 OP i64x2.extract_lane 1", &["i32x4.replace_lane 3", "i16x8.shr_u", "i8x16.replace_lane 15"]),
    ("local.get $v OP local.get $w i64x2.extract_lane 1", &["local.set $w", "local.tee $w drop", "nop local.set $w"]),
    ("local.get $v local.get $w local.get 0 OP i64x2.extract_lane 1", &["select", "select (result v128)"]),
    // The branch that is taken drops a vector and keeps one.
    ("block (result v128) local.get $v local.get $w local.get 0 br_if 0 i64x2.sub end i64x2.extract_lane 1", &[""]),
    (
        "block (result v128) local.get $v local.get $w local.get 0 local.get 1 OP br_if 0 drop end i64x2.extract_lane 1",
        COMPARISONS,
    ),
    ("i64.const 7 local.get $v OP i64x2.extract_lane 1 i64.sub", &["call $same"]),
    ("i64.const 7 local.get $v local.get 0 local.get $w OP i64x2.extract_lane 1 i64.sub", &["call $last"]),
    (
        "local.get 0 OP i64x2.extract_lane 0",
        &["v128.load offset=3", "v128.load offset=65520", "v128.load8x8_u", "v128.load32_splat"],
    ),
    ("local.get 0 local.get $v OP local.get 0 i64.load offset=8", &["v128.store", "v128.store offset=200"]),
    (
        "local.get $z f64x2.splat local.get $v OP i64x2.extract_lane 1",
        &["f64x2.mul", "f64x2.max", "f32x4.add", "f32x4.relaxed_min"],
    ),
];

const BINARY: &[&str] = &[
    "i32.add",
    "i32.sub",
    "i32.mul",
    "i32.and",
    "i32.or",
    "i32.xor",
    "i32.shl",
    "i32.shr_s",
    "i32.shr_u",
    "i32.rotl",
    "i32.rotr",
    "i32.div_s",
    "i32.rem_u",
    "i32.eq",
    "i32.ne",
    "i32.lt_s",
    "i32.lt_u",
    "i32.gt_s",
    "i32.gt_u",
    "i32.le_s",
    "i32.le_u",
    "i32.ge_s",
    "i32.ge_u",
];

const COMPARISONS: &[&str] =
    &["i32.eq", "i32.ne", "i32.lt_s", "i32.lt_u", "i32.gt_s", "i32.gt_u", "i32.le_s", "i32.le_u", "i32.ge_s", "i32.ge_u"];

#[test]
fn superinstructions_do_what_their_halves_do() {
    let mut bodies: Vec<String> = SHAPES.iter().flat_map(|(shape, ops)| ops.iter().map(|op| shape.replace("OP", op))).collect();
    for depth in [1, 3, 4, 7, 16, 39] {
        let (open, close) = ("block ".repeat(depth), "end ".repeat(depth));
        bodies.push(format!("{open} local.get 0 local.get 1 i32.lt_s br_if {} {close} i64.const {depth}", depth - 1));
    }
    let wat = module(&bodies, "", "");

    let parsed = parse(wat::parse_str(&wat).unwrap().into()).unwrap();
    let replaced = parsed.bodies.iter().flat_map(|body| {
        let mut code = vec![0; body.len() as usize];
        fusion::fuse(&parsed, body, &mut code);
        let original = &parsed.bytes[body.entry as usize..];
        code.into_iter().zip(original).filter(|(code, byte)| code != *byte).map(|(code, _)| code)
    });
    let found: BTreeSet<u8> = replaced.collect();
    assert_eq!(found, fusion::ALL.iter().map(|&(code, _)| code as u8).collect(), "every superinstruction is found");

    all_agree(&wat, &bodies);
    let wide_bodies = WIDE_SHAPES.iter().flat_map(|(shape, ops)| ops.iter().map(|op| shape.replace("OP", op)));
    bodies.extend(wide_bodies);
    let begin = "(local.set $v (i32x4.replace_lane 3 (i64x2.splat (local.get $y)) (i32.const 0x5A5A)))
        (local.set $w (i32x4.replace_lane 0 (i8x16.splat (local.get 1)) (local.get 0)))";
    all_agree(&module(&bodies, "(local $v v128) (local $w v128)", begin), &bodies);
}

/// A module with functions of these bodies, which also have these locals and first do `begin`.
fn module(bodies: &[String], locals: &str, begin: &str) -> String {
    let mut wat = String::from(
        "(module (memory 1) (data (i32.const 0) \"0123456789abcdefghijklmnopqrstuvwxyz\")
            (func $same (param v128) (result v128) (local.get 0))
            (func $last (param v128 i32 v128) (result v128) (local i64 v128) (i64x2.add (local.get 2) (local.get 4)))
            (func $three (param i32 i32 i32) (result i64)
                (i64.extend_i32_s (i32.sub (i32.mul (local.get 0) (local.get 1)) (local.get 2))))",
    );
    for (i, body) in bodies.iter().enumerate() {
        wat += &format!(
            "(func (export \"{i}\") (param i32 i32) (result i64) (local $x i32) (local $y i64) (local $z f64) {locals}
                (local.set $y (i64.mul (i64.extend_i32_s (local.get 0)) (i64.const 0x100000003)))
                (local.set $z (f64.div (f64.convert_i32_s (local.get 1)) (f64.const 3))) {begin} {body})\n"
        );
    }
    wat + ")"
}

/// Checks that the functions do the same with and without the handlers in assembly, for each kind of metering.
fn all_agree(wat: &str, bodies: &[String]) {
    agree(&[config(), config().profile(true).clone(), config().portable_interpreter(true).clone()], wat, bodies);
    for meter in [config().consume_fuel(true), config().epoch_interruption(true), config().deterministic(true)] {
        agree(&[meter.clone(), meter.portable_interpreter(true).clone()], wat, bodies);
    }
}

/// Checks that the functions of a module, of these bodies, do the same in all of these engines, and take the same fuel.
fn agree(engines: &[Config], wat: &str, bodies: &[String]) {
    let samples = [0, 1, 2, 31, -1, -8, 65530, i32::MIN, i32::MAX];
    // A call finds the memory as the calls before it left it. It is the same in each engine.
    let mut instances: Vec<_> = engines.iter().map(|config| instantiate(config, wat)).collect();
    for (i, body) in bodies.iter().enumerate() {
        for (a, b) in samples.iter().flat_map(|&a| samples.map(|b| (a, b))) {
            let mut ended = instances.iter_mut().map(|(store, instance)| {
                let mut result = [Val::I64(0)];
                let _ = store.set_fuel(1000);
                let func = instance.get_func(&mut *store, &i.to_string()).unwrap();
                let ended = func.call(&mut *store, &[Val::I32(a), Val::I32(b)], &mut result);
                let ended = ended.map(|()| format!("{result:?}")).unwrap_or_else(|error| format!("{error:?}"));
                (ended, store.get_fuel().ok())
            });
            let first = ended.next().unwrap();
            ended.for_each(|other| assert_eq!(first, other, "{body} of {a}, {b}"));
        }
    }
}
