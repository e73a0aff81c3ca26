//! Bytes drive wasm-smith; the first of them chooses the kind of module, with imports and exceptions or without, and the tier that is compared
//! with the interpreter.

use super::target::{Target, random_inputs};
use crate::differential::tiers_of_weir;
use crate::engines::engine;
use crate::smith;
use std::cell::OnceCell;
use weir::{Config, Engine};

/// The target.
pub const TARGET: Target = Target { name: "smith", run, seeds: || random_inputs(64, 600) };

/// The number of loop iterations and calls that a module may execute, and the stack that suffices for them, in bytes. A smaller one would
/// end in some tiers only.
const FUEL: u32 = 100;
const STACK: usize = 4 << 20;

thread_local! {
    static ENGINES: OnceCell<Vec<Engine>> = const { OnceCell::new() };
}

/// An engine for every tier, the interpreter first.
fn engines() -> Vec<Engine> {
    let made = |(_, mut config): (_, Config)| {
        config.max_wasm_stack(STACK).value_stack_size(STACK);
        engine(&config).expect("every tier is there under test")
    };
    tiers_of_weir().map(made).collect()
}

fn run(data: &[u8]) {
    let (Some(&choice), Some(wasm)) = (data.first(), module(data)) else { return };
    let [kind, choice] = split(choice);
    ENGINES.with(|engines| {
        let (first, others) = engines.get_or_init(self::engines).split_first().expect("the interpreter");
        let tier = choice as usize % others.len();
        if let Err(difference) = smith::compare_on(&wasm, kind, [first, &others[tier]]) {
            panic!("the interpreter and tier {} after it: {difference}", tier + 1);
        }
    });
}

/// What the first byte chooses: the kind of module, and the tier.
fn split(choice: u8) -> [u64; 2] {
    [u64::from(choice) % KINDS, u64::from(choice) / KINDS]
}

/// Kinds of modules: see [`smith::module_of_bytes`].
const KINDS: u64 = 12;
/// The values of the first byte from this one on are for modules that may have imports and exceptions.
const BEYOND_WASMI: u8 = 192;

/// The module of an input; `None` if wasm-smith makes none.
pub(super) fn module(data: &[u8]) -> Option<Vec<u8>> {
    let (&choice, data) = data.split_first()?;
    smith::module_of_bytes(data, split(choice)[0], FUEL, choice >= BEYOND_WASMI)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Coverage;
    use weir_bytecode::Opcode;
    use weir_bytecode::validate::{Options, Proposals, parse_with};

    /// The modules for inputs that begin with `choice`: how many have imports, and their opcodes.
    fn modules(choice: u8) -> (usize, Coverage) {
        let (mut importing, mut coverage) = (0, Coverage::default());
        for mut input in random_inputs(64, 600) {
            input[0] = choice;
            let Some(wasm) = module(&input) else { continue };
            let options = Options { proposals: Proposals::all(), ..Options::default() };
            let parsed = parse_with(wasm.as_slice().into(), options).expect("it is valid");
            importing += usize::from(!parsed.imports.is_empty());
            coverage.add(&wasm).expect("it is valid");
        }
        (importing, coverage)
    }

    #[test]
    fn the_first_byte_chooses_imports_and_exceptions() {
        let throws = |coverage: &Coverage| [Opcode::Throw, Opcode::TryTable].map(|op| coverage.count(op));
        let (importing, coverage) = modules(BEYOND_WASMI);
        assert!(importing >= 10 && throws(&coverage).iter().all(|count| *count > 0), "{importing}, {:?}", throws(&coverage));
        let (importing, coverage) = modules(BEYOND_WASMI - 1);
        assert_eq!((importing, throws(&coverage)), (0, [0; 2]));
    }
}
