//! Calling one function from the command line: its arguments from text, its results to text.

use std::ffi::OsString;
use weir::{FuncType, Val, ValType};

/// The arguments of a function of type `ty`.
///
/// # Errors
/// A message that says what was expected.
pub(crate) fn parse_args(ty: &FuncType, args: &[OsString]) -> Result<Vec<Val>, String> {
    let params = ty.params();
    if params.len() != args.len() {
        let plural = if params.len() == 1 { "" } else { "s" };
        return Err(format!("the function takes {} argument{plural}, {} given", params.len(), args.len()));
    }
    params.zip(args).map(|(param, arg)| parse_arg(param, arg)).collect()
}

fn parse_arg(ty: ValType, arg: &OsString) -> Result<Val, String> {
    let text = arg.to_str().unwrap_or_default();
    let value = match ty {
        ValType::I32 => integer(text, 32).map(|bits| Val::I32(bits as i32)),
        ValType::I64 => integer(text, 64).map(|bits| Val::I64(bits as i64)),
        ValType::F32 => text.parse().ok().map(|x: f32| Val::F32(x.to_bits())),
        ValType::F64 => text.parse().ok().map(|x: f64| Val::F64(x.to_bits())),
        ValType::V128 | ValType::Ref(_) => return Err(format!("a value of type {ty} cannot be given on the command line")),
    };
    value.ok_or_else(|| format!("`{}` is not a value of type {ty}", arg.display()))
}

/// A decimal or `0x` number, signed or unsigned, that fits in so many bits.
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

/// A result as text.
pub(crate) fn show(value: &Val) -> String {
    match value {
        Val::I32(x) => x.to_string(),
        Val::I64(x) => x.to_string(),
        Val::F32(bits) => f32::from_bits(*bits).to_string(),
        Val::F64(bits) => f64::from_bits(*bits).to_string(),
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
}
