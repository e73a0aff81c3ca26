//! Live intervals: the uses and definitions of every virtual register, and the ranges in which it holds a value that is
//! read later. Intervals have holes: a range ends where its value is no longer live in the order of the instructions.
//!
//! One walk over the code collects the uses and definitions; [`LiveBlocks`] finds the blocks in which each register is
//! live. No live sets are built, so the cost is proportional to the result.

use super::client::{Client, Constraint, Operand, Position, Reg, RegSet, Role};
use super::costs::Costs;
use super::error::AllocationError;
use super::point::{Point, Range};
use crate::graph::liveness::LiveBlocks;
use crate::meter::{Ended, Meter};
use std::cmp::Reverse;

/// A use or definition of a register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UsePosition {
    /// The point of the use or definition. If the register is only copied, to the place that an instruction or a successor
    /// requires, it is read in a gap.
    pub at: Point,
    /// Whether the register must be in a physical register at that point.
    pub needs_register: bool,
}

/// The number of copy-related values that are looked up for a hint.
pub const MAX_RELATIONS: usize = 32;

/// A reason to put a register into the place of another one.
#[derive(Clone, Copy, Debug)]
pub struct Relation {
    /// The other register.
    pub other: Reg,
    /// The point at which the other register is in that place.
    pub at: Point,
    /// The frequency of the copy that is saved.
    pub weight: f32,
}

/// A fixed number of lists of `T`, in two allocations.
#[derive(Debug)]
pub struct Lists<T> {
    items: Vec<T>,
    starts: Vec<u32>,
}

/// Lists that are being filled.
struct Pairs<T> {
    /// Items, each with the index of its list.
    all: Vec<(u32, T)>,
    /// `counts[i + 2]` is the length of list `i`.
    counts: Vec<u32>,
}

impl<T: Copy> Pairs<T> {
    /// This many empty lists, and memory for items.
    fn new(lists: usize, capacity: usize) -> Pairs<T> {
        Pairs { all: Vec::with_capacity(capacity), counts: vec![0; lists + 2] }
    }

    #[inline]
    fn push(&mut self, list: usize, item: T) {
        self.counts[list + 2] += 1;
        self.all.push((list as u32, item));
    }

    fn len_of(&self, list: usize) -> usize {
        self.counts[list + 2] as usize
    }

    /// The bytes that they take.
    fn size(&self) -> usize {
        size_of_val(&*self.all) + size_of_val(&*self.counts)
    }

    /// The lists; each has its items in the order in which they were added.
    fn into_lists(self) -> Lists<T> {
        let Pairs { all, counts: mut starts } = self;
        let Some(&(_, any)) = all.first() else { return Lists { items: Vec::new(), starts } };
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut items = vec![any; all.len()];
        for &(list, item) in &all {
            let next = &mut starts[list as usize + 1];
            items[*next as usize] = item;
            *next += 1;
        }
        Lists { items, starts }
    }
}

impl<T: Copy> Lists<T> {
    /// The bytes that they take.
    fn size(&self) -> usize {
        size_of_val(&*self.items) + size_of_val(&*self.starts)
    }

    /// The list with index `i`.
    #[inline]
    pub fn get(&self, i: usize) -> &[T] {
        &self.items[self.starts[i] as usize..self.starts[i + 1] as usize]
    }

    fn get_mut(&mut self, i: usize) -> &mut [T] {
        &mut self.items[self.starts[i] as usize..self.starts[i + 1] as usize]
    }
}

/// How a register is defined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// It is never defined.
    None,
    /// An instruction writes it.
    Inst,
    /// An instruction writes the given physical register, from which the value is copied in the gap after the instruction.
    Fixed(Reg),
    /// It is a block parameter.
    Param,
}

/// All results of the walk, before places are chosen. Indexed by virtual register.
#[derive(Debug)]
pub struct Intervals {
    /// The registers themselves.
    pub regs: Vec<Reg>,
    /// How each register is defined.
    pub origins: Vec<Origin>,
    /// The first point of each register.
    pub defs: Vec<Point>,
    /// Registers that have ranges, by the starts of these.
    pub by_start: Vec<u32>,
    /// Live ranges, ascending.
    pub ranges: Lists<Range>,
    /// Uses and definitions, ascending.
    pub uses: Lists<UsePosition>,
    /// Related registers.
    pub relations: Lists<Relation>,
    /// Whether a physical register is among the first [`MAX_RELATIONS`] related ones.
    pub has_fixed: Vec<bool>,
    /// By physical register, the definitions of the values that an instruction requires there and that can be there from
    /// their definitions on, ascending.
    pub wanted: Lists<Point>,
    /// Ranges in which instructions claim or destroy physical registers, ascending.
    pub claims: Claims,
}

/// Ranges in which instructions claim or destroy physical registers. Calls destroy many registers, mostly the same, for
/// which they are in one list.
#[derive(Debug)]
pub struct Claims {
    /// By [`Reg`] number, ascending.
    own: Lists<Range>,
    /// Ranges in which calls destroy the registers `of_calls`, ascending.
    calls: Vec<Range>,
    of_calls: RegSet,
}

impl Claims {
    /// The ranges of one register, in two ascending lists.
    pub fn of(&self, reg: Reg) -> [&[Range]; 2] {
        [self.own.get(reg.number()), if self.of_calls.contains(reg) { &self.calls } else { &[] }]
    }
}

impl Intervals {
    /// The bytes of its longest lists.
    pub fn size(&self) -> usize {
        let Intervals { ranges, uses, relations, wanted, claims, .. } = self;
        let of_regs = self.regs.len() * (2 * size_of::<Reg>() + size_of::<Origin>() + size_of::<Point>() + 1);
        let of_claims = claims.own.size() + size_of_val(&*claims.calls);
        ranges.size() + uses.size() + relations.size() + wanted.size() + of_claims + of_regs
    }
}

/// The lists during the walk over the code.
struct Collector {
    regs: Vec<Reg>,
    origins: Vec<Origin>,
    defs: Vec<Point>,
    defined: Vec<u32>,
    uses: Pairs<UsePosition>,
    relations: Pairs<Relation>,
    has_fixed: Vec<bool>,
    claims: Pairs<Range>,
    wanted: Pairs<Point>,
    /// Instructions that destroy registers besides their definitions, from the current one on, last first.
    destroyed: Vec<(u32, RegSet)>,
    /// Registers that all calls destroy.
    of_calls: RegSet,
    calls: Vec<Range>,
    /// By physical register, the index of its last claim.
    last_claim: [Option<u32>; Reg::PHYSICAL],
}

impl Collector {
    /// The bytes of its longest lists.
    fn size(&self) -> usize {
        let Collector { uses, relations, claims, wanted, destroyed, calls, .. } = self;
        let of_calls = size_of_val(&**destroyed) + size_of_val(&**calls);
        uses.size() + relations.size() + claims.size() + wanted.size() + of_calls
    }
}

/// Those of the ascending `safepoints` across which a value lives that lives from `start` to `end`.
pub fn safepoints_within(safepoints: &[u32], start: Point, end: Point) -> impl Iterator<Item = u32> {
    let first = safepoints.partition_point(|&inst| Point::late(inst) <= start);
    safepoints[first..].iter().copied().take_while(move |&inst| Point::late(inst) < end)
}

impl Intervals {
    /// The safepoints, ascending, if any value is traced.
    pub fn safepoints(&self, client: &impl Client) -> Vec<u32> {
        match self.regs.iter().any(|reg| reg.is_traced()) {
            true => (0..client.num_insts() as u32).filter(|&inst| client.is_safepoint(inst as usize)).collect(),
            false => Vec::new(),
        }
    }

    /// The intervals of `client`'s code; `costs` has its block frequencies and the block of each instruction.
    ///
    /// # Errors
    /// [`AllocationError`] if a register is read that is never written, or if there are no steps left.
    pub fn of(client: &impl Client, costs: &Costs, meter: &Meter<'_>) -> Result<Intervals, AllocationError> {
        let regs = client.num_regs();
        let mut collector = Collector {
            regs: vec![Reg::NONE; regs],
            origins: vec![Origin::None; regs],
            defs: vec![Point::NEVER; regs],
            defined: Vec::with_capacity(regs),
            // Most registers are written once, and read once or twice.
            uses: Pairs::new(regs, 3 * regs),
            relations: Pairs::new(regs, 2 * regs),
            has_fixed: vec![false; regs],
            claims: Pairs::new(Reg::PHYSICAL, client.num_insts()),
            wanted: Pairs::new(Reg::PHYSICAL, client.num_insts()),
            destroyed: Vec::new(),
            of_calls: RegSet::EMPTY,
            calls: Vec::new(),
            last_claim: [None; Reg::PHYSICAL],
        };
        collector.find_destroyed(client);
        meter.ask()?;
        for (block, &frequency) in costs.frequency.iter().enumerate() {
            collector.block(client, block, frequency, meter)?;
        }
        let Collector {
            regs: names, origins, defs, defined, uses, relations, has_fixed, claims, wanted, of_calls, calls, ..
        } = collector;
        meter.ask()?;
        let mut uses = uses.into_lists();
        meter.ask()?;
        for (reg, def) in defs.iter().enumerate() {
            let uses = uses.get_mut(reg);
            let [first, rest @ ..] = uses else { continue };
            let mut first = first.at;
            if !rest.is_empty() && !uses.is_sorted_by_key(|position| position.at) {
                uses.sort_unstable();
                first = uses[0].at;
            }
            if first < def.floor() {
                return Err(AllocationError(format!("register {reg} is read before it is written")));
            }
        }
        let ranges = live_ranges(client, costs, &defs, &uses, meter)?;
        let by_start = sorted(defined, &ranges);
        let (relations, claims) = (relations.into_lists(), Claims { own: claims.into_lists(), calls, of_calls });
        Ok(Intervals {
            regs: names,
            origins,
            defs,
            by_start,
            ranges,
            uses,
            relations,
            has_fixed,
            wanted: wanted.into_lists(),
            claims,
        })
    }

    /// The uses before `point`, and those from `point` on.
    #[inline]
    pub fn uses_around(&self, reg: usize, point: Point) -> (&[UsePosition], &[UsePosition]) {
        let uses = self.uses.get(reg);
        uses.split_at(first_from(uses, point))
    }

    /// The last use before `point`.
    pub fn last_use_before(&self, reg: usize, point: Point) -> Option<UsePosition> {
        let uses = self.uses.get(reg);
        first_from(uses, point).checked_sub(1).map(|i| uses[i])
    }

    /// The uses from `point` on.
    pub fn uses_from(&self, reg: usize, point: Point) -> &[UsePosition] {
        let uses = self.uses.get(reg);
        &uses[first_from(uses, point)..]
    }

    /// Whether the register is live at `point`.
    pub fn is_live(&self, reg: usize, point: Point) -> bool {
        let ranges = self.ranges.get(reg);
        ranges.last().is_some_and(|last| point < last.end)
            && ranges[ranges.partition_point(|range| range.end <= point)].start <= point
    }

    /// Whether a relation is to a block parameter that the register is passed to, or that it is copied from where it begins.
    pub fn is_to_param(&self, relation: &Relation) -> bool {
        let other = relation.other.index();
        self.origins[other] == Origin::Param && relation.at == self.defs[other]
    }

    /// Whether two registers, one of which is passed to the other, a block parameter, are never live together, so that they can share a slot.
    /// This is seen at their definitions.
    pub fn can_share(&self, a: usize, b: usize) -> bool {
        a == b || !self.is_live(a, self.defs[b]) && !self.is_live(b, self.defs[a])
    }

    /// The parts of the register's ranges that lie between two points.
    pub fn ranges_within(&self, reg: usize, start: Point, end: Point) -> impl Iterator<Item = Range> {
        let ranges = self.ranges.get(reg);
        let ranges = &ranges[ranges.partition_point(|range| range.end <= start)..];
        let clipped = move |range: &Range| Range { start: range.start.max(start), end: range.end.min(end) };
        ranges.iter().take_while(move |range| range.start < end).map(clipped)
    }
}

/// The index of the first use at or after `point`.
#[inline]
fn first_from(uses: &[UsePosition], point: Point) -> usize {
    const FEW: usize = 6;
    if uses.len() > FEW {
        return uses.partition_point(|position| position.at < point);
    }
    uses.iter().take_while(|position| position.at < point).count()
}

impl Collector {
    /// Finds the instructions that destroy registers, and the registers that every call destroys.
    fn find_destroyed(&mut self, client: &impl Client) {
        let mut all: Option<RegSet> = None;
        for inst in 0..client.num_insts() {
            let destroyed = client.clobbers(inst);
            if destroyed == RegSet::EMPTY {
                continue;
            }
            self.destroyed.push((inst as u32, destroyed));
            // Most calls destroy the same registers.
            if all != Some(destroyed) && is_call(destroyed) {
                all = Some(all.map_or(destroyed, |all| all.intersection(destroyed)));
            }
        }
        self.destroyed.reverse();
        self.of_calls = all.unwrap_or(RegSet::EMPTY);
    }

    fn block(&mut self, client: &impl Client, block: usize, frequency: f32, meter: &Meter<'_>) -> Result<(), Ended> {
        meter.spend_holding(1, || self.size())?;
        let insts = client.insts(block);
        for &param in client.params(block) {
            self.define(param, Origin::Param, Point::gap(insts.start));
        }
        for inst in insts.clone() {
            meter.spend_holding(1, || self.size())?;
            self.inst(client, inst, frequency);
        }
        let Some(&succ) = client.succs(block).first() else { return Ok(()) };
        let end = Point::gap(insts.end - 1);
        let head = Point::gap(client.insts(succ as usize).start);
        for (&arg, &param) in client.args(block).iter().zip(client.params(succ as usize)) {
            self.record_use(arg, end, false);
            self.relate(arg, param, head, frequency);
            self.relate(param, arg, end, frequency);
        }
        Ok(())
    }

    fn inst(&mut self, client: &impl Client, inst: u32, frequency: f32) {
        let operands = client.operands(inst as usize);
        let reuses = has_reuse(operands);
        for (i, operand) in operands.iter().enumerate() {
            if operand.role == Role::Def {
                continue;
            }
            match operand.constraint {
                Constraint::Fixed(fixed) => {
                    let end = if operand.position == Position::Early { Point::early(inst) } else { Point::late(inst) };
                    self.want(fixed, self.defs[operand.reg.index()], inst);
                    self.claim(fixed, Point::setup(inst), end.next());
                    self.record_use(operand.reg, Point::gap(inst), false);
                    self.relate(operand.reg, fixed, Point::setup(inst), frequency);
                }
                _ if reuses && reused_by(operands, i).is_some() => self.record_use(operand.reg, Point::gap(inst), false),
                constraint @ (Constraint::Any | Constraint::Reg | Constraint::Reuse(_)) => {
                    let at = if operand.position == Position::Early { Point::early(inst) } else { Point::late(inst) };
                    self.record_use(operand.reg, at, constraint != Constraint::Any);
                }
            }
        }
        for operand in operands.iter().filter(|operand| operand.role == Role::Def) {
            let early = operand.position == Position::Early;
            let start = match operand.constraint {
                Constraint::Fixed(fixed) => {
                    // What is defined early in a given register is there already when the copies in the gap are executed.
                    let from = if early { Point::gap(inst) } else { Point::late(inst) };
                    self.claim(fixed, from, Point::gap(inst + 1));
                    self.define(operand.reg, Origin::Fixed(fixed), Point::gap(inst + 1));
                    self.relate(operand.reg, fixed, from, frequency);
                    continue;
                }
                Constraint::Reuse(source) => {
                    let source = operands[source as usize].reg;
                    self.relate(operand.reg, source, Point::gap(inst), frequency);
                    self.relate(source, operand.reg, Point::setup(inst), frequency);
                    Point::setup(inst)
                }
                _ if early => Point::early(inst),
                Constraint::Any | Constraint::Reg => Point::late(inst),
            };
            self.define(operand.reg, Origin::Inst, start);
            self.record_use(operand.reg, Point::late(inst), true);
        }
        let Some((_, mut destroyed)) = self.destroyed.pop_if(|next| next.0 == inst) else { return };
        if is_call(destroyed) {
            self.calls.push(Range { start: Point::late(inst), end: Point::gap(inst + 1) });
            destroyed = destroyed.minus(self.of_calls);
        }
        for reg in destroyed.iter() {
            self.claim(reg, Point::late(inst), Point::gap(inst + 1));
        }
    }

    fn define(&mut self, reg: Reg, origin: Origin, at: Point) {
        let i = reg.index();
        (self.regs[i], self.origins[i], self.defs[i]) = (reg, origin, at);
        self.defined.push(i as u32);
    }

    fn record_use(&mut self, reg: Reg, at: Point, needs_register: bool) {
        self.uses.push(reg.index(), UsePosition { at, needs_register });
    }

    fn relate(&mut self, reg: Reg, other: Reg, at: Point, weight: f32) {
        self.has_fixed[reg.index()] |= other.is_physical() && self.relations.len_of(reg.index()) < MAX_RELATIONS;
        self.relations.push(reg.index(), Relation { other, at, weight });
    }

    /// Notes that the value defined at `def` is wanted in a register at `inst`, if nothing claims it in between.
    fn want(&mut self, reg: Reg, def: Point, inst: u32) {
        let claimed = self.last_claim[reg.number()].map_or(Point::default(), |last| self.claims.all[last as usize].1.end);
        let destroyed = self.calls.last().filter(|_| self.of_calls.contains(reg)).map_or(Point::default(), |last| last.end);
        if def >= claimed.max(destroyed) && def < Point::gap(inst) {
            self.wanted.push(reg.number(), def);
        }
    }

    fn claim(&mut self, reg: Reg, start: Point, end: Point) {
        let last = &mut self.last_claim[reg.number()];
        match last.map(|last| &mut self.claims.all[last as usize].1) {
            Some(last) if last.end >= start => {
                last.start = last.start.min(start);
                last.end = last.end.max(end);
            }
            _ => {
                *last = Some(self.claims.all.len() as u32);
                self.claims.push(reg.number(), Range { start, end });
            }
        }
    }
}

/// Whether an instruction is a call, because it destroys many registers.
fn is_call(destroyed: RegSet) -> bool {
    const MANY: usize = 8;
    destroyed.iter().count() >= MANY
}

/// Those of the defined registers that have ranges, by the starts of these. Of several block parameters, those that live
/// longest are first, because they fit into the fewest registers.
fn sorted(mut defined: Vec<u32>, ranges: &Lists<Range>) -> Vec<u32> {
    let start = |reg: u32| ranges.get(reg as usize).first().map(|first| first.start);
    let end = |reg: u32| ranges.get(reg as usize).last().map(|last| last.end);
    let (mut last, mut is_sorted, mut has_equals) = (None, true, false);
    defined.retain(|&reg| {
        let Some(start) = start(reg) else { return false };
        (is_sorted, has_equals) = (is_sorted && last <= Some(start), has_equals || last == Some(start));
        last = Some(start);
        true
    });
    if !is_sorted {
        // Only the definitions of one instruction are in another order, which this algorithm makes use of.
        defined.sort_by_key(|&reg| start(reg));
    }
    if has_equals || !is_sorted {
        let equals = defined.chunk_by_mut(|&a, &b| start(a) == start(b)).filter(|equals| equals.len() > 1);
        equals.for_each(|equals| equals.sort_by_key(|&reg| Reverse(end(reg))));
    }
    defined
}

/// Whether a definition reuses the register of a use.
#[inline]
pub fn has_reuse(operands: &[Operand]) -> bool {
    operands.iter().any(|operand| matches!(operand.constraint, Constraint::Reuse(_)))
}

/// The definition that reuses the register of operand `i`, or the register of another early use of the same value,
/// which is then in that register too.
pub fn reused_by(operands: &[Operand], i: usize) -> Option<usize> {
    let def = operands.iter().position(|def| matches!(def.constraint, Constraint::Reuse(_)))?;
    let operand = &operands[i];
    let free = operand.position == Position::Early && matches!(operand.constraint, Constraint::Any | Constraint::Reg);
    let reuses = |def: &Operand| match def.constraint {
        Constraint::Reuse(source) => source as usize == i || free && operands[source as usize].reg == operand.reg,
        Constraint::Any | Constraint::Reg | Constraint::Fixed(_) => false,
    };
    operands[def..].iter().position(reuses).map(|offset| def + offset)
}

/// The ranges of each register between its definition and its uses.
fn live_ranges(
    client: &impl Client,
    costs: &Costs,
    defs: &[Point],
    uses: &Lists<UsePosition>,
    meter: &Meter<'_>,
) -> Result<Lists<Range>, Ended> {
    let regs = client.num_regs();
    let mut lists = Lists { items: Vec::with_capacity(2 * regs), starts: Vec::with_capacity(regs + 1) };
    let mut live = LiveBlocks::new(client.num_blocks());
    let of_uses = uses.size();
    lists.starts.push(0);
    for (reg, &def) in defs.iter().enumerate() {
        let explored = ranges_of(client, costs, def, uses.get(reg), &mut live, &mut lists.items);
        lists.starts.push(lists.items.len() as u32);
        meter.spend_holding(1 + explored, || of_uses + lists.size())?;
    }
    Ok(lists)
}

/// Returns the number of blocks that were explored.
fn ranges_of(
    client: &impl Client,
    costs: &Costs,
    def: Point,
    uses: &[UsePosition],
    live: &mut LiveBlocks,
    out: &mut Vec<Range>,
) -> usize {
    let Some(last) = uses.last() else { return 0 };
    let def_block = costs.block(def) as u32;
    let def_block_end = costs.start(def_block as usize + 1);
    if last.at < def_block_end && uses[0].at.floor() >= def.floor() {
        out.push(Range { start: def, end: last.at.next() });
        return 0;
    }
    let mut explored = 0;
    let blocks = uses.iter().map(|position| costs.block(position.at) as u32);
    let preds = |block: u32| client.preds(block as usize).iter().copied();
    let mut range = Range { start: def, end: def };
    live.explore(def_block, blocks, preds, |block, live_out| {
        explored += 1;
        let start = if block == def_block { def } else { costs.start(block as usize) };
        let block_end = costs.start(block as usize + 1);
        let end = if live_out { block_end } else { uses[first_from(uses, block_end) - 1].at.next() };
        if start != range.end {
            out.push(range);
            range.start = start;
        }
        range.end = end;
    });
    out.push(range);
    explored
}
