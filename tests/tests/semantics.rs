//! Compares the meaning of every numeric and vector instruction with wasmi. Weir's interpreter, constant folding,
//! evaluator and half of the tests use [`weir_bytecode::semantics`], so an error there would be in all of them.

use std::fmt::Write;
use weir::Trap;
use weir_bytecode::opcodes::Immediates;
use weir_bytecode::semantics::{self, nan, vector};
use weir_bytecode::{Opcode, ValType};
use weir_tests::differential::wasmi_trap;

/// Bits that distinguish operations: extremes of every width, floats in and out of the range of every integer type,
/// ties, subnormal numbers, quiet and signalling NaNs.
fn samples(ty: ValType) -> Vec<u128> {
    match ty {
        ValType::I32 => {
            [0, 1, 2, 7, 31, 33, 0x80, 0x8000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FF80, 0xFFFF_FFFF, 0x1234_F0F0].into()
        }
        ValType::I64 => [0, 1, 7, 63, 0x80, 0x8000, 0x8000_0000, 0xFFFF_FFFF, i64::MAX as u128, 1 << 63, u64::MAX.into()].into(),
        ValType::F32 => {
            let floats = [0.0, 1.0, 0.5, 1.5, 2.5, 2147483520.0, 4294967040.0, 9.2e18, 1.9e19, 1e-40, f32::MAX, f32::INFINITY];
            let nans = [0x7FC0_0000, 0x7FA0_1234, 0xFFC0_0001];
            floats.iter().flat_map(|float| [*float, -*float]).map(f32::to_bits).chain(nans).map(u128::from).collect()
        }
        ValType::F64 => {
            let floats = [
                0.0,
                0.5,
                1.5,
                2.5,
                2147483647.5,
                2147483648.5,
                4294967295.5,
                9.2e18,
                1.9e19,
                1e-310,
                1e39,
                f64::MAX,
                f64::INFINITY,
            ];
            let nans = [0x7FF8 << 48, 0x7FF4_0000_0000_0ABC, 0xFFF8_0000_0000_0001];
            floats.iter().flat_map(|float| [*float, -*float]).map(f64::to_bits).chain(nans).map(u128::from).collect()
        }
        _ => vectors(),
    }
}

/// Vectors of edge cases in every shape, including floats.
fn vectors() -> Vec<u128> {
    let integers = [
        0,
        u128::MAX,
        0x8000_7FFF_0102_FEFF_8000_0000_7FFF_FFFF,
        0x0123_4567_89AB_CDEF_FEDC_BA98_7654_3210,
        0x7F80_8001_1010_0F0F_0000_0000_0000_0080,
        0x8080_8080_8080_8080_7F7F_7F7F_7F7F_7F7F,
        0x8000_8000_8000_8000_0001_FFFF_7FFF_8001,
        0x000F_0E1F_0205_0380_FF01_0708_0C0B_0A10,
        0x8000_0000_0000_0000_7FFF_FFFF_FFFF_FFFF,
    ];
    let singles = samples(ValType::F32);
    let doubles = samples(ValType::F64);
    let singles = singles.chunks(4).map(|lanes| lanes.iter().enumerate().fold(0, |all, (i, lane)| all | lane << (32 * i)));
    let doubles = doubles.chunks(2).map(|lanes| lanes.iter().enumerate().fold(0, |all, (i, lane)| all | lane << (64 * i)));
    integers.into_iter().chain(singles).chain(doubles).collect()
}

/// An instruction and its immediates.
struct Case {
    op: Opcode,
    lane: Option<u8>,
    operands: Vec<ValType>,
    result: ValType,
}

/// Every instruction that has a meaning, with each lane if it names one. Relaxed instructions are left out where
/// wasmi's choice may differ from Weir's.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &op in Opcode::ALL.iter().filter(|op| !op.mnemonic().contains("relaxed")) {
        let Some(signature) = op.signature().filter(|signature| !signature.operands.is_empty()) else { continue };
        let lanes = match op.immediates() {
            Immediates::None => vec![None],
            Immediates::Lane => (0..op.lanes().unwrap().shape.lanes() as u8).map(Some).collect(),
            _ => continue,
        };
        let (operands, result) = (signature.operands.to_vec(), signature.result);
        cases.extend(lanes.into_iter().map(|lane| Case { op, lane, operands: operands.clone(), result }));
    }
    cases
}

impl Case {
    /// The result according to Weir's semantics.
    fn meaning(&self, args: &[u128]) -> Result<u128, Trap> {
        let name = self.op.mnemonic();
        if let Some(lane) = self.lane {
            return Ok(vector::eval_lane(self.op, args, lane).unwrap_or_else(|| panic!("{name} has no meaning")));
        }
        if let Some(bits) = vector::eval(self.op, args) {
            return Ok(bits);
        }
        let slots: Vec<u64> = args.iter().map(|&bits| bits as u64).collect();
        semantics::eval(self.op, &slots).unwrap_or_else(|| panic!("{name} has no meaning")).map(u128::from)
    }

    fn text(&self, name: usize) -> String {
        let params: String = self.operands.iter().map(|ty| format!(" {ty}")).collect();
        let operands: String = (0..self.operands.len()).map(|i| format!(" (local.get {i})")).collect();
        let lane = self.lane.map_or_else(String::new, |lane| lane.to_string());
        let (op, result) = (self.op.mnemonic(), self.result);
        format!("(func (export \"{name}\") (param{params}) (result {result}) ({op} {lane}{operands}))\n")
    }
}

fn to_wasmi(ty: ValType, bits: u128) -> wasmi::Val {
    match ty {
        ValType::I32 => wasmi::Val::I32(bits as i32),
        ValType::I64 => wasmi::Val::I64(bits as i64),
        ValType::F32 => wasmi::Val::F32(wasmi::F32::from_bits(bits as u32)),
        ValType::F64 => wasmi::Val::F64(wasmi::F64::from_bits(bits as u64)),
        ValType::V128 => wasmi::Val::V128(bits.into()),
        ValType::Ref(_) => unreachable!("no reference is an operand"),
    }
}

fn from_wasmi(value: &wasmi::Val) -> u128 {
    match value {
        wasmi::Val::I32(x) => u128::from(*x as u32),
        wasmi::Val::I64(x) => u128::from(*x as u64),
        wasmi::Val::F32(x) => x.to_bits().into(),
        wasmi::Val::F64(x) => x.to_bits().into(),
        wasmi::Val::V128(x) => x.as_u128(),
        other => unreachable!("{other:?} is no result"),
    }
}

#[test]
fn every_instruction_means_what_wasmi_does() {
    let cases = cases();
    let mut text = String::from("(module\n");
    cases.iter().enumerate().for_each(|(i, case)| write!(text, "{}", case.text(i)).expect("a string"));
    text += ")";
    let mut config = wasmi::Config::default();
    config.wasm_simd(true);
    let engine = wasmi::Engine::new(&config);
    let module = wasmi::Module::new(&engine, wat::parse_str(&text).expect("valid text")).expect("a valid module");
    let mut store = wasmi::Store::new(&engine, ());
    let instance = wasmi::Instance::new(&mut store, &module, &[]).expect("it imports nothing");
    let (mut calls, mut traps) = (0, 0);
    for (i, case) in cases.iter().enumerate() {
        let func = instance.get_func(&store, &i.to_string()).expect("it is exported");
        let choices: Vec<Vec<u128>> = case.operands.iter().map(|&ty| samples(ty)).collect();
        for n in 0..choices.iter().map(Vec::len).product::<usize>() {
            let mut rest = n;
            let mut pick = |choice: &Vec<u128>| {
                let picked = choice[rest % choice.len()];
                rest /= choice.len();
                picked
            };
            let args: Vec<u128> = choices.iter().map(&mut pick).collect();
            let vals: Vec<wasmi::Val> = case.operands.iter().zip(&args).map(|(&ty, &bits)| to_wasmi(ty, bits)).collect();
            let mut results = [wasmi::Val::I32(0)];
            let found = match func.call(&mut store, &vals, &mut results) {
                Ok(()) => Ok(from_wasmi(&results[0])),
                Err(error) => Err(error.as_trap_code().and_then(wasmi_trap).expect("a trap that Weir has")),
            };
            // The specification does not determine which NaN it is.
            let plain = |bits: u128| nan::open(case.op).map_or(bits, |floats| floats.canonicalise(bits));
            let expected = case.meaning(&args).map(plain);
            assert_eq!(expected, found.map(plain), "{} {:?} of {args:x?}: Weir, wasmi", case.op.mnemonic(), case.lane);
            calls += 1;
            traps += u32::from(expected.is_err());
        }
    }
    println!("{} instructions and lanes, {calls} calls, {traps} traps", cases.len());
    assert!(traps > 0);
}
