//! Selects the compiling engine, from the settings, the build and the host.

use super::interpreter_only::InterpreterOnly;
use super::native;
#[cfg(feature = "jit")]
use super::ssa::Evaluator;
use crate::records::config::{Allocator, Config, Tier, Unavailable};
use crate::records::engines::Engines;
use crate::records::error::{Error, Result};
use crate::records::quiescence::Domain;
use std::sync::Arc;

/// Creates the engine that these settings select, for stores that register in `quiescence`.
///
/// # Errors
/// [`Unavailable`] if this build or host does not have it.
pub(crate) fn engines(config: &Config, quiescence: &Arc<Domain>) -> Result<Box<dyn Engines>> {
    if let Some(missing) = missing(config.tier, config.allocator, native::has_processor) {
        return Err(Error::new(missing));
    }
    match config.tier {
        Tier::Interpreter => Ok(Box::new(InterpreterOnly::new(config))),
        Tier::Auto if !native::AVAILABLE => Ok(Box::new(InterpreterOnly::new(config))),
        Tier::Auto | Tier::Native | Tier::Cranelift | Tier::Baseline => native::engines(config, quiescence),
        #[cfg(feature = "jit")]
        Tier::Ssa => Ok(Box::new(Evaluator::new(config))),
        #[cfg(not(feature = "jit"))]
        Tier::Ssa => unreachable!("it is missing"),
    }
}

/// Returns an error if this build or host lacks something that a tier needs. `has_processor` says whether the processor
/// executes the code of the native back end. [`Tier::Auto`] uses whatever is available.
fn missing(tier: Tier, allocator: Allocator, has_processor: impl Fn() -> bool) -> Option<Unavailable> {
    let regalloc2 = allocator == Allocator::Regalloc2 && !cfg!(feature = "regalloc2");
    match tier {
        Tier::Interpreter => None,
        Tier::Native | Tier::Cranelift | Tier::Baseline if !native::AVAILABLE => {
            Some(Unavailable::new("there is no native code in this build of Weir, or not for this host"))
        }
        Tier::Cranelift if !cfg!(feature = "cranelift") => Some(Unavailable::new("this build of Weir does not have Cranelift")),
        Tier::Native | Tier::Auto if native::AVAILABLE && regalloc2 => {
            Some(Unavailable::new("this build of Weir does not have regalloc2"))
        }
        Tier::Native | Tier::Baseline if !has_processor() => {
            Some(Unavailable::new("Weir's native back end needs a processor with AVX, BMI1, BMI2, LZCNT and POPCNT"))
        }
        Tier::Ssa if !cfg!(feature = "jit") => Some(Unavailable::new("this build of Weir has no compiler, which makes SSA")),
        Tier::Auto | Tier::Native | Tier::Cranelift | Tier::Baseline | Tier::Ssa => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_that_the_processor_cannot_execute_is_missing() {
        let missing = |tier, processor| missing(tier, Allocator::LinearScan, || processor).is_some();
        for tier in [Tier::Auto, Tier::Interpreter] {
            assert!(!missing(tier, false) && !missing(tier, true), "{tier:?}");
        }
        for tier in [Tier::Native, Tier::Baseline] {
            assert!(missing(tier, false), "{tier:?}");
            assert_eq!(missing(tier, true), !native::AVAILABLE, "{tier:?}");
        }
        let cranelift = cfg!(feature = "cranelift") && native::AVAILABLE;
        assert_eq!((missing(Tier::Cranelift, false), missing(Tier::Cranelift, true)), (!cranelift, !cranelift));
        let ssa = cfg!(feature = "jit");
        assert_eq!((missing(Tier::Ssa, false), missing(Tier::Ssa, true)), (!ssa, !ssa));
    }
}
