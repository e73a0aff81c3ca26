//! Compares every rule of `simplify` with the evaluator: each pair of numeric operations, with operands and constants
//! that rules match.

use bumpalo::Bump;
use weir_bytecode::Opcode;
use weir_jit::Options;
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{Effect, Entry, Func, Op, Type, Value, eval};
use weir_jit::opt::simplify;
use weir_jit::pipeline::{self, Finished, Form, Phase, Unit};

/// Edge-case slots of a type.
fn interesting(ty: Type) -> Vec<u64> {
    match ty {
        Type::I32 => [0, 1, 2, 3, 8, 0x80, 0x8000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x1234_F0F0].to_vec(),
        Type::I64 => [0, 1, 2, 8, 0x80, 0x8000, 0x8000_0000, 0xFFFF_FFFF, 1 << 63, u64::MAX, 0xABCD_1234_F0F0_8080].to_vec(),
        Type::F32 => [0.0, -0.0, 1.0, -2.5, f32::NAN, f32::INFINITY].map(|float| float.to_bits().into()).to_vec(),
        _ => [0.0, -0.0, 1.0, -2.5, f64::NAN, f64::INFINITY].map(f64::to_bits).to_vec(),
    }
}

/// Constants that rules may match.
fn constants(ty: Type) -> &'static [u64] {
    match ty {
        Type::I32 => &[0, 1, 8, 32, 0x8000_0000, 0xFFFF_FFFF],
        Type::I64 => &[0, 1, 8, 64, 1 << 63, u64::MAX],
        Type::F32 => &[0, 0x3F80_0000, 0x7FC0_1234],
        _ => &[0, 0x3FF0_0000_0000_0000, 0x7FF8_0000_0000_1234],
    }
}

/// An operation and its operand and result type.
type Row = (Op, Type, Type);

/// An operand of the outer operation.
#[derive(Clone, Copy)]
enum Operand {
    X,
    Y,
    Inner,
    Const(u64),
}

/// `outer(inner(x, second), …)`; without the inner operation if `inner` is `None`.
fn function<'a>(arena: &'a Bump, inner: Option<(Row, Operand)>, outer: Row, operands: &[Operand]) -> Option<Func<'a>> {
    let x_type = inner.map_or(outer.1, |((_, operand, _), _)| operand);
    let mut func = Func::new(arena, 0, Entry::Call, [x_type, outer.1], [outer.2]);
    let block = func.create_block();
    let x = func.append(block, Op::Param, x_type, 0, 0, 0, &[]);
    let y = func.append(block, Op::Param, outer.1, 0, 0, 1, &[]);
    let made = inner.map(|((op, operand, result), second)| {
        let mut args = vec![x];
        if op.arity() == Some(2) {
            args.push(match second {
                Operand::Const(bits) => func.append(block, Op::Const, operand, 0, 0, bits, &[]),
                _ => x,
            });
        }
        func.append(block, op, result, 0, 0, 0, &args)
    });
    let args: Option<Vec<Value>> = operands
        .iter()
        .map(|&operand| match operand {
            Operand::X => (x_type == outer.1).then_some(x),
            Operand::Y => Some(y),
            Operand::Inner => made,
            Operand::Const(bits) => Some(func.append(block, Op::Const, outer.1, 0, 0, bits, &[])),
        })
        .collect();
    let value = func.append(block, outer.0, outer.2, 0, 0, 0, &args?);
    func.append(block, Op::Return, Type::Void, 0, 0, 0, &[value]);
    Some(func)
}

/// Simplifies a function and, if that changes it, compares the results on edge cases. Returns whether it changed.
fn check(arena: &Bump, inner: Option<(Row, Operand)>, outer: Row, operands: &[Operand]) -> bool {
    let (Some(before), Some(after)) = (function(arena, inner, outer, operands), function(arena, inner, outer, operands)) else {
        return false;
    };
    let options = Options { verify: false, ..Options::default() };
    let mut unit = Unit::without_module(after, &options);
    let _ = pipeline::run(&mut unit, [Phase::of(&simplify::PASS)], &mut ()).unwrap();
    let Finished { form: Form::Ssa(after), stats, .. } = unit.finish() else { panic!("a pass ends with SSA") };
    if stats.changes[0].1 == 0 {
        return false;
    }
    let mut world = Sandbox { memories: Vec::new(), ..Sandbox::default() };
    let y_is_used = operands.iter().any(|operand| matches!(operand, Operand::Y));
    for x in interesting(before.params[0]) {
        for y in interesting(before.params[1]).into_iter().take(if y_is_used { usize::MAX } else { 1 }) {
            let [expected, found] = [&before, &after].map(|func| eval(func, &mut world, &[x.into(), y.into()], 100));
            assert_eq!(expected, found, "at {x:#x}, {y:#x}\n{before}becomes\n{after}");
        }
    }
    true
}

#[test]
fn rules_keep_meaning() {
    let rows: Vec<Row> = Opcode::ALL.iter().filter_map(|&opcode| Op::from_opcode(opcode)).collect();
    let rows: Vec<Row> = rows.into_iter().filter(|(op, ..)| matches!(op.effect(), Effect::Pure | Effect::Trap)).collect();
    let mut arena = Bump::new();
    let mut simplified = 0;
    for &outer in &rows {
        let unary = outer.0.arity() == Some(1);
        let consts = constants(outer.1).iter().copied().map(Operand::Const);
        for constant in consts {
            let alone: &[&[Operand]] = if unary {
                &[&[constant]]
            } else {
                &[&[Operand::Y, constant], &[constant, Operand::Y], &[Operand::Y, Operand::Y], &[constant, constant]]
            };
            simplified += alone.iter().filter(|operands| check(&arena, None, outer, operands)).count();
            arena.reset();
        }
        for &inner in rows.iter().filter(|inner| inner.2 == outer.1) {
            let seconds = match inner.0.arity() {
                Some(1) => vec![Operand::X],
                _ => constants(inner.1).iter().copied().map(Operand::Const).chain([Operand::X]).collect(),
            };
            for second in seconds {
                let inner = Some((inner, second));
                if unary {
                    simplified += usize::from(check(&arena, inner, outer, &[Operand::Inner]));
                    arena.reset();
                    continue;
                }
                for &constant in constants(outer.1) {
                    let operands = [Operand::Inner, Operand::Const(constant)];
                    simplified += usize::from(check(&arena, inner, outer, &operands));
                }
                simplified += usize::from(check(&arena, inner, outer, &[Operand::Inner, Operand::X]));
                simplified += usize::from(check(&arena, inner, outer, &[Operand::Inner, Operand::Inner]));
                arena.reset();
            }
        }
    }
    assert!(simplified > 10_000, "only {simplified} functions were simplified");
}
