//! Dominators of the blocks of SSA ([`graph::dominators`](crate::graph::dominators)).

use super::Cfg;
use crate::graph::dominators;
use crate::ir::{Block, Func};

/// The dominator tree of the reachable blocks.
pub type Dominators = dominators::Dominators<Block>;

impl Dominators {
    /// Finds the dominators of `func`, whose reverse postorder is `cfg`.
    pub fn compute(func: &Func<'_>, cfg: &Cfg) -> Dominators {
        Dominators::of(cfg.as_order(), |block| func.block(block).preds.iter().copied())
    }
}
