//! The order of the passes, and the reasons for it.

use super::pass::Pass;
use super::{
    constprop, dce, dispatch, gvn, inline, load_forwarding, phis, products, simplify, simplify_cfg, threading, vectorise,
};

/// The passes, first to last.
pub const ORDER: &[&Pass] = &[
    &inline::PASS,
    &dispatch::PASS,
    &simplify::PASS,
    &products::PASS,
    &load_forwarding::PASS,
    &gvn::PASS,
    &constprop::PASS,
    &threading::PASS,
    &simplify_cfg::PASS,
    &phis::PASS,
    &dce::PASS,
    &vectorise::PASS,
];

/// `(a, b, why)`: every run of `a` is before every run of `b`.
pub const BEFORE: &[(&str, &str, &str)] = &[
    ("inline", "simplify", "what an inlined function does with constant arguments is simplified"),
    ("inline", "dispatch", "an inlined function may dispatch, too"),
    ("dispatch", "simplify", "at the head of a dispatching loop no value is known"),
    ("simplify", "gvn", "values that are equal only after simplification get equal numbers"),
    ("inline", "products", "the product of an inlined function may have constant factors"),
    ("simplify", "products", "constants are on the right"),
    ("products", "gvn", "several products of the same factors are one"),
    ("load_forwarding", "gvn", "what is computed from equal loads is equal"),
    ("gvn", "constprop", "predicates are equal if their arguments are one value"),
    ("constprop", "threading", "conditions become the predicates that earlier branches test"),
    ("threading", "simplify_cfg", "blocks that lose their other edges are merged"),
    ("simplify_cfg", "phis", "a phi that has lost arguments is often redundant"),
    ("gvn", "phis", "arguments of a phi that were found equal make it redundant"),
    ("phis", "dce", "only dead code is left to remove at the end, of all the others"),
    ("dce", "vectorise", "the loops have only the instructions that they need, and no pass duplicates the vector loop's check"),
];

/// The pass with this name.
pub fn by_name(name: &str) -> Option<&'static Pass> {
    ORDER.iter().copied().find(|pass| pass.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_satisfies_before() {
        for (a, b, why) in BEFORE {
            let last = ORDER.iter().rposition(|pass| pass.name == *a).unwrap_or_else(|| panic!("no pass {a}"));
            let first = ORDER.iter().position(|pass| pass.name == *b).unwrap_or_else(|| panic!("no pass {b}"));
            assert!(last < first, "{a} must run before {b}: {why}");
        }
    }

    #[test]
    fn names_are_unique() {
        for (i, pass) in ORDER.iter().enumerate() {
            assert!(ORDER[..i].iter().all(|other| other.name != pass.name || std::ptr::eq(*other, *pass)), "{}", pass.name);
        }
    }
}
