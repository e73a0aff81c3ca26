//! TABLE 2's columns, compared with what the Wasm instructions of each row compute.

use super::family::Family;
use super::ops::{Calls, Effect, Fields, Op, Type};
use weir_bytecode::{Opcode, Trap, semantics};

/// Values of a type that differ in sign, order and size, with their neighbours; of floats also NaNs, zeros and infinities.
fn samples(ty: Type) -> Vec<u64> {
    let f32s = [0.0f32, -0.0, 1.0, -1.5, 3e9, -3e9, 1e20, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let f64s = [0.0f64, -0.0, 1.0, -1.5, 3e9, -3e9, 1e20, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    match ty {
        Type::I32 => [0u32, 1, 2, 3, 5, 31, 32, 0x80, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, u32::MAX].map(u64::from).to_vec(),
        Type::I64 => vec![0, 1, 2, 3, 5, 63, 64, 0x80, 1 << 31, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX],
        Type::F32 => f32s.map(|value| value.to_bits().into()).to_vec(),
        Type::F64 => f64s.map(f64::to_bits).to_vec(),
        Type::Void | Type::V128 | Type::Ref => Vec::new(),
    }
}

const TYPES: [Type; 4] = [Type::I32, Type::I64, Type::F32, Type::F64];

/// The instructions that give an operation's meaning, with operand and result type.
fn opcodes(op: Op) -> Vec<(Opcode, Type, Type)> {
    let pairs = TYPES.into_iter().flat_map(|operand| TYPES.map(|result| (operand, result)));
    pairs.filter_map(|(operand, result)| op.opcode(operand, result).map(|opcode| (opcode, operand, result))).collect()
}

/// What the row's operation gives for all pairs of samples (the second argument is passed over where there is one), at all types
/// that have it. The high half of a product is computed here: its instruction gives both halves.
fn values(op: Op, exchanged: bool) -> Option<Vec<(Type, Result<u64, Trap>)>> {
    let mut all = Vec::new();
    for (opcode, operand, _) in opcodes(op) {
        let samples = samples(operand);
        for (&a, &b) in samples.iter().flat_map(|a| samples.iter().map(move |b| (a, b))) {
            let (a, b) = if exchanged { (b, a) } else { (a, b) };
            let value = match (op, op.arity()) {
                (Op::MulHigh, _) => Some(Ok((u128::from(a) * u128::from(b) >> 64) as u64)),
                (_, Some(1)) => semantics::eval(opcode, &[a]),
                _ => semantics::eval(opcode, &[a, b]),
            };
            all.push((operand, value?));
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Results of which any NaN is as good as any other.
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

#[test]
fn rows_say_what_the_instructions_do() {
    for &op in Op::ALL {
        let Some(results) = values(op, false) else { continue };
        // Mirror. `fmin` and `fmax` commute, too, but for the bits of a NaN; nothing exchanges their operands.
        let exchanged = values(op, true).expect("as above");
        let mirrors: Vec<Op> = match op.arity() {
            Some(2) => Op::ALL.iter().copied().filter(|&m| values(m, false).is_some_and(|m| same(&m, &exchanged, op))).collect(),
            _ => Vec::new(),
        };
        let expected = mirrors.first().copied().filter(|_| !matches!(op, Op::Fmin | Op::Fmax));
        assert_eq!(op.mirror(), expected, "{op:?}: {mirrors:?}");
        // Whether the value is a bit, and the comparison that gives the other one.
        let bit = results.iter().all(|&(_, value)| matches!(value, Ok(0 | 1)));
        assert_eq!(op.is_boolean(), bit, "{op:?}");
        let not: Vec<_> = results.iter().map(|&(ty, value)| (ty, value.map(|value| value ^ 1))).collect();
        let inverse =
            Op::ALL.iter().copied().find(|&inverse| bit && values(inverse, false).is_some_and(|values| same(&values, &not, op)));
        assert_eq!(op.inverse(), inverse, "{op:?}");
        let traps = results.iter().any(|(_, value)| value.is_err());
        assert_eq!(op.effect(), if traps { Effect::Trap } else { Effect::Pure }, "{op:?}");
        assert_eq!((op.calls(), op.fields(), op.access_width(Type::I32)), (Calls::None, Fields::None, None), "{op:?}");
    }
}

/// What the name of an access says of its width.
#[test]
fn accesses_are_as_wide_as_their_instructions_say() {
    let types = [Type::I32, Type::I64, Type::F32, Type::F64, Type::V128];
    for &op in Op::ALL {
        for ty in types {
            let expected =
                op.opcode(ty, ty).map(Opcode::mnemonic).filter(|name| name.contains(".load") || name.contains(".store"));
            let expected = expected.map(|name| {
                let (_, access) = name.split_once('.').expect("type and access");
                let bits = access.trim_matches(|c: char| !c.is_ascii_digit()).parse();
                bits.unwrap_or(match ty {
                    Type::I32 | Type::F32 => 32,
                    Type::V128 => 128,
                    _ => 64,
                }) / 8
            });
            let access = matches!(op.family(), Family::Load(_) | Family::Store(_));
            assert_eq!(op.access_width(ty).is_some(), access, "{op:?}");
            if access && expected.is_some() {
                assert_eq!(op.access_width(ty), expected, "{op:?} {ty:?}");
            }
        }
    }
}

/// What the rows without a numeric meaning do, by family.
#[test]
fn effects_and_calls_are_those_of_the_family() {
    for &op in Op::ALL {
        let helper = match op.calls() {
            Calls::Helper(helper) => {
                assert_eq!(format!("{helper:?}"), format!("{op:?}"), "the helper has the operation's name");
                true
            }
            _ => false,
        };
        let (effect, calls) = match op.family() {
            Family::Leaf(_) | Family::Simd(_) => (Effect::Pure, Calls::None),
            Family::Load(_) => (Effect::ReadTrap, Calls::None),
            Family::Store(_) => (Effect::Write, Calls::None),
            Family::Call(_) => (Effect::Write, Calls::Function),
            Family::Terminator(_) => {
                let tail = op.name().starts_with("return_call");
                (Effect::Terminator, if tail { Calls::Tail } else { Calls::None })
            }
            Family::Accounting(_) => (Effect::Write, if op == Op::Poll { Calls::Poll } else { Calls::None }),
            Family::Memory(_) | Family::Global(_) | Family::Table(_) | Family::Reference(_) => {
                let effect = match op {
                    Op::RefIsNull | Op::RefFunc => Effect::Pure,
                    Op::NonNull => Effect::Trap,
                    Op::MemorySize | Op::TableSize | Op::GlobalGet => Effect::Read,
                    Op::TableGet => Effect::ReadTrap,
                    _ => Effect::Write,
                };
                // Their code is in line.
                let in_line = matches!(effect, Effect::Read | Effect::ReadTrap | Effect::Trap)
                    || matches!(op, Op::RefIsNull | Op::GlobalSet);
                assert_eq!(helper, !in_line, "{op:?}");
                (effect, op.calls())
            }
            Family::Integer(_) | Family::Compare(_) | Family::Bits(_) | Family::Convert(_) => continue,
            Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) => continue,
        };
        assert_eq!((op.effect(), op.calls()), (effect, calls), "{op:?}");
        assert_eq!((op.mirror(), op.inverse(), op.is_boolean()), (None, None, op == Op::RefIsNull), "{op:?}");
    }
}
