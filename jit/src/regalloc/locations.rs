//! The location of each virtual register at each point, after the scan.

use super::client::Place;
use super::point::Point;
use super::segments::{Location, Segment, Segments};

/// Segments by virtual register, in order, and the slot of each interval.
#[derive(Debug)]
pub struct Locations {
    segments: Vec<Segment>,
    starts: Vec<u32>,
    slots: Vec<u32>,
}

impl Locations {
    /// Sorts `segments`; `slots` has the spill slot of each virtual register that has one.
    pub fn new(segments: &Segments, slots: Vec<u32>) -> Locations {
        let mut locations =
            Locations { segments: Vec::with_capacity(segments.len()), starts: Vec::with_capacity(slots.len() + 1), slots };
        locations.starts.push(0);
        for reg in 0..locations.slots.len() {
            locations.segments.extend(segments.of_reg(reg));
            locations.starts.push(locations.segments.len() as u32);
        }
        locations
    }

    /// The segments of a register.
    pub fn of(&self, reg: usize) -> &[Segment] {
        &self.segments[self.starts[reg] as usize..self.starts[reg + 1] as usize]
    }

    /// All segments.
    pub fn all(&self) -> &[Segment] {
        &self.segments
    }

    /// The place of a register at `point`, where it is live.
    pub fn at(&self, reg: usize, point: Point) -> Place {
        match self.of(reg) {
            // Most registers have one segment.
            [whole] => self.place(whole),
            segments => self.place(&segments[segments.partition_point(|segment| segment.start <= point) - 1]),
        }
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
