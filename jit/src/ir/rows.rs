//! Tests that compare the columns of TABLE 2 with the Wasm instructions of each row.

use super::family::{Accounting, Family, Leaf, Reference, Simd, Terminator};
use super::ops::{Calls, Effect, Fields, Op, Type};
use weir_bytecode::{Opcode, Trap, semantics};
use weir_contract::Helper;

/// Values of a type that differ in sign, order and size, and their neighbours; for floats also NaNs, zeros and
/// infinities.
fn samples(ty: Type) -> Vec<u64> {
    let f32s = [0.0f32, -0.0, 1.0, -1.5, 3e9, -3e9, 1e20, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let f64s = [0.0f64, -0.0, 1.0, -1.5, 3e9, -3e9, 1e20, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    match ty {
        Type::I32 => [0u32, 1, 2, 3, 5, 31, 32, 0x80, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, u32::MAX].map(u64::from).to_vec(),
        Type::I64 => vec![0, 1, 2, 3, 5, 63, 64, 0x80, 1 << 31, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX],
        Type::F32 => f32s.map(|value| value.to_bits().into()).to_vec(),
        Type::F64 => f64s.map(f64::to_bits).to_vec(),
        Type::Void | Type::V128 | Type::V256 | Type::Ref | Type::Gc => Vec::new(),
    }
}

const TYPES: [Type; 4] = [Type::I32, Type::I64, Type::F32, Type::F64];

/// The instructions that define an operation, with operand and result types.
fn opcodes(op: Op) -> Vec<(Opcode, Type, Type)> {
    let pairs = TYPES.into_iter().flat_map(|operand| TYPES.map(|result| (operand, result)));
    pairs.filter_map(|(operand, result)| op.opcode(operand, result).map(|opcode| (opcode, operand, result))).collect()
}

/// The results of the row's operation for all pairs of samples, at all types that it has. An operation on one value
/// ignores the second. The high half of a product is computed here, because its instruction gives both halves.
fn values(op: Op, exchanged: bool) -> Option<Vec<(Type, Result<u64, Trap>)>> {
    let mut all = Vec::new();
    for (opcode, operand, _) in opcodes(op) {
        let samples = samples(operand);
        for (&a, &b) in samples.iter().flat_map(|a| samples.iter().map(move |b| (a, b))) {
            let (a, b) = if exchanged { (b, a) } else { (a, b) };
            let value = match (op, op.arity()) {
                (Op::MulHigh, _) => Some(Ok(((u128::from(a) * u128::from(b)) >> 64) as u64)),
                (_, Some(1)) => semantics::eval(opcode, &[a]),
                _ => semantics::eval(opcode, &[a, b]),
            };
            all.push((operand, value?));
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Compares results; all NaNs are considered equal.
fn same(a: &[(Type, Result<u64, Trap>)], b: &[(Type, Result<u64, Trap>)], op: Op) -> bool {
    let canonical = |&(ty, value): &(Type, Result<u64, Trap>)| {
        let float = matches!(op.family(), Family::Float(_));
        let nan = |bits: u64| match ty {
            Type::F32 => f32::from_bits(bits as u32).is_nan(),
            _ => f64::from_bits(bits).is_nan(),
        };
        (ty, value.map(|bits| if float && nan(bits) { u64::MAX } else { bits }))
    };
    a.len() == b.len() && a.iter().map(canonical).eq(b.iter().map(canonical))
}

/// Compares a column with the expected value, and records the row if they differ.
fn compare<T: PartialEq + std::fmt::Debug>(wrong: &mut Vec<String>, op: Op, column: &str, said: &T, is: &T) {
    if said != is {
        wrong.push(format!("{op:?}, {column}: the table says {said:?}, it is {is:?}"));
    }
}

#[test]
fn rows_say_what_the_instructions_do() {
    let mut wrong = Vec::new();
    let all: Vec<(Op, Vec<_>)> = Op::ALL.iter().filter_map(|&op| Some((op, values(op, false)?))).collect();
    for (op, results) in &all {
        let op = *op;
        // Mirror. `fmin` and `fmax` also commute, except for the bits of a NaN; their operands are never exchanged.
        let exchanged = values(op, true).expect("as above");
        let with_mirror = op.arity() == Some(2) && !matches!(op, Op::Fmin | Op::Fmax);
        let mirror = all.iter().find(|(_, values)| with_mirror && same(values, &exchanged, op)).map(|&(op, _)| op);
        compare(&mut wrong, op, "mirror", &op.mirror(), &mirror);
        // Whether the value is a bit, and the comparison that gives the opposite.
        let bit = results.iter().all(|&(_, value)| matches!(value, Ok(0 | 1)));
        compare(&mut wrong, op, "gives a bit", &op.is_boolean(), &bit);
        let not: Vec<_> = results.iter().map(|&(ty, value)| (ty, value.map(|value| value ^ 1))).collect();
        let inverse = all.iter().find(|(_, values)| bit && same(values, &not, op)).map(|&(op, _)| op);
        compare(&mut wrong, op, "inverse", &op.inverse(), &inverse);
        let traps = results.iter().any(|(_, value)| value.is_err());
        compare(&mut wrong, op, "effect", &op.effect(), if traps { &Effect::Trap } else { &Effect::Pure });
        compare(&mut wrong, op, "calls", &op.calls(), &Calls::None);
        compare(&mut wrong, op, "access", &op.access_width(Type::I32), &None);
        compare(&mut wrong, op, "fields", &op.fields(), &Fields::None);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The width that the name of an access implies.
#[test]
fn accesses_are_as_wide_as_their_instructions_say() {
    let mut wrong = Vec::new();
    for &op in Op::ALL {
        let access = matches!(op.family(), Family::Load(_) | Family::Store(_));
        for ty in [Type::I32, Type::I64, Type::F32, Type::F64, Type::V128] {
            let opcode = op.opcode(ty, ty).filter(|_| access);
            let expected = opcode.map(|opcode| {
                let (_, name) = opcode.mnemonic().split_once('.').expect("type and access");
                let bits = name.trim_matches(|c: char| !c.is_ascii_digit()).parse();
                bits.unwrap_or(match ty {
                    Type::I32 | Type::F32 => 32,
                    Type::V128 => 128,
                    Type::V256 => 256,
                    Type::Void | Type::I64 | Type::F64 | Type::Ref | Type::Gc => 64,
                }) / 8
            });
            // An access also has a width for types that it cannot have.
            if expected.is_some() || !access {
                compare(&mut wrong, op, "access", &op.access_width(ty), &expected);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The columns of rows without a numeric meaning, by family.
#[test]
fn effects_and_calls_are_those_of_the_family() {
    let mut wrong = Vec::new();
    for &op in Op::ALL {
        let helper = || Helper::ALL.iter().copied().find(|helper| format!("{helper:?}") == format!("{op:?}")).map(Calls::Helper);
        let (effect, calls) = match op.family() {
            Family::Leaf(_) | Family::Simd(_) => (Effect::Pure, Calls::None),
            Family::Load(_) => (Effect::ReadTrap, Calls::None),
            Family::Store(_) => (Effect::Write, Calls::None),
            Family::Call(_) => (Effect::Write, Calls::Function),
            Family::Exception(_) => (Effect::Write, Calls::None),
            Family::Terminator(_) => {
                let tail = op.name().starts_with("return_call");
                (Effect::Terminator, if tail { Calls::Tail } else { helper().unwrap_or(Calls::None) })
            }
            Family::Accounting(Accounting::Fuel | Accounting::OsrTick | Accounting::Miss | Accounting::OsrStore) => {
                (Effect::Write, Calls::None)
            }
            Family::Accounting(Accounting::FuelLeft | Accounting::Epoch | Accounting::Deadline) => (Effect::Read, Calls::None),
            Family::Accounting(Accounting::OsrTarget) => (Effect::Write, helper().expect("there is one")),
            Family::Accounting(Accounting::Poll) => (Effect::Write, Calls::Poll),
            // Each calls the helper with its name, if there is one; otherwise it has inline code.
            Family::Reference(reference) => match reference {
                Reference::RefIsNull => (Effect::Pure, Calls::None),
                Reference::RefFunc => (Effect::Pure, helper().expect("there is one")),
                Reference::NonNull => (Effect::Trap, Calls::None),
                Reference::ElementDiffers => (Effect::ReadTrap, Calls::None),
                Reference::FuncDiffers => (Effect::Pure, Calls::None),
            },
            Family::Memory(_) | Family::Global(_) | Family::Table(_) => {
                let effect = match op {
                    Op::MemorySize | Op::TableSize | Op::GlobalGet => Effect::Read,
                    Op::TableGet => Effect::ReadTrap,
                    _ => Effect::Write,
                };
                (effect, helper().unwrap_or(Calls::None))
            }
            Family::Integer(_) | Family::Compare(_) | Family::Bits(_) | Family::Convert(_) => continue,
            Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) => continue,
        };
        compare(&mut wrong, op, "effect", &op.effect(), &effect);
        compare(&mut wrong, op, "calls", &op.calls(), &calls);
        compare(&mut wrong, op, "mirror", &op.mirror(), &None);
        compare(&mut wrong, op, "inverse", &op.inverse(), &None);
        compare(&mut wrong, op, "gives a bit", &op.is_boolean(), &(op == Op::RefIsNull));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The fields of an operation match the family of its Wasm instruction. A wrong column would also print and parse as
/// another index.
#[test]
fn fields_are_those_of_the_name() {
    let mut wrong = Vec::new();
    for &op in Op::ALL {
        let name = op.name();
        let expected = match op.family() {
            Family::Leaf(leaf) => match leaf {
                Leaf::Const => Fields::Bits,
                Leaf::Param | Leaf::OsrSlot | Leaf::Result => Fields::Number,
                Leaf::Phi | Leaf::Select => Fields::None,
            },
            Family::Load(_) | Family::Store(_) => Fields::Access,
            Family::Memory(_) if name.ends_with("copy") => Fields::Memories,
            Family::Memory(_) if name.ends_with("init") => Fields::MemorySegment,
            Family::Memory(_) if name.ends_with("drop") => Fields::Segment,
            Family::Memory(_) => Fields::Memory,
            Family::Table(_) if name.ends_with("copy") => Fields::Tables,
            Family::Table(_) if name.ends_with("init") => Fields::TableSegment,
            Family::Table(_) if name.ends_with("drop") => Fields::ElemSegment,
            Family::Table(_) => Fields::Table,
            Family::Global(_) => Fields::Global,
            Family::Reference(Reference::RefFunc | Reference::FuncDiffers) => Fields::Func,
            Family::Reference(Reference::ElementDiffers) => Fields::Element,
            Family::Simd(Simd::Vector) => Fields::Vector,
            Family::Simd(Simd::Half | Simd::Splice) => Fields::Number,
            Family::Simd(Simd::Join) => Fields::None,
            Family::Accounting(Accounting::Miss) => Fields::Func,
            Family::Accounting(Accounting::Poll | Accounting::FuelLeft | Accounting::Epoch | Accounting::Deadline) => {
                Fields::None
            }
            Family::Accounting(_) => Fields::Number,
            Family::Terminator(Terminator::OsrExit) => Fields::Number,
            Family::Exception(_) => Fields::Handler,
            Family::Terminator(Terminator::Throw) => Fields::Tag,
            Family::Call(_) | Family::Terminator(_) if name.ends_with("call_indirect") => Fields::Indirect,
            Family::Call(_) | Family::Terminator(_) if name.ends_with("call_ref") => Fields::Type,
            Family::Call(_) | Family::Terminator(_) if name.ends_with("call") => Fields::Func,
            Family::Terminator(Terminator::Trap) => Fields::Trap,
            Family::Terminator(Terminator::Branch) => Fields::Probability,
            _ => Fields::None,
        };
        compare(&mut wrong, op, "fields", &op.fields(), &expected);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
