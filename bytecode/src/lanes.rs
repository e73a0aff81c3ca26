//! Operations on vectors, by family: the last column of TABLE 1. A `match` on a [`LaneOp`] is exhaustive by family,
//! then within it.

/// The division of a vector into lanes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// No division: 128 bits.
    V128,
    /// 16 integers of 8 bits.
    I8x16,
    /// 8 integers of 16 bits.
    I16x8,
    /// 4 integers of 32 bits.
    I32x4,
    /// 2 integers of 64 bits.
    I64x2,
    /// 4 floats of 32 bits.
    F32x4,
    /// 2 floats of 64 bits.
    F64x2,
}

impl Shape {
    /// Returns the bits of a lane.
    pub const fn lane_bits(self) -> u32 {
        match self {
            Shape::V128 => 128,
            Shape::I8x16 => 8,
            Shape::I16x8 => 16,
            Shape::I32x4 | Shape::F32x4 => 32,
            Shape::I64x2 | Shape::F64x2 => 64,
        }
    }

    /// Returns the number of lanes.
    pub const fn lanes(self) -> u32 {
        128 / self.lane_bits()
    }

    /// Whether the lanes are floats.
    pub const fn is_float(self) -> bool {
        matches!(self, Shape::F32x4 | Shape::F64x2)
    }
}

/// A vector instruction: the shape of its operands, the shape in its name, and its operation. The two shapes are the
/// same for most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lanes {
    /// Shape of the operands that are vectors.
    pub from: Shape,
    /// Shape of the result, or of the operand if the result is a number.
    pub shape: Shape,
    /// The operation.
    pub op: LaneOp,
}

macro_rules! define_lane_ops {
    ($($(#[$about:meta])* $family:ident: $($name:ident)*;)*) => {
        /// The operation of a vector instruction.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum LaneOp {
            $($(#[$about])* $family($family),)*
        }

        $(
            $(#[$about])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
            #[allow(missing_docs, reason = "the instructions' own names")]
            pub enum $family {
                $($name,)*
            }
        )*
    };
}

define_lane_ops! {
    /// Operations that do not depend on lanes.
    Whole: Const Not And Andnot Or Xor Bitselect AnyTrue;
    /// Permutations of bytes.
    Permute: Shuffle Swizzle RelaxedSwizzle;
    /// Operations on one lane, or that copy a number to all lanes.
    Lane: Splat ExtractLane ExtractLaneS ExtractLaneU ReplaceLane;
    /// Shifts of all lanes by a number.
    Shift: Shl ShrS ShrU;
    /// Tests of all lanes, with a number as the result.
    Test: AllTrue Bitmask;
    /// Operations on one vector of integers.
    IntegerUnary: Abs Neg Popcnt;
    /// Operations on two vectors of integers.
    Integer: Add AddSatS AddSatU Sub SubSatS SubSatU Mul MinS MinU MaxS MaxU AvgrU Q15mulrSatS RelaxedQ15mulrS NarrowS NarrowU DotS RelaxedDotS;
    /// Comparisons of integers; all ones in a lane where they hold.
    Compare: Eq Ne LtS LtU GtS GtU LeS LeU GeS GeU;
    /// Lanes twice as wide, of one vector.
    Widen: ExtendLowS ExtendLowU ExtendHighS ExtendHighU ExtaddPairwiseS ExtaddPairwiseU;
    /// Products twice as wide as the lanes.
    Product: ExtmulLowS ExtmulLowU ExtmulHighS ExtmulHighU;
    /// Operations on one vector of floats.
    FloatUnary: Abs Neg Sqrt Ceil Floor Trunc Nearest;
    /// Operations on two vectors of floats.
    Float: Add Sub Mul Div Min Max Pmin Pmax RelaxedMin RelaxedMax;
    /// Comparisons of floats.
    FloatCompare: Eq Ne Lt Gt Le Ge;
    /// Conversions between integers and floats, and between floats.
    Convert: ConvertS ConvertU ConvertLowS ConvertLowU TruncSatS TruncSatU TruncSatSZero TruncSatUZero RelaxedTruncS RelaxedTruncU RelaxedTruncSZero RelaxedTruncUZero DemoteZero PromoteLow;
    /// Operations on three vectors.
    Ternary: RelaxedMadd RelaxedNmadd RelaxedLaneselect RelaxedDotAddS;
}

impl Integer {
    /// Whether a lane of the result depends on other lanes than those at its place.
    pub const fn mixes_lanes(self) -> bool {
        matches!(self, Integer::NarrowS | Integer::NarrowU | Integer::DotS | Integer::RelaxedDotS)
    }
}

impl LaneOp {
    /// Whether there may be an instruction on vectors of twice the length that does this in each half. There is none if a number comes from a lane
    /// or goes to one, nor for those conversions that change the width of lanes for which processors have no such instruction.
    pub const fn works_on_halves(self) -> bool {
        match self {
            LaneOp::Whole(op) => !matches!(op, Whole::AnyTrue),
            LaneOp::Lane(op) => matches!(op, Lane::Splat),
            LaneOp::Permute(_) | LaneOp::Shift(_) | LaneOp::IntegerUnary(_) | LaneOp::Integer(_) | LaneOp::Compare(_) => true,
            LaneOp::Widen(_) | LaneOp::Product(_) | LaneOp::Ternary(_) => true,
            LaneOp::FloatUnary(_) | LaneOp::Float(_) | LaneOp::FloatCompare(_) => true,
            LaneOp::Convert(op) => match op {
                Convert::ConvertS | Convert::ConvertU | Convert::TruncSatS | Convert::TruncSatU => true,
                Convert::RelaxedTruncS | Convert::RelaxedTruncU | Convert::ConvertLowU => true,
                Convert::ConvertLowS | Convert::PromoteLow | Convert::DemoteZero => false,
                Convert::TruncSatSZero | Convert::TruncSatUZero => false,
                Convert::RelaxedTruncSZero | Convert::RelaxedTruncUZero => false,
            },
            LaneOp::Test(_) => false,
        }
    }

    /// Whether the lanes of the result are those of the lower half of the operand, twice as wide, and there may be a result of twice
    /// the length, of both halves. There is none of `ConvertLowU`, for which no processor has an instruction.
    pub const fn widens_low_half(self) -> bool {
        match self {
            LaneOp::Widen(op) => matches!(op, Widen::ExtendLowS | Widen::ExtendLowU),
            LaneOp::Convert(op) => matches!(op, Convert::ConvertLowS | Convert::PromoteLow),
            LaneOp::Whole(_) | LaneOp::Lane(_) | LaneOp::Integer(_) | LaneOp::Shift(_) | LaneOp::IntegerUnary(_) => false,
            LaneOp::Compare(_) | LaneOp::FloatUnary(_) | LaneOp::Float(_) | LaneOp::FloatCompare(_) => false,
            LaneOp::Permute(_) | LaneOp::Test(_) | LaneOp::Product(_) | LaneOp::Ternary(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Opcode;

    /// `AddSatS` as `add_sat_s`.
    fn snake(name: &str) -> String {
        let parts =
            name.chars().map(|c| if c.is_ascii_uppercase() { format!("_{}", c.to_ascii_lowercase()) } else { c.to_string() });
        parts.collect::<String>().trim_start_matches('_').to_string()
    }

    /// Returns the mnemonic for a row's shapes and operation. The operands' shape is part of it, before the suffix, if
    /// it differs from the result's.
    fn spelled(lanes: Lanes) -> String {
        let name = |shape: Shape| format!("{shape:?}").to_lowercase();
        let op = format!("{:?}", lanes.op);
        let op = op.split_once('(').map_or(op.as_str(), |(_, op)| op.trim_end_matches(')'));
        let mut op = snake(op);
        if lanes.from != lanes.shape {
            let end =
                ["_add_s", "_s_zero", "_u_zero", "_zero", "_s", "_u"].into_iter().find(|end| op.ends_with(end)).unwrap_or("");
            let start = op.trim_end_matches(end).to_string();
            let other = if op.starts_with("relaxed_dot") { "_i7x16" } else { "" };
            op = format!("{start}_{}{other}{end}", name(lanes.from));
        }
        format!("{}.{op}", name(lanes.shape))
    }

    #[test]
    fn rows_have_the_shapes_and_operations_of_their_mnemonics() {
        let (mut rows, mut wrong) = (0, Vec::new());
        for &op in Opcode::ALL {
            let vector = (0x200..0x400).contains(&(op as u16));
            let accesses = op.mnemonic().contains(".load") || op.mnemonic().contains(".store");
            let has_lanes = vector && !accesses;
            match op.lanes() {
                lanes if op.is_vector() != vector => wrong.push(format!("{}: {lanes:?}", op.mnemonic())),
                Some(lanes) if has_lanes && spelled(lanes) == op.mnemonic() => rows += 1,
                None if !has_lanes => {}
                lanes => wrong.push(format!("{}: {lanes:?}", op.mnemonic())),
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(rows > 200);
    }
}
