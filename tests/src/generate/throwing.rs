//! Programs that throw and catch: within a function and through frames, with both forms of the proposal in one module. Locals and operands
//! that live into handlers differ from call to call, so that a wrong value there changes the result. Two tags may be one imported tag.
//!
//! Half of the programs have references to host values, which the host numbers. They are in locals and operands across calls, in
//! parameters, results, globals, tables and payloads, and their numbers go into the result. Half call functions of another instance of
//! the module, which has the same imported tags and others of its own, and calls back through the host: see [`crate::host`].

use super::Program;
use crate::rng::Rng;
use std::fmt::Write;
use weir_bytecode::types::{FuncType, ValType};

/// The calls that an exported function makes at most, all together. Calls that are open when they are used up return at once.
const CALLS: u32 = 300;
/// The depth of calls.
const DEPTH: u32 = 7;
/// The locals of each function that hold references to host values.
const REFS: u32 = 4;
/// The payloads of the tags. The fifth has values without a register at a call. The others after [`PLAIN_TAGS`] are only in programs with
/// references to host values.
const TAGS: [&[ValType]; 7] = [
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
    &[ValType::EXTERNREF, ValType::I64],
    &[
        ValType::I64,
        ValType::EXTERNREF,
        ValType::I64,
        ValType::EXTERNREF,
        ValType::I32,
        ValType::EXTERNREF,
        ValType::I64,
        ValType::EXTERNREF,
        ValType::I64,
        ValType::EXTERNREF,
    ],
];
const PLAIN_TAGS: usize = 5;

/// What the functions of a program have.
#[derive(Clone, Copy)]
struct Shape {
    functions: usize,
    /// The references to host values that each function takes, and that it returns; `None` if the program has none anywhere.
    refs: Option<[u32; 2]>,
    /// Whether there is another instance.
    linked: bool,
    /// Whether tags are imported, so that the host can throw one.
    imported: bool,
}

impl Shape {
    fn tags(&self) -> &'static [&'static [ValType]] {
        if self.refs.is_some() { &TAGS } else { &TAGS[..PLAIN_TAGS] }
    }

    /// The parameters and the results that are references.
    fn ref_counts(&self) -> [u32; 2] {
        self.refs.unwrap_or_default()
    }
}

/// Returns the program for `seed`.
///
/// # Panics
/// If the program is invalid, which is a bug of this file.
pub fn throwing(seed: u64) -> Program {
    throwing_with(&mut Rng::new(seed))
}

/// Returns the program for these random numbers.
///
/// # Panics
/// As [`throwing`].
pub fn throwing_with(rng: &mut Rng) -> Program {
    let functions = 3 + rng.below(4) as usize;
    // Two tags of one type may be imports, and these the same tag.
    let (imported, same) = (rng.one_in(2), rng.one_in(2));
    let refs = rng.one_in(2).then(|| [rng.below(9), rng.below(REFS)]);
    let shape = Shape { functions, refs, linked: rng.one_in(2), imported };
    let mut text = String::from("(module ");
    imports(&shape, same, &mut text);
    text.push_str("(memory (export \"mem\") 1)\n");
    text.push_str(
        "(global $sum (export \"g0\") (mut i64) (i64.const 0)) (global $left (export \"g1\") (mut i32) (i32.const 0))
        (global $held (mut exnref) (ref.null exn))\n",
    );
    let names = |prefix: &str| (0..functions).map(|i| format!("{prefix}{i} ")).collect::<String>();
    let others = if shape.linked { names("$o") } else { String::new() };
    writeln!(text, "(table $functions funcref (elem {} {others}))", names("$f")).expect("a string grows");
    for (i, types) in shape.tags().iter().enumerate().filter(|&(i, _)| !(imported && (i == 1 || i == 3))) {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        writeln!(text, "(tag $t{i} (param {}))", types.join(" ")).expect("a string grows");
    }
    let mut reset = format!(
        "(global.set $left (i32.const {CALLS})) (global.set $sum (i64.const {})) (global.set $held (ref.null exn))",
        rng.bits() as i64
    );
    if shape.refs.is_some() {
        text.push_str("(table $refs 8 20 externref) (global $ref (mut externref) (ref.null extern))\n");
        reset.push_str("(global.set $ref (ref.null extern))");
        reset.push_str("(table.fill $refs (i32.const 0) (ref.null extern) (table.size $refs))");
    }
    if shape.linked {
        reset.push_str("(call $reset)");
    }
    writeln!(text, "(func (export \"reset\") {reset})").expect("a string grows");
    for i in 0..functions {
        let body = Body { rng, shape, text: String::new(), labels: 0, regions: 0, tries: Vec::new(), loops: 0 }.function(i);
        text.push_str(&body);
        // Whatever the function throws ends here.
        let [params, results] = shape.ref_counts();
        let args = "(call $make (local.get 1))".repeat(params as usize);
        writeln!(
            text,
            "(func (export \"f{i}\") (param i32 i64) (result i64)
            (block $h (try_table (catch_all $h)
                (call $f{i} (i32.and (local.get 0) (i32.const {})) (local.get 1) {args}) {} return))
            (i64.add (global.get $sum) (i64.const 1)))",
            DEPTH - 1,
            "drop ".repeat(results as usize)
        )
        .expect("a string grows");
    }
    text.push(')');
    let wasm = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let ty = FuncType::new([ValType::I32, ValType::I64], [ValType::I64]);
    let mut program = Program::new(wasm, vec![ty; functions], rng);
    program.beyond_wasmi = true;
    program
}

/// The imports, and the type of the functions. [`crate::host`] has what they import.
fn imports(shape: &Shape, same: bool, text: &mut String) {
    let [params, results] = shape.ref_counts().map(|count| "externref ".repeat(count as usize));
    writeln!(text, "(type $f (func (param i32 i64 {params}) (result i64 {results})))").expect("a string grows");
    if shape.imported {
        let second = if same { "a" } else { "b" };
        writeln!(text, "(import \"t\" \"a\" (tag $t1 (param i32))) (import \"t\" \"{second}\" (tag $t3 (param i32)))")
            .expect("a string grows");
        text.push_str("(import \"h\" \"throw\" (func $throw (param i32)))\n");
    }
    if shape.refs.is_some() {
        text.push_str(
            "(import \"h\" \"make\" (func $make (param i64) (result externref)))
            (import \"h\" \"number\" (func $number (param externref) (result i64)))
            (import \"h\" \"collect\" (func $collect))\n",
        );
    }
    if shape.linked {
        text.push_str("(import \"o\" \"reset\" (func $reset))\n");
        for i in 0..shape.functions {
            writeln!(text, "(import \"o\" \"r{i}\" (func $o{i} (type $f)))").expect("a string grows");
        }
    }
}

/// The body of a function: parameters `0`, the depth, and `1`, and locals `$x`, `$y`, `$d` and `$r0` to `$r3` that calls and throws change.
struct Body<'r> {
    rng: &'r mut Rng,
    shape: Shape,
    text: String,
    /// Number of the labels so far.
    labels: u32,
    /// Number of open regions.
    regions: u32,
    /// The labels of the open `try`s, those of handlers included.
    tries: Vec<String>,
    /// Number of loops so far, and of their counters.
    loops: u32,
}

impl Body<'_> {
    fn function(mut self, index: usize) -> String {
        self.statements(3);
        self.statements(2);
        let counters: String = (0..self.loops).map(|i| format!("(local $n{i} i32)")).collect();
        let [params, _] = self.shape.ref_counts();
        let (mut refs, mut received) = (String::new(), String::new());
        if self.shape.refs.is_some() {
            refs = (0..REFS).map(|i| format!("(local $r{i} externref)")).collect();
            received = (0..params).map(|i| format!("(local.set $r{} (local.get {}))", i % REFS, 2 + i)).collect();
        }
        let returned = self.returned();
        let head = format!(
            "(func $f{index} (export \"r{index}\") (type $f)
            (local $x i64) (local $y i32) (local $d f64) (local $e exnref) {refs} {counters}
            (local.set $x (local.get 1)) (local.set $y (i32.const {})) (local.set $d (f64.const {}.5)) {received}
            (global.set $left (i32.sub (global.get $left) (i32.const 1)))
            (if (i32.or (i32.le_s (local.get 0) (i32.const 0)) (i32.le_s (global.get $left) (i32.const 0)))
                (then (return (local.get $x) {returned})))\n",
            self.rng.below(100),
            self.rng.below(100),
        );
        let sum = "(i64.add (local.get $x) (i64.add (i64.extend_i32_u (local.get $y)) (i64.trunc_sat_f64_s (local.get $d))))";
        format!(
            "{head}{}\n(local.set $x {sum}) (global.set $sum (i64.add (global.get $sum) (local.get $x))) (local.get $x) {returned})\n",
            self.text
        )
    }

    /// The references that the function returns.
    fn returned(&self) -> String {
        let [_, results] = self.shape.ref_counts();
        (0..results).map(|i| format!("(local.get $r{i})")).collect()
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
        if self.shape.refs.is_some() && self.rng.one_in(3) {
            return self.reference();
        }
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

    /// A statement about references to host values.
    fn reference(&mut self) {
        let (local, value) = (self.rng.below(REFS), self.reference_value(2));
        let at = format!("(i32.and (local.get $y) (i32.const {}))", self.rng.below(8));
        match self.rng.below(16) {
            0..4 => self.put(&format!("(local.set $r{local} {value})")),
            4 | 5 => self.put(&format!("(global.set $ref {value})")),
            6 | 7 => self.put(&format!("(table.set $refs {at} {value})")),
            8 => self.put(&format!("(table.fill $refs {at} {value} (i32.const 2))")),
            9 => self.put(&format!("(table.copy $refs $refs (i32.const 1) {at} (i32.const 1))")),
            10 => self.put(&format!("(local.set $y (i32.add (local.get $y) (table.grow $refs {value} (i32.const 1))))")),
            11 => self.put("(call $collect)"),
            // The value is an operand below the call.
            12 => {
                self.put(&value);
                self.call();
                self.put(&format!("(local.set $r{local})"));
            }
            _ => self.put(&format!("(local.set $x (i64.add (i64.rotl (local.get $x) (i64.const 3)) (call $number {value})))")),
        }
    }

    /// An expression for a reference to a host value, or null.
    fn reference_value(&mut self, depth: u32) -> String {
        match self.rng.below(if depth == 0 { 6 } else { 9 }) {
            0..3 => format!("(local.get $r{})", self.rng.below(REFS)),
            3 => "(global.get $ref)".into(),
            4 => format!("(table.get $refs (i32.and (local.get $y) (i32.const {})))", self.rng.below(8)),
            5 => "(ref.null extern)".into(),
            6 => format!("(call $make (i64.xor (local.get $x) (i64.const {})))", self.rng.below(1 << 16)),
            7 => {
                let [a, b] = [self.reference_value(depth - 1), self.reference_value(depth - 1)];
                format!("(select (result externref) {a} {b} {})", self.condition())
            }
            _ => {
                let [a, b] = [self.reference_value(depth - 1), self.reference_value(depth - 1)];
                format!("(if (result externref) {} (then {a}) (else {b}))", self.condition())
            }
        }
    }

    /// A call, directly or through the table, or rarely a tail call, of a function of this instance or the other one.
    fn call(&mut self) {
        let count = self.shape.functions as u32;
        let callee = self.rng.below(if self.shape.linked { 2 * count } else { count });
        let name = if callee < count { format!("$f{callee}") } else { format!("$o{}", callee - count) };
        let [params, results] = self.shape.ref_counts();
        let refs: String = (0..params).map(|_| self.reference_value(1)).collect();
        let args = format!(
            "(i32.sub (local.get 0) (i32.const 1)) (i64.xor (local.get $x) (i64.const {})) {refs}",
            self.rng.below(1 << 16)
        );
        let direct = self.rng.one_in(2);
        let of = |prefix: &str| match direct {
            true => format!("({prefix}call {name} {args})"),
            false => format!("({prefix}call_indirect $functions (type $f) {args} (i32.const {callee}))"),
        };
        let taken: String = (0..results).rev().map(|i| format!("(local.set $r{i})")).collect();
        if self.rng.one_in(12) {
            let condition = self.condition();
            self.put(&format!(
                "(if (i32.and {condition} {}) (then {}))",
                "(i32.and (local.get $y) (i32.const 1))",
                of("return_")
            ));
        } else if self.rng.one_in(3) {
            // An operand below the call.
            self.put(&format!("(i64.mul (local.get $x) (i64.const 5)) {} {taken} (local.set $x (i64.sub))", of("")));
        } else {
            self.put(&format!("{} {taken} (local.set $x)", of("")));
        }
    }

    fn tag(&mut self) -> usize {
        self.rng.below(self.shape.tags().len() as u32) as usize
    }

    /// A throw that happens sometimes.
    fn conditional_throw(&mut self) {
        let (first, second) = (self.condition(), self.condition());
        self.put(&format!("(if (i32.and {first} {second}) (then"));
        if self.rng.one_in(6) {
            self.put("(if (i32.eqz (ref.is_null (global.get $held))) (then (throw_ref (global.get $held))))");
        }
        if self.shape.imported && self.rng.one_in(4) {
            return self.put("(call $throw (local.get $y))))");
        }
        let tag = self.tag();
        let payload: String = TAGS[tag].iter().map(|ty| format!("{} ", self.value_of(ty))).collect();
        self.put(&format!("(throw $t{tag} {payload})))"));
    }

    /// A `try_table` with up to four clauses, whose handlers follow it.
    fn try_table(&mut self, depth: u32) {
        let out = self.label();
        self.put(&format!("(block {out}"));
        let mut clauses = String::new();
        let mut handlers = Vec::new();
        for _ in 0..self.rng.below(4) {
            let tag = (!self.rng.one_in(3)).then(|| self.tag());
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
        self.tries.push(label.clone());
        self.statements(depth - 1);
        self.tries.pop();
        self.regions -= 1;
        if self.rng.one_in(4) {
            // To whatever is next, or to any `try` around this one, which may be in a handler of its own.
            let outer = if self.tries.is_empty() || self.rng.one_in(3) { "0" } else { self.rng.pick(&self.tries).as_str() };
            return self.put(&format!("delegate {outer}"));
        }
        self.tries.push(label.clone());
        let typed = self.rng.below(3);
        for _ in 0..typed {
            let tag = self.tag();
            self.put(&format!("catch $t{tag}"));
            self.take(Some(tag));
            self.handler(depth, &label);
        }
        if typed == 0 || self.rng.one_in(2) {
            self.put("catch_all");
            self.handler(depth, &label);
        }
        self.tries.pop();
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
            if *ty == ValType::EXTERNREF {
                let local = self.rng.below(REFS);
                self.put(&format!("(local.set $r{local})"));
                continue;
            }
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

    /// A value of this type that is computed from the locals. No float is a NaN.
    fn value_of(&mut self, ty: &ValType) -> String {
        match ty {
            ValType::I32 => "(i32.add (local.get $y) (i32.const 3))".into(),
            ValType::I64 => "(i64.add (local.get $x) (i64.const 5))".into(),
            ValType::F32 => "(f32.convert_i64_s (local.get $x))".into(),
            ValType::F64 => "(f64.convert_i64_s (local.get $x))".into(),
            &ValType::EXTERNREF => self.reference_value(1),
            other => unreachable!("{other}"),
        }
    }
}
