//! From segments to the assignment: the places of all operands, and a copy wherever a value changes its place.
//!
//! The copies of one gap form four groups, each executed in parallel: along an edge into the block, between the
//! segments of an interval, for the instruction, and along the edge out of the block.
//!
//! A value never changes, so a slot stays valid once it is written. An interval that is spilled is therefore stored
//! either at each spill or once after its definition, whichever is executed less often. It is not stored at all if it
//! begins in its slot.

use super::client::{Assignment, Client, Constraint, Operand, Place, Position, Role};
use super::copies::{Copy, Phase};
use super::costs::Costs;
use super::error::AllocationError;
use super::intervals::{Intervals, Origin, has_reuse, reused_by, safepoints_within};
use super::locations::Locations;
use super::parallel::{self, Scratch};
use super::point::Point;
use super::segments::{Location, Segments};
use super::slots;
use crate::meter::Meter;

/// The maximum number of pairs of a safepoint and a root, which can be quadratic in the size of the code.
const MAX_ROOTS: usize = 1 << 18;

/// An edge, by its blocks.
#[derive(Clone, Copy)]
struct Edge {
    from: usize,
    to: usize,
}

struct Resolver<'a, C> {
    client: &'a C,
    intervals: &'a Intervals,
    costs: &'a Costs,
    locations: Locations<'a>,
    /// By block, the range from the first to the last of its start and the ends of its predecessors.
    reach: Vec<(Point, Point)>,
    copies: Vec<Copy>,
    /// By virtual register, whether its slot holds the value from the definition on, wherever else it is.
    in_slot: Vec<bool>,
}

/// The assignment that follows from `segments`.
///
/// # Errors
/// [`AllocationError`] if there are too many roots, or if there are no steps left.
pub fn resolve(
    client: &impl Client,
    intervals: &Intervals,
    costs: &Costs,
    segments: &Segments,
    meter: &Meter<'_>,
) -> Result<Assignment, AllocationError> {
    let (slots, widths) = slots::assign(intervals, segments);
    let locations = Locations::new(segments, slots);
    let reach = (0..client.num_blocks()).map(|block| reach(client, costs, block)).collect();
    let copies = Vec::with_capacity(intervals.regs.len());
    let in_slot = vec![false; intervals.regs.len()];
    let mut resolver = Resolver { client, intervals, costs, locations, reach, copies, in_slot };
    meter.ask()?;
    // The segments and their locations.
    let size = intervals.size() + 2 * segments.size();
    for reg in 0..intervals.regs.len() {
        let copies = resolver.copies.len();
        resolver.interval(reg);
        let steps = 1 + intervals.ranges.get(reg).len() + resolver.copies.len().saturating_sub(copies);
        meter.spend_holding(steps, || size + size_of_val(&*resolver.copies))?;
    }
    for block in 0..client.num_blocks() {
        resolver.params(block);
        meter.spend_holding(1 + client.params(block).len(), || size + size_of_val(&*resolver.copies))?;
    }
    let (places, starts) = resolver.operands();
    meter.ask()?;
    let roots = resolver.roots()?;
    meter.ask()?;
    let Resolver { locations, mut copies, .. } = resolver;
    // The sort is stable, so that the assignment does not depend on the algorithm.
    copies.sort_by_key(Copy::order);
    meter.ask()?;
    let mut scratch = Scratch::new(client, intervals, &locations, widths);
    meter.ask()?;
    let moves = parallel::sequence(&copies, &mut scratch);
    meter.ask()?;
    Ok(Assignment { places, starts, moves, slots: scratch.into_slots(), roots })
}

fn reach(client: &impl Client, costs: &Costs, block: usize) -> (Point, Point) {
    let ends = client.preds(block).iter().map(|&pred| costs.start(pred as usize + 1).previous());
    ends.fold((costs.start(block), costs.start(block)), |(low, high), end| (low.min(end), high.max(end)))
}

impl<C: Client> Resolver<'_, C> {
    /// The copies between the segments of an interval.
    fn interval(&mut self, reg: usize) {
        let Some(location) = self.locations.first(reg) else { return };
        if let Origin::Fixed(fixed) = self.intervals.origins[reg] {
            self.copy(self.intervals.defs[reg].inst(), Phase::Move, Place::Reg(fixed), location);
        }
        let Some(first) = self.locations.several(reg).first().copied() else { return };
        let start = self.copies.len();
        let mut cost = self.between_segments(reg);
        cost += self.along_edges(reg);
        if first.location == Location::Slot {
            self.in_slot[reg] = true;
            return self.drop_stores(start);
        }
        let Some(after) = self.after_definition(reg).filter(|&(block, _)| self.costs.frequency[block] <= cost) else {
            return;
        };
        self.in_slot[reg] = true;
        self.drop_stores(start);
        let source = match self.intervals.origins[reg] {
            Origin::Fixed(fixed) => Place::Reg(fixed),
            Origin::None | Origin::Inst | Origin::Param => location,
        };
        self.copy(after.1, Phase::Move, source, self.locations.slot(reg));
    }

    /// Removes the stores among the copies from `start` on, because the slot holds the value already.
    fn drop_stores(&mut self, start: usize) {
        self.copies.extract_if(start.., |copy| is_store(copy)).for_each(drop);
    }

    /// The block and the instruction before which an interval can be stored once for all, if it must be stored.
    fn after_definition(&self, reg: usize) -> Option<(usize, u32)> {
        let def = self.intervals.defs[reg];
        let inst = if def.is_gap() { def.inst() } else { def.inst() + 1 };
        let block = self.costs.block(def);
        let spilled = self.locations.several(reg).iter().any(|segment| segment.location == Location::Slot);
        (spilled && inst < self.client.insts(block).end).then_some((block, inst))
    }

    /// Adds the copies between adjacent segments; returns the cost of the stores among them.
    fn between_segments(&mut self, reg: usize) -> f32 {
        let mut cost = 0.0;
        for i in 1..self.locations.several(reg).len() {
            let (before, segment) = (self.locations.several(reg)[i - 1], self.locations.several(reg)[i]);
            let (from, to) = (self.locations.place(&before), self.locations.place(&segment));
            let start = segment.start;
            let phase = if start.is_gap() { Phase::Move } else { Phase::Setup };
            let on_edges = start.is_gap() && self.costs.is_boundary(start);
            if on_edges || before.end != start {
                continue;
            }
            debug_assert!(start.is_gap() || segment.location == Location::Slot);
            self.copy(start.inst(), phase, from, to);
            if before.location != Location::Slot && segment.location == Location::Slot {
                cost += self.costs.at(start);
            }
        }
        cost
    }

    /// Adds the copies along edges; returns the cost of the stores among them.
    fn along_edges(&mut self, reg: usize) -> f32 {
        let mut cost = 0.0;
        let intervals = self.intervals;
        // The segment at the start of this block.
        let mut segment = 0;
        for range in intervals.ranges.get(reg) {
            let first = self.costs.block(range.start);
            let first = first + usize::from(self.costs.start(first) < range.start || intervals.defs[reg] == range.start);
            for block in first..=self.costs.block(range.end.previous()) {
                let segments = self.locations.several(reg);
                segment += segments[segment..].partition_point(|segment| segment.start <= self.costs.start(block)) - 1;
                // Most blocks are far from the end of a segment, and values live long in many blocks.
                let (low, high) = self.reach[block];
                if segments[segment].start <= low && segments.get(segment + 1).is_none_or(|next| high < next.start) {
                    continue;
                }
                let to = self.locations.at(reg, self.costs.start(block));
                for &pred in self.client.preds(block) {
                    let edge = Edge { from: pred as usize, to: block };
                    let from = self.locations.at(reg, self.costs.start(edge.from + 1).previous());
                    if from == to {
                        continue;
                    }
                    self.copy_along(edge, from, to);
                    if matches!((from, to), (Place::Reg(_), Place::Slot(_))) {
                        cost += self.costs.edge(edge.from, edge.to);
                    }
                }
            }
        }
        cost
    }

    /// The copies from arguments to a block's parameters.
    fn params(&mut self, block: usize) {
        let client = self.client;
        for &pred in client.preds(block) {
            let edge = Edge { from: pred as usize, to: block };
            let end = Point::gap(client.insts(edge.from).end - 1);
            for (param, arg) in client.params(block).iter().zip(client.args(edge.from)) {
                let Some(to) = self.locations.first(param.index()) else { continue };
                let is_there = self.in_slot[arg.index()] && self.locations.slot(arg.index()) == to;
                if !is_there {
                    self.copy_along(edge, self.locations.at(arg.index(), end), to);
                }
            }
        }
    }

    /// No edge leads from a block with several successors, or one that ends with a call, to one with several predecessors.
    fn copy_along(&mut self, edge: Edge, from: Place, to: Place) {
        let last = self.client.insts(edge.from).end - 1;
        match self.client.succs(edge.from).len() {
            1 if self.client.clobbers(last as usize).is_empty() => self.copy(last, Phase::EdgeOut, from, to),
            _ => self.copy(self.client.insts(edge.to).start, Phase::EdgeIn, from, to),
        }
    }

    fn copy(&mut self, inst: u32, phase: Phase, from: Place, to: Place) {
        if from != to {
            self.copies.push(Copy { key: (inst, phase), from, to });
        }
    }

    /// The slots of traced values that live across safepoints: see [`Assignment::roots`].
    fn roots(&self) -> Result<Vec<(u32, u32)>, AllocationError> {
        let mut roots = Vec::new();
        let safepoints = self.intervals.safepoints(self.client);
        if safepoints.is_empty() {
            return Ok(roots);
        }
        let traced = self.intervals.regs.iter().enumerate().filter(|(_, reg)| reg.is_traced());
        for (reg, _) in traced {
            for range in self.intervals.ranges.get(reg) {
                for inst in safepoints_within(&safepoints, range.start, range.end) {
                    let Place::Slot(slot) = self.locations.at(reg, Point::late(inst)) else {
                        return Err(AllocationError(format!("a reference is in a register at instruction {inst}")));
                    };
                    roots.push((inst, slot));
                }
                if roots.len() > MAX_ROOTS {
                    return Err(AllocationError(format!("more than {MAX_ROOTS} references live across calls")));
                }
            }
        }
        roots.sort_unstable();
        // A parameter can share the slot of its argument.
        roots.dedup();
        Ok(roots)
    }

    fn operands(&mut self) -> (Vec<Place>, Vec<u32>) {
        let client = self.client;
        let insts = client.num_insts();
        let (mut places, mut starts) = (Vec::with_capacity(3 * insts), Vec::with_capacity(insts));
        for inst in 0..insts as u32 {
            starts.push(places.len() as u32);
            let operands = client.operands(inst as usize);
            let reuses = has_reuse(operands);
            for (i, operand) in operands.iter().enumerate() {
                let place = self.operand(operands, i, reuses, inst);
                places.push(place);
                let reg = operand.reg.index();
                match operand.constraint {
                    Constraint::Fixed(_) if operand.role == Role::Use => {
                        self.copy(inst, Phase::Setup, self.locations.at(reg, Point::gap(inst)), place);
                    }
                    Constraint::Reuse(source) => {
                        let source = operands[source as usize].reg.index();
                        self.copy(inst, Phase::Setup, self.locations.at(source, Point::gap(inst)), place);
                    }
                    Constraint::Any | Constraint::Reg | Constraint::Fixed(_) => {}
                }
            }
        }
        (places, starts)
    }

    fn operand(&self, operands: &[Operand], i: usize, reuses: bool, inst: u32) -> Place {
        let operand = &operands[i];
        let reg = operand.reg.index();
        match (operand.role, operand.constraint) {
            (_, Constraint::Fixed(fixed)) => Place::Reg(fixed),
            (Role::Def, _) => self.locations.at(reg, self.intervals.defs[reg]),
            (Role::Use, _) => match if reuses { reused_by(operands, i) } else { None } {
                Some(def) => {
                    let def = operands[def].reg.index();
                    self.locations.at(def, self.intervals.defs[def])
                }
                None if operand.position == Position::Early => self.locations.at(reg, Point::early(inst)),
                None => self.locations.at(reg, Point::late(inst)),
            },
        }
    }
}

fn is_store(copy: &Copy) -> bool {
    matches!((copy.from, copy.to), (Place::Reg(_), Place::Slot(_)))
}
