//! Declarations of statistics: [`statistics!`] makes, from one list of fields, a public struct, its accumulation, its values for
//! reports and its documentation.

use std::fmt::Debug;
use weir_contract::stats::{Counters, Declaration, sum_of};

/// The value of a statistic.
#[derive(Clone, PartialEq, Debug)]
pub enum StatValue<'a> {
    /// A number of things, events or bytes, or an index.
    Count(u64),
    /// A time.
    Milliseconds(f64),
    /// A text, where there is one.
    Text(Option<&'a str>),
    /// Statistics with their names.
    Group(Vec<(&'a str, StatValue<'a>)>),
    /// One value for each event, in order.
    List(Vec<StatValue<'a>>),
}

/// A type of statistics.
pub(crate) trait Statistic {
    /// Returns the value for reports.
    fn value(&self) -> StatValue<'_>;

    /// Appends the declarations of the statistics in this one, whose own name is `name`.
    fn declare(_name: &str, _list: &mut Vec<Declaration>) {}
}

/// A type of statistics that can be accumulated.
pub(crate) trait Accumulate {
    /// Adds the statistics of others.
    fn add(&mut self, more: &Self);
}

impl Statistic for u64 {
    fn value(&self) -> StatValue<'_> {
        StatValue::Count(*self)
    }
}

impl Accumulate for u64 {
    fn add(&mut self, more: &u64) {
        *self += more;
    }
}

impl Statistic for u32 {
    fn value(&self) -> StatValue<'_> {
        StatValue::Count((*self).into())
    }
}

/// The only floats are times.
impl Statistic for f64 {
    fn value(&self) -> StatValue<'_> {
        StatValue::Milliseconds(*self)
    }
}

/// Times in milliseconds are whole nanoseconds; rounding keeps their sums so, and short in reports.
impl Accumulate for f64 {
    fn add(&mut self, more: &f64) {
        *self = ((*self + more) * 1e6).round() / 1e6;
    }
}

impl Statistic for String {
    fn value(&self) -> StatValue<'_> {
        StatValue::Text(Some(self))
    }
}

impl Statistic for Option<String> {
    fn value(&self) -> StatValue<'_> {
        StatValue::Text(self.as_deref())
    }
}

/// The first text remains.
impl Accumulate for Option<String> {
    fn add(&mut self, more: &Option<String>) {
        if self.is_none() {
            self.clone_from(more);
        }
    }
}

/// Numbers by name, in the order in which the names first came.
impl<N: Statistic> Statistic for Vec<(String, N)> {
    fn value(&self) -> StatValue<'_> {
        StatValue::Group(self.iter().map(|(name, number)| (&**name, number.value())).collect())
    }
}

impl<N: Accumulate + Default> Accumulate for Vec<(String, N)> {
    fn add(&mut self, more: &Vec<(String, N)>) {
        more.iter().for_each(|(name, number)| sum_of(self, name).add(number));
    }
}

/// A list has one row for each event.
pub(crate) trait Row: Statistic + Clone {}

impl<R: Row> Statistic for Vec<R> {
    fn value(&self) -> StatValue<'_> {
        StatValue::List(self.iter().map(R::value).collect())
    }

    fn declare(name: &str, list: &mut Vec<Declaration>) {
        R::declare(&format!("{name}[]"), list);
    }
}

impl<R: Row> Accumulate for Vec<R> {
    fn add(&mut self, more: &Vec<R>) {
        self.extend_from_slice(more);
    }
}

impl Accumulate for Counters {
    fn add(&mut self, more: &Counters) {
        *self += *more;
    }
}

/// Declares a struct of statistics. A line is a field with its documentation, its type and a [`Unit`](weir_contract::stats::Unit);
/// the field's name is that in reports. The fields after `plus`, which are optional, are accumulated, but have names of their own in
/// reports. A `row` is not accumulated.
macro_rules! statistics {
    ($(#[$meta:meta])* $name:ident { $($fields:tt)* } $(plus { $($(#[$more_meta:meta])* $more:ident: $more_ty:ty;)* })?) => {
        $crate::records::statistic::statistics!(@struct [$(#[$meta])*] $name [$($($(#[$more_meta])* pub $more: $more_ty,)*)?] $($fields)*);
        $crate::records::statistic::statistics!(@accumulate $name [$($($more)*)?] $($fields)*);
    };
    ($(#[$meta:meta])* row $name:ident { $($fields:tt)* }) => {
        $crate::records::statistic::statistics!(@struct [$(#[$meta])*] $name [] $($fields)*);
        impl $crate::records::statistic::Row for $name {}
    };
    (@struct [$(#[$meta:meta])*] $name:ident [$($more:tt)*] $($(#[doc = $about:literal])+ $field:ident: $ty:ty, $unit:ident;)*) => {
        $(#[$meta])*
        #[non_exhaustive]
        pub struct $name {
            $($(#[doc = $about])+ pub $field: $ty,)*
            $($more)*
        }

        impl $crate::records::statistic::Statistic for $name {
            fn value(&self) -> $crate::records::statistic::StatValue<'_> {
                $crate::records::statistic::StatValue::Group(vec![
                    $((stringify!($field), $crate::records::statistic::Statistic::value(&self.$field)),)*
                ])
            }

            fn declare(name: &str, list: &mut Vec<weir_contract::stats::Declaration>) {
                let parent = if name.is_empty() { String::new() } else { format!("{name}.") };
                $(
                    let (name, unit) = (format!("{parent}{}", stringify!($field)), weir_contract::stats::Unit::$unit);
                    let about = concat!($($about),+).trim_ascii();
                    list.push(weir_contract::stats::Declaration { name: name.clone(), unit, about });
                    <$ty as $crate::records::statistic::Statistic>::declare(&name, list);
                )*
            }
        }
    };
    (@accumulate $name:ident [$($more:ident)*] $($(#[$about:meta])+ $field:ident: $ty:ty, $unit:ident;)*) => {
        impl $crate::records::statistic::Accumulate for $name {
            fn add(&mut self, more: &$name) {
                $($crate::records::statistic::Accumulate::add(&mut self.$field, &more.$field);)*
                $($crate::records::statistic::Accumulate::add(&mut self.$more, &more.$more);)*
            }
        }
    };
}

pub(crate) use statistics;
