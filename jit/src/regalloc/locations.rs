//! The location of each virtual register at each point, after the scan.

use super::client::{Place, RegSet};
use super::point::Point;
use super::segments::{Location, NO_SEGMENT, Segment, Segments};

/// The place of each virtual register, or its segments in order if there are several, and the slot of each interval.
#[derive(Debug)]
pub struct Locations<'a> {
    all: &'a Segments,
    /// By virtual register, its place if it has only one segment.
    only: Vec<Option<Place>>,
    /// The segments of the other registers.
    segments: Vec<Segment>,
    /// By virtual register, the index of its first segment there; and finally the number of segments.
    starts: Vec<u32>,
    slots: Vec<u32>,
}

impl<'a> Locations<'a> {
    /// Sorts `all`; `slots` has the spill slot of each virtual register that has one.
    pub fn new(all: &'a Segments, slots: Vec<u32>) -> Locations<'a> {
        let regs = slots.len();
        let (only, starts) = (Vec::with_capacity(regs), Vec::with_capacity(regs + 1));
        let mut locations =
            Locations { all, only, segments: Vec::with_capacity(2 * (all.len() - regs.min(all.len()))), starts, slots };
        locations.starts.push(0);
        for reg in 0..regs {
            let first = all.first(reg);
            let only = first.filter(|first| first.next == NO_SEGMENT).map(|first| locations.place(first));
            if only.is_none() {
                locations.segments.extend(all.of_reg(reg));
            }
            locations.only.push(only);
            locations.starts.push(locations.segments.len() as u32);
        }
        locations
    }

    /// The segments of a register, if it has several.
    pub fn several(&self, reg: usize) -> &[Segment] {
        &self.segments[self.starts[reg] as usize..self.starts[reg + 1] as usize]
    }

    /// All segments.
    pub fn all(&self) -> &'a [Segment] {
        self.all.all()
    }

    /// The physical registers of all segments.
    pub fn registers(&self) -> RegSet {
        let registers = self.all().iter().filter_map(|segment| match segment.location {
            Location::Reg(reg) => Some(reg),
            Location::Slot | Location::Pending => None,
        });
        registers.collect()
    }

    /// The place of a register where it begins, if it is live somewhere.
    pub fn first(&self, reg: usize) -> Option<Place> {
        self.only[reg].or_else(|| self.several(reg).first().map(|first| self.place(first)))
    }

    /// The place of a register at `point`, where it is live.
    #[inline]
    pub fn at(&self, reg: usize, point: Point) -> Place {
        if let Some(place) = self.only[reg] {
            return place;
        }
        let segments = self.several(reg);
        self.place(&segments[segments.partition_point(|segment| segment.start <= point) - 1])
    }

    /// The place of a segment.
    pub fn place(&self, segment: &Segment) -> Place {
        match segment.location {
            Location::Reg(reg) => Place::Reg(reg),
            Location::Slot => Place::Slot(self.slots[segment.reg as usize]),
            Location::Pending => unreachable!("the scan gives every segment a location"),
        }
    }

    /// The slot of a register that has one.
    pub fn slot(&self, reg: usize) -> Place {
        Place::Slot(self.slots[reg])
    }
}
