//! Modules of wasm-smith that throw and catch.

use crate::guards::guard;
use crate::rng::Rng;
use arbitrary::Unstructured;
use std::convert::Infallible;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{CodeSection, ConstExpr, ExportKind, ExportSection, GlobalSection, GlobalType, ValType};
use wasm_smith::{Config, InstructionKind, InstructionKinds, Module};
use wasmparser::{ExportSectionReader, FunctionBody, GlobalSectionReader, Operator, Parser, Payload, TypeRef};

/// The number of bytes from which a module is made: enough for a few hundred instructions.
const SEED_BYTES: usize = 6000;
/// The number of loop iterations and calls that a module may execute.
const TERMINATION_FUEL: u32 = 1000;
/// The exported global that counts in a module of [`counting`].
pub const THROWS: &str = "throws counted";

/// What a module may import; `run.rs` defines it. `again` is the same tag as `number`, and `other` is not.
const IMPORTS: &str = r#"(module
    (import "host" "empty" (tag))
    (import "host" "number" (tag (param i32)))
    (import "host" "again" (tag (param i32)))
    (import "host" "other" (tag (param i32)))
    (import "host" "numbers" (tag (param i64 f64)))
    (import "host" "value" (tag (param externref)))
    (import "host" "throw empty" (func))
    (import "host" "throw number" (func (param i32) (result i32)))
    (import "host" "throw numbers" (func (param i64 f64)))
    (import "host" "throw value" (func (param externref) (result externref)))
    (import "host" "throw" (func (param exnref)))
    (import "host" "make value" (func (result externref)))
    (import "host" "collect" (func)))"#;

/// Returns the module for this seed, or `None` if wasm-smith makes none. Half of the modules have imports, and three quarters have throws and
/// handlers of [`guard`].
pub fn module(seed: u64) -> Option<Vec<u8>> {
    let mut rng = Rng::new(seed);
    let bytes: Vec<u8> = (0..SEED_BYTES).map(|_| rng.bits() as u8).collect();
    let imports = rng.one_in(2);
    // Fewer kinds of instructions for most modules, so that more of the instructions throw and catch.
    let kinds = match rng.one_in(4) {
        true => InstructionKinds::all(),
        false => InstructionKinds::new(&[
            InstructionKind::Control,
            InstructionKind::NumericInt,
            InstructionKind::Reference,
            InstructionKind::Table,
            InstructionKind::Variable,
        ]),
    };
    let config = Config {
        allow_start_export: false,
        allowed_instructions: kinds,
        available_imports: imports.then(|| wat::parse_str(IMPORTS).expect("a valid module")),
        canonicalize_nans: true,
        // wasmtime has no encoding of several imports of one module in one entry.
        compact_imports_enabled: false,
        disallow_traps: !rng.one_in(4),
        exceptions_enabled: true,
        export_everything: true,
        gc_enabled: false,
        max_funcs: 8,
        max_imports: if imports { 13 } else { 0 },
        max_memories: 2,
        max_memory32_bytes: 4 << 16,
        max_memory64_bytes: 4 << 16,
        max_tables: 3,
        max_table_elements: 100,
        max_tags: 12,
        max_types: 6,
        max_values: 4,
        memory64_enabled: true,
        min_funcs: 3,
        min_imports: if imports { 8 } else { 0 },
        min_tags: 3,
        // An implementation may choose the results of these.
        relaxed_simd_enabled: false,
        shared_everything_threads_enabled: false,
        tail_call_enabled: true,
        threads_enabled: false,
        wide_arithmetic_enabled: true,
        ..Config::default()
    };
    let mut module = Module::new(config, &mut Unstructured::new(&bytes)).ok()?;
    let fuel = module.ensure_termination(TERMINATION_FUEL).ok()?;
    let wasm = module.to_bytes();
    Some(match rng.one_in(4) {
        true => wasm,
        false => guard(&wasm, fuel, &mut rng).expect("a module of wasm-smith"),
    })
}

/// Returns the same module with an exported global, [`THROWS`], to which each `throw` and `throw_ref` adds 1.
///
/// # Errors
/// A module that cannot be read.
pub fn counting(wasm: &[u8]) -> Result<Vec<u8>, String> {
    let mut counter = Counter { global: globals(wasm)? };
    let mut module = wasm_encoder::Module::new();
    counter.parse_core_module(&mut module, Parser::new(0), wasm).map_err(|error| error.to_string())?;
    Ok(module.finish())
}

/// The number of globals, imported ones included.
fn globals(wasm: &[u8]) -> Result<u32, String> {
    let mut count = 0;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(|error| error.to_string())? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.map_err(|error| error.to_string())?;
                    count += u32::from(matches!(import.ty, TypeRef::Global(_)));
                }
            }
            Payload::GlobalSection(section) => count += section.count(),
            _ => (),
        }
    }
    Ok(count)
}

/// The index of the global that counts.
struct Counter {
    global: u32,
}

impl Reencode for Counter {
    type Error = Infallible;

    /// There is such a section, because the module counts its iterations and calls in a global.
    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: GlobalSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_global_section(self, globals, section)?;
        globals.global(GlobalType { val_type: ValType::I64, mutable: true, shared: false }, &ConstExpr::i64_const(0));
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: ExportSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_export_section(self, exports, section)?;
        exports.export(THROWS, ExportKind::Global, self.global);
        Ok(())
    }

    fn parse_function_body(&mut self, code: &mut CodeSection, body: FunctionBody<'_>) -> Result<(), Error<Infallible>> {
        let mut function = self.new_function_with_parsed_locals(&body)?;
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            let throws = matches!(reader.clone().read()?, Operator::Throw { .. } | Operator::ThrowRef);
            if throws {
                function.instructions().global_get(self.global).i64_const(1).i64_add().global_set(self.global);
            }
            function.instruction(&self.parse_instruction(&mut reader)?);
        }
        code.function(&function);
        Ok(())
    }
}
