//! Function bodies with the legacy instructions of exception handling: `try` in each of its forms, `rethrow`, `delegate` to any label,
//! and throws and branches from everywhere to everywhere.

use super::shape::{CALL_HOST, FUEL, FUNCS, MIX, TAGS, TRACE};
use crate::rng::Rng;
use wasm_encoder as enc;
use wasm_encoder::{BlockType, Function, InstructionSink, ValType};

/// The parameters of each function: two i32. Then locals that statements write, an i64 and an f64 for payloads, and counters of loops.
const PARAMS: u32 = 2;
const WRITABLE: u32 = 4;
const LONG: u32 = WRITABLE;
const DOUBLE: u32 = WRITABLE + 1;
const COUNTERS: u32 = WRITABLE + 2;
const MAX_LOOPS: u32 = 2;
const MAX_DEPTH: u32 = 5;

/// What a label is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    /// Branches take this many i32 to the end of a block, `if`, `try` or function.
    End(u32),
    /// The same, within a handler, which `rethrow` may name.
    Handler(u32),
    /// The head of a loop, to which only the loop itself branches.
    Head,
}

/// The body of one function.
pub(super) fn generate(rng: &mut Rng) -> Function {
    let locals = [(WRITABLE - PARAMS, ValType::I32), (1, ValType::I64), (1, ValType::F64), (MAX_LOOPS, ValType::I32)];
    let budget = 20 + rng.below(200) as i32;
    let mut body = Body { rng, code: Function::new(locals), labels: vec![Label::End(1)], loops: 0, budget };
    body.sink().global_get(FUEL).i32_eqz().if_(BlockType::Empty).i32_const(-9).return_().end();
    body.sink().global_get(FUEL).i32_const(1).i32_sub().global_set(FUEL);
    body.statements(MAX_DEPTH);
    body.value(MAX_DEPTH);
    body.sink().end();
    body.code
}

struct Body<'a> {
    rng: &'a mut Rng,
    code: Function,
    /// Innermost last.
    labels: Vec<Label>,
    loops: u32,
    /// The number of nodes that remain; without any, only leaves are made.
    budget: i32,
}

impl Body<'_> {
    fn sink(&mut self) -> InstructionSink<'_> {
        self.code.instructions()
    }

    /// Adds the i32 on the stack to the trace, which depends on the order of what is executed.
    fn trace(&mut self) {
        self.sink().call(MIX);
    }

    fn statements(&mut self, depth: u32) {
        for _ in 0..self.rng.below(4) {
            self.statement(depth);
        }
    }

    /// Code that leaves the stack as it is.
    fn statement(&mut self, depth: u32) {
        self.budget -= 1;
        let leaf = depth == 0 || self.budget < 0;
        match if leaf { self.rng.below(2) } else { self.rng.below(12) } {
            0 => {
                let local = self.rng.below(WRITABLE);
                self.leaf();
                self.sink().local_set(local);
            }
            1 => {
                let name = self.rng.below(1000) as i32;
                self.sink().i32_const(name);
                self.trace();
            }
            2 => {
                let local = self.rng.below(WRITABLE);
                self.value(depth - 1);
                self.sink().local_set(local);
            }
            3 => {
                self.value(depth - 1);
                self.trace();
            }
            4 => {
                self.leaf();
                self.sink().if_(BlockType::Empty);
                self.labels.push(Label::End(0));
                self.statements(depth - 1);
                if self.rng.one_in(2) {
                    self.sink().else_();
                    self.statements(depth - 1);
                }
                self.end();
            }
            5 if self.loops < MAX_LOOPS => self.counted_loop(depth),
            6 => {
                self.leaf();
                self.sink().if_(BlockType::Empty);
                self.labels.push(Label::End(0));
                self.leave(depth - 1);
                self.end();
            }
            7..=10 => self.try_(0, depth),
            _ => {
                self.sink().block(BlockType::Empty);
                self.labels.push(Label::End(0));
                self.statements(depth - 1);
                self.end();
            }
        }
    }

    fn end(&mut self) {
        self.labels.pop();
        self.sink().end();
    }

    /// Pushes an i32.
    fn value(&mut self, depth: u32) {
        self.budget -= 1;
        if depth == 0 || self.budget < 0 {
            return self.leaf();
        }
        match self.rng.below(14) {
            0 => self.leaf(),
            1 | 2 => {
                self.value(depth - 1);
                self.value(depth - 1);
                match self.rng.below(12) {
                    0 => self.sink().i32_div_s(),
                    1..=4 => self.sink().i32_add(),
                    5..=8 => self.sink().i32_xor(),
                    _ => self.sink().i32_lt_s(),
                };
            }
            3..=5 => {
                let func = self.rng.below(FUNCS);
                self.leaf();
                self.value(depth - 1);
                // The functions follow the imported one and `mix`.
                self.sink().call(MIX + 1 + func);
            }
            6 => {
                self.leaf();
                self.leaf();
                let func = self.rng.below(FUNCS) as i32;
                self.sink().i32_const(func).call_indirect(0, 0);
            }
            7 => {
                self.leaf();
                self.value(depth - 1);
                self.sink().call(CALL_HOST);
            }
            8..=11 => self.try_(1, depth),
            12 => {
                self.sink().block(BlockType::Result(ValType::I32));
                self.labels.push(Label::End(1));
                self.statements(depth - 1);
                self.value(depth - 1);
                self.end();
            }
            _ => {
                self.leaf();
                self.sink().if_(BlockType::Result(ValType::I32));
                self.labels.push(Label::End(1));
                self.value(depth - 1);
                self.sink().else_();
                match self.rng.one_in(3) {
                    true => self.leave(depth - 1),
                    false => self.value(depth - 1),
                }
                self.end();
            }
        }
    }

    fn leaf(&mut self) {
        let local = self.rng.below(WRITABLE);
        let constant = self.rng.below(16) as i32 - 3;
        match self.rng.below(4) {
            0 => self.sink().i32_const(constant),
            1 => self.sink().local_get(local).i32_const(1).i32_and(),
            2 => self.sink().global_get(TRACE).i32_wrap_i64().i32_const(3).i32_and(),
            _ => self.sink().local_get(local),
        };
    }

    /// Iterates a few times, and ends however the iterations end.
    fn counted_loop(&mut self, depth: u32) {
        let counter = COUNTERS + self.loops;
        let trips = 1 + self.rng.below(4) as i32;
        self.loops += 1;
        self.sink().i32_const(trips).local_set(counter).loop_(BlockType::Empty);
        self.labels.push(Label::Head);
        self.statements(depth - 1);
        self.sink().local_get(counter).i32_const(1).i32_sub().local_tee(counter).br_if(0);
        self.end();
        self.loops -= 1;
    }

    /// Code after which nothing is executed: a throw, a branch, a return, or rarely a trap.
    fn leave(&mut self, depth: u32) {
        let handlers = self.depths(|label| matches!(label, Label::Handler(_)));
        let ends = self.depths(|label| label != Label::Head);
        match self.rng.below(20) {
            0..=9 => self.throw(depth),
            10..=13 if !handlers.is_empty() => {
                let handler = *self.rng.pick(&handlers);
                self.sink().rethrow(handler);
            }
            14..=17 => {
                let label = *self.rng.pick(&ends);
                if self.arity(label) == 1 {
                    self.value(depth);
                }
                self.sink().br(label);
            }
            18 => {
                self.value(depth);
                self.sink().return_();
            }
            19 if self.rng.one_in(4) => {
                self.sink().unreachable();
            }
            _ => self.throw(depth),
        }
    }

    fn throw(&mut self, depth: u32) {
        let tag = self.rng.below(TAGS.len() as u32);
        for ty in TAGS[tag as usize] {
            self.value(depth);
            match ty {
                ValType::I64 => self.sink().i64_extend_i32_s().i64_const(1 << 33).i64_add(),
                ValType::F64 => self.sink().f64_convert_i32_s().f64_const(enc::Ieee64::from(0.5)).f64_add(),
                _ => continue,
            };
        }
        self.sink().throw(tag);
    }

    /// The depths of the labels of which this is true.
    fn depths(&self, wanted: impl Fn(Label) -> bool) -> Vec<u32> {
        (0..).zip(self.labels.iter().rev()).filter(|&(_, &label)| wanted(label)).map(|(depth, _)| depth).collect()
    }

    fn arity(&self, depth: u32) -> u32 {
        match self.labels[self.labels.len() - 1 - depth as usize] {
            Label::End(arity) | Label::Handler(arity) => arity,
            Label::Head => 0,
        }
    }

    /// A `try` that gives this many i32.
    fn try_(&mut self, arity: u32, depth: u32) {
        let ty = if arity == 1 { BlockType::Result(ValType::I32) } else { BlockType::Empty };
        self.sink().try_(ty);
        self.labels.push(Label::End(arity));
        self.part(arity, depth);
        if self.rng.one_in(4) {
            self.labels.pop();
            // The label is counted from outside of the `try`.
            let label = self.rng.below(self.labels.len() as u32);
            self.sink().delegate(label);
            return;
        }
        *self.labels.last_mut().expect("the label of the try") = Label::Handler(arity);
        let mut tags: Vec<u32> = (0..TAGS.len() as u32).collect();
        for _ in 0..self.rng.below(3) {
            let tag = tags.swap_remove(self.rng.below(tags.len() as u32) as usize);
            self.sink().catch(tag);
            for ty in TAGS[tag as usize].iter().rev() {
                match ty {
                    ValType::I64 => self.sink().local_tee(LONG).i32_wrap_i64(),
                    ValType::F64 => self.sink().local_tee(DOUBLE).i32_trunc_sat_f64_s(),
                    _ => self.sink().local_tee(1),
                };
                self.trace();
            }
            self.part(arity, depth);
        }
        if self.rng.one_in(2) {
            self.sink().catch_all();
            self.sink().i32_const(7);
            self.trace();
            self.part(arity, depth);
        }
        self.end();
    }

    /// A part of a `try`: its body, or a handler, whose operands begin with the payload.
    fn part(&mut self, arity: u32, depth: u32) {
        // Operands below a throw are dropped.
        let below = self.rng.one_in(6);
        if below {
            self.leaf();
        }
        self.statements(depth.saturating_sub(1));
        if self.rng.one_in(4) {
            self.leave(depth.saturating_sub(1));
        }
        if below {
            self.trace();
        }
        if arity == 1 {
            self.value(depth.saturating_sub(1));
        }
    }
}
