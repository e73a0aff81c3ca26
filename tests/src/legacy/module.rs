//! The module around the bodies.

use super::body;
use super::shape::{CALLS, FUEL, FUNCS, MIX, TAGS, TRACE};
use crate::rng::Rng;
use wasm_encoder as enc;
use wasm_encoder::ValType;

/// The module for this seed.
pub fn module(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut types = enc::TypeSection::new();
    types.ty().function([ValType::I32; 2], [ValType::I32]);
    types.ty().function([ValType::I32], []);
    for tag in TAGS {
        types.ty().function(tag.iter().copied(), []);
    }
    let tag_type = |tag: usize| enc::TagType { kind: enc::TagKind::Exception, func_type_idx: 2 + tag as u32 };
    let mut imports = enc::ImportSection::new();
    imports.import("host", "tag", tag_type(0)).import("host", "call", enc::EntityType::Function(0));
    let mut tags = enc::TagSection::new();
    (1..TAGS.len()).for_each(|tag| _ = tags.tag(tag_type(tag)));

    let (mut funcs, mut code, mut exports) = (enc::FunctionSection::new(), enc::CodeSection::new(), enc::ExportSection::new());
    funcs.function(1);
    code.function(&mix());
    for func in 0..FUNCS {
        funcs.function(0);
        code.function(&body::generate(&mut rng));
        exports.export(&format!("f{func}"), enc::ExportKind::Func, MIX + 1 + func);
    }
    (0..TAGS.len()).for_each(|tag| _ = exports.export(&format!("t{tag}"), enc::ExportKind::Tag, tag as u32));
    exports.export("trace", enc::ExportKind::Global, TRACE).export("fuel", enc::ExportKind::Global, FUEL);

    let mut tables = enc::TableSection::new();
    tables.table(enc::TableType {
        element_type: enc::RefType::FUNCREF,
        table64: false,
        minimum: FUNCS.into(),
        maximum: None,
        shared: false,
    });
    let mut elements = enc::ElementSection::new();
    let all: Vec<u32> = (0..FUNCS).map(|func| MIX + 1 + func).collect();
    elements.active(None, &enc::ConstExpr::i32_const(0), enc::Elements::Functions(all.into()));
    let mut globals = enc::GlobalSection::new();
    let mutable = |val_type| enc::GlobalType { val_type, mutable: true, shared: false };
    globals.global(mutable(ValType::I64), &enc::ConstExpr::i64_const(0));
    globals.global(mutable(ValType::I32), &enc::ConstExpr::i32_const(CALLS));

    let mut module = enc::Module::new();
    module.section(&types).section(&imports).section(&funcs).section(&tables).section(&tags).section(&globals);
    module.section(&exports).section(&elements).section(&code);
    module.finish()
}

/// trace = (trace xor x) * a prime.
fn mix() -> enc::Function {
    let mut code = enc::Function::new([]);
    let mut sink = code.instructions();
    sink.global_get(TRACE)
        .local_get(0)
        .i64_extend_i32_u()
        .i64_xor()
        .i64_const(0x0100_0000_01b3)
        .i64_mul()
        .global_set(TRACE)
        .end();
    code
}
