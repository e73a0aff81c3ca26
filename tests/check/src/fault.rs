//! What the checker reports.

use std::fmt;

/// Code that does not obey a rule, or of which it cannot be proved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The offset of the instruction in the code.
    pub offset: u32,
    /// Its text.
    pub text: String,
    /// The rule.
    pub rule: Rule,
    /// The violation, in words.
    pub what: String,
    /// The values of the operands.
    pub operands: String,
}

/// The rules.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// Instructions are those that the checker knows, do not overlap, and are in the code.
    Instruction,
    /// A load or store is of memory that the code may access.
    Access,
    /// An access that page protection may refuse is a trap site.
    TrapSite,
    /// A branch leads to an instruction of the function, or to code that the contract names, with what that code expects.
    Branch,
    /// An index that was compared is forced to a harmless value, against speculation: see [`Options::masks`](crate::Options::masks).
    Mask,
    /// Addresses are relative to no segment but `gs`, whose base is that of memory 0, and code does not change it.
    Segment,
    /// The stack pointer, the preserved registers and the instance are what the contract says at calls and returns.
    Convention,
}

/// A violated rule, before it is known where.
#[derive(Clone, Debug)]
pub struct Violation(pub Rule, pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { offset, text, rule, what, operands } = self;
        write!(f, "{offset:#x}: {text}: {rule:?}: {what} ({operands})")
    }
}

impl std::error::Error for Fault {}
