//! Blocks, loops, branches and labels.
//!
//! A forward label becomes a block at its `end`, when all its edges are known, and only if there are any. Until then
//! its frame holds the edges, and [`PENDING`] takes the place of the successor in the branching block. A loop's header
//! is made at once and sealed at its `end`. The function's label never becomes a block: each branch to it returns
//! directly.

use super::builder::{Builder, Operand};
use super::frames::{Edge, ElseEntry, Frame, Kind, PENDING, param_type};
use crate::ir::{Block, Op, Type, Value};
use crate::meter::Ended;
use crate::slow_growth;
use weir_bytecode::instrs::{BlockType, Labels, Nesting};
use weir_bytecode::{Opcode, Trap};

impl Builder<'_, '_> {
    pub(super) fn open_block(&mut self, ty: BlockType) {
        self.operands_to_slots();
        let height = self.stack.len() - ty.arity(self.module).0;
        self.push_frame(Kind::Block, ty, height, self.here());
    }

    pub(super) fn push_frame(&mut self, kind: Kind, ty: BlockType, height: usize, from: Block) {
        let opened = (self.position(), from);
        slow_growth::push(&mut self.frames, Frame { opened, ..Frame::new(kind, ty, height) });
    }

    /// Returns the position of the current instruction in the order of translation.
    pub(super) fn position(&self) -> u32 {
        self.pc + self.peeling.retranslated
    }

    /// Opens the loop at `pc`, in live code or at the beginning of an OSR body.
    pub(super) fn open_loop(&mut self, ty: BlockType) {
        let params = ty.arity(self.module).0;
        let height = self.stack.len() - params;
        let header = self.func.create_block();
        let mut frame = Frame::new(Kind::Loop { header, phis: 0 }, ty, height);
        if let Some(from) = self.block {
            let args = self.label_args(params);
            self.stack.truncate(height);
            self.operands_to_slots();
            self.terminate(Op::Jump, 0, 0, &[]);
            self.func.add_edge(from, header);
            frame.edges = self.edges.push(frame.edges, Edge { from, index: 0, args });
        }
        self.stack.truncate(height);
        if let Some(args) = self.osr_edge(header, ty) {
            frame.edges = self.edges.push(frame.edges, Edge { from: Block::ENTRY, index: 0, args });
        }
        let phis = self.label_args.len() as u32;
        for i in 0..params {
            let phi = self.ssa.place_phi(&mut self.func, header, param_type(self.module, ty, i));
            self.label_args.push(phi);
            self.push(phi);
        }
        frame.kind = Kind::Loop { header, phis };
        slow_growth::push(&mut self.frames, frame);
        if self.options.refinements.regions {
            let (outside, region) = self.region(self.block);
            self.ssa.begin_region(header, outside, region);
        }
        self.block = Some(header);
        self.leave_at_header();
        if self.options.poll {
            self.emit(Op::Poll, Type::Void, 0, 0, &[]);
        }
        if self.options.fuel {
            self.charge(self.pc + 1);
        }
    }

    pub(super) fn open_if(&mut self, ty: BlockType) {
        let condition = self.pop();
        self.operands_to_slots();
        let from = self.here();
        let params = ty.arity(self.module).0;
        let args = self.label_args(params);
        let else_entry = match self.known(condition) {
            Some(0) => {
                self.block = None;
                ElseEntry::Continue(from, args)
            }
            Some(_) => ElseEntry::Dead,
            None => {
                self.terminate(Op::Branch, 0, 0, &[condition]);
                self.continue_in_new_block(from);
                self.func.push_succ(from, PENDING);
                ElseEntry::Edge(Edge { from, index: 1, args })
            }
        };
        self.push_frame(Kind::If(else_entry), ty, self.stack.len() - params, from);
    }

    pub(super) fn open_else(&mut self) {
        let frame = self.frames.last().expect("validated code nests");
        let (ty, height) = (frame.ty, frame.height());
        let Kind::If(else_entry) = frame.kind else { unreachable!("validated code has `else` only in an `if`") };
        if self.block.is_some() {
            self.jump_to_label(0);
        }
        self.stack.truncate(height);
        self.frames.last_mut().expect("validated code nests").kind = Kind::Block;
        let args = match else_entry {
            ElseEntry::Dead => return,
            ElseEntry::Continue(block, args) => {
                self.block = Some(block);
                args
            }
            ElseEntry::Edge(edge) => {
                self.enter_new_block(&[edge]);
                edge.args
            }
        };
        self.push_label_args(args, ty.arity(self.module).0);
    }

    /// Translates `end`, in live code or where dead code ends.
    pub(super) fn end(&mut self) {
        let frame = slow_growth::pop(&mut self.frames).expect("validated code nests");
        let mut edges = std::mem::take(&mut self.spare_edges);
        self.edges.take(frame.edges, &mut edges);
        self.close(&frame, &mut edges);
        edges.clear();
        self.spare_edges = edges;
    }

    /// Ends `frame`, with these edges into its label.
    fn close(&mut self, frame: &Frame, edges: &mut Vec<Edge>) {
        let results = frame.ty.arity(self.module).1;
        match frame.kind {
            Kind::Function => {
                if self.block.is_some() {
                    self.return_();
                }
                return;
            }
            Kind::Loop { header, phis } => {
                self.close_loop(header, phis, frame.ty.arity(self.module).0 as u32, edges);
                edges.clear();
                edges.extend(self.first_exit());
            }
            Kind::PeeledLoop { pc } if !edges.is_empty() => return self.retranslate_loop(pc, frame, edges),
            Kind::Block | Kind::PeeledLoop { .. } | Kind::If(ElseEntry::Dead) => {}
            Kind::TryTable { pc, region } => self.land_clauses(pc, region, frame, edges),
            Kind::Try { .. } | Kind::Catch { .. } => {}
            // A missing second arm passes the parameters on.
            Kind::If(ElseEntry::Edge(edge)) => edges.push(edge),
            Kind::If(ElseEntry::Continue(block, args)) => {
                self.stack.truncate(frame.height());
                self.block = Some(block);
                self.push_label_args(args, results);
                return;
            }
        }
        if edges.is_empty() {
            if self.block.is_none() {
                self.stack.truncate(frame.height());
            }
            return;
        }
        if self.block.is_some() {
            edges.push(self.fall_through(results));
        }
        self.stack.truncate(frame.height());
        let block = self.enter_new_block(edges);
        self.pass_through(block, frame.opened);
        self.join_operands(block, edges, results);
    }

    /// Makes the edge from the current block into a label that ends here, with this many operands.
    pub(super) fn fall_through(&mut self, operands: usize) -> Edge {
        let from = self.here();
        let args = self.label_args(operands);
        self.terminate(Op::Jump, 0, 0, &[]);
        self.func.push_succ(from, PENDING);
        Edge { from, index: 0, args }
    }

    /// Pushes the operands that these edges, which lead to `block`, carry.
    pub(super) fn join_operands(&mut self, block: Block, edges: &[Edge], count: usize) {
        let mut args = Vec::new();
        for i in 0..count as u32 {
            let edges = if self.ssa.exhausted() { &edges[..1] } else { edges };
            args.clear();
            args.extend(edges.iter().map(|edge| self.label_args[(edge.args + i) as usize]));
            let ty = self.func.ty(args[0]);
            let value = self.ssa.join(&mut self.func, block, ty, &args);
            self.push(value);
        }
    }

    /// Lets variables that the ending structure does not assign pass from the block where it was opened. This is not possible
    /// if an OSR entry is inside the structure, or if its opening was not translated.
    pub(super) fn pass_through(&mut self, join: Block, (open, outside): (u32, Block)) {
        let entered = self.vars.merged.as_ref().is_some_and(|merged| merged.within(open, self.pc));
        if outside != PENDING && self.options.refinements.regions && !entered {
            let region = self.body.loops.len() as u32 + self.vars.assignments.region(open, self.position());
            self.ssa.begin_region(join, outside, region);
        }
    }

    /// Completes the phis of a loop: all its back edges are known.
    fn close_loop(&mut self, header: Block, phis: u32, params: u32, edges: &[Edge]) {
        let mut args = Vec::new();
        for i in 0..params {
            if self.ssa.exhausted() {
                return;
            }
            args.clear();
            args.extend(edges.iter().map(|edge| self.label_args[(edge.args + i) as usize]));
            let phi = self.label_args[(phis + i) as usize];
            self.ssa.complete_phi(&mut self.func, phi, &args);
        }
        self.ssa.seal_block(&mut self.func, &mut self.vars, header);
    }

    /// Skips an instruction of dead code, which ends with the `else` or `end` of the block in which it began.
    pub(super) fn skip(&mut self, op: Opcode) {
        match op.nesting() {
            Nesting::Open => self.skipped += 1,
            Nesting::End if self.skipped > 0 => self.skipped -= 1,
            Nesting::End => self.end(),
            Nesting::Else if self.skipped == 0 && op == Opcode::Else => self.open_else(),
            Nesting::Else if self.skipped == 0 => self.catch(),
            Nesting::Else | Nesting::Same => {}
        }
    }

    pub(super) fn br(&mut self, depth: u32) {
        if self.returns(depth) {
            return self.return_();
        }
        self.jump_to_label(depth);
    }

    /// The label takes the operands below the reference; after the branch the reference is known not to be null.
    pub(super) fn br_on_null(&mut self, depth: u32) {
        let reference = self.pop();
        let is_null = self.is_null(reference);
        self.br_if_value(depth, is_null);
        if self.block.is_some() {
            self.push(reference);
        }
    }

    /// The label also takes the reference; after the branch it is dropped.
    pub(super) fn br_on_non_null(&mut self, depth: u32) {
        let reference = self.top(1)[0];
        let is_null = self.is_null(reference);
        let condition = self.unary(Op::Eqz, Type::I32, Type::I32, is_null);
        self.br_if_value(depth, condition);
        if self.block.is_some() {
            self.stack.pop();
        }
    }

    pub(super) fn br_if(&mut self, depth: u32) {
        let condition = self.pop();
        self.br_if_value(depth, condition);
    }

    /// A branch to the label at `depth` if `condition`, which has been popped, is not 0.
    fn br_if_value(&mut self, depth: u32, condition: Value) {
        match self.known(condition) {
            Some(0) => return,
            Some(_) => return self.br(depth),
            None => {}
        }
        let from = self.here();
        if self.returns(depth) {
            let results = self.top(self.ty.results.len());
            self.terminate(Op::Branch, 0, 0, &[condition]);
            self.return_block(from, &results);
        } else {
            let arity = self.label_arity(depth);
            let args = self.label_args(arity);
            self.terminate(Op::Branch, 0, 0, &[condition]);
            self.label_edge(depth, from, args);
        }
        self.continue_in_new_block(from);
    }

    /// Each label takes a step, because a table may have a million.
    ///
    /// # Errors
    /// The compilation is to end.
    pub(super) fn br_table(&mut self, labels: Labels<'_>) -> Result<(), Ended> {
        let index = self.pop();
        let default = labels.len() - 1;
        if let Some(index) = self.known(index) {
            let chosen = default.min(index as usize);
            self.br(labels.iter().nth(chosen).expect("the default is the last label"));
            return Ok(());
        }
        let first = labels.iter().next().expect("there is a default");
        if labels.iter().all(|label| label == first) {
            self.br(first);
            return Ok(());
        }
        let from = self.here();
        // All labels take the same operands.
        let arity = if self.returns(first) { self.ty.results.len() } else { self.label_arity(first) };
        let args = self.label_args(arity);
        self.terminate(Op::BrTable, 0, 0, &[index]);
        self.func.reserve_succs(from, labels.len());
        let mut return_block = None;
        for label in labels.iter() {
            self.count(1)?;
            if !self.returns(label) {
                self.label_edge(label, from, args);
            } else if let Some(block) = return_block {
                self.func.add_edge(from, block);
            } else {
                let results = self.label_args[args as usize..].to_vec();
                return_block = Some(self.return_block(from, &results));
            }
        }
        self.block = None;
        Ok(())
    }

    pub(super) fn return_(&mut self) {
        let results = self.pop_list(self.ty.results.len());
        self.terminate(Op::Return, 0, 0, &results);
        self.block = None;
    }

    pub(super) fn trap(&mut self, trap: Trap) {
        self.terminate(Op::Trap, trap as u32, 0, &[]);
        self.block = None;
    }

    /// Emits a terminator. The caller adds its successors and opens the next block.
    pub(super) fn terminate(&mut self, op: Op, aux: u32, imm: u64, args: &[Value]) {
        self.emit(op, Type::Void, aux, imm, args);
        let block = self.here();
        self.func.extend(block, &self.insts);
        self.insts.clear();
    }

    /// Returns whether the label is the function's.
    fn returns(&self, depth: u32) -> bool {
        depth as usize + 1 == self.frames.len()
    }

    fn label(&mut self, depth: u32) -> &mut Frame {
        let index = self.frames.len() - 1 - depth as usize;
        &mut self.frames[index]
    }

    /// Returns the number of operands of a label other than the function's.
    fn label_arity(&mut self, depth: u32) -> usize {
        let module = self.module;
        let frame = self.label(depth);
        let (params, results) = frame.ty.arity(module);
        if matches!(frame.kind, Kind::Loop { .. } | Kind::PeeledLoop { .. }) { params } else { results }
    }

    /// Returns the topmost operands, as the arguments of an edge.
    pub(super) fn label_args(&mut self, count: usize) -> u32 {
        self.ssa.spend(count);
        let start = self.label_args.len() as u32;
        for i in self.stack.len() - count..self.stack.len() {
            let value = self.operand(i);
            self.label_args.push(value);
        }
        start
    }

    fn push_label_args(&mut self, start: u32, count: usize) {
        let args = &self.label_args[start as usize..start as usize + count];
        self.stack.extend(args.iter().map(|&value| Operand::Value(value)));
    }

    /// Adds an edge from `from`, as its last successor, to a label other than the function's.
    fn label_edge(&mut self, depth: u32, from: Block, args: u32) {
        let index = self.func.block(from).succs.len() as u32;
        let before = self.label(depth).edges;
        let edges = self.edges.push(before, Edge { from, index, args });
        let frame = self.label(depth);
        frame.edges = edges;
        match frame.kind {
            Kind::Loop { header, .. } => self.func.add_edge(from, header),
            Kind::Function | Kind::Block | Kind::If(_) | Kind::PeeledLoop { .. } => self.func.push_succ(from, PENDING),
            Kind::TryTable { .. } | Kind::Try { .. } | Kind::Catch { .. } => self.func.push_succ(from, PENDING),
        }
    }

    pub(super) fn jump_to_label(&mut self, depth: u32) {
        let from = self.here();
        let arity = self.label_arity(depth);
        let args = self.label_args(arity);
        self.terminate(Op::Jump, 0, 0, &[]);
        self.label_edge(depth, from, args);
        self.block = None;
    }

    /// Makes a block that returns, as the last successor of `from`.
    fn return_block(&mut self, from: Block, results: &[Value]) -> Block {
        let block = self.continue_in_new_block(from);
        self.terminate(Op::Return, 0, 0, results);
        block
    }

    /// Continues in a block that only `from` leads to, as its last successor.
    pub(super) fn continue_in_new_block(&mut self, from: Block) -> Block {
        let block = self.func.create_block();
        self.func.add_edge(from, block);
        self.ssa.seal_block(&mut self.func, &mut self.vars, block);
        self.block = Some(block);
        block
    }

    /// Makes the block of a label all of whose edges are known.
    pub(super) fn enter_new_block(&mut self, edges: &[Edge]) -> Block {
        let block = self.func.create_block();
        for edge in edges {
            self.func.block_mut(edge.from).succs[edge.index as usize] = block;
        }
        self.func.extend_preds(block, edges.iter().map(|edge| edge.from));
        self.ssa.seal_block(&mut self.func, &mut self.vars, block);
        self.block = Some(block);
        block
    }
}
