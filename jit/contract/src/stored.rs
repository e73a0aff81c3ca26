//! The tables of compiled code as bytes, for a later process: see [`weir_bytecode::stored`](mod@weir_bytecode::stored).

use crate::TrapSite;
use crate::code::{Backend, FrameLayout, InlinedCall, Inlining, Landing, Reloc, RelocTarget, Roots, Stripe, TrapEntry};
use crate::profile::{BranchProfile, CallProfile, CounterCounts, Profile};
use weir_bytecode::stored::{Damaged, Reader, Stored};
use weir_bytecode::{Trap, stored};

stored! {
    Landing { entry, call, offset }
    FrameLayout { bytes, preserved, instance, value_sp }
    Roots { calls, places }
    Reloc { offset, target, index, addend }
    TrapEntry { offset, site, pc }
    Inlining { traps, calls, links }
    InlinedCall { func, pc, outer }
    Profile { branches, calls }
    BranchProfile { pc, counts }
    CounterCounts { entries, calls }
    CallProfile { pc, targets, others }
}

impl Stored for Backend {
    fn write(&self, to: &mut Vec<u8>) {
        to.push(match self {
            Backend::Native => 0,
            Backend::Cranelift => 1,
            Backend::Baseline => 2,
        });
    }

    fn read(from: &mut Reader<'_>) -> Result<Backend, Damaged> {
        match u8::read(from)? {
            0 => Ok(Backend::Native),
            1 => Ok(Backend::Cranelift),
            2 => Ok(Backend::Baseline),
            _ => Err(Damaged),
        }
    }
}

impl Stored for RelocTarget {
    fn write(&self, to: &mut Vec<u8>) {
        to.push(match self {
            RelocTarget::Cell => 0,
            RelocTarget::Ticks(Stripe::First) => 1,
            RelocTarget::Ticks(Stripe::Any) => 2,
            RelocTarget::Counters(Stripe::First) => 3,
            RelocTarget::Counters(Stripe::Any) => 4,
            RelocTarget::Signature => 5,
        });
    }

    #[inline]
    fn read(from: &mut Reader<'_>) -> Result<RelocTarget, Damaged> {
        Ok(match u8::read(from)? {
            0 => RelocTarget::Cell,
            1 => RelocTarget::Ticks(Stripe::First),
            2 => RelocTarget::Ticks(Stripe::Any),
            3 => RelocTarget::Counters(Stripe::First),
            4 => RelocTarget::Counters(Stripe::Any),
            5 => RelocTarget::Signature,
            _ => return Err(Damaged),
        })
    }
}

/// In place of a trap's number: [`TrapSite::Stored`].
const STORED: u8 = u8::MAX;

impl Stored for TrapSite {
    fn write(&self, to: &mut Vec<u8>) {
        to.push(match self {
            TrapSite::Trap(trap) => *trap as u8,
            TrapSite::Stored => STORED,
        });
    }

    #[inline]
    fn read(from: &mut Reader<'_>) -> Result<TrapSite, Damaged> {
        match u8::read(from)? {
            STORED => Ok(TrapSite::Stored),
            code => Trap::from_code(code).map(TrapSite::Trap).ok_or(Damaged),
        }
    }
}
