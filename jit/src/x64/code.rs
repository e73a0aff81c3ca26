//! The machine layer's code with the instructions of TABLE 3.

use super::insts::Inst;
use crate::mir::MachineCode;

/// A function as instructions of TABLE 3.
pub type Code = MachineCode<Inst>;
