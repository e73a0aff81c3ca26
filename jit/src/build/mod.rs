//! Bytecode to SSA in one pass, without a prior CFG analysis.
