//! The rules of this repository that a compiler does not check, and the graph of its modules on which most of them work.
//!
//! ```text
//! workspace  packages and their crate roots, from `cargo metadata` (or made up, in tests)
//! source     a file's text → syntax tree without the items under `cfg(test)`
//! modules    syntax trees → modules: the names that each defines, imports and takes by glob
//! resolve    a path in a module → the file that defines the item that it names
//! uses       every path in a file: `use`, expression, type, pattern, tokens of a macro
//! graph      files and edges, strongly connected components, the shortest cycle of one
//! print      the graph as text
//! rules      each rule, which finds its violations
//! exceptions violations that are allowed, with reasons: the lists in `exceptions/`
//! repository the table of layers, and all rules on this repository
//! ```
//!
//! Nothing here depends on the packages it reads, so `weir-tidy` also runs on a tree that does not compile.

pub mod exceptions;
pub mod finding;
pub mod graph;
pub mod modules;
pub mod print;
pub mod repository;
pub mod resolve;
pub mod rules;
pub mod source;
pub mod uses;
pub mod workspace;
