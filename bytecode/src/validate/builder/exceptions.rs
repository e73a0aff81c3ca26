//! Blocks with handlers of exceptions: their regions, handlers, and the locals for `rethrow`.

use super::{BranchEntry, Builder, Class, Code, Handler, LabelKind, NO_REGION, Reader, Step, TryRegion, dead_entry};

impl Builder {
    /// Processes an instruction that opens, divides or ends a block with handlers. It costs nothing.
    #[cold]
    pub(super) fn exception_block(&mut self, code: &Code<'_>, step: Step) {
        let Step { class, pc, next, before } = step;
        let mut immediates = Reader { bytes: code.bytes, at: code.place(pc) + 1 };
        self.exceptions = true;
        match class {
            Class::TryTable => self.open_try_table(code, step, immediates),
            Class::Try => {
                let arity = immediates.block_type().arity_in(code.types);
                let region = self.open_region(next, before.wrapping_sub(arity.0 as u32), 0);
                let kind = LabelKind::Try { region, handlers: self.open_handlers.len() };
                self.open(kind, before, arity);
                self.region = if region == NO_REGION { self.region } else { region };
            }
            Class::Catch => {
                let tag = immediates.u32();
                self.wide |= code.is_vector_type(|| code.tags[tag as usize]);
                self.begin_catch(step, Some(tag), code.types[code.tags[tag as usize] as usize].params.len());
            }
            Class::CatchAll => self.begin_catch(step, None, 0),
            Class::Delegate => {
                let depth = immediates.u32();
                self.delegate(pc, depth);
                self.branches.push(skip_entry(self.live, pc, next, self.branches.len() as u32, 1));
                self.end(pc, next);
            }
            Class::Plain | Class::Nop | Class::Block | Class::Loop | Class::If | Class::Else | Class::End => {}
            Class::Br | Class::BrIf | Class::BrTable | Class::BrOnNull | Class::BrOnNonNull | Class::Stop | Class::Write => {}
            Class::Call | Class::CallIndirect | Class::ReturnCall | Class::ReturnCallIndirect | Class::Global => {}
            Class::Vector | Class::Throw | Class::ThrowRef | Class::Rethrow => {}
        }
    }

    fn open_try_table(&mut self, code: &Code<'_>, step: Step, mut immediates: Reader<'_>) {
        let Step { pc, next, before, .. } = step;
        let arity = immediates.block_type().arity_in(code.types);
        let clauses = immediates.clauses();
        let first = self.branches.len() as u32;
        let height = before.wrapping_sub(arity.0 as u32);
        self.branches.push(skip_entry(self.live, pc, next, first, 1 + clauses.len() as u32));
        let region = self.open_region(next, height, clauses.len() as u32);
        for clause in clauses.iter() {
            if let Some(tag) = clause.tag {
                self.wide |= code.is_vector_type(|| code.tags[tag as usize]);
            }
            let entry = self.branches.len() as u32;
            if self.live {
                let label = &self.labels[self.labels.len() - 1 - clause.label as usize];
                let keep = if let LabelKind::Loop(_) = label.kind { label.params } else { label.results };
                let weight = self.work.thrown();
                let target = self.entry(entry, clause.label, height + keep, weight);
                self.branches.push(target);
                self.handlers.push(Handler { tag: clause.tag, reference: clause.reference, saved: None, entry });
            } else {
                self.branches.push(dead_entry(pc, first));
            }
        }
        self.open(LabelKind::Try { region, handlers: self.open_handlers.len() }, before, arity);
        self.region = if region == NO_REGION { self.region } else { region };
    }

    /// Adds the region that begins at `start`, unless it is dead. Its `count` handlers are the next ones.
    fn open_region(&mut self, start: u32, height: u32, count: u32) -> u32 {
        if !self.live {
            return NO_REGION;
        }
        let (parent, first) = (self.region, self.handlers.len() as u32);
        self.regions.push(TryRegion { start, end: u32::MAX, height, parent, next: parent, first, count });
        self.regions.len() as u32 - 1
    }

    /// Ends the region of a label at `pc`.
    pub(super) fn close_region(&mut self, region: u32, pc: u32) {
        if let Some(closed) = self.regions.get_mut(region as usize) {
            closed.end = pc;
            self.region = closed.parent;
        }
    }

    /// A `catch` or `catch_all` whose payload has this many values.
    fn begin_catch(&mut self, step: Step, tag: Option<u32>, payload: usize) {
        let Step { pc, next, before, .. } = step;
        let first = self.branches.len() as u32;
        let weight = self.work.branch(next, 1);
        if self.live {
            let entry = self.entry(first, 0, before, weight);
            self.branches.push(entry);
        } else {
            self.branches.push(dead_entry(pc, first));
        }
        self.begin_segment(next);
        let Some(label) = self.labels.last_mut() else { return };
        self.live = label.live;
        self.work.begin_catch(label.weights);
        let (region, handlers, level) = match label.kind {
            LabelKind::Try { region, handlers } => {
                self.open_catches += 1;
                (region, handlers, self.open_catches - 1)
            }
            LabelKind::Catch { region, handlers, level } => (region, handlers, level),
            // Validated code has none of them here.
            LabelKind::Block | LabelKind::If(_) | LabelKind::Loop(_) => return,
        };
        let is_first = matches!(label.kind, LabelKind::Try { .. });
        label.kind = LabelKind::Catch { region, handlers, level };
        if is_first {
            self.close_region(region, pc);
        }
        if self.live {
            self.open_handlers.push(Handler { tag, reference: false, saved: None, entry: first + 1 });
            self.branches.push(BranchEntry { pc: next, stp: first + 2, keep: payload as u32, drop: 0 });
        } else {
            self.branches.push(dead_entry(pc, first));
        }
    }

    /// Passes the exceptions of the innermost `try` on to the label at `depth`, counted from outside the `try`.
    fn delegate(&mut self, pc: u32, depth: u32) {
        let Some((label, outer)) = self.labels.split_last() else { return };
        let LabelKind::Try { region, .. } = label.kind else { return };
        let target = &outer[outer.len() - 1 - depth as usize];
        let next = match target.kind {
            LabelKind::Try { region, .. } => region,
            LabelKind::Block | LabelKind::If(_) | LabelKind::Loop(_) | LabelKind::Catch { .. } => target.region,
        };
        if let Some(region) = self.regions.get_mut(region as usize) {
            region.next = next;
        }
        self.close_region(region, pc);
    }

    /// Lets the current handler of the label at `depth` store the exception.
    pub(super) fn rethrow(&mut self, pc: u32, depth: u32) {
        let index = self.branches.len() as u32;
        let label = &self.labels[self.labels.len() - 1 - depth as usize];
        let LabelKind::Catch { level, .. } = label.kind else { return self.branches.push(dead_entry(pc, index)) };
        if !self.live {
            return self.branches.push(dead_entry(pc, index));
        }
        let local = self.locals + level;
        // The handlers of the blocks inside it are above its own.
        let inner = self.labels[self.labels.len() - depth as usize..].iter().find_map(|label| match label.kind {
            LabelKind::Try { handlers, .. } | LabelKind::Catch { handlers, .. } => Some(handlers),
            LabelKind::Block | LabelKind::If(_) | LabelKind::Loop(_) => None,
        });
        let end = inner.unwrap_or(self.open_handlers.len());
        self.open_handlers[end - 1].saved = Some(local);
        self.saved = self.saved.max(level + 1);
        self.branches.push(BranchEntry { pc: local, stp: 0, keep: 0, drop: 0 });
    }
}

/// The entry of an instruction at `pc`, with `count` entries from `first` on, that leads to the next instruction.
fn skip_entry(live: bool, pc: u32, next: u32, first: u32, count: u32) -> BranchEntry {
    if live { BranchEntry { pc: next, stp: first + count, keep: 0, drop: 0 } } else { dead_entry(pc, first) }
}
