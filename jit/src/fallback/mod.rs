//! The second back end: SSA to Cranelift.
