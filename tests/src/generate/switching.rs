//! Programs that consist of calls, tail calls, returns and loop headers, for counting how often frames of one engine follow
//! frames of another. They compute little, so that most of the time passes in crossings.

use super::Program;
use crate::rng::Rng;
use std::fmt::Write;
use weir_bytecode::types::{FuncType, ValType};

/// The calls that an exported function makes at most, all together. Calls that are open when they are used up return at once.
const CALLS: u32 = 4000;
/// The depth of calls that are not tail calls.
const DEPTH: u32 = 8;

/// Returns the program for `seed`.
///
/// # Panics
/// If the program is invalid, which is a bug of this file.
pub fn switching(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let results: Vec<Vec<ValType>> = (0..2).map(|_| list(&mut rng, 12)).collect();
    let signatures: Vec<Signature> = (0..2 * results.len() + rng.below(6) as usize)
        .map(|i| Signature { params: list(&mut rng, 10), results: results[i % results.len()].clone() })
        .collect();
    let mut text = String::from("(module (memory (export \"mem\") 1)\n");
    text.push_str(
        "(global $sum (export \"g0\") (mut i64) (i64.const 0)) (global $left (export \"g1\") (mut i32) (i32.const 0))\n",
    );
    writeln!(text, "(table funcref (elem {}))", names(signatures.len())).expect("a string grows");
    let reset = format!("(global.set $left (i32.const {CALLS})) (global.set $sum (i64.const {}))", rng.bits() as i64);
    writeln!(text, "(func (export \"reset\") {reset})").expect("a string grows");
    for (i, signature) in signatures.iter().enumerate() {
        writeln!(text, "(type $t{i} (func {}))", signature.text()).expect("a string grows");
        text.push_str(&function(i, &signatures, &mut rng));
    }
    text.push(')');
    let wasm = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let funcs = signatures.iter().map(|signature| FuncType::new(signature.all_params(), signature.results.clone())).collect();
    Program::new(wasm, funcs, &mut rng)
}

/// The type of a function, whose first parameter is the depth of calls that is left.
struct Signature {
    params: Vec<ValType>,
    results: Vec<ValType>,
}

impl Signature {
    fn all_params(&self) -> Vec<ValType> {
        [&[ValType::I32], &*self.params].concat()
    }

    fn text(&self) -> String {
        let of = |types: &[ValType]| types.iter().map(ToString::to_string).collect::<Vec<String>>().join(" ");
        format!("(param {}) (result {})", of(&self.all_params()), of(&self.results))
    }
}

/// A random list of up to `most` number types.
fn list(rng: &mut Rng, most: u32) -> Vec<ValType> {
    const TYPES: [ValType; 4] = [ValType::I32, ValType::I64, ValType::F32, ValType::F64];
    let len = if rng.one_in(3) { rng.below(most + 1) } else { rng.below(3) };
    (0..len).map(|_| *rng.pick(&TYPES)).collect()
}

fn names(count: usize) -> String {
    (0..count).map(|i| format!("$f{i} ")).collect()
}

/// Converts the i64 on the stack to `ty`. No float is a NaN.
fn from_i64(ty: &ValType) -> &'static str {
    match ty {
        ValType::I32 => "(i32.wrap_i64)",
        ValType::I64 => "",
        ValType::F32 => "(f32.convert_i64_s)",
        ValType::F64 => "(f64.convert_i64_s)",
        other => unreachable!("{other}"),
    }
}

/// Converts a value of `ty` on the stack to an i64.
fn to_i64(ty: &ValType) -> &'static str {
    match ty {
        ValType::I32 => "(i64.extend_i32_u)",
        ValType::I64 => "",
        ValType::F32 => "(i64.trunc_sat_f32_s)",
        ValType::F64 => "(i64.trunc_sat_f64_s)",
        other => unreachable!("{other}"),
    }
}

/// Pushes values of these types that are computed from the local `$x`.
fn values(types: &[ValType], rng: &mut Rng) -> String {
    let value = |ty: &ValType| format!("(i64.xor (local.get $x) (i64.const {})) {} ", rng.bits() as i64 >> 20, from_i64(ty));
    types.iter().map(value).collect()
}

/// Pops values of these types, and adds each to the local `$x`.
fn take(types: &[ValType]) -> String {
    let fold = |ty: &ValType| format!("{} (local.set $x (i64.add (i64.rotl (local.get $x) (i64.const 7)))) ", to_i64(ty));
    types.iter().rev().map(fold).collect()
}

/// A call of function `callee`, directly or through the table, with `depth` as its first argument.
fn call(callee: usize, signatures: &[Signature], depth: &str, tail: bool, rng: &mut Rng) -> String {
    let args = format!("{depth} {}", values(&signatures[callee].params, rng));
    let prefix = if tail { "return_" } else { "" };
    if rng.one_in(3) {
        format!("{args} (i32.const {callee}) ({prefix}call_indirect (type $t{callee}))")
    } else {
        format!("{args} ({prefix}call $f{callee})")
    }
}

/// Function `index`: a loop with calls, perhaps around another loop, and then a return or a tail call.
fn function(index: usize, signatures: &[Signature], rng: &mut Rng) -> String {
    let Signature { params, results } = &signatures[index];
    let all: String = (0..params.len()).map(|i| format!("(local.get {})", i + 1)).collect();
    let mut text = format!(
        r#"(func $f{index} (export "f{index}") (type $t{index}) (local $x i64) (local $n i32) (local $m i32)
        (local.set $x (global.get $sum)) {all} {}
        (global.set $sum (i64.add (i64.rotl (global.get $sum) (i64.const 9)) (local.get $x)))
        (global.set $left (i32.sub (global.get $left) (i32.const 1)))
        (local.set 0 (i32.and (local.get 0) (i32.const {})))
        (if (i32.or (i32.eqz (local.get 0)) (i32.le_s (global.get $left) (i32.const 0))) (then {} (return)))
        (local.set $n (i32.const {}))
        "#,
        take(params),
        DEPTH - 1,
        values(results, rng),
        1 + rng.below(5),
    );
    let same: Vec<usize> = (0..signatures.len()).filter(|&i| signatures[i].results == *results).collect();
    if rng.one_in(2) {
        // Code that is entered at its beginning makes a tail call before anything else replaces it.
        let callee = *rng.pick(&same);
        let tail = call(callee, signatures, "(local.get 0)", true, rng);
        let shift = rng.below(4);
        writeln!(text, "(if (i32.eqz (i32.and (i32.shr_u (global.get $left) (i32.const {shift})) (i32.const 1))) (then {tail}))")
            .expect("a string grows");
    }
    // Operands below the loop.
    let below = list(rng, 3);
    text.push_str(&values(&below, rng));
    text.push_str("(loop $outer\n");
    if rng.one_in(2) {
        let inner = "(local.set $x (i64.mul (local.get $x) (i64.const 0x5851F42D4C957F2D)))";
        let rounds = 1 + rng.below(40);
        write!(
            text,
            "(local.set $m (i32.const {rounds}))
            (loop $inner {inner} (br_if $inner (local.tee $m (i32.sub (local.get $m) (i32.const 1)))))\n"
        )
        .expect("a string grows");
    }
    for _ in 0..1 + rng.below(2) {
        let callee = rng.below(signatures.len() as u32) as usize;
        let depth = "(i32.sub (local.get 0) (i32.const 1))";
        text.push_str(&call(callee, signatures, depth, false, rng));
        text.push_str(&take(&signatures[callee].results));
    }
    text.push_str("(br_if $outer (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))\n");
    text.push_str(&take(&below));
    if rng.one_in(2) {
        let callee = *rng.pick(&same);
        text.push_str(&call(callee, signatures, "(local.get 0)", true, rng));
    } else {
        text.push_str(&values(results, rng));
    }
    text.push_str(")\n");
    text
}
