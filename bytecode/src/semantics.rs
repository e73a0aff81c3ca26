//! The one meaning of every numeric instruction.
