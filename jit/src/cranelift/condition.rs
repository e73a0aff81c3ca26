//! Conditions of integer comparisons.

/// The CLIF condition of `$op`. Scalars and lanes are compared by different enums in which equal comparisons have equal
/// names; additional arms are for comparisons that only one of them has.
macro_rules! integer_condition {
    ($op:expr, $Compare:ident $(, $other:pat => $otherwise:expr)?) => {
        match $op {
            $Compare::Eq => IntCC::Equal,
            $Compare::Ne => IntCC::NotEqual,
            $Compare::LtS => IntCC::SignedLessThan,
            $Compare::LtU => IntCC::UnsignedLessThan,
            $Compare::GtS => IntCC::SignedGreaterThan,
            $Compare::GtU => IntCC::UnsignedGreaterThan,
            $Compare::LeS => IntCC::SignedLessThanOrEqual,
            $Compare::LeU => IntCC::UnsignedLessThanOrEqual,
            $Compare::GeS => IntCC::SignedGreaterThanOrEqual,
            $Compare::GeU => IntCC::UnsignedGreaterThanOrEqual,
            $($other => $otherwise,)?
        }
    };
}

pub(super) use integer_condition;
