//! Analyses of any graph of blocks. They are independent of SSA and of machine code: a graph is a number of blocks, of
//! which block 0 is the entry, and a function from a block to its successors or predecessors.
//!
//! ```text
//! node        the trait of block numbers
//! order       reverse postorder, reachability   analysis::Cfg, of SSA; mir::Flow, of the blocks of machine code
//! dominators  the dominator tree                analysis::Dominators; the verifier of machine code
//! loops       loop nests, contiguous loops      mir::Flow, for block frequency, layout and the allocator
//! frequency   estimated frequencies             analysis::Frequencies, of SSA; mir::frequency
//! liveness    the blocks where a value is live  the allocator's live intervals
//! ```

pub mod dominators;
pub mod frequency;
pub mod liveness;
pub mod loops;
pub mod node;
pub mod order;
