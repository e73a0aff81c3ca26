//! Which engine makes code: the one place where settings, build and host decide that.

use super::alone::Alone;
use super::native;
#[cfg(feature = "jit")]
use super::ssa::Evaluator;
use crate::records::config::{Allocator, Config, Tier, Unavailable};
use crate::records::engines::Engines;
use crate::records::error::{Error, Result};
use crate::records::quiescence::Domain;
use std::sync::Arc;

/// The engine that these settings ask for, of stores that are in `quiescence`.
///
/// # Errors
/// [`Unavailable`]: this build or host does not have it.
pub(crate) fn engines(config: &Config, quiescence: &Arc<Domain>) -> Result<Box<dyn Engines>> {
    match config.tier {
        Tier::Interpreter => Ok(Box::new(Alone::new(config))),
        Tier::Auto if !native::AVAILABLE => Ok(Box::new(Alone::new(config))),
        Tier::Cranelift if !cfg!(feature = "cranelift") => {
            Err(Error::new(Unavailable("this build of Weir does not have Cranelift")))
        }
        Tier::Native | Tier::Auto if config.allocator == Allocator::Regalloc2 && !cfg!(feature = "regalloc2") => {
            Err(Error::new(Unavailable("this build of Weir does not have regalloc2")))
        }
        Tier::Auto | Tier::Native | Tier::Cranelift => native::engines(config, quiescence),
        #[cfg(feature = "jit")]
        Tier::Ssa => Ok(Box::new(Evaluator::new(config))),
        #[cfg(not(feature = "jit"))]
        Tier::Ssa => Err(Error::new(Unavailable("this build of Weir has no compiler, which makes SSA"))),
    }
}
