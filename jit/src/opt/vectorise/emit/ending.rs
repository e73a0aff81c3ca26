//! The end of a vector loop whose last round may be the last one of the loop.
//!
//! ```text
//! vector loop → done      would the loop go on? → exit → the loop itself, for the rest
//!                 ↓
//!              complete   computes the values that are used after the loop
//!                 ↓
//!     loop →  landing → what follows
//! ```

use super::{Carried, Emit};
use crate::ir::{Block, Func, Op, Type, Value};
use crate::opt::vectorise::ending::Last;

impl Emit<'_, '_> {
    /// Computes before the vector loop what [`Emit::finish`] needs.
    pub(super) fn prepare(&mut self, ending: &[(Value, Last)]) {
        for (_, last) in ending {
            if let Last::Linear(form, _) = last {
                for &(value, _) in &form.terms {
                    self.invariant(value);
                }
            }
        }
    }

    /// Ends the vector loop, which has made `total` rounds: `done` leads to `exit` if the loop would go on, and otherwise to a block in which
    /// the values of `ending` are computed. Returns that block and the values, for [`Emit::land`].
    pub(super) fn finish(
        &mut self,
        [done, exit]: [Block; 2],
        ending: &[(Value, Last)],
        total: Value,
        last: &Carried,
    ) -> (Block, Vec<Value>) {
        let low = self.inst(Op::Wrap, Type::I32, 0, &[total]);
        let made = self.times_i32(low, self.plan.rounds as u32);
        let one = self.number(Type::I32, 1);
        let before = self.inst(Op::Sub, Type::I32, 0, &[made, one]);
        let (control, [tested, bound]) = (&self.plan.control, self.controls.expect("the number of rounds has been computed"));
        let added = self.times_i32(before, control.step as u32);
        let tested = self.inst(Op::Add, Type::I32, 0, &[tested, added]);
        let goes_on = self.inst(control.test.op(), Type::I32, 0, &[tested, bound]);
        self.end(done, Op::Branch, &[goes_on]);
        let complete = self.func.create_block();
        self.func.add_edge(done, exit);
        self.func.add_edge(done, complete);

        let results: Vec<Value> = ending
            .iter()
            .map(|(_, result)| match result {
                Last::Linear(form, stride) => {
                    let first = self.linear(form);
                    let added = self.times_i32(before, *stride);
                    self.inst(Op::Add, Type::I32, 0, &[first, added])
                }
                Last::Next(phi) => self.carried(*phi, total, last),
            })
            .collect();
        self.end(complete, Op::Jump, &[]);
        (complete, results)
    }

    /// Lets `complete` lead to what follows the loop, where values of the loop then are either its own or these results.
    pub(super) fn land(&mut self, ending: &[(Value, Last)], (complete, results): (Block, Vec<Value>)) {
        let landing = self.func.create_block();
        land(self.func, self.head, landing);
        self.func.add_edge(complete, landing);
        for (&(value, _), result) in ending.iter().zip(results) {
            let in_loop = rename(self.func, self.head, value);
            self.func.become_op(value, Op::Phi, 0, &[in_loop, result]);
            self.func.push(landing, value);
        }
        self.end(landing, Op::Jump, &[]);
    }

    /// The product with a constant, modulo 2³².
    fn times_i32(&mut self, number: Value, by: u32) -> Value {
        let by = self.number(Type::I32, by.into());
        self.inst(Op::Mul, Type::I32, 0, &[number, by])
    }
}

/// Puts a block on the edge by which the loop of one block ends.
fn land(func: &mut Func<'_>, head: Block, landing: Block) {
    let exit = func.block(head).succs.iter().position(|&succ| succ != head).expect("the loop ends");
    let (after, index) = func.edge(head, exit);
    func.block_mut(head).succs[exit] = landing;
    func.push_pred(landing, head);
    func.block_mut(after).preds[index] = landing;
    func.push_succ(landing, after);
}

/// Gives a value of a block another name there, and returns it.
fn rename(func: &mut Func<'_>, block: Block, value: Value) -> Value {
    let inst = func.inst(value);
    let (op, ty, pc, aux, imm, args) = (inst.op, inst.ty, inst.pc, inst.aux, inst.imm, inst.args.to_vec());
    let renamed = func.create(op, ty, pc, aux, imm, &args);
    for i in 0..func.block(block).insts.len() {
        let user = func.block(block).insts[i];
        if user == value {
            func.block_mut(block).insts[i] = renamed;
        }
        let user = func.block(block).insts[i];
        if func.args(user).contains(&value) {
            let args: Vec<Value> = func.args(user).iter().map(|&arg| if arg == value { renamed } else { arg }).collect();
            func.set_args(user, &args);
        }
    }
    renamed
}
