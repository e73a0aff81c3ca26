//! Passes over SSA, one file each, and the driver that runs them.
