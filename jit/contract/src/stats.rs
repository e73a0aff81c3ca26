//! What the compiler counts, declared once: the sums over compilations, the public statistics and their names in JSON derive from
//! the list in this file.

macro_rules! counters {
    ($($(#[$about:meta])* $name:ident: $path:literal;)*) => {
        /// Counts of a compilation, or sums over compilations.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$about])* pub $name: u64,)*
        }

        impl Counters {
            /// Every counter, with its name in reports; a dot separates a group from a counter in it.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($path, self.$name)),*].into_iter()
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
    /// Operations on constants that construction made constants.
    folded: "ssa.folded";
    /// Operations that construction made a value or another operation by an identity.
    simplified: "ssa.simplified";
    /// Operations by a power of two that construction made cheaper ones.
    reduced: "ssa.reduced";
    /// Operations that construction found to be computed already. Global value numbering counts the others as its rewrites.
    shared: "ssa.shared";
    /// Branches on constants that lost their other edges in construction.
    pruned: "ssa.pruned";
    /// Instructions of the SSA that the back end began with.
    values: "ssa.values";
    /// Values that constant propagation found constant, and would not have found without gates.
    gated_constants: "gates.constants";
    /// Branches that it found to go one way only, and would not have found without gates.
    gated_branches: "gates.branches";
    /// Blocks that it found to be never executed, and would not have found without gates.
    gated_blocks: "gates.blocks";
    /// Stores of a register to a spill slot, in the code.
    spills: "spills";
    /// Loads from a spill slot, in the code.
    reloads: "reloads";
    /// Copies that the register allocator made between registers, in the code.
    copies: "copies";
}
