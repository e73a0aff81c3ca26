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
//! instructions, which wasmi lacks or may execute differently. Others have several memories, 64-bit addresses and indices, imports from the
//! host, among them functions that call the guest, imports from another instance of the module, or a start function: see `choose`. What is
//! imported is in [`crate::host`].

mod action;
mod assemble;
mod body;
mod choose;
#[cfg(test)]
mod features;
mod shape;
mod switching;
mod throwing;
mod value;

pub use action::Action;
pub use switching::switching;
pub use throwing::{throwing, throwing_with};
pub use value::Value;

use crate::rng::Rng;
use weir_bytecode::types::FuncType;

/// A program, and the calls to make.
#[derive(Debug)]
pub struct Program {
    /// The module. It exports functions as `f0`, `f1`, …, and `reset`, which must be called before each of the `calls`. It may export globals,
    /// memories and tables, too.
    pub wasm: Vec<u8>,
    /// Types of the functions `f0`, ….
    pub funcs: Vec<FuncType>,
    /// The calls to make of one instance, in this order.
    pub calls: Vec<Call>,
    /// Whether it has instructions that wasmi lacks or may execute differently.
    pub beyond_wasmi: bool,
}

impl Program {
    /// A program for a module with these exports, with random arguments for the calls.
    pub fn new(wasm: Vec<u8>, funcs: Vec<FuncType>, rng: &mut Rng) -> Program {
        let mut calls = Vec::new();
        for _ in 0..3 {
            for (func, ty) in (0..).zip(&funcs) {
                let args = ty.params.iter().map(|&ty| Value::random(ty, rng)).collect();
                calls.push(Call { func, args });
            }
        }
        Program { wasm, funcs, calls, beyond_wasmi: false }
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
    generate_as(rng, false)
}

/// A program of one or two short functions with loops, which takes little time to compile. Most execute a thousand instructions or more.
pub fn brief(seed: u64) -> Program {
    generate_as(&mut Rng::new(seed), true)
}

fn generate_as(rng: &mut Rng, brief: bool) -> Program {
    let mut shape = choose::shape(rng, brief);
    let defined = shape.imported_funcs() as usize..shape.funcs.len();
    let code: Vec<_> = defined.clone().map(|func| body::generate(&mut shape, rng, func)).collect();
    let wasm = assemble::assemble(&shape, rng, &code);
    let funcs = defined.map(|func| shape.func_type(func as u32).clone()).collect();
    Program { beyond_wasmi: shape.beyond_wasmi, ..Program::new(wasm, funcs, rng) }
}

#[cfg(test)]
mod tests {
    use super::features::{Features, on_memories_and_tables};
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
    fn programs_have_every_kind_of_memory_table_and_import() {
        let mut features = Features::default();
        for seed in 0..600 {
            features.add(&generate(seed).wasm);
        }
        let Features { programs, wide, other_memories } = features;
        // Each is in some, and most programs do without.
        assert!(programs.values().all(|count| (20..300).contains(count)), "{programs:?}");
        let [memories, tables] = on_memories_and_tables();
        let copies = [Opcode::MemoryCopy, Opcode::TableCopy].map(Opcode::mnemonic);
        let mixed = copies.iter().flat_map(|name| [format!("{name} from 32 bits"), format!("{name} to 32 bits")]);
        for name in memories.iter().chain(&tables).map(|op| op.mnemonic().to_owned()).chain(mixed) {
            let count = wide.get(&name).copied().unwrap_or_default();
            assert!(count >= 10, "{name} occurs {count} times with 64 bits");
        }
        for name in memories.iter().map(|op| op.mnemonic()) {
            let count = other_memories.get(name).copied().unwrap_or_default();
            assert!(count >= 10, "{name} occurs {count} times with another memory");
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
