//! Names of the host functions whose meaning [`crate::host`] defines.

/// What a host function does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Action {
    /// The seed of all that it does.
    pub seed: u64,
    /// Whether it never fails, and goes on after a call that does.
    pub calm: bool,
}

/// What names begin with, before the seed: of a function that may fail, and of a calm one.
const PREFIXES: [&str; 2] = ["act", "calm"];

impl Action {
    /// What the name of a function begins with, before its seed.
    pub(super) fn prefix(calm: bool) -> &'static str {
        PREFIXES[usize::from(calm)]
    }

    /// What the function with this name does, if that is an action.
    pub fn named(name: &str) -> Option<Action> {
        let [act, calm] = PREFIXES.map(|prefix| name.strip_prefix(prefix).and_then(|seed| seed.parse().ok()));
        act.map(|seed| Action { seed, calm: false }).or(calm.map(|seed| Action { seed, calm: true }))
    }
}
