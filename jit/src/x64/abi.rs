//! Registers: their names, which of them calls preserve, and the locations of arguments and results, from the contract.

use crate::regalloc::{Class, Reg, RegSet};
use weir_bytecode::ValType;
use weir_contract::{self, Place};

/// `rax`
pub const RAX: Reg = Reg::int(0);
/// `rcx`
pub const RCX: Reg = Reg::int(1);
/// `rdx`
pub const RDX: Reg = Reg::int(2);
/// `rsp`
pub const RSP: Reg = Reg::int(4);
/// `rbp`
pub const RBP: Reg = Reg::int(5);
/// `rdi`, which holds the interpreter's frame at the entry of an OSR body.
pub const RDI: Reg = Reg::int(7);
/// `r10`, which has no meaning at the entry of code.
pub const R10: Reg = Reg::int(10);
/// The pinned register, which holds the instance.
pub const INSTANCE: Reg = Reg::int(weir_contract::PINNED_REG);
/// The register in which a call through a reference finds the reference, and a call of an element of a private table its cell: it holds no
/// argument, and the epilogue preserves it.
pub const CALLEE: Reg = Reg::int(11);

/// Holds the base of memory 0 in functions that use it often; calls preserve it.
pub const BASE: Reg = Reg::int(14);
/// Holds the base of memory 0 in functions without calls, which need not save it; it holds no argument or result.
pub const BASE_OF_LEAF: Reg = Reg::int(11);

/// Destroyed by calls: rax rcx rdx rsi rdi r8–r11, xmm0–xmm15.
pub const CALLER_SAVED: RegSet = {
    let mut set = RegSet::EMPTY;
    let mut i = 0;
    while i < 16 {
        set = set.with(Reg::float(i));
        if i < 3 || i >= 6 && i < 12 {
            set = set.with(Reg::int(i));
        }
        i += 1;
    }
    set
};

/// Preserved by calls, and allocatable: rbx r12 r13 r14.
pub const CALLEE_SAVED: RegSet = {
    let mut set = RegSet::EMPTY;
    let mut i = 0;
    while i < weir_contract::PRESERVED_REGS.len() {
        set = set.with(Reg::int(weir_contract::PRESERVED_REGS[i]));
        i += 1;
    }
    set
};

/// Integer arguments of the System V convention, with which helpers are called: rdi rsi rdx rcx r8 r9.
pub const SYSTEM_V_ARGS: [Reg; 6] = [Reg::int(7), Reg::int(6), Reg::int(2), Reg::int(1), Reg::int(8), Reg::int(9)];

/// The location of a parameter or a result at a call: a register, or a slot of the overflow area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgLocation {
    /// In this register.
    Reg(Reg),
    /// In this slot.
    Overflow(u32),
}

impl ArgLocation {
    /// The register, if it is one.
    pub fn reg(self) -> Option<Reg> {
        match self {
            ArgLocation::Reg(reg) => Some(reg),
            ArgLocation::Overflow(_) => None,
        }
    }
}

/// Returns the locations of parameters.
pub fn params(types: &[ValType]) -> impl Iterator<Item = ArgLocation> + '_ {
    weir_contract::param_places(types).map(|place| location(place, &weir_contract::INT_ARG_REGS))
}

/// Returns the locations of results.
pub fn results(types: &[ValType]) -> impl Iterator<Item = ArgLocation> + '_ {
    weir_contract::result_places(types).map(|place| location(place, &weir_contract::INT_RESULT_REGS))
}

fn location(place: Place, ints: &[u8]) -> ArgLocation {
    match place {
        Place::Int(n) => ArgLocation::Reg(Reg::int(ints[n as usize])),
        Place::Float(n) => ArgLocation::Reg(Reg::float(n)),
        Place::Overflow(slot) => ArgLocation::Overflow(slot),
    }
}

/// The name of a physical register of 64 or 128 bits.
pub fn name(reg: Reg) -> &'static str {
    const INT: [&str; 16] =
        ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
    const FLOAT: [&str; 16] = [
        "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15",
    ];
    match reg.class() {
        Class::Int => INT[reg.encoding() as usize],
        Class::Float => FLOAT[reg.encoding() as usize],
    }
}
