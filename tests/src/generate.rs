//! Random WebAssembly programs that always terminate, for comparing engines.
//!
//! Every program has loops, calls of all kinds and memory traffic. Programs should *run* and not trap early: divisors,
//! addresses, table indices and floats to be truncated are kept in range most of the time. Loops count down locals.
//! Every call takes from a fuel global and returns at once when it is empty; `reset` fills it again.
//!
//! Results must agree bit for bit, but the specification does not determine which NaN an operation returns. Wherever
//! the bits of a float could affect another value (stores, reinterpretations, the sign in `copysign`), NaNs are
//! therefore replaced by the canonical one first. Floats that are returned or left in a global may be any NaN: compare
//! them with [`Value::same`]. In vectors, NaNs are always canonical.
//!
//! Half of the programs have vectors, in most of their functions. A quarter have typed function references and relaxed
//! instructions, which wasmi lacks or may execute differently.

mod body;
mod shape;
mod switching;
mod throwing;
mod value;

pub use switching::switching;
pub use throwing::throwing;
pub use value::Value;

use crate::rng::Rng;
use shape::{FUEL_GLOBAL, PASSIVE_DATA, PASSIVE_ELEMS, SMALL_TABLE, Shape, encoder_type, types};
use std::borrow::Cow;
use wasm_encoder as enc;
use weir_bytecode::types::{FuncType, ValType};

/// A program, and the calls to make.
#[derive(Debug)]
pub struct Program {
    /// The module. It exports each function as `f0`, `f1`, …, the globals as `g0`, …, the memory as `mem`, and `reset`, which
    /// must be called before each of the `calls`.
    pub wasm: Vec<u8>,
    /// Types of the functions `f0`, ….
    pub funcs: Vec<FuncType>,
    /// Types of the globals `g0`, ….
    pub globals: Vec<ValType>,
    /// The calls to make of one instance, in this order.
    pub calls: Vec<Call>,
    /// Whether it has instructions that wasmi lacks or may execute differently.
    pub beyond_wasmi: bool,
}

impl Program {
    /// A program for a module with these exports, with random arguments for the calls.
    pub fn new(wasm: Vec<u8>, funcs: Vec<FuncType>, globals: Vec<ValType>, rng: &mut Rng) -> Program {
        let mut calls = Vec::new();
        for _ in 0..3 {
            for (func, ty) in (0..).zip(&funcs) {
                let args = ty.params.iter().map(|&ty| Value::random(ty, rng)).collect();
                calls.push(Call { func, args });
            }
        }
        Program { wasm, funcs, globals, calls, beyond_wasmi: false }
    }
}

/// A call of an exported function.
#[derive(Clone, Debug)]
pub struct Call {
    /// Function `f<index>`.
    pub func: u32,
    /// The arguments, one for each parameter.
    pub args: Vec<Value>,
}

/// The program for `seed`.
pub fn generate(seed: u64) -> Program {
    generate_with(&mut Rng::new(seed))
}

/// The program for these random numbers.
pub fn generate_with(rng: &mut Rng) -> Program {
    let mut shape = shape(rng);
    let code: Vec<enc::Function> = (0..shape.funcs.len()).map(|func| body::generate(&mut shape, rng, func)).collect();
    let wasm = assemble(&shape, rng, &code);
    let funcs: Vec<FuncType> = shape.funcs.iter().map(|&ty| shape.types[ty as usize].clone()).collect();
    let globals = shape.globals.iter().map(|(ty, _)| *ty).collect();
    Program { beyond_wasmi: shape.beyond_wasmi, ..Program::new(wasm, funcs, globals, rng) }
}

fn random_types(rng: &mut Rng, types: &[ValType], len: u32) -> Box<[ValType]> {
    // Sequences of one kind of register fill the registers of a calling convention.
    let kind = rng.below(4);
    let ty = |rng: &mut Rng| match kind {
        0 => *rng.pick(&types[..2]),
        1 => *rng.pick(&types[2..]),
        _ => *rng.pick(types),
    };
    (0..len).map(|_| ty(rng)).collect()
}

fn shape(rng: &mut Rng) -> Shape {
    let (vectors, beyond_wasmi) = (rng.one_in(2), rng.one_in(4));
    let of = types(vectors);
    // There are few different result lists, so that tail calls find targets.
    let results: Vec<Box<[ValType]>> = (0..2 + rng.below(2))
        .map(|_| {
            let len = *rng.pick(&[0, 1, 1, 1, 1, 2, 3, 12]);
            random_types(rng, of, len)
        })
        .collect();
    let mut types: Vec<FuncType> = Vec::new();
    for _ in 0..3 + rng.below(4) {
        let len = if rng.one_in(5) { 5 + rng.below(8) } else { rng.below(5) };
        let ty = FuncType { params: random_types(rng, of, len), results: rng.pick(&results).clone() };
        if !types.contains(&ty) {
            types.push(ty);
        }
    }
    let funcs: Vec<u32> = (0..3 + rng.below(5)).map(|_| rng.below(types.len() as u32)).collect();
    let each = of.len();
    let globals = (0..each + rng.below(6) as usize).map(|i| (of[i % each], i < each || rng.percent(70))).collect();
    let table = 8 << rng.below(2);
    let elements = (0..table - rng.below(3)).map(|_| rng.below(funcs.len() as u32)).collect();
    let max_trips = if rng.one_in(16) { 1000 } else { 30 };
    Shape { types, funcs, globals, table, elements, max_trips, vectors, beyond_wasmi }
}

fn constant(value: Value) -> enc::ConstExpr {
    match value {
        Value::I32(x) => enc::ConstExpr::i32_const(x),
        Value::I64(x) => enc::ConstExpr::i64_const(x),
        Value::F32(x) => enc::ConstExpr::f32_const(enc::Ieee32::new(x)),
        Value::F64(x) => enc::ConstExpr::f64_const(enc::Ieee64::new(x)),
        Value::V128(x) => enc::ConstExpr::v128_const(x as i128),
    }
}

/// Builds the module around its bodies.
fn assemble(shape: &Shape, rng: &mut Rng, code: &[enc::Function]) -> Vec<u8> {
    let mut types = enc::TypeSection::new();
    for ty in &shape.types {
        types.ty().function(ty.params.iter().copied().map(encoder_type), ty.results.iter().copied().map(encoder_type));
    }
    let reset_type = types.len();
    types.ty().function([], []);
    let mut funcs = enc::FunctionSection::new();
    for &ty in &shape.funcs {
        funcs.function(ty);
    }
    let reset = funcs.len();
    funcs.function(reset_type);

    let mut tables = enc::TableSection::new();
    for (minimum, maximum) in [(shape.table, shape.table + 4), (SMALL_TABLE, SMALL_TABLE)] {
        tables.table(enc::TableType {
            element_type: enc::RefType::FUNCREF,
            table64: false,
            minimum: minimum.into(),
            maximum: Some(maximum.into()),
            shared: false,
        });
    }
    let mut memories = enc::MemorySection::new();
    memories.memory(enc::MemoryType {
        minimum: 1 + u64::from(rng.below(2)),
        maximum: Some(3),
        memory64: false,
        shared: false,
        page_size_log2: None,
    });

    let mut globals = enc::GlobalSection::new();
    let fuel_type = enc::GlobalType { val_type: enc::ValType::I32, mutable: true, shared: false };
    globals.global(fuel_type, &enc::ConstExpr::i32_const(shape.fuel()));
    let mut exports = enc::ExportSection::new();
    for (i, &(ty, mutable)) in shape.globals.iter().enumerate() {
        let ty_encoded = enc::GlobalType { val_type: encoder_type(ty), mutable, shared: false };
        globals.global(ty_encoded, &constant(Value::random(ty, rng)));
        exports.export(&format!("g{i}"), enc::ExportKind::Global, 1 + i as u32);
    }
    for i in 0..reset {
        exports.export(&format!("f{i}"), enc::ExportKind::Func, i);
    }
    exports.export("reset", enc::ExportKind::Func, reset);
    exports.export("mem", enc::ExportKind::Memory, 0);

    let mut elems = enc::ElementSection::new();
    let zero = enc::ConstExpr::i32_const(0);
    elems.active(None, &zero, enc::Elements::Functions(Cow::Borrowed(&shape.elements)));
    let passive: Vec<u32> = (0..PASSIVE_ELEMS).map(|_| rng.below(reset)).collect();
    elems.passive(enc::Elements::Functions(passive.into()));
    elems.declared(enc::Elements::Functions((0..reset).collect()));

    let mut bodies = enc::CodeSection::new();
    for body in code {
        bodies.function(body);
    }
    let mut body = enc::Function::new([]);
    body.instructions().i32_const(shape.fuel()).global_set(FUEL_GLOBAL).end();
    bodies.function(&body);

    let mut data = enc::DataSection::new();
    let mut random_bytes = |len: u32| (0..len).map(|_| rng.bits() as u8).collect::<Vec<u8>>();
    data.active(0, &zero, random_bytes(2048));
    data.passive(random_bytes(PASSIVE_DATA));

    let mut module = enc::Module::new();
    module
        .section(&types)
        .section(&funcs)
        .section(&tables)
        .section(&memories)
        .section(&globals)
        .section(&exports)
        .section(&elems)
        .section(&enc::DataCountSection { count: data.len() })
        .section(&bodies)
        .section(&data);
    module.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Coverage;
    use crate::side_tables;
    use weir_bytecode::{Opcode, validate};

    /// Instructions that no program has. A compiler refuses a function with one of them, so its code would not be compared.
    const NOT_GENERATED: [Opcode; 8] = [
        Opcode::Try,
        Opcode::Catch,
        Opcode::CatchAll,
        Opcode::Delegate,
        Opcode::Rethrow,
        Opcode::TryTable,
        Opcode::Throw,
        Opcode::ThrowRef,
    ];

    #[test]
    fn programs_are_valid_and_reach_every_other_opcode() {
        let mut coverage = Coverage::default();
        for seed in 0..600 {
            let wasm = generate(seed).wasm;
            coverage.add(&wasm).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            side_tables::verify_binary(&wasm).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        for &op in Opcode::ALL {
            let count = coverage.count(op);
            if NOT_GENERATED.contains(&op) {
                assert_eq!(count, 0, "{} is generated", op.mnemonic());
            } else {
                assert!(count >= 10, "{} occurs {count} times", op.mnemonic());
            }
        }
    }

    #[test]
    fn damaged_programs_are_refused_or_valid() {
        let mut valid = 0;
        for seed in 0..40 {
            let bytes = generate(seed).wasm;
            let mut rng = Rng::new(seed);
            for _ in 0..60 {
                let mut damaged = bytes.clone();
                let at = 8 + rng.below(bytes.len() as u32 - 8) as usize;
                damaged[at] = rng.bits() as u8;
                if rng.one_in(20) {
                    damaged.truncate(at);
                }
                if let Ok(module) = validate::parse(damaged.into()) {
                    valid += 1;
                    // A damaged module that passes validation must have a correct side table, whatever its instructions are.
                    side_tables::verify(&module, None).unwrap_or_else(|error| panic!("seed {seed}, byte {at}: {error}"));
                }
            }
        }
        assert!(valid > 300, "only {valid} damaged programs are valid: the test has become too weak");
    }

    #[test]
    fn a_seed_is_a_program() {
        for seed in [0, 1, 77] {
            assert_eq!(generate(seed).wasm, generate(seed).wasm);
        }
        assert_ne!(generate(0).wasm, generate(1).wasm);
    }

    #[test]
    fn nans_are_the_same_whatever_their_bits() {
        assert!(Value::F32(0x7FC0_0000).same(Value::F32(0xFFA0_0001)));
        assert!(!Value::F64(0).same(Value::F64(1 << 63)));
        assert!(!Value::I32(0).same(Value::I64(0)));
    }
}
