//! Every numeric operation, on the values at which something changes.

use super::{Guest, wide};
use bumpalo::Bump;
use weir_jit::ir::{Effect, Entry, Func, Op, Type, Value};

/// Values at which something changes.
fn edges(ty: Type) -> Vec<u64> {
    let floats = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.0,
        -1.0,
        1.5,
        2.5,
        -2.5,
        0.1,
        1e10,
        -1e10,
        2147483648.0,
        -2147483648.0,
        -2147483649.0,
        4294967296.0,
        4294967295.0,
        9223372036854775808.0,
        -9223372036854775808.0,
        18446744073709551616.0,
        1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MIN_POSITIVE,
        f64::EPSILON,
    ];
    match ty {
        Type::I32 => {
            [0, 1, 2, 3, 7, 31, 32, 33, 127, 128, 255, 32767, 32768, 65535, 0x1234_5678, i32::MAX, i32::MIN, -1, -2, -32]
                .map(|i: i32| u64::from(i as u32))
                .to_vec()
        }
        Type::I64 => [
            0,
            1,
            2,
            5,
            63,
            64,
            65,
            127,
            128,
            32768,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x1_0000_0000,
            0x0123_4567_89ab_cdef,
            i64::MAX,
            i64::MIN,
            -1,
            -2,
            -64,
        ]
        .map(|i: i64| i as u64)
        .to_vec(),
        Type::F32 => {
            // Signalling and negative NaNs, and the floats next to the limits of integers.
            let bits = [0x7fa0_0000, 0xffc0_0001, 0x4eff_ffff, 0x4f7f_ffff, 0x5eff_ffff, 0x5f7f_ffff, 1];
            floats.iter().map(|&float| u64::from((float as f32).to_bits())).chain(bits).collect()
        }
        _ => {
            let bits = [0x7ff4_0000_0000_0000, 0xfff8_0000_0000_0001, 0x41df_ffff_ffff_ffff, 0x43df_ffff_ffff_ffff, 1];
            floats.iter().map(|&float| f64::to_bits(float)).chain(bits).collect()
        }
    }
}

const NUMBERS: [Type; 4] = [Type::I32, Type::I64, Type::F32, Type::F64];

/// A module with one function of this type.
fn module_of(params: &[Type], results: &[Type]) -> String {
    let list = |types: &[Type]| types.iter().map(|&ty| ty.name()).collect::<Vec<_>>().join(" ");
    format!("(module (func (param {}) (result {}) unreachable))", list(params), list(results))
}

/// The numeric operations with arguments of type `operand`, with their result types.
fn operations(operand: Type, arity: usize) -> Vec<(Op, Type)> {
    let is_numeric = |op: Op| op.arity() == Some(arity) && op.access_width(operand).is_none();
    let results = |op: Op| NUMBERS.into_iter().filter(move |&result| op.opcode(operand, result).is_some());
    Op::ALL.iter().copied().filter(|&op| is_numeric(op)).flat_map(|op| results(op).map(move |ty| (op, ty))).collect()
}

/// A function that applies `operations` to its parameters, of which the last is replaced by `constant` if that is given, and
/// returns all results.
fn apply<'a>(arena: &'a Bump, operand: Type, arity: usize, operations: &[(Op, Type)], constant: Option<u64>) -> Func<'a> {
    let results = operations.iter().map(|&(_, ty)| ty);
    let mut func = Func::new(arena, 0, Entry::Call, vec![operand; arity], results);
    let block = func.create_block();
    let mut args: Vec<Value> = (0..arity as u64).map(|i| func.append(block, Op::Param, operand, 0, 0, i, &[])).collect();
    if let Some(bits) = constant {
        args[arity - 1] = func.append(block, Op::Const, operand, 0, 0, bits, &[]);
    }
    let values: Vec<Value> = operations.iter().map(|&(op, ty)| func.append(block, op, ty, 7, 0, 0, &args)).collect();
    func.append(block, Op::Return, Type::Void, 0, 0, 0, &values);
    func
}

/// Runs `operations` on every edge value, or every pair of them.
fn agree_on_edges(operand: Type, arity: usize, operations: &[(Op, Type)], constant: Option<u64>) {
    let arena = Bump::new();
    let func = apply(&arena, operand, arity, operations, constant);
    let mut guest = Guest::new(&module_of(&func.params, &func.results));
    guest.install(&func);
    let values = edges(operand);
    let second = if arity == 2 && constant.is_none() { values.clone() } else { vec![0] };
    // Narrow arguments come with anything in the upper half.
    let dirt = if wide(operand) { 0 } else { 0xdead << 32 };
    for &a in &values {
        for &b in &second {
            let args = [a | dirt, b | dirt];
            guest.agree_on(&func, &[a, b][..arity], &format!("{operations:?} of {:x?}", &args[..arity]));
        }
    }
}

fn pure_operations_mean_what_the_semantics_say() {
    for operand in NUMBERS {
        for arity in [1, 2] {
            let (pure, trapping): (Vec<_>, Vec<_>) =
                operations(operand, arity).into_iter().partition(|(op, _)| op.effect() == Effect::Pure);
            agree_on_edges(operand, arity, &pure, None);
            for operation in trapping {
                agree_on_edges(operand, arity, &[operation], None);
            }
        }
    }
}

fn operations_with_a_constant_mean_the_same() {
    for operand in NUMBERS {
        let pure: Vec<_> = operations(operand, 2).into_iter().filter(|(op, _)| op.effect() == Effect::Pure).collect();
        for constant in edges(operand).into_iter().step_by(3) {
            agree_on_edges(operand, 2, &pure, Some(constant));
        }
    }
    // Each kind of reciprocal: even, odd, with a factor that just fits and one that does not, powers of two, all signs.
    let divisors: [i64; 18] = [-1, 0, 1, 2, 3, 5, 6, 7, 10, 14, 100, 125, 641, 1000, 4096, 1_000_000_007, -7, -16];
    for (operand, divisors) in [
        (Type::I32, divisors.map(|d| u64::from(d as u32)).as_slice()),
        (Type::I64, divisors.map(|d| d as u64).as_slice()),
        (Type::I32, &[0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_fffe]),
        (Type::I64, &[1 << 63, (1 << 63) + 1, i64::MAX as u64, u64::MAX - 1, 0x1_0000_0001, 3 << 32]),
    ] {
        for &divisor in divisors {
            for op in [Op::DivS, Op::DivU, Op::RemS, Op::RemU] {
                agree_on_edges(operand, 2, &[(op, operand)], Some(divisor));
            }
        }
    }
}

each_back_end! {
    pure_operations_mean_what_the_semantics_say
    operations_with_a_constant_mean_the_same
}
