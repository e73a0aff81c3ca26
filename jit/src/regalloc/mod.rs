//! Register allocation. Knows no opcodes.
