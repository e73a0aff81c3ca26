//! The linear scan: segments get their locations in the order of their starts.
//!
//! 1. A segment gets a register that is free for all its ranges, if there is one, preferably that of a related value.
//! 2. Otherwise the cheapest choice is made: a register that is free for a while, with the rest of the segment split
//!    off; a register whose segment is evicted; or no register until the next use that needs one. If the function must
//!    save a register, the cost of saving it counts.
//! 3. A segment that goes to memory is split where that is cheapest, and reloaded before its next use where *that* is
//!    cheapest: a value that is not used in a loop is stored before the loop and reloaded after it. The rest goes back
//!    to the queue (second-chance allocation). It starts later than the segment being placed, so the scan terminates.
//!
//! Sources: M. Poletto, V. Sarkar, "Linear Scan Register Allocation", TOPLAS 21(5), 1999; C. Wimmer, M. Franz, "Linear
//! Scan Register Allocation on SSA Form", CGO 2010. Unlike these, the choice is by cost and not by the distance of the
//! next use.
//!
//! Cost: each placement queries every register of the class once; a query looks at a bounded number of ranges.

use super::client::{Class, Client, Reg, RegSet};
use super::costs::Costs;
use super::error::AllocationError;
use super::intervals::{Intervals, UsePosition};
use super::point::Point;
use super::register_file::{Conflict, Timeline};
use super::segments::{Location, Segments};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The cost of saving and restoring a register, in copies at the function's entry.
const SAVE_COST: f32 = 1.5;
/// The extra cost of reading an operand from memory instead of from a register, in copies. An operand that is copied
/// anyway counts as a whole copy, because it would otherwise be in the right register or cheap to copy.
const MEMORY_OPERAND_COST: f32 = 0.75;
/// The cost of a copy between registers, in copies to or from memory.
const REGISTER_COPY_COST: f32 = 0.3;
/// The number of unallocated, copy-related values that are considered as hints.
const MAX_PENDING: usize = 3;
/// The number of copy-related values that are looked up for a hint.
const MAX_RELATIONS: usize = 32;

/// A decision about a segment.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// It gets the register until the point; the segment there, if any, is evicted first.
    Take { reg: Reg, evict: Option<u32>, until: Point },
    /// It is in memory until it is needed.
    Memory,
}

/// A register and the first conflict in it.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    reg: Reg,
    conflict: Conflict,
}

/// Register hints: the copies that each choice saves.
#[derive(Default)]
struct Hints {
    /// Registers, and the copies that each saves.
    fixed: SmallVec<[(Reg, f32); 4]>,
    /// Values without a location, and the copies saved by sharing their future register.
    pending: SmallVec<[(u32, f32); MAX_PENDING]>,
}

impl Hints {
    fn add(&mut self, reg: Reg, weight: f32) {
        match self.fixed.iter_mut().find(|hint| hint.0 == reg) {
            Some(hint) => hint.1 += weight,
            None => self.fixed.push((reg, weight)),
        }
    }

    fn score(&self, reg: Reg) -> f32 {
        self.fixed.iter().find(|hint| hint.0 == reg).map_or(0.0, |hint| hint.1)
    }
}

/// The state of the scan.
struct Scan<'a> {
    intervals: &'a Intervals,
    costs: &'a Costs,
    segments: Segments,
    timelines: Vec<Timeline<'a>>,
    /// Segments without a location, ordered by start.
    queue: BinaryHeap<Reverse<(Point, u32)>>,
    /// By virtual register, whether some segment of it is in memory.
    stored: Vec<bool>,
    /// By class, the registers in the order of preference.
    registers: [SmallVec<[Reg; 16]>; 2],
    /// Callee-saved registers that have not been used yet.
    unsaved: RegSet,
    /// Scratch memory: the candidates for the current segment.
    candidates: Vec<Candidate>,
}

/// Gives every segment of every interval a location.
///
/// # Errors
/// [`AllocationError`] if an instruction needs more registers than there are.
pub fn scan(client: &impl Client, intervals: &Intervals, costs: &Costs) -> Result<Segments, AllocationError> {
    let segments = Segments::of(intervals);
    let queue = (0..segments.len() as u32).map(|segment| Reverse((segments.get(segment).start, segment))).collect();
    let of = |class| {
        let all = client.preferred().iter().chain(client.others().iter());
        all.filter(|reg| reg.class() == class).collect::<SmallVec<[Reg; 16]>>()
    };
    let mut scan = Scan {
        stored: vec![false; intervals.regs.len()],
        intervals,
        costs,
        segments,
        timelines: (0..Reg::PHYSICAL).map(|reg| Timeline::new(intervals.claims.get(reg))).collect(),
        queue,
        registers: [of(Class::Int), of(Class::Float)],
        unsaved: client.others(),
        candidates: Vec::with_capacity(Reg::PHYSICAL),
    };
    while let Some(Reverse((_, segment))) = scan.queue.pop() {
        scan.place(segment)?;
    }
    Ok(scan.segments)
}

impl Scan<'_> {
    fn place(&mut self, segment: u32) -> Result<(), AllocationError> {
        let (start, reg) = (self.segments.get(segment).start, self.reg(segment));
        // No copy is possible in the middle of an instruction; only a value that is in memory anyway continues there.
        if !start.is_gap() && start != self.intervals.defs[reg] {
            self.keep_in_memory(segment, start);
            return Ok(());
        }
        let hints = self.hints(segment);
        if let Some(reg) = self.obvious(segment, &hints) {
            self.take(segment, reg, None, Point::NEVER);
            return Ok(());
        }
        self.find_candidates(segment);
        let choice = match self.best_free(segment, &hints) {
            Some((reg, 0.0)) => Choice::Take { reg, evict: None, until: Point::NEVER },
            free => {
                let (cost, choice) = self.cheapest(segment, &hints);
                match free {
                    Some((reg, price)) if cost > price => Choice::Take { reg, evict: None, until: Point::NEVER },
                    _ if cost < f32::INFINITY => choice,
                    _ => return Err(AllocationError(format!("no register at instruction {}", start.inst()))),
                }
            }
        };
        match choice {
            Choice::Memory => self.keep_in_memory(segment, start),
            Choice::Take { reg, evict, until } => self.take(segment, reg, evict, until),
        }
        Ok(())
    }

    fn reg(&self, segment: u32) -> usize {
        self.segments.get(segment).reg as usize
    }

    /// The register that [`Scan::best_free`] would choose, if this can be seen without looking at the other registers: it is
    /// free, and no other can save as many copies.
    fn obvious(&mut self, segment: u32, hints: &Hints) -> Option<Reg> {
        let (reg, weight) = hints.fixed.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let others = hints.fixed.iter().filter(|hint| hint.0 != reg).map(|hint| hint.1).fold(0.0, f32::max);
        let pending: f32 = hints.pending.iter().map(|pending| pending.1).sum();
        if weight <= others || self.unsaved.contains(reg) || !self.registers[self.class(segment)].contains(&reg) {
            return None;
        }
        (self.is_free(segment, reg) && weight + self.expected(reg, hints) > others + pending).then_some(reg)
    }

    fn find_candidates(&mut self, segment: u32) {
        let (start, end) = (self.segments.get(segment).start, self.segments.get(segment).end);
        let class = self.class(segment);
        let (segments, intervals) = (&self.segments, self.intervals);
        self.candidates.clear();
        self.candidates.extend(self.registers[class].iter().map(|&reg| {
            let timeline = &mut self.timelines[reg.number()];
            Candidate { reg, conflict: timeline.conflict_from(start, end, || segments.ranges(intervals, segment)) }
        }));
    }

    /// Whether a register is free for the whole segment.
    fn is_free(&mut self, segment: u32, reg: Reg) -> bool {
        let (start, end) = (self.segments.get(segment).start, self.segments.get(segment).end);
        let timeline = &mut self.timelines[reg.number()];
        timeline.conflict_from(start, end, || self.segments.ranges(self.intervals, segment)).at >= end
    }

    fn class(&self, segment: u32) -> usize {
        self.intervals.regs[self.reg(segment)].class() as usize
    }

    /// The best register that is free for the whole segment, and its price. A register that saves copies is best, then one that
    /// need not be saved, then one that is claimed soon, so that long segments find the others free.
    fn best_free(&self, segment: u32, hints: &Hints) -> Option<(Reg, f32)> {
        let end = self.segments.get(segment).end;
        let mut best: Option<(Candidate, f32, f32)> = None;
        for &candidate in self.candidates.iter().filter(|candidate| candidate.conflict.at >= end) {
            let expected = self.expected(candidate.reg, hints);
            // A value that is copied there next would need the register saved too.
            let price = if self.unsaved.contains(candidate.reg) && expected == 0.0 { SAVE_COST } else { 0.0 };
            let score = hints.score(candidate.reg) + expected - price;
            let better = best.is_none_or(|(other, other_score, _)| {
                score > other_score || score == other_score && candidate.conflict.at < other.conflict.at
            });
            if better {
                best = Some((candidate, score, price));
            }
        }
        best.map(|(candidate, _, price)| (candidate.reg, price))
    }

    /// The copies saved by `reg` if related values without a location get it too. They are assumed to get it unless it is known
    /// to be taken. There are mostly none, so only that test is inlined; a call of it was 1 % of a compilation.
    #[inline(always)]
    fn expected(&self, reg: Reg, hints: &Hints) -> f32 {
        if hints.pending.is_empty() { 0.0 } else { self.expected_of(&hints.pending, reg) }
    }

    #[inline(never)]
    fn expected_of(&self, pending: &[(u32, f32)], reg: Reg) -> f32 {
        let timeline = &self.timelines[reg.number()];
        let free = pending.iter().filter(|pending| timeline.is_free(self.intervals.ranges.get(pending.0 as usize)));
        free.map(|pending| pending.1).sum()
    }

    /// Register hints: the copies that each choice saves.
    fn hints(&self, segment: u32) -> Hints {
        let (start, reg) = (self.segments.get(segment).start, self.reg(segment));
        let mut hints = Hints::default();
        // A reloaded value is best in its previous register, where other paths still have it.
        if let Some(previous) = self.segments.get(segment).previous {
            hints.add(previous, self.costs.at(start));
        }
        for relation in self.intervals.relations.get(reg).iter().take(MAX_RELATIONS) {
            if relation.other.is_physical() {
                hints.add(relation.other, relation.weight);
                continue;
            }
            let other = relation.other.index();
            match self.segments.find(other, relation.at) {
                Location::Reg(there) => hints.add(there, relation.weight),
                Location::Slot => {}
                Location::Pending => {
                    let beyond = self.intervals.relations.get(other).iter().take(MAX_RELATIONS);
                    let fixed = beyond.filter(|beyond| beyond.other.is_physical());
                    fixed.for_each(|beyond| hints.add(beyond.other, beyond.weight / 2.0));
                    let def = self.intervals.defs[other];
                    let together = self.intervals.ranges_within(reg, def, def.next()).next().is_some();
                    if !together && def > start && hints.pending.len() < MAX_PENDING {
                        hints.pending.push((other as u32, relation.weight));
                    }
                }
            }
        }
        hints
    }

    /// The cheapest choice for a segment for which no register is free, and its cost. If several are equally cheap, it is the one
    /// after which the value in memory is used latest.
    fn cheapest(&self, segment: u32, hints: &Hints) -> (f32, Choice) {
        let (start, end) = (self.segments.get(segment).start, self.segments.get(segment).end);
        let needed = self.needed(segment);
        let (mut choice, mut cost, mut good_until) = (Choice::Memory, f32::INFINITY, start);
        if needed.is_none() {
            (cost, good_until) = (self.memory_cost(segment, start, start), self.next_use(segment, start));
        }
        let needed = needed.unwrap_or(start.next());
        // The cost of having the segment in memory from its best split point on. It is cached because a call claims many
        // registers at once.
        let mut split = (start, None);
        for &Candidate { reg, conflict } in &self.candidates {
            let mut price = if self.unsaved.contains(reg) { SAVE_COST } else { 0.0 };
            price -= REGISTER_COPY_COST * hints.score(reg);
            let (mut evict, mut until, mut good) = (None, conflict.at, conflict.at);
            if let Some(other) = conflict.segment.filter(|_| conflict.at < needed) {
                price += self.eviction_cost(other, start);
                if price > cost {
                    continue;
                }
                let next = self.timelines[reg.number()].conflict(self.segments.ranges(self.intervals, segment), Some(other));
                (evict, until, good) = (Some(other), next.at, next.at.min(self.next_use(other, start)));
            }
            if until < needed {
                continue;
            }
            if until < end {
                if split.0 != until {
                    let at = self.split_point(segment, until);
                    split = (until, at.map(|at| self.memory_cost(segment, at, until.max(start.next_gap()))));
                }
                let Some(rest) = split.1 else { continue };
                price += rest;
            }
            if price < cost || price == cost && good > good_until {
                (cost, good_until, choice) = (price, good, Choice::Take { reg, evict, until });
            }
        }
        (cost, choice)
    }

    /// The segment's next use after the instruction at `now`.
    fn next_use(&self, segment: u32, now: Point) -> Point {
        self.intervals.uses_from(self.reg(segment), now.next_gap()).first().map_or(Point::NEVER, |position| position.at)
    }

    /// The point until which the segment must be in a register from its start, or `None` if it need not be in one.
    fn needed(&self, segment: u32) -> Option<Point> {
        let start = self.segments.get(segment).start;
        let uses = self.intervals.uses_from(self.reg(segment), start);
        let here = uses.iter().take_while(|position| position.at < start.next_gap());
        here.filter(|position| position.needs_register).last().map(|position| position.at.next())
    }

    /// The best split point of a segment whose register is free until `conflict`: after the last use before it. `None` if
    /// the register is not used until then.
    fn split_point(&self, segment: u32, conflict: Point) -> Option<Point> {
        let start = self.segments.get(segment).start;
        let last = self.intervals.last_use_before(self.reg(segment), conflict).filter(|last| last.at >= start)?;
        // A value that is read in a gap can have been moved just before.
        let low = if last.at.is_gap() && last.at > start { last.at } else { last.at.next().ceil() };
        Some(if low > conflict.floor() { conflict } else { self.costs.cheapest(low, conflict.floor()) })
    }

    /// The cost of having a segment in memory from `from` on, where nothing is read before `now`.
    fn memory_cost(&self, segment: u32, from: Point, now: Point) -> f32 {
        let reg = self.reg(segment);
        let def = self.intervals.defs[reg];
        let store = match self.stored[reg] || from == def {
            true => 0.0,
            false => self.costs.copy(from.floor()).min(self.costs.at(def)),
        };
        let (wanted, operands) = self.wanted(segment, now);
        let reload = wanted.map_or(0.0, |position| self.costs.copy(self.reload_point(position, now)));
        let until = wanted.map_or(self.segments.get(segment).end, |position| position.at);
        store + reload + operands + self.back_edge_cost(reg, from, until)
    }

    /// The next use for which a segment in memory should be reloaded, and the cost of the operands read from memory before
    /// it.
    fn wanted(&self, segment: u32, now: Point) -> (Option<UsePosition>, f32) {
        let end = self.segments.get(segment).end;
        let uses = self.intervals.uses_from(self.reg(segment), now);
        let mut operands = 0.0;
        for (i, position) in uses.iter().take_while(|position| position.at < end).enumerate() {
            if position.at.floor() > now.floor()
                && (position.needs_register || self.is_worth_reloading(position, uses.get(i + 1), now))
            {
                return (Some(*position), operands);
            }
            operands += self.costs.at(position.at) * if position.at.is_gap() { 1.0 } else { MEMORY_OPERAND_COST };
        }
        (None, operands)
    }

    /// Whether a value that could be read from memory should be in a register: if it can be loaded at a lower frequency than it
    /// is used, or if it is used again in the same block.
    fn is_worth_reloading(&self, position: &UsePosition, next: Option<&UsePosition>, now: Point) -> bool {
        let used_again = next.is_some_and(|next| self.costs.block(next.at) == self.costs.block(position.at));
        used_again || self.costs.copy(self.reload_point(*position, now)) < self.costs.at(position.at)
    }

    /// The best point to reload, for a use, a value that is in memory at `now`.
    fn reload_point(&self, position: UsePosition, now: Point) -> Point {
        let (low, high) = (now.next_gap(), position.at.floor());
        let best = self.costs.cheapest(low.min(high), high);
        // A value that was spilled in a rare block is reloaded in that block, not on the common path.
        let block = self.costs.block(now);
        let last = self.costs.start(block + 1).previous().floor();
        if (low..best).contains(&last) && self.costs.frequency[block] < self.costs.copy(best) { last } else { best }
    }

    /// The cost of reloading a value at the end of a loop that expects it in a register at its head, if the value goes to memory at
    /// `from` and does not return to a register before `until`, after the loop.
    fn back_edge_cost(&self, reg: usize, from: Point, until: Point) -> f32 {
        let def = self.intervals.defs[reg];
        for range in self.costs.loops_around(from) {
            if until < range.end || def >= range.start {
                break;
            }
            if self.intervals.last_use_before(reg, from).is_some_and(|last| last.at >= range.start) {
                return self.costs.at(range.start);
            }
        }
        0.0
    }

    /// The cost of evicting a segment from its register at `now`.
    fn eviction_cost(&self, other: u32, now: Point) -> f32 {
        let reg = self.reg(other);
        let uses = self.intervals.uses_from(reg, now);
        let mut here = uses.iter().take_while(|position| position.at < now.next_gap());
        if here.any(|position| position.needs_register) {
            return f32::INFINITY;
        }
        self.memory_cost(other, self.eviction_point(other, now), now)
    }

    /// The best split point of a segment that is evicted at `now`.
    fn eviction_point(&self, other: u32, now: Point) -> Point {
        let start = self.segments.get(other).start;
        let low = match self.intervals.last_use_before(self.reg(other), now).filter(|last| last.at >= start) {
            Some(last) => last.at.next().ceil(),
            // The segment was reloaded and not used since.
            None if self.stored[self.reg(other)] => return start,
            None => start.ceil(),
        };
        if low > now.floor() { now } else { self.costs.cheapest(low, now.floor()) }
    }

    fn take(&mut self, segment: u32, reg: Reg, evict: Option<u32>, until: Point) {
        if let Some(other) = evict {
            self.evict(other, reg, self.segments.get(segment).start);
        }
        self.unsaved = self.unsaved.without(reg);
        self.segments.set_location(segment, Location::Reg(reg));
        if until < self.segments.get(segment).end {
            let at = self.split_point(segment, until).expect("the choice was made with it");
            self.split(segment, at);
        }
        self.timelines[reg.number()].insert(segment, self.segments.ranges(self.intervals, segment));
    }

    /// Splits a segment at `at` and puts the second part into the queue.
    fn split(&mut self, segment: u32, at: Point) {
        let rest = self.segments.split(self.intervals, segment, at);
        self.queue.push(Reverse((self.segments.get(rest).start, rest)));
    }

    fn evict(&mut self, other: u32, from: Reg, now: Point) {
        let at = self.eviction_point(other, now);
        self.timelines[from.number()].remove(other);
        let rest = if at <= self.segments.get(other).start { other } else { self.segments.split(self.intervals, other, at) };
        self.keep_in_memory(rest, now);
    }

    /// Leaves a segment in memory until its next use after `now` that needs, or is worth, a register.
    fn keep_in_memory(&mut self, segment: u32, now: Point) {
        self.segments.set_location(segment, Location::Slot);
        let reg = self.reg(segment);
        self.stored[reg] = true;
        if let (Some(position), _) = self.wanted(segment, now) {
            let at = self.reload_point(position, now);
            if at > self.segments.get(segment).start {
                self.split(segment, at);
            }
        }
    }
}
