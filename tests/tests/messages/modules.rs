//! Modules that are not valid, or fail when they are instantiated.

use super::report::Report;
use crate::wasmtime;
use wasmtime::*;

pub fn start(engine: &Engine, report: &mut Report) -> Result<()> {
    for (name, text) in [
        ("a start function that traps", "(module $m (func $start (call $inner)) (func $inner unreachable) (start $start))"),
        ("data out of bounds", r#"(module $m (memory 1) (data (i32.const 65535) "ab"))"#),
        ("elements out of bounds", "(module $m (table 1 funcref) (func) (elem (i32.const 1) 0))"),
        ("data out of bounds of an empty memory", r#"(module (memory 0) (data (i32.const 0) "a"))"#),
    ] {
        let mut store = Store::new(engine, ());
        let module = Module::new(engine, text)?;
        report.result(name, Instance::new(&mut store, &module, &[]).map(drop));
        let linker: Linker<()> = Linker::new(engine);
        report.result(&format!("{name}, by a linker"), linker.instantiate(&mut store, &module).map(drop));
    }
    Ok(())
}

pub fn invalid(engine: &Engine, report: &mut Report) -> Result<()> {
    for (name, text) in [
        ("a type mismatch", "(module (func (result i32) (i64.const 1)))"),
        ("nothing on the stack", "(module (func drop))"),
        ("an unknown local", "(module (func (local.get 3) drop))"),
        ("an unknown function", "(module (func (call 7)))"),
        ("an unknown memory", "(module (func (i32.load (i32.const 0)) drop))"),
        ("an unknown global", "(module (func (global.get 1) drop))"),
        ("an unknown label", "(module (func (br 3)))"),
        ("a global that cannot be set", "(module (global i32 (i32.const 0)) (func (global.set 0 (i32.const 1))))"),
        ("an export twice", r#"(module (func (export "a")) (func (export "a")))"#),
        ("a start function with a parameter", "(module (func (param i32)) (start 0))"),
        ("values left over", "(module (func (i32.const 1)))"),
        (
            "a function with a name",
            r#"(module $m (import "" "f" (func $i)) (func $g) (func $f::g<h> (result i32) (i64.const 1)))"#,
        ),
        ("two invalid functions", "(module (func drop) (func $f drop))"),
        ("limits", "(module (memory 3 2))"),
        ("a memory that is too large", "(module (memory 65537))"),
        ("alignment", "(module (memory 1) (func (i32.load align=8 (i32.const 0)) drop))"),
        ("two tables that are one", "(module (func (table.set 2 (i32.const 0) (ref.null func))))"),
        ("a select of references", "(module (func (select (ref.null func) (ref.null func) (i32.const 1)) drop))"),
    ] {
        report.result(name, Module::new(engine, text).map(drop));
    }
    for (name, bytes) in [
        ("nothing", &b""[..]),
        ("another file", b"\x7fELF"),
        ("another version", b"\0asm\x02\0\0\0"),
        ("a cut header", b"\0asm\x01"),
        ("a section that is cut", b"\0asm\x01\0\0\0\x01\x05\x01"),
        ("an unknown section", b"\0asm\x01\0\0\0\x7f\x00"),
        ("sections out of order", b"\0asm\x01\0\0\0\x03\x01\0\x01\x01\0"),
        ("functions without bodies", b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0"),
        ("an unknown instruction", b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x05\x01\x03\0\xff\x0b"),
        ("a name that is no UTF-8", b"\0asm\x01\0\0\0\x07\x05\x01\x01\xff\0\0"),
        ("a body without an end", b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x04\x01\x02\0\x01"),
    ] {
        report.result(name, Module::from_binary(engine, bytes).map(drop));
        report.result(&format!("{name}, validated"), Module::validate(engine, bytes));
        report.result(&format!("{name}, binary or text"), Module::new(engine, bytes).map(drop));
    }
    for (name, text) in [
        ("text", "(module"),
        ("text that is unknown", "(module (fun))"),
        ("an unknown name", "(module\n  (func\n    (call $f)))"),
    ] {
        report.result(name, Module::new(engine, text).map(drop));
    }
    // SAFETY: they are no modules of `serialize`, and are refused.
    unsafe {
        report.result(
            "not compiled",
            Module::deserialize(engine, b"\0asm\x01\0\0\0").map(drop).map_err(|_| format_err!("refused")),
        );
    }
    Ok(())
}

pub fn no_proposals(config: &mut Config) {
    config.wasm_multi_memory(false).wasm_memory64(false).wasm_relaxed_simd(false).wasm_simd(false);
    config.wasm_tail_call(false).wasm_exceptions(false).wasm_multi_value(false);
    config.wasm_custom_page_sizes(false).wasm_wide_arithmetic(false);
    config.wasm_function_references(false).wasm_gc(false).wasm_extended_const(false).wasm_threads(false);
}

pub fn proposals(engine: &Engine, report: &mut Report) -> Result<()> {
    for (name, text) in [
        ("several memories", "(module (memory 1) (memory 1))"),
        ("memories of 64 bits", "(module (memory i64 1))"),
        ("vectors", "(module (func (result v128) (v128.const i64x2 0 0)))"),
        ("tail calls", "(module (func (return_call 0)))"),
        ("tags", "(module (tag))"),
        ("exceptions", "(module (func (throw_ref (unreachable))))"),
        ("several results", "(module (func (result i32 i32) unreachable))"),
        ("page sizes", "(module (memory 1 (pagesize 1)))"),
        ("wide arithmetic", "(module (func (param i64) (i64.mul_wide_u (local.get 0) (local.get 0)) drop drop))"),
        ("typed references", "(module (type $f (func)) (func (param (ref $f))))"),
        ("constant expressions", "(module (global i32 (i32.add (i32.const 1) (i32.const 1))))"),
        ("structs", "(module (type (struct)))"),
        ("instructions of structs", "(module (func (drop (ref.i31 (i32.const 0)))))"),
        ("atomic instructions", "(module (memory 1) (func (drop (i32.atomic.load (i32.const 0)))))"),
        ("shared memories", "(module (memory 1 1 shared))"),
    ] {
        report.result(name, Module::new(engine, text).map(drop));
    }
    Ok(())
}
