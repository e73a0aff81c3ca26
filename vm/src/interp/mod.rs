//! The in-place interpreter.
