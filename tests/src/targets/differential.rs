//! Bytes drive the generator of structured programs, or that of programs that throw and catch; the first of them chooses the generator, and
//! the tier that is compared with the interpreter, in results, traps, memory and fuel.

use super::target::{Target, random_inputs};
use crate::differential::{AMPLE_FUEL, Outcome, difference, throws_exactly, tiers_of_weir, weir_outcome};
use crate::engines::engine;
use crate::generate::{Program, generate_with, throwing_with};
use crate::rng::Rng;
use std::cell::OnceCell;
use weir::{Config, Engine, Module};

/// The target.
pub const TARGET: Target = Target { name: "differential", run, seeds: || random_inputs(64, 400) };

/// The values of the first byte from this one on are for programs that throw, which are less than a fifth.
const THROWING: u8 = 210;

/// A tier, with an engine that does not count fuel and one that does.
struct Pair {
    name: String,
    engines: [Engine; 2],
}

thread_local! {
    static TIERS: OnceCell<Vec<Pair>> = const { OnceCell::new() };
}

/// Every tier without a random profile, the interpreter first.
fn pairs() -> Vec<Pair> {
    let pair = |(name, mut config): (String, Config)| {
        let mut make = |fuel| engine(config.consume_fuel(fuel)).expect("every tier is there under test");
        Pair { name, engines: [make(false), make(true)] }
    };
    tiers_of_weir().map(pair).collect()
}

fn run(data: &[u8]) {
    let choice = data.first().copied().unwrap_or_default();
    let (throws, choice) = (choice >= THROWING, usize::from(choice));
    let program = program(data);
    TIERS.with(|tiers| {
        let tiers = tiers.get_or_init(pairs);
        let (first, others) = tiers.split_first().expect("the interpreter");
        let other = &others[choice % others.len()];
        let metered = choice / others.len() % 2 == 1 && (!throws || throws_exactly(&other.name));
        let [a, b] = [first, other].map(|tier| outcome(&program, &tier.name, &tier.engines[usize::from(metered)]));
        if let Err(mismatch) = difference(&program, (&first.name, &a), (&other.name, &b)) {
            panic!("{mismatch}");
        }
        assert_eq!(a.fuel, b.fuel, "the fuel of the calls on {} and {}", first.name, other.name);
    });
}

/// The program of an input.
pub(super) fn program(data: &[u8]) -> Program {
    let generator = if data.first().is_some_and(|&choice| choice >= THROWING) { throwing_with } else { generate_with };
    generator(&mut Rng::of_bytes(data.get(1..).unwrap_or_default()))
}

fn outcome(program: &Program, name: &str, engine: &Engine) -> Outcome {
    let outcome = Module::new(engine, &program.wasm).and_then(|module| weir_outcome(program, &module, AMPLE_FUEL));
    outcome.unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Coverage;
    use weir_bytecode::Opcode;

    #[test]
    fn the_first_byte_chooses_programs_that_throw() {
        for choice in [0, THROWING - 1, THROWING, u8::MAX] {
            let mut coverage = Coverage::default();
            for mut input in random_inputs(8, 400) {
                input[0] = choice;
                coverage.add(&program(&input).wasm).expect("it is valid");
            }
            let throws = [Opcode::Throw, Opcode::TryTable].map(|op| coverage.count(op) > 0);
            assert_eq!(throws, [choice >= THROWING; 2], "{choice}");
        }
    }
}
