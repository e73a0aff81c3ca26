//! Estimates the work of a function: the bytes of bytecode that a call of it and an iteration of each of its loops
//! execute.
//!
//! A block has a weight: the number of its executions for each time that the innermost enclosing loop, or the function,
//! begins. `br` passes its weight to its label, a conditional branch passes half of it, and `br_table` with n labels,
//! including the default, passes 1/n to each. After an `end`, the weight is the sum of the weights that branches passed
//! to the label and the weight that falls through, but at most the weight at the beginning of the block. A loop begins
//! with weight 1; control leaves it with the weight with which it entered. The work is the sum of the bytes, each
//! multiplied by its weight. Each handler of a block that catches exceptions has a 64th of the block's weight.
//! The bytes of a loop count only for that loop, because each iteration is counted when it
//! happens.
//!
//! Control flow is structured, so one pass computes the weights; it costs a few instructions for each branch and
//! nothing for other instructions. The builder of the side table keeps the blocks: a label has its [`Weights`], a loop
//! its [`Around`]. Dead code has weight 0.

/// The weight of code that is executed once.
const ONCE: u32 = 1 << 16;

/// The weights of an open block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    /// At its beginning; at most [`ONCE`].
    pub entered: u32,
    /// The sum of the weights that branches pass to its end.
    passed: u32,
}

impl Weights {
    /// Adds the weight of a branch to the end of the block.
    #[inline]
    pub fn pass(&mut self, weight: u32) {
        // The sum may exceed `entered`; `end` limits it.
        self.passed = self.passed.saturating_add(weight);
    }
}

/// The state of the estimate outside an open loop, restored when the loop ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// The sum of the code around it so far.
    sum: u64,
    /// The weight with which control enters it.
    pub entered: u32,
}

/// The work of a body under construction.
#[derive(Default)]
pub(super) struct Work {
    weight: u32,
    /// Up to where bytes have been added.
    counted: u32,
    /// Bytes times their weights, in the innermost loop.
    sum: u64,
}

impl Work {
    /// The work of a body whose first instruction is at `entry`.
    pub fn begin(entry: u32) -> Work {
        Work { weight: ONCE, counted: entry, sum: 0 }
    }

    /// The work of a call, once the body has ended.
    pub fn of_call(&self) -> u32 {
        work(self.sum)
    }

    /// Adds the bytes before `to`.
    #[inline]
    fn count(&mut self, to: u32) {
        self.sum += u64::from(to - self.counted) * u64::from(self.weight);
        self.counted = to;
    }

    /// The weights of a block that begins here.
    #[inline]
    pub fn open(&self) -> Weights {
        Weights { entered: self.weight, passed: 0 }
    }

    /// The weights of an `if` that ends before `next`.
    pub fn open_if(&mut self, next: u32) -> Weights {
        self.count(next);
        let weights = self.open();
        self.weight /= 2;
        weights
    }

    /// Begins the second arm of the `if` with these weights, after a branch to its end.
    pub fn begin_else(&mut self, weights: Weights) {
        self.weight = otherwise(weights);
    }

    /// The weight that a catch clause passes to its label when its block begins here.
    pub fn thrown(&self) -> u32 {
        thrown(self.weight)
    }

    /// Begins a handler of the block with these weights, after a branch to its end.
    pub fn begin_catch(&mut self, weights: Weights) {
        self.weight = thrown(weights.entered);
    }

    /// The `loop` opcode at `pc`, which is executed in every iteration.
    pub fn open_loop(&mut self, pc: u32) -> Around {
        self.count(pc);
        let around = Around { sum: self.sum, entered: self.weight };
        self.sum = 0;
        self.weight = self.weight.min(1) * ONCE;
        around
    }

    /// The `end` before `next` of a block with these weights.
    #[inline]
    pub fn end(&mut self, next: u32, weights: Weights) {
        self.count(next);
        self.weight = weights.passed.saturating_add(self.weight).min(weights.entered);
    }

    /// The `end` before `next` of an `if` without `else`.
    pub fn end_if(&mut self, next: u32, mut weights: Weights) {
        weights.pass(otherwise(weights));
        self.end(next, weights);
    }

    /// The `end` before `next` of a loop; returns the work of an iteration.
    pub fn end_loop(&mut self, next: u32, around: Around) -> u32 {
        self.count(next);
        let iteration = work(self.sum);
        self.sum = around.sum;
        self.weight = self.weight.min(1) * around.entered;
        iteration
    }

    /// A conditional branch, after which the next instruction is at `next`; returns the weight that it passes to its label.
    #[inline]
    pub fn branch_if(&mut self, next: u32) -> u32 {
        self.count(next);
        let taken = self.weight / 2;
        self.weight -= taken;
        taken
    }

    /// A branch to one of `labels` equally probable labels; returns the weight that it passes to each. The next
    /// instruction is at `next`.
    #[inline]
    pub fn branch(&mut self, next: u32, labels: u32) -> u32 {
        let weight = self.weight;
        self.stop(next);
        weight / labels
    }

    /// An instruction that never falls through; the next one is at `next`.
    #[inline]
    pub fn stop(&mut self, next: u32) {
        self.count(next);
        self.weight = 0;
    }
}

/// The weight of the second arm of an `if`.
fn otherwise(weights: Weights) -> u32 {
    weights.entered - weights.entered / 2
}

/// The weight of a handler of a block with this weight: exceptions are assumed to be rare.
fn thrown(weight: u32) -> u32 {
    (weight / 64).max(weight.min(1))
}

/// In bytes, at least one.
fn work(sum: u64) -> u32 {
    u32::try_from(sum / u64::from(ONCE)).unwrap_or(u32::MAX).max(1)
}
