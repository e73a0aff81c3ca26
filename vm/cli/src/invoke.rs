//! `--invoke`: parses the arguments of a function and prints its results.

use std::ffi::OsString;
use weir::{FuncType, V128, Val, ValType};

/// A reference that is null, as an argument and as a result.
const NULL: &str = "null";

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
        ValType::Ref(_) if text == NULL => Val::default_for_ty(&ty),
        ValType::Ref(_) => return Err(format!("of the values of type {ty}, only `{NULL}` can be given on the command line")),
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

/// A shape of vectors: its name, the width of its lanes in bits, and whether these are floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    name: &'static str,
    width: u32,
    floats: bool,
}

const SHAPES: [Shape; 6] = [
    Shape { name: "i8x16", width: 8, floats: false },
    Shape { name: "i16x8", width: 16, floats: false },
    Shape { name: "i32x4", width: 32, floats: false },
    Shape { name: "i64x2", width: 64, floats: false },
    Shape { name: "f32x4", width: 32, floats: true },
    Shape { name: "f64x2", width: 64, floats: true },
];

impl Shape {
    /// Splits a vector such as `i32x4:1,2,3,4` into shape and lanes.
    fn split(text: &str) -> Option<(Shape, &str)> {
        let (name, lanes) = text.split_once(':')?;
        Some((SHAPES.into_iter().find(|shape| shape.name == name)?, lanes))
    }
}

/// Returns the shape of the first argument that is written as lanes, in which results are shown.
pub(crate) fn shape(args: &[OsString]) -> Option<Shape> {
    args.iter().find_map(|arg| Some(Shape::split(arg.to_str()?)?.0))
}

/// Parses a vector: `0x` and the vector as one number, lane 0 lowest; or its lanes from lane 0 on, as in
/// `i32x4:1,2,3,4`.
fn vector(text: &str) -> Option<u128> {
    if let Some(digits) = text.strip_prefix("0x") {
        return if digits.starts_with('+') { None } else { u128::from_str_radix(digits, 16).ok() };
    }
    let (Shape { width, floats, .. }, lanes) = Shape::split(text)?;
    let lanes: Vec<&str> = lanes.split(',').collect();
    let lane = |text: &str| match (floats, width) {
        (false, _) => integer(text, width).map(|bits| u128::from(bits) & (u128::MAX >> (128 - width))),
        (true, 32) => text.parse().ok().map(|x: f32| x.to_bits().into()),
        (true, _) => text.parse().ok().map(|x: f64| x.to_bits().into()),
    };
    let bits = lanes.iter().rev().try_fold(0u128, |bits, text| Some(bits.unbounded_shl(width) | lane(text)?))?;
    (lanes.len() as u32 == 128 / width).then_some(bits)
}

/// Formats a result so that it can be an argument. A vector is shown by its lanes if a shape is given; integers are signed.
pub(crate) fn show(value: &Val, shape: Option<Shape>) -> String {
    match (value, shape) {
        (Val::I32(x), _) => x.to_string(),
        (Val::I64(x), _) => x.to_string(),
        (Val::F32(bits), _) => f32::from_bits(*bits).to_string(),
        (Val::F64(bits), _) => f64::from_bits(*bits).to_string(),
        (Val::V128(bits), None) => bits.to_string(),
        (Val::V128(bits), Some(shape)) => lanes((*bits).into(), shape),
        (other, _) if (*other).ref_().is_some_and(|reference| reference.is_null()) => NULL.into(),
        (other, _) => format!("{other:?}"),
    }
}

fn lanes(bits: u128, Shape { name, width, floats }: Shape) -> String {
    let lane = |i| {
        let bits = (bits >> (i * width)) as u64;
        match (floats, width) {
            (true, 32) => f32::from_bits(bits as u32).to_string(),
            (true, _) => f64::from_bits(bits).to_string(),
            // Moves the sign to the top and back.
            (false, _) => ((bits << (64 - width)) as i64 >> (64 - width)).to_string(),
        }
    };
    let lanes: Vec<String> = (0..128 / width).map(lane).collect();
    format!("{name}:{}", lanes.join(","))
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
        let shown = |shape: &str| show(&Val::V128(V128::from(four)), shape_of(shape));
        assert_eq!(shown(""), "0x00000004fffffffe0000000200000001");
        assert_eq!(shown("i32x4:"), "i32x4:1,2,-2,4");
        assert_eq!(shown("i8x16:"), "i8x16:1,0,0,0,2,0,0,0,-2,-1,-1,-1,4,0,0,0");
        for shape in SHAPES {
            for bits in [four, !four, u128::from(0.5f64.to_bits()) << 64 | 0x7fc0_0000_bf80_0000] {
                let text = show(&Val::V128(V128::from(bits)), Some(shape));
                // Not every NaN has a text of its own.
                assert!(vector(&text) == Some(bits) || text.contains("NaN"), "{text}");
            }
        }
    }

    fn shape_of(text: &str) -> Option<Shape> {
        shape(&["7".into(), text.into()])
    }
}
