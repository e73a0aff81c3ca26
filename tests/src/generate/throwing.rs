//! Programs that throw and catch: within a function and through frames, with both forms of the proposal in one module. Locals and operands
//! that live into handlers differ from call to call, so that a wrong value there changes the result. Two tags may be one imported tag.

use super::Program;
use crate::rng::Rng;
use std::fmt::Write;
use weir_bytecode::types::{FuncType, ValType};

/// The calls that an exported function makes at most, all together. Calls that are open when they are used up return at once.
const CALLS: u32 = 300;
/// The depth of calls.
const DEPTH: u32 = 7;
/// The payloads of the tags. The last is wide only in some programs; the one before has values without a register at a call.
const TAGS: [&[ValType]; 5] = [
    &[],
    &[ValType::I32],
    &[ValType::I64, ValType::F64],
    &[ValType::I32],
    &[
        ValType::F32,
        ValType::I64,
        ValType::I32,
        ValType::F64,
        ValType::I64,
        ValType::I32,
        ValType::I64,
        ValType::I64,
        ValType::I32,
    ],
];

/// Returns the program for `seed`.
///
/// # Panics
/// If the program is invalid, which is a bug of this file.
pub fn throwing(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let count = 3 + rng.below(4) as usize;
    let mut text = String::from("(module ");
    // Two tags of one type may be imports, and these the same tag.
    let (imported, same) = (rng.one_in(2), rng.one_in(2));
    if imported {
        let second = if same { "a" } else { "b" };
        writeln!(text, "(import \"t\" \"a\" (tag $t1 (param i32))) (import \"t\" \"{second}\" (tag $t3 (param i32)))")
            .expect("a string grows");
    }
    text.push_str("(memory (export \"mem\") 1)\n");
    text.push_str(
        "(global $sum (export \"g0\") (mut i64) (i64.const 0)) (global $left (export \"g1\") (mut i32) (i32.const 0))
        (global $held (mut exnref) (ref.null exn))\n",
    );
    let names: String = (0..count).map(|i| format!("$f{i} ")).collect();
    writeln!(text, "(table funcref (elem {names}))\n(type $f (func (param i32 i64) (result i64)))").expect("a string grows");
    for (i, types) in TAGS.iter().enumerate().filter(|&(i, _)| !(imported && (i == 1 || i == 3))) {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        writeln!(text, "(tag $t{i} (param {}))", types.join(" ")).expect("a string grows");
    }
    let reset = format!(
        "(global.set $left (i32.const {CALLS})) (global.set $sum (i64.const {})) (global.set $held (ref.null exn))",
        rng.bits() as i64
    );
    writeln!(text, "(func (export \"reset\") {reset})").expect("a string grows");
    for i in 0..count {
        let body = Body { rng: &mut rng, functions: count, text: String::new(), labels: 0, regions: 0, loops: 0 }.function(i);
        text.push_str(&body);
        // Whatever the function throws ends here.
        writeln!(
            text,
            "(func (export \"f{i}\") (type $f)
            (block $h (try_table (catch_all $h) (return (call $f{i} (i32.and (local.get 0) (i32.const {})) (local.get 1)))))
            (i64.add (global.get $sum) (i64.const 1)))",
            DEPTH - 1
        )
        .expect("a string grows");
    }
    text.push(')');
    let wasm = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let ty = FuncType::new([ValType::I32, ValType::I64], [ValType::I64]);
    let mut program = Program::new(wasm, vec![ty; count], vec![ValType::I64, ValType::I32], &mut rng);
    program.beyond_wasmi = true;
    program
}

/// The body of a function: parameters `0`, the depth, and `1`, and locals `$x`, `$y` and `$d` that calls and throws change.
struct Body<'r> {
    rng: &'r mut Rng,
    functions: usize,
    text: String,
    /// Number of the labels so far.
    labels: u32,
    /// Number of open regions.
    regions: u32,
    /// Number of loops so far, and of their counters.
    loops: u32,
}

impl Body<'_> {
    fn function(mut self, index: usize) -> String {
        self.statements(3);
        self.statements(2);
        let counters: String = (0..self.loops).map(|i| format!("(local $n{i} i32)")).collect();
        let head = format!(
            "(func $f{index} (type $f) (local $x i64) (local $y i32) (local $d f64) (local $e exnref) {counters}
            (local.set $x (local.get 1)) (local.set $y (i32.const {})) (local.set $d (f64.const {}.5))
            (global.set $left (i32.sub (global.get $left) (i32.const 1)))
            (if (i32.or (i32.eqz (local.get 0)) (i32.le_s (global.get $left) (i32.const 0))) (then (return (local.get $x))))\n",
            self.rng.below(100),
            self.rng.below(100),
        );
        let sum = "(i64.add (local.get $x) (i64.add (i64.extend_i32_u (local.get $y)) (i64.trunc_sat_f64_s (local.get $d))))";
        format!(
            "{head}{}\n(local.set $x {sum}) (global.set $sum (i64.add (global.get $sum) (local.get $x))) (local.get $x))\n",
            self.text
        )
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("$l{}", self.labels)
    }

    /// A condition that varies.
    fn condition(&mut self) -> String {
        let (bit, of) = (self.rng.below(6), self.rng.below(3));
        let value = ["(i32.wrap_i64 (global.get $sum))", "(local.get $y)", "(i32.wrap_i64 (local.get $x))"][of as usize];
        format!("(i32.and (i32.shr_u {value} (i32.const {bit})) (i32.const 1))")
    }

    fn statements(&mut self, depth: u32) {
        for _ in 0..1 + self.rng.below(3) {
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        let number = self.rng.below(1 << 20);
        match self.rng.below(if depth == 0 { 7 } else { 12 }) {
            0 => self.put(&format!("(local.set $x (i64.add (i64.rotl (local.get $x) (i64.const 7)) (i64.const {number})))")),
            1 => self.put(&format!("(local.set $y (i32.add (i32.mul (local.get $y) (i32.const 13)) (i32.const {number})))")),
            2 => self.put(&format!("(local.set $d (f64.add (local.get $d) (f64.const {number})))")),
            3 | 4 => self.call(),
            5 => self.conditional_throw(),
            6 => self.put("(global.set $sum (i64.add (i64.rotl (global.get $sum) (i64.const 9)) (local.get $x)))"),
            7 | 8 => self.try_table(depth),
            9 => self.legacy(depth),
            10 => self.counted_loop(depth),
            _ => {
                let condition = self.condition();
                self.put(&format!("(if {condition} (then"));
                self.statements(depth - 1);
                self.put(") (else");
                self.statements(depth - 1);
                self.put("))");
            }
        }
    }

    /// A call, directly or through the table, or rarely a tail call.
    fn call(&mut self) {
        let callee = self.rng.below(self.functions as u32);
        let args =
            format!("(i32.sub (local.get 0) (i32.const 1)) (i64.xor (local.get $x) (i64.const {}))", self.rng.below(1 << 16));
        let direct = self.rng.one_in(2);
        let of = |prefix: &str| match direct {
            true => format!("({prefix}call $f{callee} {args})"),
            false => format!("({prefix}call_indirect (type $f) {args} (i32.const {callee}))"),
        };
        if self.rng.one_in(12) {
            let condition = self.condition();
            self.put(&format!(
                "(if (i32.and {condition} {}) (then {}))",
                "(i32.and (local.get $y) (i32.const 1))",
                of("return_")
            ));
        } else if self.rng.one_in(3) {
            // An operand below the call.
            self.put(&format!("(local.set $x (i64.sub (i64.mul (local.get $x) (i64.const 5)) {}))", of("")));
        } else {
            self.put(&format!("(local.set $x {})", of("")));
        }
    }

    /// A throw that happens sometimes.
    fn conditional_throw(&mut self) {
        let (first, second) = (self.condition(), self.condition());
        self.put(&format!("(if (i32.and {first} {second}) (then"));
        if self.rng.one_in(6) {
            self.put("(if (i32.eqz (ref.is_null (global.get $held))) (then (throw_ref (global.get $held))))");
        }
        let tag = self.rng.below(TAGS.len() as u32) as usize;
        let payload: String = TAGS[tag].iter().map(|ty| format!("{} ", from_locals(ty))).collect();
        self.put(&format!("(throw $t{tag} {payload})))"));
    }

    /// A `try_table` with up to four clauses, whose handlers follow it.
    fn try_table(&mut self, depth: u32) {
        let out = self.label();
        self.put(&format!("(block {out}"));
        let mut clauses = String::new();
        let mut handlers = Vec::new();
        for _ in 0..self.rng.below(4) {
            let tag = (!self.rng.one_in(3)).then(|| self.rng.below(TAGS.len() as u32) as usize);
            let (reference, label) = (self.rng.one_in(3), self.label());
            let name = format!("catch{}{}", if tag.is_none() { "_all" } else { "" }, if reference { "_ref" } else { "" });
            write!(clauses, "({name} {} {label})", tag.map_or(String::new(), |tag| format!("$t{tag}"))).expect("a string grows");
            handlers.push((tag, reference, label));
        }
        for (tag, reference, label) in handlers.iter().rev() {
            let mut types: Vec<String> = tag.map_or(&[][..], |tag| TAGS[tag]).iter().map(ToString::to_string).collect();
            types.extend(reference.then(|| "exnref".to_string()));
            self.put(&format!("(block {label} (result {})", types.join(" ")));
        }
        self.regions += 1;
        self.put(&format!("(try_table {clauses}"));
        self.statements(depth - 1);
        self.put(&format!(") (br {out})"));
        self.regions -= 1;
        for (tag, reference, _) in handlers {
            self.put(")");
            if reference {
                self.put("(local.set $e)");
            }
            self.take(tag);
            self.statements(depth - 1);
            if reference {
                match self.rng.below(3) {
                    0 => self.put("(throw_ref (local.get $e))"),
                    1 => self.put("(global.set $held (local.get $e))"),
                    _ => {}
                }
            }
            self.put(&format!("(br {out})"));
        }
        self.put(")");
    }

    /// A `try` with handlers or `delegate`.
    fn legacy(&mut self, depth: u32) {
        let label = self.label();
        self.put(&format!("try {label}"));
        self.regions += 1;
        self.statements(depth - 1);
        self.regions -= 1;
        if self.rng.one_in(4) {
            return self.put("delegate 0");
        }
        let typed = self.rng.below(3);
        for _ in 0..typed {
            let tag = self.rng.below(TAGS.len() as u32) as usize;
            self.put(&format!("catch $t{tag}"));
            self.take(Some(tag));
            self.handler(depth, &label);
        }
        if typed == 0 || self.rng.one_in(2) {
            self.put("catch_all");
            self.handler(depth, &label);
        }
        self.put("end");
    }

    fn handler(&mut self, depth: u32, label: &str) {
        self.statements(depth - 1);
        if self.rng.one_in(3) {
            let condition = self.condition();
            self.put(&format!("(if {condition} (then (rethrow {label})))"));
        }
    }

    /// Pops the payload of a tag, and adds it to the locals.
    fn take(&mut self, tag: Option<usize>) {
        for ty in tag.map_or(&[][..], |tag| TAGS[tag]).iter().rev() {
            let add = match ty {
                ValType::I32 => "(i64.extend_i32_u)",
                ValType::F32 => "(i64.trunc_sat_f32_s)",
                ValType::F64 => "(i64.trunc_sat_f64_s)",
                _ => "",
            };
            self.put(&format!("{add} (local.set $x (i64.add (i64.rotl (local.get $x) (i64.const 5))))"));
        }
    }

    fn counted_loop(&mut self, depth: u32) {
        let (label, counter, rounds) = (self.label(), self.loops, 1 + self.rng.below(5));
        self.loops += 1;
        self.put(&format!("(local.set $n{counter} (i32.const {rounds})) (loop {label}"));
        self.statements(depth - 1);
        self.put(&format!("(br_if {label} (local.tee $n{counter} (i32.sub (local.get $n{counter}) (i32.const 1)))))"));
    }
}

/// A value of this type that is computed from the locals. No float is a NaN.
fn from_locals(ty: &ValType) -> &'static str {
    match ty {
        ValType::I32 => "(i32.add (local.get $y) (i32.const 3))",
        ValType::I64 => "(i64.add (local.get $x) (i64.const 5))",
        ValType::F32 => "(f32.convert_i64_s (local.get $x))",
        ValType::F64 => "(f64.convert_i64_s (local.get $x))",
        other => unreachable!("{other}"),
    }
}
