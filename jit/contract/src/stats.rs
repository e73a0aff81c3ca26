//! The declaration of a statistic, and the compiler's counters. Each counter is declared once: the sums over compilations, the
//! public statistics, their names in JSON and their documentation derive from the list in this file. `weir::Stats` declares the
//! others.

use std::fmt;

/// The declaration of a statistic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// Its name in reports. A dot separates the name of a group from the name of a statistic in it; `[]` follows a list's name.
    pub name: String,
    /// The unit of its number.
    pub unit: Unit,
    /// Its documentation, in Markdown.
    pub about: &'static str,
}

/// The unit of a statistic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Things or events.
    Count,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Milliseconds,
    /// No unit: it is an index, a name, a reason, or a group of statistics.
    None,
}

impl fmt::Display for Unit {
    /// The word in tables: empty for [`Unit::None`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Count => "count",
            Unit::Bytes => "bytes",
            Unit::Milliseconds => "ms",
            Unit::None => "",
        })
    }
}

/// Returns the number named `name` in `sums`, which keeps the order in which names first came. A new one is zero.
pub fn sum_of<'s, 'n, K, N>(sums: &'s mut Vec<(K, N)>, name: &'n str) -> &'s mut N
where
    K: AsRef<str> + From<&'n str>,
    N: Default,
{
    let known = sums.iter().position(|(known, _)| known.as_ref() == name);
    let at = known.unwrap_or_else(|| {
        sums.push((name.into(), N::default()));
        sums.len() - 1
    });
    &mut sums[at].1
}

macro_rules! counters {
    ($($(#[doc = $about:literal])+ $name:ident: $path:literal;)*) => {
        /// Counts of a compilation, or sums over compilations.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[doc = $about])+ pub $name: u64,)*
        }

        impl Counters {
            /// Every counter, with its name in reports; a dot separates a group from a counter in it.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($path, self.$name)),*].into_iter()
            }

            /// The declarations of the counters, in the order of [`Counters::each`].
            pub fn declarations() -> Vec<Declaration> {
                vec![$(Declaration { name: $path.to_owned(), unit: Unit::Count, about: concat!($($about),+).trim_ascii() }),*]
            }
        }

        impl std::ops::AddAssign for Counters {
            fn add_assign(&mut self, more: Counters) {
                $(self.$name += more.$name;)*
            }
        }
    };
}

counters! {
    /// Phis that construction placed and that stayed.
    phis: "ssa.phis";
    /// Phis that construction placed and found trivial.
    trivial_phis: "ssa.trivial_removed";
    /// Operations on constants that construction folded.
    folded: "ssa.folded";
    /// Operations that construction replaced by a value or another operation, by an algebraic identity.
    simplified: "ssa.simplified";
    /// Operations by a power of two that construction replaced by cheaper ones.
    reduced: "ssa.reduced";
    /// Operations that construction found to be computed already. Global value numbering counts the others as its rewrites.
    shared: "ssa.shared";
    /// Branches on constants that lost their other edges in construction.
    pruned: "ssa.pruned";
    /// Instructions of the SSA that the back end began with.
    values: "ssa.values";
    /// Values that constant propagation found constant, and would not have found without gates.
    gated_constants: "gates.constants";
    /// Branches that constant propagation found to go one way only, and would not have found without gates.
    gated_branches: "gates.branches";
    /// Blocks that constant propagation found to be never executed, and would not have found without gates.
    gated_blocks: "gates.blocks";
    /// Steps that compilations took, which their budgets limit: see `weir_jit::meter`.
    steps: "steps";
    /// Stores of a register to a spill slot, in the code.
    spills: "spills";
    /// Loads from a spill slot, in the code.
    reloads: "reloads";
    /// Copies that the register allocator made between registers, in the code.
    copies: "copies";
}
