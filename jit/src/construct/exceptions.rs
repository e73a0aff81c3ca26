//! Exceptions: blocks with handlers, throws, and the landing blocks of handlers.
//!
//! The regions and handlers are those of the side table. A call in a region ends its block with `try`, whose edges lead to the
//! landing blocks of all handlers that may catch what it throws. A handler has one landing block, made where the last of its edges is
//! known: at the `catch`, or at the `end` of the `try_table`. It reads what the handler passes on. If the handler is a clause, the
//! block then branches to its label; otherwise it is the handler's code.
//!
//! A throw whose handler is known and needs no object jumps to what comes after the landing block, with the payload.
//!
//! Cost: a call takes steps for each handler, up to the first that catches all, in all regions around it. They are counted as the other
//! work of construction.

use super::builder::Builder;
use super::frames::{Edge, Frame, Kind, NO_EDGE, PENDING};
use crate::ir::{NO_TAG, Op, Type, Value};
use smallvec::SmallVec;
use std::collections::HashSet;
use weir_bytecode::instrs::{BlockType, Instrs};
use weir_bytecode::sidetable::{Handler, region_at};
use weir_bytecode::{FuncBody, Imm, Module};

/// Indices of handlers, in the order in which they are tested.
type Handlers = SmallVec<[u32; 4]>;

/// Steps of construction for each edge to a landing block, which takes as many words of memory in lists of edges.
const EDGE: usize = 16;
/// The number of handlers up to which a tag is compared with that of each. With more of them, a set has their tags.
const COMPARED: usize = 16;

/// Returns the region of the `try_table` or `try` at `pc`, which is live: no other region begins before the end of the instruction.
pub(super) fn region_of(body: &FuncBody, pc: u32) -> u32 {
    body.regions.partition_point(|region| region.start <= pc) as u32
}

/// Returns whether exceptions with the tags of these two indices may be equal: an import may be any other tag of its type.
fn may_be_one(module: &Module, a: u32, b: u32) -> bool {
    a == b || a.min(b) < module.imported_tags && module.tag_type(a) == module.tag_type(b)
}

impl Builder<'_, '_> {
    pub(super) fn open_try_table(&mut self, ty: BlockType) {
        let (pc, region) = (self.pc, region_of(self.body, self.pc));
        self.open_region(Kind::TryTable { pc, region }, ty);
    }

    pub(super) fn open_try(&mut self, ty: BlockType) {
        self.open_region(Kind::Try { region: region_of(self.body, self.pc) }, ty);
    }

    fn open_region(&mut self, kind: Kind, ty: BlockType) {
        self.operands_to_slots();
        let height = self.stack.len() - ty.arity(self.module).0;
        self.push_frame(kind, ty, height, self.here());
    }

    /// The handlers of exceptions that the current instruction throws, up to one that catches all. Of handlers with the same tag only the first is
    /// reached. The tag of a `throw` excludes none: the walk counts the clauses that it tests in frames whose code has landings.
    fn handlers_here(&mut self) -> Handlers {
        let body = self.body;
        let (mut handlers, mut seen) = (Handlers::new(), HashSet::new());
        let mut region = region_at(&body.regions, self.pc);
        while let Some(&around) = region {
            self.ssa.spend(1 + EDGE * around.count as usize);
            if self.ssa.exhausted() {
                break;
            }
            for index in around.first..around.first + around.count {
                let Some(tag) = body.handlers[index as usize].tag else {
                    handlers.push(index);
                    return handlers;
                };
                let mut tags = handlers.iter().filter_map(|&other| body.handlers[other as usize].tag);
                let is_first = if handlers.len() < COMPARED {
                    tags.all(|other| other != tag)
                } else {
                    if seen.is_empty() {
                        seen.extend(tags);
                    }
                    seen.insert(tag)
                };
                if is_first {
                    handlers.push(index);
                }
            }
            region = body.regions.get(around.next as usize);
        }
        handlers
    }

    /// Ends the block after a call, if its exceptions have handlers.
    pub(super) fn protect(&mut self) {
        if self.body.regions.is_empty() {
            return;
        }
        let handlers = self.handlers_here();
        if !handlers.is_empty() {
            let from = self.here();
            self.terminate(Op::Try, 0, 0, &[]);
            self.landing_edges(&handlers);
            self.continue_in_new_block(from);
        }
    }

    /// Adds edges from the current block, which has just been ended, to the landing blocks of these handlers.
    fn landing_edges(&mut self, handlers: &[u32]) {
        let from = self.here();
        for (index, &handler) in (0..).zip(handlers) {
            self.func.push_succ(from, PENDING);
            let edges = &mut self.handlers[handler as usize];
            edges.landing = self.edges.push(edges.landing, Edge { from, index, args: 0 });
        }
    }

    pub(super) fn throw(&mut self, tag: u32) {
        let payload = self.pop_list(self.module.tag_type(tag).params.len());
        match self.static_handler(tag) {
            Some((handler, tested)) => self.throw_to(handler, tested, &payload),
            None => {
                let handlers = self.handlers_here();
                self.terminate(Op::Throw, tag, 0, &payload);
                self.landing_edges(&handlers);
            }
        }
        self.block = None;
        self.spare_operands = payload;
    }

    /// Returns the handler of exceptions with this tag that the current instruction throws, if it is known and needs no object, and the
    /// number of handlers tested.
    fn static_handler(&mut self, tag: u32) -> Option<(u32, u64)> {
        let (module, body) = (self.module, self.body);
        let mut tested = 0;
        let mut region = region_at(&body.regions, self.pc);
        while let Some(&around) = region {
            self.ssa.spend(1 + around.count as usize);
            for index in around.first..around.first + around.count {
                let handler = &body.handlers[index as usize];
                tested += 1;
                if handler.tag.is_none_or(|other| other == tag) {
                    let needs_object = handler.reference || handler.saved.is_some();
                    return (!needs_object && !self.ssa.exhausted()).then_some((index, tested));
                }
                if handler.tag.is_some_and(|other| may_be_one(module, other, tag)) {
                    return None;
                }
            }
            region = body.regions.get(around.next as usize);
        }
        None
    }

    /// Jumps with this payload to what comes after the landing block of a handler, of which `tested` is the number in the order in which
    /// handlers are tested.
    fn throw_to(&mut self, handler: u32, tested: u64, payload: &[Value]) {
        if self.options.fuel {
            self.emit(Op::Fuel, Type::Void, 0, tested, &[]);
        }
        let passed = if self.body.handlers[handler as usize].tag.is_some() { payload } else { &[] };
        passed.iter().for_each(|&value| self.push(value));
        match self.clause_depth(handler) {
            Some(depth) => self.br(depth),
            None => {
                let edge = self.fall_through(passed.len());
                let edges = &mut self.handlers[handler as usize];
                edges.throws = self.edges.push(edges.throws, edge);
            }
        }
    }

    /// Returns the depth of the label of a handler that is a clause of an open `try_table`.
    fn clause_depth(&mut self, handler: u32) -> Option<u32> {
        let body = self.body;
        for (depth, i) in (0..self.frames.len()).rev().enumerate() {
            self.ssa.spend(1);
            let Kind::TryTable { pc, region } = self.frames[i].kind else { continue };
            let region = &body.regions[region as usize];
            if let Some(clause) = handler.checked_sub(region.first).filter(|&clause| clause < region.count) {
                self.ssa.spend(clause as usize);
                // Labels of clauses are counted from outside the instruction.
                return Some(self.clause_labels(pc)[clause as usize] + depth as u32 + 1);
            }
        }
        None
    }

    /// The labels of the clauses of the `try_table` at `pc`.
    fn clause_labels(&self, pc: u32) -> SmallVec<[u32; 4]> {
        match Instrs::new(self.module, pc, self.body.end).next().map(|instr| instr.imm) {
            Some(Imm::TryTable(_, clauses)) => clauses.iter().map(|clause| clause.label).collect(),
            _ => unreachable!("there is a `try_table`"),
        }
    }

    pub(super) fn throw_ref(&mut self) {
        let reference = self.pop();
        self.throw_reference(reference);
    }

    /// Throws the exception that a handler around the instruction has caught.
    pub(super) fn rethrow(&mut self, depth: u32) {
        let index = self.frames.len() - 1 - depth as usize;
        let Kind::Catch { region, handlers } = self.frames[index].kind else { unreachable!("validated code names a handler") };
        let handler = self.body.regions[region as usize].first + handlers - 1;
        let saved = self.body.handlers[handler as usize].saved.expect("validation gave it a local");
        self.local_get(saved);
        self.throw_ref();
    }

    fn throw_reference(&mut self, reference: Value) {
        let reference = self.non_null(reference);
        let handlers = self.handlers_here();
        self.terminate(Op::ThrowRef, 0, 0, &[reference]);
        self.landing_edges(&handlers);
        self.block = None;
    }

    /// Translates `catch` or `catch_all`, in live code or where dead code ends.
    pub(super) fn catch(&mut self) {
        if self.block.is_some() {
            self.jump_to_label(0);
        }
        let frame = self.frames.last_mut().expect("validated code nests");
        let (region, handlers) = match frame.kind {
            Kind::Try { region } => (region, 0),
            Kind::Catch { region, handlers } => (region, handlers),
            Kind::Function | Kind::Block | Kind::If(_) | Kind::Loop { .. } | Kind::PeeledLoop { .. } | Kind::TryTable { .. } => {
                unreachable!("validated code has `catch` only in a `try`")
            }
        };
        frame.kind = Kind::Catch { region, handlers: handlers + 1 };
        let (height, opened) = (frame.height(), frame.opened);
        self.stack.truncate(height);
        let handler = self.body.regions[region as usize].first + handlers;
        let mut throws = Vec::new();
        self.edges.take(std::mem::replace(&mut self.handlers[handler as usize].throws, NO_EDGE), &mut throws);
        let lands = self.land(handler, opened);
        if throws.is_empty() {
            return;
        }
        let payload = self.body.handlers[handler as usize].tag.map_or(0, |tag| self.module.tag_type(tag).params.len());
        if lands {
            throws.push(self.fall_through(payload));
        }
        self.stack.truncate(height);
        let block = self.enter_new_block(&throws);
        self.pass_through(block, opened);
        self.join_operands(block, &throws, payload);
    }

    /// Makes the landing blocks of a `try_table`, which branch to the labels of its clauses. `edges` are those into its own label.
    pub(super) fn land_clauses(&mut self, pc: u32, region: u32, frame: &Frame, edges: &mut Vec<Edge>) {
        let region = self.body.regions[region as usize];
        let handlers = region.first..region.first + region.count;
        if handlers.clone().all(|handler| self.handlers[handler as usize].landing == NO_EDGE) {
            return;
        }
        if self.block.is_some() {
            edges.push(self.fall_through(frame.ty.arity(self.module).1));
            self.block = None;
        }
        let labels = self.clause_labels(pc);
        for (handler, &label) in handlers.zip(&labels) {
            self.stack.truncate(frame.height());
            if self.land(handler, frame.opened) {
                self.br(label);
            }
        }
    }

    /// Makes the landing block of a handler and pushes what the handler passes on. Returns whether any edge leads there. `opened` is where
    /// its region began.
    fn land(&mut self, handler: u32, opened: (u32, crate::ir::Block)) -> bool {
        let mut edges = Vec::new();
        self.edges.take(std::mem::replace(&mut self.handlers[handler as usize].landing, NO_EDGE), &mut edges);
        if edges.is_empty() {
            return false;
        }
        self.ssa.spend(edges.len());
        let block = self.enter_new_block(&edges);
        self.pass_through(block, opened);
        let Handler { tag, reference, saved, entry } = self.body.handlers[handler as usize];
        let payload = tag.map_or(&[][..], |tag| &self.module.tag_type(tag).params);
        let refers = reference || saved.is_some();
        let types = payload.iter().map(|&ty| Type::from(ty)).chain(refers.then_some(Type::Gc));
        let mut catch = Value(0);
        let mut last = catch;
        for (i, ty) in types.clone().enumerate() {
            last = match i {
                0 => self.emit(Op::Catch, ty, tag.unwrap_or(NO_TAG), entry.into(), &[]),
                _ => self.emit(Op::Result, ty, 0, i as u64, &[catch]),
            };
            catch = if i == 0 { last } else { catch };
            self.push(last);
        }
        if types.count() == 0 {
            self.emit(Op::Catch, Type::Void, tag.unwrap_or(NO_TAG), entry.into(), &[]);
        }
        if let Some(saved) = saved {
            self.stack.pop();
            self.write_local(saved, last);
        }
        true
    }
}
