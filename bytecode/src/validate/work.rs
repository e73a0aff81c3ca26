//! Estimates the work of a function: the bytes of bytecode that a call of it and an iteration of each of its loops
//! execute.
//!
//! A block has a weight: how often it is executed for each time that the innermost loop around it, or the function, begins. `br`
//! passes its weight to its label, a condition half of it, `br_table` with n labels, the default included, 1/n to each. The weight after an `end` is what
//! was passed to the label and what falls through, and at most what it was at the beginning of the block. A loop begins with weight 1;
//! whatever way control leaves it, it leaves with the weight with which it entered. The work is the sum of the bytes, each times its
//! weight. The bytes of a loop count for that loop alone, because each iteration is counted where it happens.
//!
//! Control flow is structured, so one pass finds this, with some instructions for each branch and none for any other.

/// The weight of code that is executed once.
const ONCE: u64 = 1 << 16;

/// The state of an open block.
#[derive(Clone, Copy, Default)]
struct Block {
    /// The weight at its beginning.
    entered: u64,
    /// The sum of what branches pass to its end.
    passed: u64,
    /// Of an `if` whose first arm is open, the weight of its second one.
    otherwise: u64,
    /// Of a loop, the sum of the code around it so far.
    around: Option<u64>,
}

/// The work of a body under construction.
#[derive(Default)]
pub(super) struct Work {
    blocks: Vec<Block>,
    /// Loops that are open, outermost first, as indices of blocks.
    loops: Vec<u32>,
    weight: u64,
    /// Bytes times their weights, in the innermost loop.
    sum: u64,
    /// Up to where bytes have been added.
    counted: u32,
}

impl Work {
    /// Begins a body whose first instruction is at `entry`.
    pub fn begin(&mut self, entry: u32) {
        self.blocks.clear();
        self.loops.clear();
        (self.weight, self.sum, self.counted) = (ONCE, 0, entry);
        self.open_block();
    }

    /// The work of a call, once the body has ended.
    pub fn of_call(&self) -> u32 {
        work(self.sum)
    }

    /// Adds the bytes before `to`.
    fn count(&mut self, to: u32) {
        self.sum += u64::from(to - self.counted) * self.weight;
        self.counted = to;
    }

    /// A `block`.
    pub fn open_block(&mut self) {
        self.blocks.push(Block { entered: self.weight, ..Block::default() });
    }

    /// An `if` that ends before `next`.
    pub fn open_if(&mut self, next: u32) {
        self.count(next);
        let entered = self.weight;
        self.weight /= 2;
        self.blocks.push(Block { entered, otherwise: entered - self.weight, ..Block::default() });
    }

    /// An `else` that ends before `next`.
    pub fn begin_else(&mut self, next: u32) {
        self.count(next);
        let Some(block) = self.blocks.last_mut() else { return };
        block.passed += self.weight;
        self.weight = std::mem::take(&mut block.otherwise);
    }

    /// The `loop` opcode at `pc`, which is executed in every iteration.
    pub fn open_loop(&mut self, pc: u32) {
        self.count(pc);
        self.loops.push(self.blocks.len() as u32);
        self.blocks.push(Block { entered: self.weight, around: Some(self.sum), ..Block::default() });
        self.sum = 0;
        self.weight = self.weight.min(1) * ONCE;
    }

    /// An `end` before `next`; of a loop, the work of an iteration.
    pub fn end(&mut self, next: u32) -> Option<u32> {
        self.count(next);
        let block = self.blocks.pop()?;
        let Some(around) = block.around else {
            self.weight = (block.passed + block.otherwise + self.weight).min(block.entered);
            return None;
        };
        self.loops.pop();
        let iteration = work(self.sum);
        self.sum = around;
        self.weight = if self.weight == 0 { 0 } else { block.entered };
        Some(iteration)
    }

    /// A conditional branch to the label at `depth`; the next instruction is at `next`.
    pub fn branch_if(&mut self, next: u32, depth: u32) {
        self.count(next);
        let taken = self.weight / 2;
        self.weight -= taken;
        self.pass(depth, taken);
    }

    /// A branch to one of `labels`, each as probable as the others; the next instruction is at `next`.
    pub fn branch(&mut self, next: u32, labels: impl ExactSizeIterator<Item = u32>) {
        let taken = self.weight / labels.len().max(1) as u64;
        labels.for_each(|depth| self.pass(depth, taken));
        self.stop(next);
    }

    /// An instruction that never falls through; the next one is at `next`.
    pub fn stop(&mut self, next: u32) {
        self.count(next);
        self.weight = 0;
    }

    /// Passes `weight` to the label at `depth`. An iteration of a loop begins with weight 1 however many branches lead to it.
    fn pass(&mut self, depth: u32, weight: u64) {
        let label = self.blocks.len() - 1 - depth as usize;
        // The outermost of the loops that the branch leaves.
        let left = self.loops.partition_point(|&open| open as usize <= label);
        let weight = match self.loops.get(left) {
            Some(&open) if weight > 0 => self.blocks[open as usize].entered,
            Some(_) | None => weight,
        };
        self.blocks[label].passed += weight;
    }
}

/// In bytes, at least one.
fn work(sum: u64) -> u32 {
    u32::try_from(sum / ONCE).unwrap_or(u32::MAX).max(1)
}
