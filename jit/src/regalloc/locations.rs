//! The pieces after the scan, arranged to be asked where a value is.

use super::client::Place;
use super::point::Point;
use super::segments::{Home, Piece, Pieces};

/// Pieces by virtual register, in order, each with the slot of its interval.
#[derive(Debug)]
pub struct Homes {
    pieces: Vec<Piece>,
    starts: Vec<u32>,
    slots: Vec<u32>,
}

impl Homes {
    /// Arranges `pieces`; `slots` holds the spill slot of each virtual register that has one.
    pub fn new(pieces: &Pieces, slots: Vec<u32>) -> Homes {
        let mut homes = Homes { pieces: Vec::with_capacity(pieces.len()), starts: Vec::with_capacity(slots.len() + 1), slots };
        homes.starts.push(0);
        for reg in 0..homes.slots.len() {
            homes.pieces.extend(pieces.of_reg(reg));
            homes.starts.push(homes.pieces.len() as u32);
        }
        homes
    }

    /// The pieces of a register.
    pub fn of(&self, reg: usize) -> &[Piece] {
        &self.pieces[self.starts[reg] as usize..self.starts[reg + 1] as usize]
    }

    /// All pieces.
    pub fn all(&self) -> &[Piece] {
        &self.pieces
    }

    /// Where a register is at `point`, at which it is live.
    pub fn at(&self, reg: usize, point: Point) -> Place {
        match self.of(reg) {
            // Most are.
            [whole] => self.place(whole),
            pieces => self.place(&pieces[pieces.partition_point(|piece| piece.start <= point) - 1]),
        }
    }

    /// Where a piece is.
    pub fn place(&self, piece: &Piece) -> Place {
        match piece.home {
            Home::Reg(reg) => Place::Reg(reg),
            Home::Slot => Place::Slot(self.slots[piece.reg as usize]),
            Home::Pending => unreachable!("the scan decides about every piece"),
        }
    }

    /// The slot of a register that has one.
    pub fn slot(&self, reg: usize) -> Place {
        Place::Slot(self.slots[reg])
    }
}
