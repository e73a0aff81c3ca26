//! `--invoke`: parses the arguments of a function and prints its results.

use std::ffi::OsString;
use weir::{FuncType, V128, Val, ValType};

/// Parses the arguments of a function of type `ty`.
///
/// # Errors
/// A message that states what was expected.
pub(crate) fn parse_args(ty: &FuncType, args: &[OsString]) -> Result<Vec<Val>, String> {
    let params = ty.params();
    if params.len() != args.len() {
        let plural = if params.len() == 1 { "" } else { "s" };
        return Err(format!("expected {} argument{plural}, found {}", params.len(), args.len()));
    }
    let parse = |(i, (ty, arg))| parse_arg(ty, arg).map_err(|message| format!("argument {}: {message}", i + 1));
    (0..).zip(params.zip(args)).map(parse).collect()
}

fn parse_arg(ty: ValType, arg: &OsString) -> Result<Val, String> {
    let text = arg.to_str().unwrap_or_default();
    let value = match ty {
        ValType::I32 => integer(text, 32).map(|bits| Val::I32(bits as i32)),
        ValType::I64 => integer(text, 64).map(|bits| Val::I64(bits as i64)),
        ValType::F32 => text.parse().ok().map(|x: f32| Val::F32(x.to_bits())),
        ValType::F64 => text.parse().ok().map(|x: f64| Val::F64(x.to_bits())),
        ValType::V128 => vector(text).map(|bits| Val::V128(V128::from(bits))),
        ValType::Ref(_) => return Err(format!("a value of type {ty} cannot be given on the command line")),
    };
    value.ok_or_else(|| format!("expected a value of type {ty}, found `{}`", arg.display()))
}

/// Parses a decimal or `0x` number, signed or unsigned, of at most `bits` bits.
fn integer(text: &str, bits: u32) -> Option<u64> {
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let magnitude = match magnitude.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok()?,
        None if !magnitude.starts_with('+') => magnitude.parse::<u64>().ok()?,
        _ => return None,
    };
    let limit = if negative { 1 << (bits - 1) } else { u64::MAX >> (64 - bits) };
    (magnitude <= limit).then(|| if negative { magnitude.wrapping_neg() } else { magnitude })
}

/// Parses a vector: `0x` and the vector as one number, lane 0 lowest; or its lanes from lane 0 on, as in
/// `i32x4:1,2,3,4`.
fn vector(text: &str) -> Option<u128> {
    if let Some(digits) = text.strip_prefix("0x") {
        return if digits.starts_with('+') { None } else { u128::from_str_radix(digits, 16).ok() };
    }
    let (shape, lanes) = text.split_once(':')?;
    let lanes: Vec<&str> = lanes.split(',').collect();
    let (kind, width, count) = match shape {
        "i8x16" => ('i', 8, 16),
        "i16x8" => ('i', 16, 8),
        "i32x4" => ('i', 32, 4),
        "i64x2" => ('i', 64, 2),
        "f32x4" => ('f', 32, 4),
        "f64x2" => ('f', 64, 2),
        _ => return None,
    };
    let lane = |text: &str| match (kind, width) {
        ('i', _) => integer(text, width).map(|bits| u128::from(bits) & (u128::MAX >> (128 - width))),
        (_, 32) => text.parse().ok().map(|x: f32| x.to_bits().into()),
        _ => text.parse().ok().map(|x: f64| x.to_bits().into()),
    };
    let bits = lanes.iter().rev().try_fold(0u128, |bits, text| Some(bits.unbounded_shl(width) | lane(text)?))?;
    (lanes.len() == count).then_some(bits)
}

/// Formats a result.
pub(crate) fn show(value: &Val) -> String {
    match value {
        Val::I32(x) => x.to_string(),
        Val::I64(x) => x.to_string(),
        Val::F32(bits) => f32::from_bits(*bits).to_string(),
        Val::F64(bits) => f64::from_bits(*bits).to_string(),
        Val::V128(bits) => bits.to_string(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        assert_eq!(integer("4294967295", 32), Some(0xffff_ffff));
        assert_eq!(integer("4294967296", 32), None);
        assert_eq!(integer("-2147483648", 32).map(|x| x as i32), Some(i32::MIN));
        assert_eq!(integer("-2147483649", 32), None);
        assert_eq!(integer("0xffffffffffffffff", 64), Some(u64::MAX));
        assert_eq!(integer("-9223372036854775808", 64).map(|x| x as i64), Some(i64::MIN));
        for wrong in ["", "-", "0x", "+1", "-+1", "0x+1", "1.5", "ten", "1_000", "0x1ffffffffffffffff"] {
            assert_eq!(integer(wrong, 64), None, "{wrong}");
        }
    }

    #[test]
    fn vectors() {
        let four = 0x00000004_fffffffe_00000002_00000001;
        for text in ["i32x4:1,2,-2,4", "0x4fffffffe0000000200000001", "i64x2:0x200000001,21474836478", "i16x8:1,0,2,0,-2,-1,4,0"]
        {
            assert_eq!(vector(text), Some(four), "{text}");
        }
        assert_eq!(vector("i8x16:-1,255,0,0,0,0,0,0,0,0,0,0,0,0,0,-128"), Some(0xffff | 0x80 << 120));
        assert_eq!(vector("f32x4:1,0,0,-0"), Some(0x80000000_00000000_00000000_3f800000));
        assert_eq!(vector("f64x2:0.5,nan"), Some(u128::from(f64::NAN.to_bits()) << 64 | u128::from(0.5f64.to_bits())));
        for wrong in [
            "",
            "0x",
            "0x+1",
            "1",
            "i32x4",
            "i32x4:1,2,3",
            "i32x4:1,2,3,4,5",
            "i8x16:256",
            "i64x4:1,2",
            "f32x4:a,b,c,d",
            "v128:1",
        ] {
            assert_eq!(vector(wrong), None, "{wrong}");
        }
        assert_eq!(vector("0x100000000000000000000000000000000"), None, "more than 16 bytes");
        assert_eq!(show(&Val::V128(V128::from(four))), "0x00000004fffffffe0000000200000001");
    }
}
