//! OpenCascade, a kernel for solids in C++: 157,396 regions with handlers. Calls its exports as `tests/real/occt.script` says, and
//! compares each result and error with those that `programs/exceptions/occt.mjs` printed.
//!
//! `programs/fetch.py occt` fetches it, and `cargo test --release -p weir-tests --test occt -- --ignored` runs it.

use std::fs;
use std::path::{Path, PathBuf};
use weir::{Config, Instance, Linker, Memory, Module, Store, Tier, Val, ValType};
use weir_tests::engines::engine;
use weir_wasi::WasiCtx;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// As much stack as the guest may use, and additional stack for the host.
const GUEST_STACK: usize = 8 << 20;
const HOST_STACK: usize = 4 << 20;

/// An instance, and the results of the calls so far.
struct Kernel {
    store: Store<WasiCtx>,
    instance: Instance,
    memory: Memory,
    results: Vec<Val>,
}

impl Kernel {
    fn new(config: &Config) -> weir::Result<Kernel> {
        let path = root().join("programs/real/occt.wasm");
        assert!(path.exists(), "occt is missing: run programs/fetch.py occt");
        let engine = engine(config)?;
        let module = Module::from_file(&engine, path)?;
        let mut store = Store::new(&engine, WasiCtx::builder().build());
        let mut linker = Linker::new(&engine);
        weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx| ctx)?;
        linker.define_unknown_imports_as_default_values(&mut store, &module)?;
        let instance = linker.instantiate(&mut store, &module)?;
        let memory = instance.get_memory(&mut store, "memory").expect("a memory");
        let mut kernel = Kernel { store, instance, memory, results: Vec::new() };
        kernel.call("_initialize", &[])?;
        kernel.call("occt_init", &[])?;
        Ok(kernel)
    }

    /// Calls an export, and returns its result, or zero if it has none.
    fn call(&mut self, name: &str, args: &[Val]) -> weir::Result<Val> {
        let func = self.instance.get_func(&mut self.store, name).unwrap_or_else(|| panic!("no function {name}"));
        let mut results = vec![Val::I32(0); func.ty(&self.store).results().len()];
        func.call(&mut self.store, args, &mut results)?;
        Ok(results.pop().unwrap_or(Val::I32(0)))
    }

    fn int(&mut self, name: &str, args: &[Val]) -> weir::Result<i32> {
        Ok(self.call(name, args)?.i32().expect("an i32"))
    }

    /// Address and length of a copy of these bytes in the guest's memory.
    fn copy(&mut self, bytes: &[u8]) -> weir::Result<i32> {
        let at = self.int("occt_alloc", &[Val::I32(bytes.len() as i32)])?;
        self.memory.write(&mut self.store, at as usize, bytes)?;
        Ok(at)
    }

    /// The arguments that a word of the script stands for.
    fn arguments(&mut self, word: &str) -> weir::Result<Vec<Val>> {
        if let Some(text) = word.strip_prefix('"') {
            let text = text.trim_end_matches('"');
            return Ok(vec![Val::I32(self.copy(text.as_bytes())?), Val::I32(text.len() as i32)]);
        }
        if let Some(list) = word.strip_prefix('[') {
            let numbers = list.trim_end_matches(']').split(',').filter(|number| !number.is_empty());
            let numbers: Vec<u8> = numbers.flat_map(|n| n.parse::<u32>().expect("a number").to_le_bytes()).collect();
            return Ok(vec![Val::I32(self.copy(&numbers)?), Val::I32(numbers.len() as i32 / 4)]);
        }
        if let Some(line) = word.strip_prefix('$') {
            return Ok(vec![self.results[line.parse::<usize>().expect("a line") - 1]]);
        }
        Ok(vec![Val::F64(word.parse::<f64>().expect("a number").to_bits())])
    }

    /// The line with its result, and the error that is pending, if there is one.
    fn line(&mut self, line: &str) -> weir::Result<String> {
        let mut words = words(line).into_iter();
        let name = words.next().expect("a name");
        let func = self.instance.get_func(&mut self.store, name).unwrap_or_else(|| panic!("no function {name}"));
        let types: Vec<ValType> = func.ty(&self.store).params().collect();
        let mut args = Vec::new();
        for word in words {
            args.extend(self.arguments(word)?);
        }
        // A number in the script has the type of its parameter.
        for (arg, ty) in args.iter_mut().zip(types) {
            if let (Val::F64(bits), ValType::I32) = (*arg, ty) {
                *arg = Val::I32(f64::from_bits(bits) as i32);
            }
        }
        let result = self.call(name, &args)?;
        self.results.push(result);
        let shown = match result {
            Val::F64(bits) => f64::from_bits(bits).to_string(),
            other => other.i32().expect("an i32").to_string(),
        };
        let mut shown = format!("{line} = {shown}");
        if self.int("occt_has_error", &[])? != 0 {
            let (at, len) = (self.int("occt_get_error", &[])? as usize, self.int("occt_get_error_len", &[])? as usize);
            shown += " ";
            shown += &String::from_utf8_lossy(&self.memory.data(&self.store)[at..at + len]);
        }
        Ok(shown)
    }
}

/// The words of a line; a text in quotes is one word.
fn words(line: &str) -> Vec<&str> {
    let mut quoted = false;
    let apart = |c: char| {
        quoted ^= c == '"';
        c == ' ' && !quoted
    };
    line.split(apart).collect()
}

/// Executes the script on a thread with enough stack, and returns what it gives.
fn run(config: &Config) -> String {
    let mut config = config.clone();
    config.max_wasm_stack(GUEST_STACK).value_stack_size(64 << 20);
    let script = fs::read_to_string(root().join("tests/real/occt.script")).expect("the script");
    let work = move || -> weir::Result<String> {
        let mut kernel = Kernel::new(&config)?;
        let lines = script.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| Ok(kernel.line(line)? + "\n")).collect()
    };
    let thread = std::thread::Builder::new().stack_size(GUEST_STACK + HOST_STACK).spawn(work).expect("a thread");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).unwrap_or_else(|error| panic!("{error:?}"))
}

#[test]
#[ignore = "needs programs/fetch.py occt"]
fn solids() {
    let expected = fs::read_to_string(root().join("tests/real/occt.txt")).expect("what is expected");
    for tier in [Tier::Auto, Tier::Baseline, Tier::Native, Tier::Interpreter] {
        assert_eq!(run(Config::new().tier(tier)), expected, "{tier:?}");
    }
    assert_eq!(run(Config::new().stress(Some(1))), expected, "under stress");
    assert_eq!(run(Config::new().gc_stress(true)), expected, "while everything moves");
}
