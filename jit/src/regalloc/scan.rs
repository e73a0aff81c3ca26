//! The linear scan: segments get their locations in the order of their starts.
//!
//! 1. A segment gets a register that is free for all its ranges, if there is one, preferably that of a related value. A
//!    register in which another value will be wanted while the segment lives is taken last.
//! 2. Otherwise the cheapest choice is made: a register that is free for a while, with the rest of the segment split
//!    off; a register whose segment is evicted; or no register until the next use that needs one. If the function must
//!    save a register, the cost of saving it counts.
//! 3. A segment that goes to memory is split where that is cheapest, and reloaded before its next use where *that* is
//!    cheapest: a value that is not used in a loop is stored before the loop and reloaded after it. The rest goes back
//!    to the queue (second-chance allocation). It starts later than the segment being placed, so the scan terminates.
//! 4. A block parameter that comes from memory and goes to memory is left there, though a register may be free.
//!
//! Sources: M. Poletto, V. Sarkar, "Linear Scan Register Allocation", TOPLAS 21(5), 1999; C. Wimmer, M. Franz, "Linear
//! Scan Register Allocation on SSA Form", CGO 2010. Unlike these, the choice is by cost and not by the distance of the
//! next use.
//!
//! Cost: each placement compares one point of every register of the class, and where it matters a bounded number of
//! ranges. The costs of evictions, which are most of the work, are computed for few registers, those with the lowest
//! bounds, and only where a bound does not decide.

use super::client::{Class, Client, Reg, RegSet};
use super::costs::Costs;
use super::error::AllocationError;
use super::intervals::{Intervals, MAX_RELATIONS, Origin, UsePosition, safepoints_within};
use super::point::{Point, Range};
use super::queue::Queue;
use super::register_file::{Conflict, MAX_RANGES, RegisterFile};
use super::segments::{Location, Segment, Segments};
use crate::meter::Meter;

/// The cost of saving and restoring a register, in copies at the function's entry.
const SAVE_COST: f32 = 1.5;
/// The extra cost of reading an operand from memory instead of from a register, in copies. An operand that is copied
/// anyway counts as a whole copy, because it would otherwise be in the right register or cheap to copy.
pub const MEMORY_OPERAND_COST: f32 = 0.75;
/// The cost of a copy between registers, in copies to or from memory.
const REGISTER_COPY_COST: f32 = 0.3;
/// The cost of taking a register in which another value will be wanted, in executions of the segment's start.
const SPARING_COST: f32 = 0.2;
/// The number of evictions of which the costs are computed.
const MAX_EVICTIONS: usize = 4;
/// The number of unallocated, copy-related values that are considered as hints.
const MAX_PENDING: usize = 3;
/// The number of uses that are asked about one by one, and then together, when it is decided for which of them a value is reloaded.
const FEW_USES: usize = 8;

/// A decision about a segment.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// It gets the register until the point; the segment there, if any, is evicted first.
    Take { reg: Reg, evict: Option<u32>, until: Point },
    /// It is in memory until it is needed.
    Memory,
}

/// Register hints: the copies that each choice saves.
#[derive(Default)]
struct Hints {
    /// The registers that save copies.
    regs: RegSet,
    /// By register in `regs`, the copies that it saves.
    saved: [f32; Reg::PHYSICAL],
    /// Values without a location, and the copies saved by sharing their future register.
    pending: [(u32, f32); MAX_PENDING],
    num_pending: usize,
    /// The copies from and to related values that are in memory, and from and to others.
    in_memory: f32,
    elsewhere: f32,
}

impl Hints {
    fn clear(&mut self) {
        (self.regs, self.num_pending, self.in_memory, self.elsewhere) = (RegSet::EMPTY, 0, 0.0, 0.0);
    }

    #[inline]
    fn add(&mut self, reg: Reg, weight: f32) {
        let saved = &mut self.saved[reg.number()];
        *saved = if self.regs.contains(reg) { *saved + weight } else { weight };
        self.regs = self.regs.with(reg);
    }

    fn add_pending(&mut self, value: u32, weight: f32) {
        if let Some(pending) = self.pending.get_mut(self.num_pending) {
            *pending = (value, weight);
            self.num_pending += 1;
        }
    }

    fn pending(&self) -> &[(u32, f32)] {
        &self.pending[..self.num_pending]
    }

    #[inline]
    fn score(&self, reg: Reg) -> f32 {
        if self.regs.contains(reg) { self.saved[reg.number()] } else { 0.0 }
    }
}

/// The cheapest choice so far.
struct Best {
    cost: f32,
    /// The next use of the value that it puts in memory.
    good_until: Point,
    choice: Choice,
}

impl Best {
    fn consider(&mut self, cost: f32, good_until: Point, choice: Choice) {
        if cost < self.cost || cost == self.cost && good_until > self.good_until {
            *self = Best { cost, good_until, choice };
        }
    }
}

/// A register whose segment may be evicted.
#[derive(Clone, Copy)]
struct Eviction {
    /// A lower bound of its cost.
    least: f32,
    /// The next use of the evicted segment, or the end of the block if it comes before. Beyond that, the order of points says little of the order
    /// of execution.
    next_use: Point,
    /// The part of the cost that does not depend on the evicted segment.
    price: f32,
    reg: Reg,
    other: u32,
}

impl Eviction {
    const NONE: Eviction = Eviction { least: f32::INFINITY, next_use: Point::NEVER, price: 0.0, reg: Reg::NONE, other: 0 };
}

/// Evictions, of which the one with the lowest bound is next; of equals, the one of the value that is used last.
struct Evictions {
    all: [Eviction; Reg::OF_CLASS],
    count: usize,
}

impl Evictions {
    fn next(&mut self) -> Option<Eviction> {
        let before = |a: &Eviction, b: &Eviction| a.least < b.least || a.least == b.least && a.next_use > b.next_use;
        let least = |best: usize, i: usize| if before(&self.all[i], &self.all[best]) { i } else { best };
        let next = (0..self.count).reduce(least)?;
        let eviction = self.all[next];
        self.all.copy_within(next + 1..self.count, next);
        self.count -= 1;
        Some(eviction)
    }
}

/// The cost of the rest of a segment that is in memory after `until`.
#[derive(Default)]
struct Rest {
    until: Point,
    cost: Option<f32>,
}

/// The state of the scan.
struct Scan<'a> {
    intervals: &'a Intervals,
    costs: &'a Costs,
    segments: Segments,
    file: RegisterFile<'a>,
    /// Segments without a location.
    queue: Queue<'a>,
    /// By virtual register, whether some segment of it is in memory.
    stored: Vec<bool>,
    /// By class, the registers; and those for traced values that live across a safepoint. That destroys all of these, so that such a
    /// value is in its slot across it.
    registers: [RegSet; 3],
    /// See [`Intervals::safepoints`].
    safepoints: Vec<u32>,
    /// Registers to use first.
    preferred: RegSet,
    /// Callee-saved registers that have not been used yet.
    unsaved: RegSet,
    /// By register, the definitions in [`Intervals::wanted`] that are not over.
    wanted: [&'a [Point]; Reg::PHYSICAL],
    /// By virtual register without a location, the register of a related value in which it would fit, if there is one.
    likely: Vec<Reg>,
    /// By register, the related value of one that was in the register that is defined next. Its definition may be over.
    awaited: [Option<u32>; Reg::PHYSICAL],
}

/// Gives every segment of every interval a location.
///
/// # Errors
/// [`AllocationError`] if an instruction needs more registers than there are, or if there are no steps left.
pub fn scan(client: &impl Client, intervals: &Intervals, costs: &Costs, meter: &Meter<'_>) -> Result<Segments, AllocationError> {
    let all = client.preferred().union(client.others());
    let mut scan = Scan {
        stored: vec![false; intervals.regs.len()],
        intervals,
        costs,
        queue: Queue::of(intervals),
        segments: Segments::new(intervals.regs.len()),
        file: RegisterFile::new(&intervals.claims),
        registers: [(all, Class::Int), (all, Class::Float), (client.preferred(), Class::Int)]
            .map(|(of, class)| of.filter(|reg| reg.class() == class)),
        safepoints: intervals.safepoints(client),
        preferred: client.preferred(),
        unsaved: client.others(),
        wanted: std::array::from_fn(|reg| intervals.wanted.get(reg)),
        likely: vec![Reg::NONE; intervals.regs.len()],
        awaited: [None; Reg::PHYSICAL],
    };
    meter.ask()?;
    let mut hints = Hints::default();
    let of_intervals = intervals.size();
    while let Some(segment) = scan.queue.pop(intervals, &mut scan.segments) {
        meter.spend_holding(1, || of_intervals + scan.segments.size())?;
        scan.place(segment, &mut hints)?;
    }
    Ok(scan.segments)
}

impl Scan<'_> {
    fn place(&mut self, segment: u32, hints: &mut Hints) -> Result<(), AllocationError> {
        let (start, reg) = (self.segments.get(segment).start, self.reg(segment));
        // No copy is possible in the middle of an instruction; only a value that is in memory anyway continues there.
        if !start.is_gap() && start != self.intervals.defs[reg] {
            self.keep_in_memory(segment, start);
            return Ok(());
        }
        self.find_hints(segment, hints);
        let hints = &*hints;
        if hints.in_memory > hints.elsewhere && self.belongs_in_memory(segment, hints) {
            self.keep_in_memory(segment, start);
            return Ok(());
        }
        if let Some(reg) = self.obvious(segment, hints) {
            self.take(segment, reg, None, Point::NEVER);
            self.prefer(reg, start, hints);
            return Ok(());
        }
        let free = self.find_free(segment);
        let choice = match self.best_free(segment, free, hints) {
            Some((reg, 0.0)) => Choice::Take { reg, evict: None, until: Point::NEVER },
            best => {
                let (cost, choice) = self.cheapest(segment, free, hints);
                match best {
                    Some((reg, price)) if cost > price => Choice::Take { reg, evict: None, until: Point::NEVER },
                    _ if cost < f32::INFINITY => choice,
                    _ => return Err(AllocationError(format!("no register at instruction {}", start.inst()))),
                }
            }
        };
        match choice {
            Choice::Memory => self.keep_in_memory(segment, start),
            Choice::Take { reg, evict, until } => {
                self.take(segment, reg, evict, until);
                self.prefer(reg, start, hints);
            }
        }
        Ok(())
    }

    /// Notes that values without a location, which are copied to or from a value that is in `reg` from `start` on, are best
    /// in this register, too.
    fn prefer(&mut self, reg: Reg, start: Point, hints: &Hints) {
        for &(value, _) in hints.pending() {
            let value = value as usize;
            if self.likely[value].is_none() && self.file.is_free(reg, self.intervals.ranges.get(value)) {
                self.likely[value] = reg;
            }
            let (def, awaited) = (self.intervals.defs[value], &mut self.awaited[reg.number()]);
            let known = awaited.map(|awaited| self.intervals.defs[awaited as usize]);
            if known.is_none_or(|known| known <= start || def < known) {
                *awaited = Some(value as u32);
            }
        }
    }

    /// Those of these registers in which no other value is wanted that begins while the segment lives, or together with it.
    fn unwanted(&mut self, segment: u32, regs: RegSet) -> RegSet {
        if regs.first().is_none_or(|first| regs.without(first).is_empty()) {
            return regs;
        }
        let Segment { reg: value, start, end, .. } = *self.segments.get(segment);
        let is_wanted = |reg: &Reg| {
            let wanted = &mut self.wanted[reg.number()];
            while wanted.first().is_some_and(|&def| def <= start) {
                *wanted = &wanted[1..];
            }
            let awaited = self.awaited[reg.number()].filter(|&awaited| awaited != value);
            let awaited = awaited.map(|awaited| self.intervals.defs[awaited as usize]);
            wanted.first().is_some_and(|&def| def < end) || awaited.is_some_and(|def| start <= def && def < end)
        };
        regs.iter().filter(is_wanted).fold(regs, RegSet::without)
    }

    /// Whether a block parameter is better in memory although a register may be free: where it comes from and goes to memory, such as
    /// a loop's parameter that only a rare path changes, it would be loaded and stored along these edges.
    fn belongs_in_memory(&self, segment: u32, hints: &Hints) -> bool {
        let (Segment { start, end, .. }, reg) = (*self.segments.get(segment), self.reg(segment));
        if self.intervals.origins[reg] != Origin::Param || start != self.intervals.defs[reg] || self.needed(segment).is_some() {
            return false;
        }
        let uses = self.intervals.uses_from(reg, start).iter().take_while(|position| position.at < end);
        let read = |position: &UsePosition| {
            let loaded = if position.needs_register { 1.0 } else { MEMORY_OPERAND_COST };
            if position.at.is_gap() { 0.0 } else { loaded * self.costs.at(position.at) }
        };
        hints.in_memory > hints.elsewhere + uses.map(read).sum::<f32>()
    }

    fn reg(&self, segment: u32) -> usize {
        self.segments.get(segment).reg as usize
    }

    /// The register that [`Scan::best_free`] would choose, if this can be seen without looking at the other registers: it is
    /// free, and no other can save as many copies.
    fn obvious(&mut self, segment: u32, hints: &Hints) -> Option<Reg> {
        let mut best: Option<(Reg, f32)> = None;
        let mut others = 0.0f32;
        if hints.regs.is_empty() {
            return None;
        }
        for reg in hints.regs.iter() {
            let weight = hints.score(reg);
            match best {
                Some((_, most)) if weight <= most => others = others.max(weight),
                _ => others = others.max(best.replace((reg, weight)).map_or(0.0, |last| last.1)),
            }
        }
        let (reg, weight) = best?;
        if weight <= others || self.unsaved.contains(reg) || !self.registers(segment).contains(reg) {
            return None;
        }
        let pending: f32 = hints.pending().iter().map(|pending| pending.1).sum();
        (self.is_free(segment, reg) && (pending == 0.0 || weight + self.expected(reg, hints) > others + pending)).then_some(reg)
    }

    /// The registers that are free for the whole segment.
    fn find_free(&mut self, segment: u32) -> RegSet {
        let (start, end) = (self.segments.get(segment).start, self.segments.get(segment).end);
        let class = self.class(segment);
        let registers = self.registers(segment);
        self.file.advance_all(class, registers, start);
        let free = self.file.free_until(class, end).intersection(registers);
        let first_end = self.segments.first_end(self.intervals, segment);
        if first_end == end {
            return free;
        }
        let in_a_hole = self.file.free_until(class, first_end).intersection(registers).minus(free);
        free.union(in_a_hole.filter(|reg| self.conflict(segment, reg).at >= end))
    }

    /// The first conflict of a segment with the contents of a register that is not free for it.
    #[inline]
    fn conflict(&self, segment: u32, reg: Reg) -> Conflict {
        let first = self.file.first_conflict(reg, self.segments.get(segment).start);
        if first.at < self.segments.first_end(self.intervals, segment) {
            return first;
        }
        self.file.conflict(reg, self.segments.ranges(self.intervals, segment), None)
    }

    /// Whether a register is free for the whole segment.
    fn is_free(&mut self, segment: u32, reg: Reg) -> bool {
        let (start, end) = (self.segments.get(segment).start, self.segments.get(segment).end);
        self.file.advance(reg, start);
        let first = self.file.first(reg);
        first >= end || first >= self.segments.first_end(self.intervals, segment) && self.conflict(segment, reg).at >= end
    }

    fn class(&self, segment: u32) -> Class {
        self.intervals.regs[self.reg(segment)].class()
    }

    /// The registers that a segment may have.
    fn registers(&self, segment: u32) -> RegSet {
        let reg = self.intervals.regs[self.reg(segment)];
        let Segment { start, end, .. } = *self.segments.get(segment);
        let is_root = reg.is_traced() && safepoints_within(&self.safepoints, start, end).next().is_some();
        self.registers[if is_root { 2 } else { reg.class() as usize }]
    }

    /// The first of these registers in the order of preference.
    fn first_of(&self, regs: RegSet) -> Option<Reg> {
        regs.intersection(self.preferred).first().or(regs.first())
    }

    /// The best of the registers that are free for the whole segment, and its price. A register that saves copies is best, then
    /// one that need not be saved.
    fn best_free(&mut self, segment: u32, free: RegSet, hints: &Hints) -> Option<(Reg, f32)> {
        let unwanted = self.unwanted(segment, free);
        let mut candidates = free;
        let mut expected = [(RegSet::EMPTY, 0.0); MAX_PENDING];
        if hints.pending().is_empty() {
            // All others are alike, except that some must be saved.
            let others = free.minus(hints.regs);
            let alike = [others.minus(self.unsaved), others.intersection(self.unsaved)];
            let first = |set: RegSet| self.first_of(set.intersection(unwanted)).or(self.first_of(set));
            candidates = alike.into_iter().filter_map(first).fold(free.intersection(hints.regs), RegSet::with);
            // One of these, which needs no saving, is the first.
            if hints.regs.is_empty() {
                return self
                    .first_of(candidates.minus(self.unsaved))
                    .map(|reg| (reg, 0.0))
                    .or(candidates.first().map(|reg| (reg, SAVE_COST)));
            }
        }
        for (expected, &(value, weight)) in expected.iter_mut().zip(hints.pending()) {
            *expected = (self.free_for(value, free), weight);
        }
        let mut best: Option<(Reg, f32, f32)> = None;
        for reg in self.in_order(candidates) {
            let expected: f32 = expected.iter().filter(|(regs, _)| regs.contains(reg)).map(|expected| expected.1).sum();
            // A value that is copied there next would need the register saved too.
            let price = if self.unsaved.contains(reg) && expected == 0.0 { SAVE_COST } else { 0.0 };
            let spared =
                if unwanted.contains(reg) { 0.0 } else { SPARING_COST * self.costs.at(self.segments.get(segment).start) };
            let score = hints.score(reg) + expected - price - spared;
            if best.is_none_or(|(_, other, _)| score > other) {
                best = Some((reg, score, price));
            }
        }
        best.map(|(reg, _, price)| (reg, price))
    }

    /// Those of these registers that are free for all of a value that has no location.
    fn free_for(&self, value: u32, regs: RegSet) -> RegSet {
        let ranges = self.intervals.ranges.get(value as usize);
        let class = self.intervals.regs[value as usize].class();
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return regs };
        // Nothing begins before the value ends, or something begins while it is in its first range.
        let free = if ranges.len() <= MAX_RANGES { self.file.free_until(class, last.end) } else { RegSet::EMPTY };
        let begins_within = self.file.free_until(class, first.start).minus(self.file.free_until(class, first.end));
        let unknown = regs.minus(free).minus(begins_within);
        regs.intersection(free).union(unknown.filter(|reg| self.file.is_free(reg, ranges)))
    }

    /// These registers in the order of preference.
    fn in_order(&self, regs: RegSet) -> impl Iterator<Item = Reg> + use<> {
        regs.intersection(self.preferred).iter().chain(regs.minus(self.preferred).iter())
    }

    /// The copies saved by `reg` if related values without a location get it too. They are assumed to get it unless it is known
    /// to be taken.
    fn expected(&self, reg: Reg, hints: &Hints) -> f32 {
        let ranges = |value: u32| self.intervals.ranges.get(value as usize);
        let free = hints.pending().iter().filter(|pending| self.file.is_free(reg, ranges(pending.0)));
        free.map(|pending| pending.1).sum()
    }

    /// Register hints: the copies that each choice saves.
    fn find_hints(&self, segment: u32, hints: &mut Hints) {
        let (Segment { start, previous, .. }, reg) = (*self.segments.get(segment), self.reg(segment));
        hints.clear();
        // A reloaded value is best in its previous register, where other paths still have it.
        if !previous.is_none() {
            hints.add(previous, self.costs.at(start));
        }
        for relation in self.intervals.relations.get(reg).iter().take(MAX_RELATIONS) {
            if relation.other.is_physical() {
                hints.add(relation.other, relation.weight);
                hints.elsewhere += relation.weight;
                continue;
            }
            let other = relation.other.index();
            match self.segments.find(other, relation.at) {
                Location::Reg(there) => {
                    hints.add(there, relation.weight);
                    // An argument that began in memory is still there, too: a parameter in memory needs no store.
                    let is_in_both = self.intervals.origins[reg] == Origin::Param
                        && !self.intervals.is_to_param(relation)
                        && self.segments.first(other).is_some_and(|first| first.location == Location::Slot)
                        && self.intervals.can_share(reg, other);
                    hints.elsewhere += if is_in_both { 0.0 } else { relation.weight };
                }
                Location::Slot => hints.in_memory += relation.weight,
                Location::Pending => {
                    hints.elsewhere += relation.weight;
                    let has_fixed = self.intervals.has_fixed[other];
                    if has_fixed {
                        let beyond = self.intervals.relations.get(other).iter().take(MAX_RELATIONS);
                        let fixed = beyond.filter(|beyond| beyond.other.is_physical());
                        fixed.for_each(|beyond| hints.add(beyond.other, beyond.weight / 2.0));
                    }
                    let def = self.intervals.defs[other];
                    if def > start && !self.intervals.is_live(reg, def) {
                        hints.add_pending(other as u32, relation.weight);
                        if !self.likely[other].is_none() && !has_fixed {
                            hints.add(self.likely[other], relation.weight);
                        }
                    }
                }
            }
        }
    }

    /// The cheapest choice for a segment for which no register is free, and its cost. If several are equally cheap, it is the one
    /// after which the value in memory is used latest. Registers that are free for a while are examined first: most evictions
    /// cost more, as a lower bound of their costs shows.
    fn cheapest(&self, segment: u32, free: RegSet, hints: &Hints) -> (f32, Choice) {
        let Segment { start, end, .. } = *self.segments.get(segment);
        let needed = self.needed(segment);
        let mut best = Best { cost: f32::INFINITY, good_until: start, choice: Choice::Memory };
        if needed.is_none() {
            let uses = self.intervals.uses_from(self.reg(segment), start);
            best =
                Best { cost: self.memory_cost(segment, start, start, uses), good_until: self.next_use(segment, start), ..best };
        }
        let needed = needed.unwrap_or(start.next());
        let class = self.class(segment);
        let registers = self.registers(segment);
        let mut rest = Rest::default();
        let idle = self.file.free_until(class, needed).intersection(registers);
        // Of the registers that save no copies and are alike in price, the one that is free for longest is best.
        let others = idle.minus(hints.regs);
        let longest = [others.minus(self.unsaved), others.intersection(self.unsaved)];
        let longest = longest.into_iter().filter_map(|alike| self.longest(segment, alike));
        let candidates = longest.fold(idle.intersection(hints.regs), RegSet::with);
        for reg in self.in_order(candidates) {
            let price = self.price(reg, hints);
            if price > best.cost {
                continue;
            }
            let until = if free.contains(reg) { Point::NEVER } else { self.conflict(segment, reg).at };
            if let Some(rest) = self.cost_of_rest(segment, until, &mut rest) {
                best.consider(price + rest, until, Choice::Take { reg, evict: None, until });
            }
        }
        let mut evictions = self.evictions(segment, registers.minus(idle), needed, hints);
        let mut computed = 0;
        while let Some(Eviction { least, reg, other, price, .. }) = evictions.next() {
            if least > best.cost || computed >= MAX_EVICTIONS && best.cost < f32::INFINITY {
                break;
            }
            computed += 1;
            let price = price + self.eviction_cost(other, start);
            if price > best.cost {
                continue;
            }
            let until = self.file.conflict(reg, self.segments.ranges(self.intervals, segment), Some(other)).at;
            if until < needed {
                continue;
            }
            if let Some(rest) = self.cost_of_rest(segment, until.min(end), &mut rest) {
                let good = until.min(self.next_use(other, start));
                best.consider(price + rest, good, Choice::Take { reg, evict: Some(other), until });
            }
        }
        (best.cost, best.choice)
    }

    /// The possible evictions from these registers for a segment that needs one until `needed`.
    fn evictions(&self, segment: u32, regs: RegSet, needed: Point, hints: &Hints) -> Evictions {
        let start = self.segments.get(segment).start;
        let mut evictions = Evictions { all: [Eviction::NONE; Reg::OF_CLASS], count: 0 };
        for reg in self.in_order(regs) {
            let conflict = self.conflict(segment, reg);
            let Some(other) = conflict.segment.filter(|_| conflict.at < needed) else { continue };
            let price = self.price(reg, hints);
            let (least, next_use) = self.least_eviction_cost(other, start);
            evictions.all[evictions.count] = Eviction { least: price + least, next_use, price, reg, other };
            evictions.count += 1;
        }
        evictions
    }

    /// The first of these registers, in the order of preference, of those that are free for the longest time from a segment's
    /// start on.
    fn longest(&self, segment: u32, regs: RegSet) -> Option<Reg> {
        let Some(first) = regs.first().filter(|&first| !regs.without(first).is_empty()) else { return regs.first() };
        let beyond = self.file.free_until(first.class(), self.segments.first_end(self.intervals, segment)).intersection(regs);
        let latest = |until: &dyn Fn(Reg) -> Point, regs: RegSet| {
            let mut latest: Option<(Reg, Point)> = None;
            for reg in self.in_order(regs) {
                let until = until(reg);
                if latest.is_none_or(|latest| until > latest.1) {
                    latest = Some((reg, until));
                }
            }
            latest.map(|latest| latest.0)
        };
        match beyond.is_empty() {
            true => latest(&|reg| self.file.first(reg), regs),
            false if beyond.without(beyond.first()?).is_empty() => beyond.first(),
            false => latest(&|reg| self.conflict(segment, reg).at, beyond),
        }
    }

    /// The cost of taking a register, less the copies that it saves.
    fn price(&self, reg: Reg, hints: &Hints) -> f32 {
        let save = if self.unsaved.contains(reg) { SAVE_COST } else { 0.0 };
        save - REGISTER_COPY_COST * hints.score(reg)
    }

    /// The cost of having a segment in memory from its best split point before `until` on, where its register is no longer free.
    /// `None` if the register is not used until then. The last result is kept, because a call claims many registers at once.
    fn cost_of_rest(&self, segment: u32, until: Point, last: &mut Rest) -> Option<f32> {
        let Segment { start, end, .. } = *self.segments.get(segment);
        if until >= end {
            return Some(0.0);
        }
        if last.until != until {
            let now = until.max(start.next_gap());
            let cost = self.split_point(segment, until).map(|at| {
                let uses = self.intervals.uses_from(self.reg(segment), now);
                self.memory_cost(segment, at, now, uses)
            });
            *last = Rest { until, cost };
        }
        last.cost
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
        let last = self.last_use_before(segment, conflict)?;
        // A value that is read in a gap can have been moved just before.
        let low = if last.at.is_gap() && last.at > start { last.at } else { last.at.next().ceil() };
        if low > conflict.floor() {
            return Some(conflict);
        }
        // Of equally cheap points it is the first, because the register is then free for others.
        let cheapest = self.costs.cheapest(low, conflict.floor());
        let first = low > start && !self.costs.is_boundary(low) && self.costs.copy(low) <= self.costs.copy(cheapest);
        Some(if first { low } else { cheapest })
    }

    /// The cost of having a segment in memory from `from` on, where nothing is read before `now`; `uses` are those from `now` on.
    fn memory_cost(&self, segment: u32, from: Point, now: Point, uses: &[UsePosition]) -> f32 {
        let reg = self.reg(segment);
        let def = self.intervals.defs[reg];
        let store = match self.stored[reg] || from == def {
            true => 0.0,
            false => self.costs.copy(from.floor()).min(self.costs.at(def)),
        };
        let (wanted, operands) = self.wanted(segment, now, uses);
        let reload = wanted.map_or(0.0, |(_, reload)| self.costs.copy(reload));
        let until = wanted.map_or(self.segments.get(segment).end, |(at, _)| at);
        store + reload + operands + self.back_edge_cost(reg, from, until)
    }

    /// The next use for which a segment in memory should be reloaded, with the point to reload it, and the cost of the
    /// operands read from memory before that use. A value that could be read from memory should be reloaded if a reload is
    /// executed less often than the use, or if it is used again in the same block. The uses are those from `now` on.
    fn wanted(&self, segment: u32, now: Point, uses: &[UsePosition]) -> (Option<(Point, Point)>, f32) {
        let (floor, end) = (now.floor(), self.segments.get(segment).end);
        let (mut operands, mut least) = (0.0, 0.0);
        for (i, position) in uses.iter().take_while(|position| position.at < end).enumerate() {
            let frequency = self.costs.at(position.at);
            if position.at.floor() > floor {
                // Rare uses of a value that lives long may be many: one lookup for several of them shows that reloading costs more.
                if i >= FEW_USES && i.is_multiple_of(FEW_USES) {
                    least = self.costs.least(now, uses[uses.len().min(i + FEW_USES) - 1].at);
                }
                let always = position.needs_register || self.is_used_again(position, uses.get(i + 1));
                if always || least < frequency {
                    let reload = self.reload_point(*position, now);
                    if always || self.costs.copy(reload) < frequency {
                        return (Some((position.at, reload)), operands);
                    }
                } else {
                    debug_assert!(self.costs.copy(self.reload_point(*position, now)) >= frequency, "the bound is too high");
                }
            }
            operands += frequency * if position.at.is_gap() { 1.0 } else { MEMORY_OPERAND_COST };
        }
        (None, operands)
    }

    /// Whether the next use is in the same block.
    fn is_used_again(&self, position: &UsePosition, next: Option<&UsePosition>) -> bool {
        next.is_some_and(|next| next.at < self.costs.start(self.costs.block(position.at) + 1))
    }

    /// The best point to reload, for a use, a value that is in memory at `now`.
    fn reload_point(&self, position: UsePosition, now: Point) -> Point {
        let (low, high) = (now.next_gap(), position.at.floor());
        let block = self.costs.block(now);
        if high < self.costs.start(block + 1) {
            return high;
        }
        let best = self.costs.cheapest(low.min(high), high);
        // A value that was spilled in a rare block is reloaded in that block, not on the common path.
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

    /// A lower bound of the cost of evicting a segment at `now`: it is loaded for its next use, or that use reads memory. Also
    /// returns [`Eviction::next_use`].
    fn least_eviction_cost(&self, other: u32, now: Point) -> (f32, Point) {
        let next = self.intervals.uses_from(self.reg(other), now).first();
        let Some(next) = next.filter(|next| next.at < self.segments.get(other).end) else { return (0.0, Point::NEVER) };
        let (low, high) = (now.next_gap(), next.at.floor());
        let reload = self.costs.copy(self.costs.cheapest(low.min(high), high)).min(self.costs.at(now));
        let end = self.costs.start(self.costs.block(now) + 1);
        (reload.min(self.costs.at(next.at) * MEMORY_OPERAND_COST), next.at.min(end))
    }

    /// The cost of evicting a segment from its register at `now`.
    fn eviction_cost(&self, other: u32, now: Point) -> f32 {
        let (before, after) = self.intervals.uses_around(self.reg(other), now);
        let mut here = after.iter().take_while(|position| position.at < now.next_gap());
        if here.any(|position| position.needs_register) {
            return f32::INFINITY;
        }
        self.memory_cost(other, self.split_before(other, before.last(), now), now, after)
    }

    /// The segment's last use before `point`.
    fn last_use_before(&self, segment: u32, point: Point) -> Option<UsePosition> {
        let start = self.segments.get(segment).start;
        self.intervals.last_use_before(self.reg(segment), point).filter(|last| last.at >= start)
    }

    /// The best split point of a segment that is evicted at `now`.
    fn eviction_point(&self, other: u32, now: Point) -> Point {
        self.split_before(other, self.intervals.uses_around(self.reg(other), now).0.last(), now)
    }

    /// The best split point at or before `now`, after the last use before `now`.
    fn split_before(&self, other: u32, last_use: Option<&UsePosition>, now: Point) -> Point {
        let start = self.segments.get(other).start;
        let low = match last_use.filter(|last| last.at >= start) {
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
        let (start, end) = (self.segments.get(segment).start, self.segments.get(segment).end);
        if self.segments.first_end(self.intervals, segment) == end && self.file.first(reg) > start {
            self.file.insert_first(reg, segment, Range { start, end });
        } else {
            self.file.insert(reg, segment, self.segments.ranges(self.intervals, segment));
        }
    }

    /// Splits a segment at `at` and puts the second part into the queue.
    fn split(&mut self, segment: u32, at: Point) {
        let rest = self.segments.split(self.intervals, segment, at);
        self.queue.push(self.segments.get(rest).start, rest);
    }

    fn evict(&mut self, other: u32, from: Reg, now: Point) {
        let at = self.eviction_point(other, now);
        self.file.remove(from, other);
        let rest = if at <= self.segments.get(other).start { other } else { self.segments.split(self.intervals, other, at) };
        self.keep_in_memory(rest, now);
    }

    /// Leaves a segment in memory until its next use after `now` that needs, or is worth, a register.
    fn keep_in_memory(&mut self, segment: u32, now: Point) {
        self.segments.set_location(segment, Location::Slot);
        let reg = self.reg(segment);
        self.stored[reg] = true;
        if let (Some((_, reload)), _) = self.wanted(segment, now, self.intervals.uses_from(reg, now))
            && reload > self.segments.get(segment).start
        {
            self.split(segment, reload);
        }
    }
}
