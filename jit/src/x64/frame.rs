//! The native frame of an allocated function.
//!
//! ```text
//! rbp + 8   return address
//! rbp       the caller's rbp
//!           preserved registers that the function uses
//!           the instance, if calls may come back with another one
//!           spill slots: first those of 32 bytes, then those of 16, aligned as `rbp` is, then those of 8
//! ```

use super::abi;
use super::code::Code;
use super::insts::{Inst, Mem, Width};
use crate::mir::Allocation;
use crate::regalloc::{Class, Reg, SlotWidth};
use crate::request::{Backend, Refusal};
use crate::seeded::{self, Fault};
use weir_contract::code::FrameLayout;
use weir_contract::{MAX_NATIVE_FRAME, PRESERVED_REGS, UNCHECKED_LEAF_FRAME};

/// The layout of a function's frame.
#[derive(Debug)]
pub struct Frame {
    /// Whether there is no frame, because nothing could observe it: the function calls nothing, cannot trap, and keeps all
    /// values in registers.
    pub absent: bool,
    /// The callee-saved registers to save, in the order of pushing.
    pub saved: Vec<Reg>,
    /// Whether the frame holds the instance.
    pub keeps_instance: bool,
    /// The number of bytes below the pushed registers.
    pub spill_bytes: i32,
    /// By spill slot, its width and its displacement from `rbp`.
    slots: Vec<(SlotWidth, i32)>,
    /// Whether the prologue must compare `rsp` with the stack's limit.
    pub checked: bool,
}

impl Frame {
    /// Computes the frame of allocated code.
    ///
    /// # Errors
    /// [`Refusal::Budget`] if it is larger than [`MAX_NATIVE_FRAME`].
    pub fn of(code: &Code) -> Result<Frame, Refusal> {
        let Allocation { slots, saved, .. } = code.allocated();
        let saved: Vec<Reg> = abi::CALLEE_SAVED.intersection(*saved).iter().collect();
        let pushed = 8 * (saved.len() + usize::from(code.restores));
        let (slots, total) = place_slots(slots, pushed);
        // Pushing rbp has aligned rsp.
        let aligned = if code.calls { total.next_multiple_of(16) } else { total };
        if aligned > MAX_NATIVE_FRAME {
            return Err(Refusal::Budget { backend: Some(Backend::Native), what: "the native frame", limit: MAX_NATIVE_FRAME });
        }
        Ok(Frame {
            absent: total == 0 && !code.calls && !code.insts.iter().any(Inst::may_trap),
            saved,
            keeps_instance: code.restores,
            spill_bytes: (aligned - pushed) as i32,
            slots,
            checked: code.calls || aligned > UNCHECKED_LEAF_FRAME,
        })
    }

    /// The layout for the stack walker.
    pub fn layout(&self) -> FrameLayout {
        let mut preserved = [0; PRESERVED_REGS.len()];
        for (word, saved) in (1..).zip(&self.saved) {
            if let Some(index) = PRESERVED_REGS.iter().position(|&reg| reg == saved.encoding()) {
                preserved[index] = word;
            }
        }
        let pushed = self.saved.len() + usize::from(self.keeps_instance);
        let instance = if self.keeps_instance { pushed as u16 } else { 0 };
        FrameLayout { bytes: 8 * pushed as u32 + self.spill_bytes as u32, preserved, instance, value_sp: 0 }
    }

    /// The address of the saved instance.
    pub fn instance(&self) -> Mem {
        Mem::at(abi::RBP, -8 * (self.saved.len() as i32 + 1))
    }

    /// The address of a spill slot.
    pub fn slot(&self, slot: u32) -> Mem {
        match self.slots[slot as usize].1 {
            _ if seeded::is(Fault::SpillOverReturn) => Mem::at(abi::RBP, 8),
            displacement if seeded::is(Fault::SpillBelowFrame) => Mem::at(abi::RBP, displacement - 4096),
            displacement => Mem::at(abi::RBP, displacement),
        }
    }

    /// The place of a spill slot, in words below `rbp`.
    pub fn word(&self, slot: u32) -> u16 {
        (-self.slots[slot as usize].1 / 8) as u16
    }

    /// The number of bits that are copied between a register and a spill slot, and whether it is 256.
    pub fn slot_width(&self, slot: u32, class: Class) -> (Width, bool) {
        match (self.slots[slot as usize].0, class) {
            (SlotWidth::Wide, Class::Float) => (Width::X, false),
            (SlotWidth::Long, Class::Float) => (Width::X, true),
            (SlotWidth::Word | SlotWidth::Wide | SlotWidth::Long, _) => (Width::Q, false),
        }
    }
}

/// The width and the displacement of each slot, and the end of the last one, in bytes below `rbp`.
fn place_slots(widths: &[SlotWidth], pushed: usize) -> (Vec<(SlotWidth, i32)>, usize) {
    let mut slots: Vec<(SlotWidth, i32)> = widths.iter().map(|&width| (width, 0)).collect();
    let mut end = pushed;
    for width in [SlotWidth::Long, SlotWidth::Wide, SlotWidth::Word] {
        // The instructions need no alignment, but a line of the cache should not be crossed without need.
        let bytes = width.bytes();
        for (_, displacement) in slots.iter_mut().filter(|slot| slot.0 == width) {
            end = end.next_multiple_of(bytes) + bytes;
            *displacement = -(end as i32);
        }
    }
    (slots, end)
}
