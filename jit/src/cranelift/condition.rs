//! The conditions of comparisons of integers.

/// The CLIF condition of `$op`. Scalars and lanes are compared by enums of their own, in which equal comparisons have equal names;
/// arms for what only one of them has follow.
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
