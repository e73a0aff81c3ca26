//! The blocks in which a value is live, found by exploring paths backwards from each use to the definition (Boissinot,
//! Brandner, Darte, Dupont de Dinechin, Rastello, "Computing Liveness Sets for SSA-Form Programs", 2011). The
//! definition must dominate the uses; the graph need not be reducible.
//!
//! An exploration takes time proportional to the blocks and edges that it visits, and a step for every 4096 blocks of
//! the function. One bit for each value and block would be quadratic.

/// Explores one value after another.
#[derive(Debug)]
pub struct LiveBlocks {
    /// The blocks in which the value is live.
    blocks: BlockSet,
    /// By block, whether the value is live at its end.
    live_out: Vec<bool>,
    /// Blocks at whose start the value is live and whose predecessors have not been visited.
    work: Vec<u32>,
}

impl LiveBlocks {
    /// For a function with this many blocks.
    pub fn new(num_blocks: usize) -> LiveBlocks {
        LiveBlocks {
            blocks: BlockSet::new(num_blocks),
            live_out: vec![false; num_blocks],
            work: Vec::with_capacity(num_blocks.min(64)),
        }
    }

    /// Finds the blocks in which a value is live that is defined in block `def_block` and used in the blocks `uses`. Calls
    /// `found` with each block, ascending, and whether the value is live at its end. `def_block` is always among them; the
    /// value is live at the start of every other block.
    pub fn explore<P: IntoIterator<Item = u32>>(
        &mut self,
        def_block: u32,
        uses: impl Iterator<Item = u32>,
        preds: impl Fn(u32) -> P,
        mut found: impl FnMut(u32, bool),
    ) {
        let LiveBlocks { blocks, live_out, work } = self;
        blocks.insert(def_block);
        for used in uses {
            if blocks.insert(used) {
                work.push(used);
            }
            while let Some(block) = work.pop() {
                for pred in preds(block) {
                    live_out[pred as usize] = true;
                    if blocks.insert(pred) {
                        work.push(pred);
                    }
                }
            }
        }
        blocks.drain(|block| found(block, std::mem::take(&mut live_out[block as usize])));
    }
}

/// A set of blocks that is emptied in ascending order. It has a bit for each block, and a bit for each word of these.
#[derive(Debug)]
struct BlockSet {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl BlockSet {
    fn new(num_blocks: usize) -> BlockSet {
        let words = num_blocks.div_ceil(64);
        BlockSet { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
    }

    /// Adds a block; returns whether it was not in the set.
    #[inline]
    fn insert(&mut self, block: u32) -> bool {
        let (word, bit) = (block as usize / 64, 1 << (block % 64));
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.summary[word / 64] |= 1 << (word % 64);
        new
    }

    /// Removes all blocks, in ascending order.
    #[inline]
    fn drain(&mut self, mut f: impl FnMut(u32)) {
        for (i, summary) in self.summary.iter_mut().enumerate() {
            let mut nonzero = std::mem::take(summary);
            while nonzero != 0 {
                let word = 64 * i + nonzero.trailing_zeros() as usize;
                nonzero &= nonzero - 1;
                let mut bits = std::mem::take(&mut self.words[word]);
                while bits != 0 {
                    f(64 * word as u32 + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks in which a value is live, each with whether it is live at the end.
    fn explored(live: &mut LiveBlocks, preds: &[Vec<u32>], def_block: u32, uses: &[u32]) -> Vec<(u32, bool)> {
        let mut found = Vec::new();
        live.explore(
            def_block,
            uses.iter().copied(),
            |block| preds[block as usize].iter().copied(),
            |block, end| found.push((block, end)),
        );
        found
    }

    #[test]
    fn a_value_is_live_on_every_path_from_its_definition_to_a_use() {
        // 0 → 1 → {2, 3} → 4 → {1, 5}
        let preds = [vec![], vec![0, 4], vec![1], vec![1], vec![2, 3], vec![4]];
        let mut live = LiveBlocks::new(preds.len());
        assert_eq!(explored(&mut live, &preds, 0, &[2]), [(0, true), (1, true), (2, true), (3, true), (4, true)]);
        assert_eq!(explored(&mut live, &preds, 1, &[4]), [(1, true), (2, true), (3, true), (4, false)]);
        assert_eq!(explored(&mut live, &preds, 2, &[2]), [(2, false)]);
        assert_eq!(explored(&mut live, &preds, 4, &[]), [(4, false)]);
    }

    #[test]
    fn blocks_are_ascending_whatever_their_distance() {
        let mut preds = vec![vec![]; 20_000];
        (preds[19_999], preds[4095], preds[64]) = (vec![4095], vec![64], vec![0]);
        let found = explored(&mut LiveBlocks::new(preds.len()), &preds, 0, &[19_999]);
        assert_eq!(found, [(0, true), (64, true), (4095, true), (19_999, false)]);
    }
}
