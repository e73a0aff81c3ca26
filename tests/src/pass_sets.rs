//! Choices of optimiser passes: programs must behave the same with any of them.

use crate::rng::Rng;
use weir::{Config, Tier};
use weir_jit::opt::passes;

/// A choice of passes.
#[derive(Clone, Debug)]
pub struct PassSet {
    /// The name in messages.
    pub name: String,
    off: Vec<&'static str>,
}

/// The names of all passes.
fn names() -> impl Iterator<Item = &'static str> {
    passes::ORDER.iter().map(|pass| pass.name)
}

impl PassSet {
    /// All passes but one, for each pass; each pass alone; and none.
    pub fn every() -> Vec<PassSet> {
        let without = names().map(|pass| PassSet { name: format!("without {pass}"), off: vec![pass] });
        let alone =
            names().map(|alone| PassSet { name: format!("{alone} alone"), off: names().filter(|pass| *pass != alone).collect() });
        without.chain(alone).chain([PassSet { name: "no pass".into(), off: names().collect() }]).collect()
    }

    /// All passes for one seed in four, otherwise a random choice.
    pub fn random(seed: u64) -> PassSet {
        let mut rng = Rng::new(seed);
        let off: Vec<&'static str> = names().filter(|_| !seed.is_multiple_of(4) && rng.percent(50)).collect();
        let name = if off.is_empty() { "all passes".into() } else { format!("without {}", off.join(", ")) };
        PassSet { name, off }
    }

    /// Makes engines with these settings use these passes.
    pub fn apply<'c>(&self, config: &'c mut Config) -> &'c mut Config {
        config.passes_off(&self.off)
    }

    /// Weir's native back end for everything, after these passes.
    pub fn native(&self) -> Config {
        let mut config = Config::new();
        self.apply(&mut config).tier(Tier::Native);
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_is_off_somewhere_and_on_somewhere() {
        let sets = PassSet::every();
        let random: Vec<PassSet> = (0..64).map(PassSet::random).collect();
        for pass in names() {
            assert_eq!(sets.iter().filter(|set| set.off == [pass]).count(), 1, "{pass}");
            let alone = |set: &&PassSet| !set.off.contains(&pass) && set.off.len() + 1 == names().count();
            assert_eq!(sets.iter().filter(alone).count(), 1, "{pass}");
            let off = random.iter().filter(|set| set.off.contains(&pass)).count();
            assert!((8..56).contains(&off), "{pass} is off {off} times");
        }
        assert!(random[0].off.is_empty() && random[1].off != random[2].off, "{random:?}");
    }
}
