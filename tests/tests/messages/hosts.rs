//! Errors of host functions.

use super::report::Report;
use crate::wasmtime;
use std::fmt;
use wasmtime::error::Context;
use wasmtime::*;

const MODULE: &str = r#"(module $guest
    (import "host" "fail" (func $fail (param i32) (result i32)))
    (func $inner (param i32) (result i32) (i32.add (i32.const 1) (call $fail (local.get 0))))
    (func $outer (export "run") (param i32) (result i32) (call $inner (local.get 0))))"#;

#[derive(Debug)]
struct Lost {
    cause: std::num::ParseIntError,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the number is lost")
    }
}

impl std::error::Error for Lost {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

fn lost() -> Lost {
    Lost { cause: "x".parse::<u32>().unwrap_err() }
}

/// An error of a host function: its title, and the function that makes it.
type Made = (&'static str, fn() -> Error);

/// The errors that host functions return, by number.
const ERRORS: &[Made] = &[
    ("a message", || Error::msg("no luck")),
    ("a formatted message", || format_err!("{} of {}", 1, 2)),
    ("an error", || Error::new(fmt::Error)),
    ("an error with a source", || lost().into()),
    ("an error with contexts", || Error::new(lost()).context("inner").context("outer")),
    ("a trap", || Trap::IntegerOverflow.into()),
    ("a trap with a context", || Error::from(Trap::IntegerOverflow).context("computing")),
    ("an error of anyhow", || Error::from_anyhow(wasmtime::anyhow::anyhow!("any").context("how"))),
    ("a boxed error", || Error::from_boxed("boxed".into())),
    ("two lines", || format_err!("first\nsecond").context("above\nbelow")),
];

pub fn errors(engine: &Engine, report: &mut Report) -> Result<()> {
    let mut linker: Linker<()> = Linker::new(engine);
    linker.func_wrap("host", "fail", |n: i32| -> Result<i32> { Err(ERRORS[n as usize].1()) })?;
    let mut store = Store::new(engine, ());
    let instance = linker.instantiate(&mut store, &Module::new(engine, MODULE)?)?;
    let run = instance.get_typed_func::<i32, i32>(&mut store, "run")?;
    for (i, (name, _)) in ERRORS.iter().enumerate() {
        report.result(name, run.call(&mut store, i as i32));
    }
    let outside = run.call(&mut store, 4).context("calling the guest").context("in the host");
    report.result("with contexts of the caller", outside);
    let host = linker.get(&mut store, "host", "fail")?.into_func().expect("it is defined");
    report.result("without a guest", host.typed::<i32, i32>(&store)?.call(&mut store, 6));
    let ty = FuncType::new(engine, [ValType::I32], [ValType::I32]);
    let wrong = Func::new(&mut store, ty, |_, _, results| {
        results[0] = Val::I64(1);
        Ok(())
    });
    let instance = Instance::new(&mut store, &Module::new(engine, MODULE)?, &[wrong.into()])?;
    report.result("a result of the wrong type", instance.get_typed_func::<i32, i32>(&mut store, "run")?.call(&mut store, 0));
    Ok(())
}

/// A guest calls the host, which calls the guest, and so on.
pub fn nested(engine: &Engine, report: &mut Report) -> Result<()> {
    let mut linker: Linker<Vec<&'static str>> = Linker::new(engine);
    linker.func_wrap("host", "fail", |mut caller: Caller<'_, Vec<&'static str>>, n: i32| -> Result<i32> {
        if n == 0 {
            return Err(lost().into());
        }
        let run = caller.get_export("run").and_then(Extern::into_func).expect("it is exported");
        let run = run.typed::<i32, i32>(&caller)?;
        match n {
            1 => run.call(&mut caller, 0).context("calling again"),
            2 => run.call(&mut caller, 1),
            _ => {
                let error = run.call(&mut caller, 1).unwrap_err();
                Err(format_err!("instead of {} links", error.chain().count()))
            }
        }
    })?;
    let mut store = Store::new(engine, Vec::new());
    let instance = linker.instantiate(&mut store, &Module::new(engine, MODULE)?)?;
    let run = instance.get_typed_func::<i32, i32>(&mut store, "run")?;
    for (i, name) in ["one guest", "two guests", "three guests", "another error"].iter().enumerate() {
        report.result(name, run.call(&mut store, i as i32));
    }

    let module = Module::new(engine, r#"(module $other (func $trap unreachable) (func $go (export "go") (call $trap)))"#)?;
    let mut linker: Linker<()> = Linker::new(engine);
    linker.func_wrap("host", "fail", move |caller: Caller<'_, ()>, n: i32| -> Result<i32> {
        let mut other = Store::new(caller.engine(), ());
        let instance = Instance::new(&mut other, &module, &[])?;
        let result = instance.get_typed_func::<(), ()>(&mut other, "go")?.call(&mut other, ());
        match n {
            0 => result?,
            _ => result.context("in another store").context("twice")?,
        }
        Ok(0)
    })?;
    let mut store = Store::new(engine, ());
    let instance = linker.instantiate(&mut store, &Module::new(engine, MODULE)?)?;
    let run = instance.get_typed_func::<i32, i32>(&mut store, "run")?;
    report.result("a trap in another store", run.call(&mut store, 0));
    report.result("a trap in another store, with contexts", run.call(&mut store, 1));
    Ok(())
}

/// Errors that no guest has seen.
pub fn own(_: &Engine, report: &mut Report) -> Result<()> {
    for (name, error) in ERRORS {
        report.error(name, &error());
    }
    let failed: Result<u32> = "x".parse::<u32>().context("reading the limit");
    report.result("context of a result", failed);
    report.result("context of an option", None::<u32>.context("nothing there"));
    report.result("context of an option, twice", None::<u32>.context("nothing there").with_context(|| format!("in {}", "it")));
    let checked = || -> Result<()> {
        ensure!(1 + 1 == 3, "{} is not 3", 1 + 1);
        Ok(())
    };
    report.result("ensure", checked());
    let bare = || -> Result<()> {
        ensure!(1 + 1 == 3);
        Ok(())
    };
    report.result("ensure without a message", bare());
    for error in [Error::new(lost()).context("inner").context("outer"), Trap::IntegerOverflow.into()] {
        let boxed: Box<dyn std::error::Error + Send + Sync> = error.into();
        report.line(&format!("boxed: {boxed} / {boxed:?} / {}", boxed.source().map(|s| s.to_string()).unwrap_or_default()));
    }
    for (name, error) in ERRORS {
        let error = wasmtime::anyhow::Error::from(error());
        let links: Vec<String> = error.chain().map(|link| link.to_string()).collect();
        report.line(&format!("{name} in anyhow: {error:#} / {links:?} / {}", error.is::<Trap>()));
    }
    report.line("");
    Ok(())
}

/// Dynamic functions of the host that leave a result as it was.
pub fn unset_results(engine: &Engine, report: &mut Report) -> Result<()> {
    let mut store = Store::new(engine, ());
    for (name, ty) in [
        ("an i32", ValType::I32),
        ("an f64", ValType::F64),
        ("a host value", ValType::EXTERNREF),
        ("a function", ValType::FUNCREF),
    ] {
        let func = Func::new(&mut store, FuncType::new(engine, [], [ty]), |_, _, _| Ok(()));
        report.result(name, func.call(&mut store, &[], &mut [Val::I32(1)]));
    }
    Ok(())
}
