//! `Config::deterministic`: NaNs whose bits are open are canonical, in every tier.

use crate::common::{self, is_built};
use weir::{Config, Engine, Instance, Module, Store, Tier, V128, Val};

const F32: u32 = 0x7FC0_0000;
const F64: u64 = 0x7FF8_0000_0000_0000;

fn engines() -> Vec<Engine> {
    let tiers = [Tier::Interpreter, Tier::Baseline, Tier::Native, Tier::Cranelift, Tier::Auto];
    let config = |tier| {
        let mut config = Config::new();
        config.tier(tier).deterministic(true).tier_up_threshold(Some(2));
        common::engine(&config).unwrap()
    };
    tiers.into_iter().filter(|&tier| is_built(tier)).map(config).collect()
}

fn bits(value: &Val) -> u128 {
    match value {
        Val::F32(bits) => (*bits).into(),
        Val::F64(bits) => (*bits).into(),
        Val::V128(bits) => u128::from(*bits),
        other => panic!("{other:?} is not expected"),
    }
}

/// The results of calling function `f` of the module with the arguments, three times in each tier.
fn results(wat: &str, args: &[Val]) -> Vec<Val> {
    let mut results = Vec::new();
    for engine in engines() {
        let module = Module::new(&engine, wat).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let f = instance.get_func(&mut store, "f").unwrap();
        for _ in 0..3 {
            let mut result = [Val::I32(0)];
            f.call(&mut store, args, &mut result).unwrap();
            results.push(result[0]);
        }
    }
    results
}

/// NaNs of every kind, each as both operands and beside a number.
#[test]
fn scalar_arithmetic_makes_canonical_nans() {
    for op in ["add", "sub", "mul", "div", "min", "max"] {
        for a in [0xFFC0_0001u32, 0x7F80_0001, 0x7FFF_FFFF] {
            for (a, b) in [(a, 1f32.to_bits()), (1f32.to_bits(), a), (a, 0xFFFF_FFFF)] {
                let wat = format!(
                    r#"(module (func (export "f") (param f32 f32) (result f32) (f32.{op} (local.get 0) (local.get 1))))"#
                );
                for result in results(&wat, &[Val::F32(a), Val::F32(b)]) {
                    assert_eq!(bits(&result), F32.into(), "f32.{op} {a:#x} {b:#x}");
                }
            }
        }
        for a in [0xFFF8_0000_0000_0001u64, 0x7FF0_0000_0000_0001] {
            for (a, b) in [(a, 1f64.to_bits()), (1f64.to_bits(), a)] {
                let wat = format!(
                    r#"(module (func (export "f") (param f64 f64) (result f64) (f64.{op} (local.get 0) (local.get 1))))"#
                );
                for result in results(&wat, &[Val::F64(a), Val::F64(b)]) {
                    assert_eq!(bits(&result), F64.into(), "f64.{op} {a:#x} {b:#x}");
                }
            }
        }
    }
    for op in ["sqrt", "ceil", "floor", "trunc", "nearest"] {
        let wat = format!(r#"(module (func (export "f") (param f32) (result f32) (f32.{op} (local.get 0))))"#);
        for result in results(&wat, &[Val::F32(0xFF80_0001)]) {
            assert_eq!(bits(&result), F32.into(), "f32.{op}");
        }
    }
    let wat = r#"(module (func (export "f") (param f32) (result f64) (f64.promote_f32 (local.get 0))))"#;
    assert!(results(wat, &[Val::F32(0xFFC0_0001)]).iter().all(|result| bits(result) == F64.into()));
    let wat = r#"(module (func (export "f") (param f64) (result f32) (f32.demote_f64 (local.get 0))))"#;
    assert!(results(wat, &[Val::F64(0xFFF8_0000_0000_0001)]).iter().all(|result| bits(result) == F32.into()));
}

/// NaNs that arithmetic makes from numbers, which no compiler may fold; and numbers, which stay unchanged.
#[test]
fn invalid_operations_make_canonical_nans_and_numbers_stay() {
    let wat = r#"(module (func (export "f") (result f64) (f64.div (f64.const 0) (f64.const 0))))"#;
    assert!(results(wat, &[]).iter().all(|result| bits(result) == F64.into()));
    let wat = r#"(module (func (export "f") (param f64 f64) (result f64) (f64.add (local.get 0) (local.get 1))))"#;
    let infinity = f64::INFINITY.to_bits();
    assert!(results(wat, &[Val::F64(infinity), Val::F64(infinity ^ 1 << 63)]).iter().all(|result| bits(result) == F64.into()));
    assert!(results(wat, &[Val::F64(infinity), Val::F64(infinity)]).iter().all(|result| bits(result) == infinity.into()));
    assert!(
        results(wat, &[Val::F64(1f64.to_bits()), Val::F64(2f64.to_bits())])
            .iter()
            .all(|result| bits(result) == 3f64.to_bits().into())
    );
}

/// These move bits: the specification leaves nothing open.
#[test]
fn instructions_that_move_bits_keep_them() {
    for (op, args, expected) in [("neg", 1, 0x7F80_0001u128), ("abs", 1, 0x7F80_0001), ("copysign", 2, 0xFF80_0001)] {
        let params = "f32 ".repeat(args);
        let gets: String = (0..args).map(|i| format!("(local.get {i})")).collect();
        let wat = format!(r#"(module (func (export "f") (param {params}) (result f32) (f32.{op} {gets})))"#);
        for result in results(&wat, &vec![Val::F32(0xFF80_0001); args]) {
            assert_eq!(bits(&result), expected, "f32.{op}");
        }
    }
}

#[test]
fn lanes_have_canonical_nans() {
    let lanes = |lanes: [u32; 4]| lanes.iter().rev().fold(0, |bits, &lane| bits << 32 | u128::from(lane));
    let (one, two) = (1f32.to_bits(), 2f32.to_bits());
    let operand = Val::V128(V128::from(lanes([0xFFC0_0001, one, 0x7F80_0001, one])));
    let wide = Val::V128(V128::from(u128::from(0xFFF8_0000_0000_0001u64) | u128::from(1f64.to_bits()) << 64));
    for (op, operand, expected) in [
        ("f32x4.add", operand, lanes([F32, two, F32, two])),
        ("f32x4.mul", operand, lanes([F32, one, F32, one])),
        ("f32x4.max", operand, lanes([F32, one, F32, one])),
        ("f32x4.relaxed_min", operand, lanes([F32, one, F32, one])),
        ("f32x4.pmin", operand, lanes([0xFFC0_0001, one, 0x7F80_0001, one])),
        ("f64x2.add", wide, u128::from(F64) | u128::from(2f64.to_bits()) << 64),
        ("f64x2.div", wide, u128::from(F64) | u128::from(1f64.to_bits()) << 64),
    ] {
        let wat = format!(r#"(module (func (export "f") (param v128) (result v128) ({op} (local.get 0) (local.get 0))))"#);
        for result in results(&wat, std::slice::from_ref(&operand)) {
            assert_eq!(bits(&result), expected, "{op}");
        }
    }
}

#[cfg(feature = "jit")]
#[test]
fn compiling_is_synchronous() {
    let mut config = Config::new();
    let engine = common::engine(config.deterministic(true).tier_up_threshold(Some(10))).unwrap();
    let module = Module::new(&engine, r#"(module (func (export "f")))"#).unwrap();
    let mut store = Store::new(&engine, ());
    let f = Instance::new(&mut store, &module, &[]).unwrap().get_typed_func::<(), ()>(&mut store, "f").unwrap();
    (0..10).for_each(|_| f.call(&mut store, ()).unwrap());
    assert_eq!(module.stats().functions.native, 1);
}
