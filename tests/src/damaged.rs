//! Bad input: modules that were cut, flipped and spliced, and modules that declare absurd sizes. Loading, linking and
//! running any of them must end with a result or with one error that has a message.

use crate::engines;
use crate::failure::reasons;
use crate::hostile::wasm::{leb, section};
use crate::rng::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use wasm_encoder as enc;
use weir::{
    Config, Engine, Instance, InvalidModule, Linker, Module, ModuleMemoryExceeded, Store, StoreLimits, StoreLimitsBuilder, Tier,
    Val,
};

/// The last step that a module reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModuleOutcome {
    /// It is malformed or invalid.
    Refused,
    /// Its imports cannot be provided, or its memories, tables and segments cannot be made.
    Unlinked,
    /// It was instantiated, and each of its functions returned, trapped or exhausted a limit.
    Ran,
}

/// The engine for bad modules, in which every resource that the guest could exhaust is limited.
///
/// # Panics
/// If the host lacks the tier.
pub fn engine(tier: Tier) -> Engine {
    let mut config = Config::new();
    config.tier(tier).synchronous_compilation(true).consume_fuel(true);
    engines::engine(&config).expect("every tier is there under test")
}

/// Loads, links and runs a module: its start function, and every function that it exports, with zeros.
///
/// # Errors
/// A panic, or an error without a message; neither must happen.
pub fn attempt(engine: &Engine, bytes: &[u8]) -> Result<ModuleOutcome, String> {
    caught(|| run(engine, Module::from_binary(engine, bytes)))
}

/// The same with a module in the text format.
///
/// # Errors
/// Those of [`attempt`].
pub fn attempt_text(engine: &Engine, text: &str) -> Result<ModuleOutcome, String> {
    caught(|| match Module::new(engine, text) {
        // The parser's message shows a part of the text, in several lines.
        Err(error) if error.is::<wat::Error>() => match reasons(&error).trim().is_empty() {
            true => Err("text refused without a message".into()),
            false => Ok(ModuleOutcome::Refused),
        },
        module => run(engine, module),
    })
}

fn caught(attempt: impl FnOnce() -> Result<ModuleOutcome, String>) -> Result<ModuleOutcome, String> {
    match catch_unwind(AssertUnwindSafe(attempt)) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            Err(format!("panicked: {}", text.unwrap_or_default()))
        }
    }
}

/// The number of bytes that all memories of a module may have together, and of elements for its tables. A module has at
/// most a hundred memories.
const MEMORY: usize = 64 << 20;
const ELEMENTS: usize = 1 << 20;
const FUEL: u64 = 20_000;

fn run(engine: &Engine, module: weir::Result<Module>) -> Result<ModuleOutcome, String> {
    let module = match module {
        Ok(module) => module,
        Err(error) if !(error.is::<InvalidModule>() || error.is::<ModuleMemoryExceeded>()) => {
            return Err(format!("refused for another reason: {error:#}"));
        }
        Err(error) => return explained(&error, ModuleOutcome::Refused),
    };
    let limits = StoreLimitsBuilder::new().memory_size(MEMORY).table_elements(ELEMENTS).memories(8).tables(8);
    let mut store = Store::new(engine, limits.build());
    store.limiter(|limits: &mut StoreLimits| limits);
    let fuel = |store: &mut Store<StoreLimits>| store.set_fuel(FUEL).map_err(|error| error.to_string());
    fuel(&mut store)?;
    let mut linker = Linker::new(engine);
    let instance = match linker.define_unknown_imports_as_default_values(&mut store, &module) {
        Ok(()) => linker.instantiate(&mut store, &module),
        Err(error) => Err(error),
    };
    let instance = match instance {
        Ok(instance) => instance,
        Err(error) => return explained(&error, ModuleOutcome::Unlinked),
    };
    let funcs: Vec<_> = instance.exports(&store).filter_map(|export| export.into_func()).take(16).collect();
    for func in funcs {
        fuel(&mut store)?;
        let ty = func.ty(&store);
        let Some(args) = ty.params().map(|ty| Val::default_for_ty(&ty)).collect::<Option<Vec<Val>>>() else { continue };
        let mut results = vec![Val::I32(0); ty.results().len()];
        if let Err(error) = func.call(&mut store, &args, &mut results) {
            explained(&error, ModuleOutcome::Ran)?;
        }
    }
    touch(&mut store, instance);
    Ok(ModuleOutcome::Ran)
}

/// Writes the last byte of every exported memory.
fn touch(store: &mut Store<StoreLimits>, instance: Instance) {
    let memories: Vec<_> = instance.exports(&*store).filter_map(|export| export.into_memory()).collect();
    for memory in memories {
        if let Some(byte) = memory.data_mut(&mut *store).last_mut() {
            *byte = 1;
        }
    }
}

/// Checks that an error has a message, of one line.
fn explained(error: &weir::Error, outcome: ModuleOutcome) -> Result<ModuleOutcome, String> {
    let message = reasons(error);
    match message.trim().is_empty() || message.contains('\n') {
        true => Err(format!("an unclear message: {message:?}")),
        false => Ok(outcome),
    }
}

/// A module with one to four changes to its bytes.
pub fn damage(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    /// Bytes that are likely to be a count, a length or an opcode.
    const BYTES: [u8; 12] = [0, 1, 2, 0x0B, 0x0E, 0x3F, 0x40, 0x7F, 0x80, 0xFC, 0xFD, 0xFF];
    let mut bytes = bytes.to_vec();
    for _ in 0..=rng.below(4) {
        if bytes.is_empty() {
            break;
        }
        let len = bytes.len() as u32;
        let at = rng.below(len) as usize;
        let span = at..(at + 1 + rng.below(16) as usize).min(bytes.len());
        match rng.below(7) {
            0 => bytes.truncate(at),
            1 | 2 => bytes[at] ^= 1 << rng.below(8),
            3 => bytes[at] = *rng.pick(&BYTES),
            // The largest LEB128 number, where a number may be expected.
            4 => drop(bytes.splice(at..at, [0xFF, 0xFF, 0xFF, 0xFF, 0x0F])),
            5 => drop(bytes.drain(span)),
            _ => {
                let copied = bytes[span].to_vec();
                let to = rng.below(len) as usize;
                drop(bytes.splice(to..to, copied));
            }
        }
    }
    bytes
}

/// Modules with absurd sizes, with names.
pub fn hostile() -> Vec<(String, Vec<u8>)> {
    let mut modules = Vec::new();
    // A section of each kind that claims the largest possible number of entries, and has none or a few bytes.
    for section in 1..=13u8 {
        for rest in [&[][..], &[0; 64]] {
            let contents = [&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F], rest].concat();
            modules.push((
                format!("section {section} with 2³² - 1 entries in {} bytes", rest.len()),
                with_section(section, &contents),
            ));
        }
    }
    modules.push(("a section longer than the file".into(), [HEADER, &[1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]].concat()));
    modules.push(("a million types".into(), with_section(1, &[leb(1_000_000), [0x60, 0, 0].repeat(1_000_000)].concat())));
    modules.push(("more types than allowed".into(), with_section(1, &[leb(1_000_001), [0x60, 0, 0].repeat(1_000_001)].concat())));
    modules.push(("a million functions".into(), functions(1_000_000)));
    for (name, memory64, min, max) in [
        ("4 GiB of memory", false, 1 << 16, None),
        ("4 GiB of memory and a page", false, (1 << 16) + 1, None),
        ("a memory of 2⁶⁴ bytes", true, 1 << 48, None),
        ("a memory that may grow to 2⁶⁴ bytes", true, 1, Some(1 << 48)),
    ] {
        modules.push((name.into(), memory(memory64, min, max)));
    }
    for (name, table64, min) in [("a table of 2³² - 1 elements", false, u32::MAX.into()), ("a table of 2⁶⁴ - 1", true, u64::MAX)]
    {
        modules.push((name.into(), table(table64, min)));
    }
    for depth in [1_000, 100_000, 3_000_000] {
        modules.push((format!("{depth} nested blocks"), body(&[], &nested(0x02, depth))));
        modules.push((format!("{depth} nested loops"), body(&[], &nested(0x03, depth))));
    }
    modules.push((
        "50,000 nested conditions".into(),
        body(&[], &[[0x41, 0, 0x04, 0x40].repeat(50_000), vec![0x0B; 50_000]].concat()),
    ));
    for labels in [65_000, 3_000_000, u32::MAX] {
        let encoded = if labels == u32::MAX { Vec::new() } else { vec![0; labels as usize + 1] };
        modules.push((
            format!("br_table with {labels} labels"),
            body(&[], &[vec![0x41, 7, 0x0E], leb(labels as usize), encoded].concat()),
        ));
    }
    modules.push(("50,000 locals and recursion".into(), body(&[(50_000, enc::ValType::I64)], &[0x10, 0])));
    modules.push(("2³² - 1 locals".into(), body(&[(u32::MAX, enc::ValType::I64)], &[])));
    modules.push(("1,000 parameters and results".into(), many_params()));
    modules.push(("a long function".into(), body(&[(1, enc::ValType::I32)], &[0x20, 0, 0x41, 1, 0x6A, 0x21, 0].repeat(100_000))));
    modules.push(("a deep expression".into(), body(&[], &[[0x41, 1].repeat(100_000), vec![0x6A; 99_999], vec![0x1A]].concat())));
    modules.push(("a large data segment".into(), data(16 << 20)));
    modules
}

const HEADER: &[u8] = b"\0asm\x01\0\0\0";

fn with_section(id: u8, contents: &[u8]) -> Vec<u8> {
    [HEADER, &section(id, contents)].concat()
}

fn nested(opcode: u8, depth: usize) -> Vec<u8> {
    [[opcode, 0x40].repeat(depth), vec![0x0B; depth]].concat()
}

/// A module of `count` empty functions, of which the first is exported.
fn functions(count: u32) -> Vec<u8> {
    let types = with_section(1, &[1, 0x60, 0, 0]);
    let funcs = with_section(3, &[leb(count as usize), vec![0; count as usize]].concat());
    let exports = with_section(7, &[1, 1, b'f', 0, 0]);
    let code = with_section(10, &[leb(count as usize), [2, 0, 0x0B].repeat(count as usize)].concat());
    [&types, &funcs[8..], &exports[8..], &code[8..]].concat()
}

/// A module with an exported function that has this body and no parameters or results.
fn body(locals: &[(u32, enc::ValType)], code: &[u8]) -> Vec<u8> {
    let mut body = enc::Function::new(locals.iter().copied());
    body.raw(code.iter().copied()).instructions().end();
    module_of(&[], &[], body)
}

fn many_params() -> Vec<u8> {
    let types = [enc::ValType::I64; 1000];
    let mut body = enc::Function::new([]);
    for i in (0..1000).rev() {
        body.instructions().local_get(i);
    }
    body.instructions().end();
    module_of(&types, &types, body)
}

fn module_of(params: &[enc::ValType], results: &[enc::ValType], body: enc::Function) -> Vec<u8> {
    let mut types = enc::TypeSection::new();
    types.ty().function(params.iter().copied(), results.iter().copied());
    let mut funcs = enc::FunctionSection::new();
    funcs.function(0);
    let mut exports = enc::ExportSection::new();
    exports.export("f", enc::ExportKind::Func, 0);
    let mut code = enc::CodeSection::new();
    code.function(&body);
    let mut module = enc::Module::new();
    module.section(&types).section(&funcs).section(&exports).section(&code);
    module.finish()
}

fn memory(memory64: bool, minimum: u64, maximum: Option<u64>) -> Vec<u8> {
    let mut memories = enc::MemorySection::new();
    memories.memory(enc::MemoryType { minimum, maximum, memory64, shared: false, page_size_log2: None });
    let mut exports = enc::ExportSection::new();
    exports.export("m", enc::ExportKind::Memory, 0);
    let mut module = enc::Module::new();
    module.section(&memories).section(&exports);
    module.finish()
}

fn table(table64: bool, minimum: u64) -> Vec<u8> {
    let mut tables = enc::TableSection::new();
    tables.table(enc::TableType { element_type: enc::RefType::FUNCREF, table64, minimum, maximum: None, shared: false });
    let mut module = enc::Module::new();
    module.section(&tables);
    module.finish()
}

fn data(len: usize) -> Vec<u8> {
    let mut memories = enc::MemorySection::new();
    memories.memory(enc::MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
    let mut data = enc::DataSection::new();
    data.active(0, &enc::ConstExpr::i32_const(0), vec![7; len]);
    let mut module = enc::Module::new();
    module.section(&memories).section(&data);
    module.finish()
}
