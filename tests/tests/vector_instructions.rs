//! Compares every vector instruction in compiled code, and in the interpreter, with its meaning. Operands are in each kind of place that
//! selection distinguishes, because each needs another form of machine code: in registers, in memory, spilled or
//! constant.

use std::collections::BTreeSet;
use weir::{Allocator, Config, Func, Instance, Module, Store, Tier, Val};
use weir_bytecode::opcodes::Immediates;
use weir_bytecode::semantics::nan;
use weir_bytecode::semantics::vector::{Wide, eval, eval_lane, i8x16_shuffle};
use weir_bytecode::{Opcode, ValType};
use weir_tests::engines::engine;

use weir_tests::rng::Rng;

/// Bits that distinguish operations: extremes of every width, floats in and out of range of every integer type, NaNs.
fn samples(ty: ValType) -> Vec<u128> {
    match ty {
        ValType::I32 => [0, 1, 7, 33, 0xFFFF_FFFF, 0x8000_0000].into(),
        ValType::I64 => [0, 0x8000_0000_0000_0001].into(),
        ValType::F32 => [-0.0f32, 3e9, f32::NAN].map(|x| x.to_bits().into()).into(),
        ValType::F64 => [-0.0f64, -1e300].map(|x| x.to_bits().into()).into(),
        _ => vec![
            0,
            u128::MAX,
            0x8000_7FFF_0102_FEFF_8000_0000_7FFF_FFFF,
            0x0123_4567_89AB_CDEF_FEDC_BA98_7654_3210,
            0x7F80_8001_1010_0F0F_0000_0000_0000_0080,
            0x000F_0E1F_0205_0380_FF01_0708_0C0B_0A10,
            [-0.0f32, 1.5, -3e9, 4294967040.0].into_wide(),
            [2.5f32, f32::INFINITY, f32::NAN, 0.0].into_wide(),
            [2147483520.0f32, -2147483648.0, 2147483648.0, -f32::NAN].into_wide(),
            [-2.5f64, 1e300].into_wide(),
            [4294967295.5f64, -0.0].into_wide(),
            [f64::NAN, -2147483649.0].into_wide(),
        ],
    }
}

fn value(ty: ValType, bits: u128) -> Val {
    match ty {
        ValType::I32 => Val::I32(bits as i32),
        ValType::I64 => Val::I64(bits as i64),
        ValType::F32 => Val::F32(bits as u32),
        ValType::F64 => Val::F64(bits as u64),
        _ => Val::from(bits),
    }
}

fn bits(value: Val) -> u128 {
    match value {
        Val::I32(x) => u128::from(x as u32),
        Val::I64(x) => u128::from(x as u64),
        Val::F32(x) => x.into(),
        Val::F64(x) => x.into(),
        Val::V128(x) => x.into(),
        other => panic!("{other:?}"),
    }
}

fn constant(ty: ValType, bits: u128) -> String {
    match ty {
        ValType::I32 => format!("(i32.const {})", bits as i32),
        ValType::I64 => format!("(i64.const {})", bits as i64),
        ValType::F32 => format!("(f32.reinterpret_i32 (i32.const {}))", bits as i32),
        ValType::F64 => format!("(f64.reinterpret_i64 (i64.const {}))", bits as i64),
        _ => format!("(v128.const i64x2 {} {})", bits as i64, (bits >> 64) as i64),
    }
}

/// The back end that compiles, or the interpreter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Interpreter,
    Native,
    Cranelift,
    Baseline,
}

/// With canonical NaNs, every bit is determined.
fn configurations() -> [(By, Config); 6] {
    let mut native = Config::new();
    native.tier(Tier::Native).deterministic(true);
    let (mut checked, mut borrowed) = (native.clone(), native.clone());
    let (mut cranelift, mut baseline, mut interpreter) = (native.clone(), native.clone(), native.clone());
    checked.guard_regions(false);
    borrowed.register_allocator(Allocator::Regalloc2);
    cranelift.tier(Tier::Cranelift);
    baseline.tier(Tier::Baseline);
    interpreter.tier(Tier::Interpreter);
    [
        (By::Interpreter, interpreter),
        (By::Native, native),
        (By::Native, checked),
        (By::Native, borrowed),
        (By::Cranelift, cranelift),
        (By::Baseline, baseline),
    ]
}

/// The expected result of a function for its arguments, as bits.
type Meaning = Box<dyn Fn(&[u128]) -> u128>;

/// A function that is called with every choice of arguments.
struct Case {
    /// The computation as text; `{i}` is operand `i`.
    text: String,
    operands: Vec<ValType>,
    result: ValType,
    meaning: Meaning,
}

/// The place of an operand.
#[derive(Clone, Copy, PartialEq, Debug)]
enum At {
    Register,
    Memory,
    /// Spilled across a call.
    Spilt,
    Constant(u128),
}

impl Case {
    /// A function whose parameters are the operands, which it moves to these places.
    fn function(&self, name: &str, places: &[At]) -> String {
        let params: Vec<String> = self.operands.iter().map(ToString::to_string).collect();
        let mut text = self.text.clone();
        let mut before = String::new();
        for (i, (&ty, &at)) in self.operands.iter().zip(places).enumerate() {
            let operand = match at {
                At::Register | At::Spilt => format!("(local.get {i})"),
                At::Memory => {
                    before += &format!("({ty}.store offset={} (i32.const 32) (local.get {i}))", 24 * i + 1);
                    format!("({ty}.load offset={} (i32.const 32))", 24 * i + 1)
                }
                At::Constant(bits) => constant(ty, bits),
            };
            text = text.replace(&format!("{{{i}}}"), &operand);
        }
        if places.contains(&At::Spilt) {
            before += "(call $nothing)";
        }
        format!("(func (export \"{name}\") (param {}) (result {}) {before} {text})\n", params.join(" "), self.result)
    }

    /// All choices of places that are tested: all operands in the same kind of place, and each operand alone in another.
    fn places(&self) -> Vec<Vec<At>> {
        let count = self.operands.len();
        let mut all = vec![vec![At::Register; count], vec![At::Spilt; count], vec![At::Memory; count]];
        for i in 0..count {
            let mut other = vec![At::Register; count];
            other[i] = At::Memory;
            all.push(other.clone());
            let samples = samples(self.operands[i]);
            for bits in samples.iter().step_by(3).chain(&samples[1..2]) {
                other[i] = At::Constant(*bits);
                all.push(other.clone());
            }
        }
        all
    }
}

/// Instructions for which Cranelift has no code. A function with one of them is interpreted.
const CRANELIFT_LACKS: [&str; 4] = [
    "i32x4.trunc_sat_f64x2_s_zero",
    "i32x4.trunc_sat_f64x2_u_zero",
    "i32x4.relaxed_trunc_f64x2_s_zero",
    "i32x4.relaxed_trunc_f64x2_u_zero",
];

/// Checks all cases in all configurations, and that the requested back end compiled each function.
fn check(cases: &[Case]) {
    let functions: Vec<(usize, Vec<At>)> =
        cases.iter().enumerate().flat_map(|(i, case)| case.places().into_iter().map(move |places| (i, places))).collect();
    let mut wat = String::from("(module (memory 1) (func $nothing)\n");
    for (n, (i, places)) in functions.iter().enumerate() {
        wat += &cases[*i].function(&n.to_string(), places);
    }
    wat += ")";
    let wasm = wat::parse_str(&wat).unwrap();
    for (by, config) in configurations() {
        let engine = engine(&config).unwrap();
        let module = Module::new(&engine, &wasm).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        for (n, (i, places)) in functions.iter().enumerate() {
            let func = instance.get_func(&mut store, &n.to_string()).unwrap();
            run(&mut store, func, &cases[*i], places);
        }
        let stats = module.stats().functions;
        let refused: Vec<u32> = stats.fallbacks.iter().map(|fallback| fallback.func).collect();
        let lacking = functions
            .iter()
            .enumerate()
            .filter(|(_, (i, _))| by == By::Cranelift && CRANELIFT_LACKS.iter().any(|name| cases[*i].text.contains(name)));
        // Function 0 does nothing.
        let lacking: Vec<u32> = lacking.map(|(n, _)| n as u32 + 1).collect();
        let text = |func: &u32| &*cases[functions[*func as usize - 1].0].text;
        assert_eq!(refused, lacking, "{by:?} refuses {:?}", refused.iter().map(text).collect::<BTreeSet<_>>());
        let expected = stats.called - lacking.len() as u64;
        let expected = match by {
            By::Interpreter => [0; 3],
            By::Native => [expected, 0, 0],
            By::Cranelift => [0, expected, 0],
            By::Baseline => [0, 0, expected],
        };
        assert_eq!([stats.native, stats.cranelift, stats.baseline], expected, "{config:?}");
        let interpreted = if by == By::Interpreter { stats.called } else { lacking.len() as u64 };
        assert_eq!(stats.interpreted, interpreted, "{config:?}");
        assert!(stats.called >= functions.len() as u64);
    }
}

/// Calls a function with every choice of samples, or with some if there are too many.
fn run(store: &mut Store<()>, func: Func, case: &Case, places: &[At]) {
    const MOST: usize = 200;
    let choices: Vec<Vec<u128>> = (case.operands.iter().zip(places))
        .map(|(&ty, &at)| if let At::Constant(bits) = at { vec![bits] } else { samples(ty) })
        .collect();
    let count = choices.iter().map(Vec::len).product::<usize>();
    for n in (0..count).step_by(count.div_ceil(MOST)) {
        let mut rest = n;
        let args: Vec<u128> = (choices.iter())
            .map(|choice| {
                let picked = choice[rest % choice.len()];
                rest /= choice.len();
                picked
            })
            .collect();
        let vals: Vec<Val> = case.operands.iter().zip(&args).map(|(&ty, &bits)| value(ty, bits)).collect();
        let mut found = [Val::I32(0)];
        func.call(&mut *store, &vals, &mut found).unwrap();
        let wanted = (case.meaning)(&args);
        assert_eq!(bits(found[0]), wanted, "{} {places:?} {args:x?}: found {:x}", case.text, bits(found[0]));
    }
}

#[test]
fn instructions_do_what_semantics_says() {
    let mut cases = Vec::new();
    for &op in Opcode::ALL.iter().filter(|op| op.is_vector()) {
        let lanes = match op.immediates() {
            Immediates::None => 0..1,
            Immediates::Lane => 0..op.lanes().unwrap().shape.lanes() as u8,
            _ => continue,
        };
        let signature = op.signature().unwrap();
        for lane in lanes {
            let with_lane = op.immediates() == Immediates::Lane;
            let operands: String = (0..signature.operands.len()).map(|i| format!(" {{{i}}}")).collect();
            let lane_text = if with_lane { lane.to_string() } else { String::new() };
            let meaning = move |args: &[u128]| {
                let bits = if with_lane { eval_lane(op, args, lane) } else { eval(op, args) }.unwrap();
                nan::open(op).map_or(bits, |floats| floats.canonicalise(bits))
            };
            cases.push(Case {
                text: format!("({} {lane_text} {operands})", op.mnemonic()),
                operands: signature.operands.to_vec(),
                result: signature.result,
                meaning: Box::new(meaning),
            });
        }
    }
    assert!(cases.len() > 300, "{}", cases.len());
    check(&cases);
}

/// A vector test decides a branch, a selection, or its opposite.
#[test]
fn vector_tests_decide() {
    let questions = Opcode::ALL.iter().copied().filter(|op| op.mnemonic().ends_with("_true"));
    let cases = questions.flat_map(|op| {
        let name = op.mnemonic();
        let texts = [
            format!("(if (result i32) ({name} {{0}}) (then (i32.const 1)) (else (i32.const 0)))"),
            format!("(select (i32.const 1) (i32.const 0) ({name} {{0}}))"),
            format!("(i32.eqz (i32.eqz ({name} {{0}})))"),
            format!("(i32x4.extract_lane 0 (select (v128.const i64x2 1 2) (v128.const i64x2 0 3) ({name} {{0}})))"),
        ];
        texts.map(|text| Case {
            text,
            operands: vec![ValType::V128],
            result: ValType::I32,
            meaning: Box::new(move |args| eval(op, args).unwrap()),
        })
    });
    let cases: Vec<Case> = cases.collect();
    assert_eq!(cases.len(), 5 * 4);
    check(&cases);
}

/// Selections of lanes with a single instruction, and others.
fn selections() -> Vec<[u8; 16]> {
    let mut rng = Rng::new(1);
    let mut all = Vec::new();
    for first in 0..32 {
        all.push(std::array::from_fn(|i| (first + i as u8) % 32));
        all.push([first; 16]);
    }
    for size in [1, 2, 4, 8u8] {
        for half in [0, 8] {
            for (a, b) in [(0, 16), (16, 0)] {
                let lane = |i: u8| half + i / size / 2 * size + i % size + if (i / size).is_multiple_of(2) { a } else { b };
                all.push(std::array::from_fn(|i| lane(i as u8)));
            }
        }
        let groups = 32 / u32::from(size);
        for _ in 0..5 {
            // Groups of both vectors or of each alone, two groups of each, and groups in their own places.
            let group: Vec<u8> = (0..16 / size).map(|_| rng.below(groups) as u8).collect();
            let from = |pick: &dyn Fn(u8, u8) -> u8| {
                std::array::from_fn(|i| pick(i as u8 / size, group[i / size as usize]) * size + i as u8 % size)
            };
            let half = groups as u8 / 2;
            all.push(from(&|_, group| group));
            all.push(from(&|_, group| group % half));
            all.push(from(&|_, group| group % half + half));
            all.push(from(&|i, group| group % half + if i < half / 2 { 0 } else { half }));
            all.push(from(&|i, group| group % half + if i < half / 2 { half } else { 0 }));
            all.push(from(&|i, group| i + group / half * half));
            all.push(from(&|i, group| if i < half / 2 { group % (half / 2).max(1) } else { i }));
            all.push(from(&|i, group| if i < half / 2 { i } else { half / 2 + group % (half / 2).max(1) }));
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn shuffles_pick_their_lanes() {
    let mut cases = Vec::new();
    for lanes in selections() {
        let text: Vec<String> = lanes.iter().map(ToString::to_string).collect();
        let pick = move |a: u128, b: u128| u128::from_le_bytes(i8x16_shuffle(a.to_le_bytes(), b.to_le_bytes(), lanes));
        cases.push(Case {
            text: format!("(i8x16.shuffle {} {{0}} {{1}})", text.join(" ")),
            operands: vec![ValType::V128; 2],
            result: ValType::V128,
            meaning: Box::new(move |args| pick(args[0], args[1])),
        });
        cases.push(Case {
            text: format!("(i8x16.shuffle {} {{0}} {{0}})", text.join(" ")),
            operands: vec![ValType::V128],
            result: ValType::V128,
            meaning: Box::new(move |args| pick(args[0], args[0])),
        });
    }
    assert!(cases.len() > 300, "{}", cases.len());
    check(&cases);
}

/// Pairs of shifts that form a rotation, by whole bytes or not, and pairs that do not.
#[test]
fn shifts_rotate() {
    let mut cases = Vec::new();
    for (shape, bits) in [("i8x16", 8), ("i16x8", 16), ("i32x4", 32), ("i64x2", 64)] {
        for (left, right) in [(8, bits - 8), (bits / 2, bits / 2), (bits - 8, 8), (7, bits - 7), (8, bits), (16, bits - 8)] {
            for text in ["(v128.or LEFT RIGHT)", "(v128.or RIGHT LEFT)"] {
                let (shl, shr) =
                    (format!("({shape}.shl {{0}} (i32.const {left}))"), format!("({shape}.shr_u {{0}} (i32.const {right}))"));
                let lane = move |lane: u128| lane << (left % bits) & ((1 << bits) - 1) | lane >> (right % bits);
                let mask = (1u128 << bits) - 1;
                let meaning = move |a: u128| (0..128).step_by(bits).fold(0, |all, at| all | lane(a >> at & mask) << at);
                cases.push(Case {
                    text: text.replace("LEFT", &shl).replace("RIGHT", &shr),
                    operands: vec![ValType::V128],
                    result: ValType::V128,
                    meaning: Box::new(move |args| meaning(args[0])),
                });
            }
        }
    }
    check(&cases);
}

/// A load or a store that is folded into another instruction.
#[test]
fn accesses_take_lanes() {
    let mut cases = Vec::new();
    let case = |text: String, operands: Vec<ValType>, meaning: Meaning| Case { text, operands, result: ValType::V128, meaning };
    // The operand's own bytes, stored to memory and loaded from there.
    let stored = "(v128.store (i32.const 512) {0})";
    for (bits, count) in [(8u32, 16u128), (16, 8), (32, 4), (64, 2)] {
        let mask = (1u128 << bits) - 1;
        let spread = move |lane: u128| (0..count).fold(0, |all, i| all | lane << (i * u128::from(bits)));
        cases.push(case(
            format!("{stored} (v128.load{bits}_splat (i32.const 513))"),
            vec![ValType::V128],
            Box::new(move |args| spread(args[0] >> 8 & mask)),
        ));
        for lane in 0..count as u32 {
            let at = lane * bits;
            cases.push(case(
                format!("{stored} (v128.load{bits}_lane {lane} (i32.const 514) {{1}})"),
                vec![ValType::V128; 2],
                Box::new(move |args| args[1] & !(mask << at) | (args[0] >> 16 & mask) << at),
            ));
            cases.push(case(
                format!("{stored} (v128.store{bits}_lane {lane} (i32.const 515) {{1}}) (v128.load (i32.const 512))"),
                vec![ValType::V128; 2],
                Box::new(move |args| args[0] & !(mask << 24) | (args[1] >> at & mask) << 24),
            ));
        }
    }
    for bits in [32, 64] {
        cases.push(case(
            format!("{stored} (v128.load{bits}_zero (i32.const 516))"),
            vec![ValType::V128],
            Box::new(move |args| args[0] >> 32 & ((1 << bits) - 1)),
        ));
    }
    for (from, count, to) in [(8, 8, "i16x8"), (16, 4, "i32x4"), (32, 2, "i64x2")] {
        for sign in ["s", "u"] {
            let shape = format!("i{from}x{}", 128 / from);
            let name = format!("{to}.extend_low_{shape}_{sign}");
            let op = *Opcode::ALL.iter().find(|op| op.mnemonic() == name).unwrap();
            cases.push(case(
                format!("{stored} (v128.load{from}x{count}_{sign} (i32.const 517))"),
                vec![ValType::V128],
                Box::new(move |args| eval(op, &[args[0] >> 40]).unwrap()),
            ));
        }
    }
    for (ty, shape, lanes) in [("f32", "f32x4", 4), ("f64", "f64x2", 2)] {
        for lane in 0..lanes {
            let bits = 128 / lanes;
            cases.push(case(
                format!(
                    "(v128.store (i32.const 512) (v128.const i64x2 0 0))
                    ({ty}.store (i32.const 512) ({shape}.extract_lane {lane} {{0}})) (v128.load (i32.const 512))"
                ),
                vec![ValType::V128],
                Box::new(move |args| args[0] >> (lane * bits) & ((1 << bits) - 1)),
            ));
        }
    }
    check(&cases);
}
