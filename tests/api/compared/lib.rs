//! Names the libraries for Cargo.
