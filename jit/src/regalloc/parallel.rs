//! Parallel moves: puts each group of copies that happen at once into an order in which they can be executed one by
//! one.
//!
//! A copy can be made when no remaining copy reads its destination. When no such copy is left, the rest are cycles, and
//! one value must be moved to a temporary place. This needs a register that is free at this point, as does a copy from
//! slot to slot; if there is none, a reserved slot is used.
//! (L. Rideau, B. P. Serpette, X. Leroy, "Tilting at Windmills with Coq", JAR 2008.)

use super::client::{Class, Client, Move, Place, Reg, RegSet, SlotWidth};
use super::copies::Copy;
use super::intervals::Intervals;
use super::locations::Locations;
use super::point::{Point, Range};
use super::segments::{Location, Segment};

/// Orders groups of copies, which ascend by key.
pub fn sequence(copies: &[Copy], scratch: &mut Scratch<'_>) -> Vec<Move> {
    let mut moves = Vec::with_capacity(copies.len());
    let mut group = Group::default();
    for copies in copies.chunk_by(|a, b| a.order() == b.order()) {
        if let [copy] = copies {
            scratch.touch(copies);
            scratch.make(copy.key.0, copy.from, copy.to, &mut moves);
        } else {
            group.sequence(copies, scratch, &mut moves);
        }
    }
    moves
}

/// The state of one group, by place number; it is reset after each group.
#[derive(Default)]
struct Group {
    /// The number of remaining copies that read the place.
    readers: Vec<u32>,
    /// The remaining copy that writes the place.
    writer: Vec<Option<u32>>,
    /// The place to which its old value was moved.
    stand_in: Vec<Option<Place>>,
    ready: Vec<u32>,
}

impl Group {
    fn sequence(&mut self, copies: &[Copy], scratch: &mut Scratch<'_>, moves: &mut Vec<Move>) {
        scratch.touch(copies);
        let inst = copies[0].key.0;
        for (i, copy) in copies.iter().enumerate() {
            let (from, to) = (number(copy.from), number(copy.to));
            self.make_room(from.max(to));
            // The same copy may be requested twice.
            if self.writer[to].is_none() {
                self.writer[to] = Some(i as u32);
                self.readers[from] += 1;
            } else {
                debug_assert_eq!(
                    copies[self.writer[to].expect("just seen") as usize].from,
                    copy.from,
                    "two values for one place"
                );
            }
        }
        let is_ready = |&i: &u32| {
            let to = number(copies[i as usize].to);
            self.writer[to] == Some(i) && self.readers[to] == 0
        };
        self.ready.extend((0..copies.len() as u32).rev().filter(is_ready));
        self.drain(copies, scratch, moves);
        for copy in copies {
            let to = number(copy.to);
            if self.writer[to].is_some() {
                // The copy is on a cycle.
                let aside = scratch.aside(inst, copy.to, scratch.class_of(copies, copy.to), moves);
                self.stand_in[to] = Some(aside);
                self.readers[to] = 0;
                self.ready.push(self.writer[to].expect("just seen"));
                self.drain(copies, scratch, moves);
                self.stand_in[to] = None;
                scratch.release();
            }
        }
    }

    /// Makes copies while there are ready ones.
    fn drain(&mut self, copies: &[Copy], scratch: &mut Scratch<'_>, moves: &mut Vec<Move>) {
        while let Some(i) = self.ready.pop() {
            let Copy { key, from, to } = copies[i as usize];
            let source = self.stand_in[number(from)].unwrap_or(from);
            scratch.make(key.0, source, to, moves);
            self.writer[number(to)] = None;
            if self.stand_in[number(from)].is_none() {
                self.readers[number(from)] -= 1;
                if self.readers[number(from)] == 0 {
                    self.ready.extend(self.writer[number(from)]);
                }
            }
        }
    }

    fn make_room(&mut self, place: usize) {
        if place >= self.readers.len() {
            self.readers.resize(place + 1, 0);
            self.writer.resize(place + 1, None);
            self.stand_in.resize(place + 1, None);
        }
    }
}

fn number(place: Place) -> usize {
    match place {
        Place::Reg(reg) => reg.number(),
        Place::Slot(slot) => Reg::PHYSICAL + slot as usize,
    }
}

/// Finds registers and slots that are free.
pub struct Scratch<'a> {
    intervals: &'a Intervals,
    locations: &'a Locations<'a>,
    /// Registers that may be borrowed; callee-saved ones only if the function saves them anyway.
    usable: RegSet,
    /// By register, the ranges in which it holds a segment; computed when the segments have been searched often.
    taken: Option<Vec<Vec<Range>>>,
    /// The number of searches.
    searches: usize,
    /// All slots, including those added here.
    slots: Vec<SlotWidth>,
    /// The width of a slot that can hold the contents of any vector register.
    float_width: SlotWidth,
    /// Slots besides those of the intervals, by width: one to break cycles, one for the old value of a borrowed register.
    own_slots: [[Option<u32>; 3]; 2],
    /// Registers that the current group reads or writes.
    touched: RegSet,
    /// The register that holds a value moved out of a cycle.
    held: Option<Reg>,
}

impl<'a> Scratch<'a> {
    /// For code whose intervals have these locations and slots.
    pub fn new(
        client: &impl Client,
        intervals: &'a Intervals,
        locations: &'a Locations<'a>,
        slots: Vec<SlotWidth>,
    ) -> Scratch<'a> {
        let usable = client.preferred().union(client.others().intersection(locations.registers()));
        let float_width = intervals.regs.iter().map(|&reg| SlotWidth::of(reg)).max().unwrap_or(SlotWidth::Word);
        let (taken, own_slots) = (None, [[None; 3]; 2]);
        Scratch {
            intervals,
            locations,
            usable,
            taken,
            searches: 0,
            slots,
            float_width,
            own_slots,
            touched: RegSet::EMPTY,
            held: None,
        }
    }

    /// All slots, including those added here.
    pub fn into_slots(self) -> Vec<SlotWidth> {
        self.slots
    }

    /// The class of the value in `place`, as far as the place or the copies that read it determine it.
    fn class_of(&self, copies: &[Copy], place: Place) -> Class {
        let mut ends = copies.iter().filter(|copy| copy.from == place).flat_map(|copy| [copy.from, copy.to]);
        let class = ends.find_map(|end| match end {
            Place::Reg(reg) => Some(reg.class()),
            Place::Slot(_) => self.is_wide(end).then_some(Class::Float),
        });
        class.unwrap_or(Class::Int)
    }

    /// Whether the place is a slot of 16 bytes or more.
    fn is_wide(&self, place: Place) -> bool {
        matches!(place, Place::Slot(slot) if self.slots[slot as usize] >= SlotWidth::Wide)
    }

    /// The slot width for values that a register of `class` may hold.
    fn width(&self, class: Class) -> SlotWidth {
        if class == Class::Float { self.float_width } else { SlotWidth::Word }
    }

    fn touch(&mut self, copies: &[Copy]) {
        let places = copies.iter().flat_map(|copy| [copy.from, copy.to]);
        let regs = places.filter_map(|place| match place {
            Place::Reg(reg) => Some(reg),
            Place::Slot(_) => None,
        });
        self.touched = regs.collect();
    }

    /// Makes a copy; one from slot to slot goes through a register.
    fn make(&mut self, inst: u32, from: Place, to: Place, moves: &mut Vec<Move>) {
        let mut push = |from, to| moves.push(Move { before: inst, from, to });
        if !matches!((from, to), (Place::Slot(_), Place::Slot(_))) {
            return push(from, to);
        }
        // A temporary slot may be wider than the value, and is not copied to or from a general-purpose register then, either.
        let wide = self.is_wide(from) || self.is_wide(to);
        let int = if wide { None } else { self.free(inst, Class::Int) };
        if let Some(reg) = int.or_else(|| self.free(inst, Class::Float)) {
            push(from, Place::Reg(reg));
            return push(Place::Reg(reg), to);
        }
        let lends = |reg: &Reg| Some(*reg) != self.held && (!wide || reg.class() == Class::Float);
        let lent = self.usable.iter().find(lends).expect("there are registers");
        let saved = self.own_slot(1, self.width(lent.class()));
        push(Place::Reg(lent), saved);
        push(from, Place::Reg(lent));
        push(Place::Reg(lent), to);
        push(saved, Place::Reg(lent));
    }

    /// Moves a value to a free place, which is returned.
    fn aside(&mut self, inst: u32, from: Place, class: Class, moves: &mut Vec<Move>) -> Place {
        self.held = self.free(inst, class);
        let to = self.held.map_or_else(|| self.own_slot(0, self.width(class)), Place::Reg);
        self.make(inst, from, to, moves);
        to
    }

    /// The value that was moved aside has been copied to its destination.
    fn release(&mut self) {
        self.held = None;
    }

    fn own_slot(&mut self, which: usize, width: SlotWidth) -> Place {
        let own = &mut self.own_slots[which][width as usize];
        let slot = *own.get_or_insert_with(|| {
            self.slots.push(width);
            self.slots.len() as u32 - 1
        });
        Place::Slot(slot)
    }

    /// A register that is free from before the gap of `inst` until after it, and that the group does not use.
    fn free(&mut self, inst: u32, class: Class) -> Option<Reg> {
        let during = Range { start: Point::gap(inst).previous(), end: Point::gap(inst + 1) };
        let (touched, held) = (self.touched, self.held);
        let usable = self.usable.filter(|reg| reg.class() == class && !touched.contains(reg) && held != Some(reg));
        let untaken = self.untaken(usable, during);
        untaken.iter().find(|&reg| self.intervals.claims.of(reg).into_iter().all(|claims| is_free(claims, during)))
    }

    /// Those of these registers that hold no segment during a range.
    fn untaken(&mut self, regs: RegSet, during: Range) -> RegSet {
        const FEW: usize = 4;
        let (intervals, locations) = (self.intervals, self.locations);
        self.searches += 1;
        if self.searches > FEW {
            let taken = self.taken.get_or_insert_with(|| taken_ranges(intervals, locations));
            return regs.filter(|reg| is_free(&taken[reg.number()], during));
        }
        let is_there = |segment: &&Segment| {
            let (start, end) = (segment.start.max(during.start), segment.end.min(during.end));
            start < end && intervals.ranges_within(segment.reg as usize, start, end).next().is_some()
        };
        locations.all().iter().filter(is_there).fold(regs, |regs, segment| match segment.location {
            Location::Reg(reg) => regs.without(reg),
            Location::Slot | Location::Pending => regs,
        })
    }
}

/// Whether none of these ascending ranges overlaps `during`.
fn is_free(ranges: &[Range], during: Range) -> bool {
    ranges.get(ranges.partition_point(|range| range.end <= during.start)).is_none_or(|range| range.start >= during.end)
}

/// By register, all ranges in which it holds a segment, ascending.
fn taken_ranges(intervals: &Intervals, locations: &Locations<'_>) -> Vec<Vec<Range>> {
    let mut taken: Vec<Vec<Range>> = vec![Vec::new(); Reg::PHYSICAL];
    for segment in locations.all() {
        if let Location::Reg(reg) = segment.location {
            taken[reg.number()].extend(intervals.ranges_within(segment.reg as usize, segment.start, segment.end));
        }
    }
    taken.iter_mut().for_each(|ranges| ranges.sort_by_key(|range| range.start));
    taken
}
