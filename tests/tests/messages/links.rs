//! Errors of linking, of exports and of arguments.

use super::report::Report;
use crate::wasmtime;
use wasmtime::*;

pub fn imports(engine: &Engine, report: &mut Report) -> Result<()> {
    let mut store = Store::new(engine, ());
    for (name, import) in [
        ("function", r#"(func (param i32 i64) (result f32))"#),
        ("function without values", r#"(func)"#),
        ("table", r#"(table 1 2 funcref)"#),
        ("memory", r#"(memory 1 2)"#),
        ("global", r#"(global (mut i64))"#),
        ("tag", r#"(tag (param i32))"#),
    ] {
        let module = Module::new(engine, format!(r#"(module (import "env" "it" {import}))"#))?;
        let linker: Linker<()> = Linker::new(engine);
        report.result(&format!("missing {name}"), linker.instantiate(&mut store, &module).map(drop));
        report.result(&format!("missing {name}, before"), linker.instantiate_pre(&module).map(drop));
        report.result(&format!("no {name} given"), Instance::new(&mut store, &module, &[]).map(drop));
    }
    let module = Module::new(engine, r#"(module (import "a" "b" (func)))"#)?;
    let f = Func::wrap(&mut store, || ());
    report.result("too many", Instance::new(&mut store, &module, &[f.into(), f.into()]).map(drop));
    let mut linker: Linker<()> = Linker::new(engine);
    linker.define_unknown_imports_as_traps(&module)?;
    let module = Module::new(engine, r#"(module $unknown (import "a" "b" (func $f)) (func (export "run") (call $f)))"#)?;
    let run = linker.instantiate(&mut store, &module)?.get_typed_func::<(), ()>(&mut store, "run")?;
    report.result("unknown import that traps", run.call(&mut store, ()));
    Ok(())
}

/// The imports of a module beside an item that does not match.
const MISMATCHES: &[(&str, &str)] = &[
    ("(func)", "(func (param i32))"),
    ("(func (param i32))", "(func (param i64))"),
    ("(func (param i32 i32) (result f32 f64))", "(func)"),
    ("(func (param funcref externref v128))", "(func (result (ref func)))"),
    ("(func)", "(table 1 funcref)"),
    ("(func)", "(memory 1)"),
    ("(func)", "(global i32)"),
    ("(func)", "(tag)"),
    ("(memory 1)", "(func)"),
    ("(global i32)", "(func)"),
    ("(table 1 funcref)", "(memory 1)"),
    ("(tag)", "(func)"),
    ("(memory 2)", "(memory 1)"),
    ("(memory 1 2)", "(memory 1)"),
    ("(memory 1 2)", "(memory 1 3)"),
    ("(memory i64 1)", "(memory 1)"),
    ("(memory 1)", "(memory i64 1)"),
    ("(table 2 funcref)", "(table 1 funcref)"),
    ("(table 1 2 funcref)", "(table 1 funcref)"),
    ("(table 1 funcref)", "(table 1 externref)"),
    ("(table 1 externref)", "(table 1 funcref)"),
    ("(table i64 1 funcref)", "(table 1 funcref)"),
    ("(global i32)", "(global i64)"),
    ("(global i32)", "(global (mut i32))"),
    ("(global (mut i32))", "(global i32)"),
    ("(global (mut funcref))", "(global (mut externref))"),
    ("(global funcref)", "(global externref)"),
    ("(global (ref func))", "(global funcref)"),
    ("(global v128)", "(global f32)"),
    ("(tag (param i32))", "(tag)"),
];

/// The definition of an item of this type.
fn definition(ty: &str) -> String {
    let (kind, rest) = ty[1..ty.len() - 1].split_once(' ').unwrap_or((&ty[1..ty.len() - 1], ""));
    let init = match (kind, rest) {
        ("func", _) => "unreachable",
        ("global", rest) if rest.contains("funcref") => "(ref.null func)",
        ("global", rest) if rest.contains("externref") => "(ref.null extern)",
        ("global", rest) if rest.contains("i32") => "(i32.const 0)",
        ("global", rest) if rest.contains("i64") => "(i64.const 0)",
        ("global", _) => "(f32.const 0)",
        _ => "",
    };
    format!(r#"(module ({kind} (export "it") {rest} {init}))"#)
}

pub fn types(engine: &Engine, report: &mut Report) -> Result<()> {
    let mut store = Store::new(engine, ());
    for (wanted, given) in MISMATCHES {
        let module = Module::new(engine, format!(r#"(module (import "env" "it" {wanted}))"#))?;
        let provider = Instance::new(&mut store, &Module::new(engine, definition(given))?, &[])?;
        let item = provider.get_export(&mut store, "it").expect("it is exported");
        let name = format!("{wanted} is {given}");
        report.result(&name, Instance::new(&mut store, &module, std::slice::from_ref(&item)).map(drop));
        if *wanted == "(func)" {
            let mut linker: Linker<()> = Linker::new(engine);
            linker.define(&store, "env", "it", item)?;
            report.result(&format!("{name}, by a linker"), linker.instantiate(&mut store, &module).map(drop));
        }
    }
    let module = Module::new(engine, r#"(module (import "env" "it" (func (param i32) (result i32))))"#)?;
    let mut linker: Linker<()> = Linker::new(engine);
    linker.func_wrap("env", "it", |_: i64| ())?;
    report.result("a function of the linker", linker.instantiate(&mut store, &module).map(drop));
    report.result("a function of the linker, before", linker.instantiate_pre(&module).map(drop));
    let grown = Memory::new(&mut store, MemoryType::new(1, Some(5)))?;
    grown.grow(&mut store, 2)?;
    let module = Module::new(engine, r#"(module (import "env" "it" (memory 4 5)))"#)?;
    report.result("a memory that has grown too little", Instance::new(&mut store, &module, &[grown.into()]).map(drop));
    Ok(())
}

pub fn linkers(engine: &Engine, report: &mut Report) -> Result<()> {
    let mut store = Store::new(engine, ());
    let mut linker: Linker<()> = Linker::new(engine);
    linker.func_wrap("env", "f", || ())?;
    report.result("defined twice", linker.func_wrap("env", "f", || ()).map(drop));
    let module = Module::new(engine, r#"(module (func (export "f")) (func (export "_start") unreachable))"#)?;
    report.result("a module", linker.module(&mut store, "env", &module).map(drop));
    let instance = Instance::new(&mut store, &module, &[])?;
    report.result("an instance", linker.instance(&mut store, "env", instance).map(drop));
    report.result("alias of nothing", linker.alias("env", "none", "env", "g").map(drop));
    report.result("alias that exists", linker.alias("env", "f", "env", "f").map(drop));
    report.result("alias of no module", linker.alias_module("none", "other").map(drop));
    report.result("nothing of that name", linker.get(&mut store, "env", "none").map(drop));
    report.result("no default", linker.get_default(&mut store, "env").map(drop));
    report.result("no default at all", linker.get_default(&mut store, "nothing").map(drop));
    let command = Module::new(engine, r#"(module $command (func (export "_start") unreachable))"#)?;
    linker.module(&mut store, "command", &command)?;
    let start = linker.get_default(&mut store, "command")?.typed::<(), ()>(&store)?;
    report.result("a command that traps", start.call(&mut store, ()));
    let reactor = Module::new(engine, r#"(module $reactor (func $init (export "_initialize") unreachable))"#)?;
    report.result("a reactor that traps", linker.module(&mut store, "reactor", &reactor).map(drop));
    let both = Module::new(engine, r#"(module (func (export "_start")) (func (export "_initialize")))"#)?;
    report.result("a command and a reactor", linker.module(&mut store, "both", &both).map(drop));
    let wrong = Module::new(engine, r#"(module (func (export "_start") (param i32)))"#)?;
    report.result("a command with a parameter", linker.module(&mut store, "wrong", &wrong).map(drop));
    let memory = Module::new(engine, r#"(module (memory (export "_start") 1))"#)?;
    report.result("a command that is a memory", linker.module(&mut store, "memory", &memory).map(drop));
    linker.allow_shadowing(true);
    report.result("shadowed", linker.func_wrap("env", "f", || ()).map(drop));
    Ok(())
}

pub fn exports(engine: &Engine, report: &mut Report) -> Result<()> {
    let mut store = Store::new(engine, ());
    let module = Module::new(
        engine,
        r#"(module
            (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
            (func (export "refs") (param funcref externref) (result (ref func)) unreachable)
            (memory (export "memory") 1))"#,
    )?;
    let instance = Instance::new(&mut store, &module, &[])?;
    report.result("no such export", instance.get_typed_func::<(), ()>(&mut store, "none").map(drop));
    report.result("a memory", instance.get_typed_func::<(), ()>(&mut store, "memory").map(drop));
    report.result("too few parameters", instance.get_typed_func::<i32, i32>(&mut store, "add").map(drop));
    report.result("too many parameters", instance.get_typed_func::<(i32, i32, i32), i32>(&mut store, "add").map(drop));
    report.result("another parameter", instance.get_typed_func::<(i32, i64), i32>(&mut store, "add").map(drop));
    report.result("another result", instance.get_typed_func::<(i32, i32), f32>(&mut store, "add").map(drop));
    report.result("no result", instance.get_typed_func::<(i32, i32), ()>(&mut store, "add").map(drop));
    report.result("two results", instance.get_typed_func::<(i32, i32), (i32, i32)>(&mut store, "add").map(drop));
    let refs = instance.get_typed_func::<(Option<Func>, i32), Func>(&mut store, "refs");
    report.result("another reference", refs.map(drop));
    let refs = instance.get_typed_func::<(Option<Func>, Option<Rooted<ExternRef>>), i32>(&mut store, "refs");
    report.result("no reference", refs.map(drop));
    let add = instance.get_func(&mut store, "add").expect("it is exported");
    report.result("a function's type", add.typed::<(), ()>(&store).map(drop));
    Ok(())
}

pub fn arguments(engine: &Engine, report: &mut Report) -> Result<()> {
    let mut store = Store::new(engine, ());
    let module = Module::new(
        engine,
        r#"(module
            (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
            (func (export "ref") (param (ref func))))"#,
    )?;
    let instance = Instance::new(&mut store, &module, &[])?;
    let add = instance.get_func(&mut store, "add").expect("it is exported");
    let one = [Val::I32(1)];
    let two = [Val::I32(1), Val::I32(2)];
    let mut results = [Val::I32(0), Val::I32(0)];
    report.result("too few", add.call(&mut store, &one, &mut results[..1]));
    report.result("none", add.call(&mut store, &[], &mut results[..1]));
    report.result("no room for results", add.call(&mut store, &two, &mut []));
    report.result("too many results", add.call(&mut store, &two, &mut results));
    report.result("another type", add.call(&mut store, &[Val::I32(1), Val::I64(2)], &mut results[..1]));
    report.result("a reference", add.call(&mut store, &[Val::null_func_ref(), Val::I32(2)], &mut results[..1]));
    report.result("a float", add.call(&mut store, &[Val::F64(0), Val::I32(2)], &mut results[..1]));
    let reference = instance.get_func(&mut store, "ref").expect("it is exported");
    report.result("null", reference.call(&mut store, &[Val::null_func_ref()], &mut []));
    report.result("another kind of reference", reference.call(&mut store, &[Val::null_extern_ref()], &mut []));
    let engines = Engine::default();
    let other = Module::new(&engines, "(module)")?;
    report.result("a module of another engine", Instance::new(&mut store, &other, &[]).map(drop));
    let importing = Module::new(&engines, r#"(module (import "a" "b" (func)))"#)?;
    let linker: Linker<()> = Linker::new(engine);
    report.result("a module of another engine in a linker", linker.instantiate(&mut store, &importing).map(drop));
    let linker: Linker<()> = Linker::new(&engines);
    report.result("a store of another engine", linker.instantiate(&mut store, &other).map(drop));
    Ok(())
}

pub fn values(engine: &Engine, report: &mut Report) -> Result<()> {
    let mut store = Store::new(engine, ());
    let fixed = GlobalType::new(ValType::I32, Mutability::Const);
    let changed = GlobalType::new(ValType::I32, Mutability::Var);
    report.result("a global of another type", Global::new(&mut store, fixed.clone(), Val::I64(1)).map(drop));
    let global = Global::new(&mut store, fixed, Val::I32(1))?;
    report.result("an immutable global", global.set(&mut store, Val::I32(2)));
    let global = Global::new(&mut store, changed, Val::I32(1))?;
    report.result("a global set to another type", global.set(&mut store, Val::F32(2)));
    let funcs = TableType::new(RefType::FUNCREF, 2, Some(3));
    report.result("a table of another type", Table::new(&mut store, funcs.clone(), Ref::Extern(None)).map(drop));
    let table = Table::new(&mut store, funcs, Ref::Func(None))?;
    report.result("an element of another type", table.set(&mut store, 0, Ref::Extern(None)));
    report.result("an element out of bounds", table.set(&mut store, 2, Ref::Func(None)));
    report.result("growth beyond the maximum", table.grow(&mut store, 2, Ref::Func(None)));
    report.result("growth by another type", table.grow(&mut store, 1, Ref::Extern(None)));
    report.result("fill out of bounds", table.fill(&mut store, 1, Ref::Func(None), 2));
    report.result("fill with another type", table.fill(&mut store, 1, Ref::Extern(None), 1));
    report.result("copy out of bounds", Table::copy(&mut store, &table, 1, &table, 0, 2));
    let externs = Table::new(&mut store, TableType::new(RefType::EXTERNREF, 2, None), Ref::Extern(None))?;
    report.result("copy to another type", Table::copy(&mut store, &table, 0, &externs, 0, 1));
    let memory = Memory::new(&mut store, MemoryType::new(1, Some(2)))?;
    report.result("a memory beyond its maximum", memory.grow(&mut store, 2));
    report.result("a memory beyond anything", memory.grow(&mut store, u64::MAX));
    report.result("a read out of bounds", memory.read(&store, 65535, &mut [0; 2]).map_err(Error::from));
    report.result("a write out of bounds", memory.write(&mut store, 70000, &[0; 2]).map_err(Error::from));
    report.result(
        "a page size",
        MemoryTypeBuilder::default().page_size_log2(3).build().map(drop).map_err(|error| format_err!("{error}")),
    );
    report.result(
        "minimum beyond maximum",
        MemoryTypeBuilder::default().min(3).max(Some(2)).build().map(drop).map_err(|error| format_err!("{error}")),
    );
    report.result(
        "a minimum that is too large",
        MemoryTypeBuilder::default().min(1 << 17).build().map(drop).map_err(|error| format_err!("{error}")),
    );
    report.result(
        "a maximum that is too large",
        MemoryTypeBuilder::default().max(Some(1 << 17)).build().map(drop).map_err(|error| format_err!("{error}")),
    );
    Ok(())
}

/// Items and values of one store are used with another.
pub fn other_stores(engine: &Engine, report: &mut Report) -> Result<()> {
    let (mut store, mut other) = (Store::new(engine, ()), Store::new(engine, ()));
    let func = Func::wrap(&mut store, || ());
    let external = ExternRef::new(&mut store, 1u8)?;
    let items: [(&str, Extern); 4] = [
        ("(func)", func.into()),
        ("(memory 1)", Memory::new(&mut store, MemoryType::new(1, None))?.into()),
        ("(global i32)", Global::new(&mut store, GlobalType::new(ValType::I32, Mutability::Const), Val::I32(1))?.into()),
        ("(table 1 funcref)", Table::new(&mut store, TableType::new(RefType::FUNCREF, 1, None), Ref::Func(None))?.into()),
    ];
    for (text, item) in items {
        let module = Module::new(engine, format!(r#"(module (import "a" "b" {text}))"#))?;
        report.result(&format!("an import {text}"), Instance::new(&mut other, &module, std::slice::from_ref(&item)).map(drop));
        let mut linker = Linker::new(engine);
        linker.define(&store, "a", "b", item)?;
        // wasmtime panics where it compares the types of others.
        if text == "(func)" {
            report.result("a definition (func)", linker.instantiate(&mut other, &module).map(drop));
        }
        let prepared = linker.instantiate_pre(&module)?;
        report.result(&format!("a prepared definition {text}"), prepared.instantiate(&mut other).map(drop));
    }
    let module = Module::new(
        engine,
        r#"(module
            (global (export "global") (mut funcref) (ref.null func))
            (table (export "table") 2 funcref)
            (func (export "func") (param funcref))
            (func (export "extern") (param externref)))"#,
    )?;
    let instance = Instance::new(&mut other, &module, &[])?;
    let call = instance.get_func(&mut other, "func").expect("it is exported");
    report.result("an argument", call.call(&mut other, &[Val::FuncRef(Some(func))], &mut []));
    report.result("a typed argument", call.typed::<Option<Func>, ()>(&other)?.call(&mut other, Some(func)));
    let call = instance.get_func(&mut other, "extern").expect("it is exported");
    report.result("a host value", call.call(&mut other, &[Val::ExternRef(Some(external))], &mut []));
    let typed = call.typed::<Option<Rooted<ExternRef>>, ()>(&other)?;
    report.result("a typed host value", typed.call(&mut other, Some(external)));
    let global = instance.get_global(&mut other, "global").expect("it is exported");
    report.result("a global", global.set(&mut other, Val::FuncRef(Some(func))));
    let table = instance.get_table(&mut other, "table").expect("it is exported");
    report.result("an element", table.set(&mut other, 0, Ref::Func(Some(func))));
    report.result("growth of a table", table.grow(&mut other, 1, Ref::Func(Some(func))));
    let ended = {
        let mut scope = RootScope::new(&mut other);
        ExternRef::new(&mut scope, 7u8)?
    };
    report.result("a host value after its scope", ended.data(&other).map(drop));
    report.result("an argument after its scope", typed.call(&mut other, Some(ended)));
    Ok(())
}
