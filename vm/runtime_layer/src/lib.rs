#![doc = include_str!("../README.md")]
//!
//! # What the layer lacks
//!
//! The layer knows functions, memories and tables with 32-bit indices, globals, and the types of WebAssembly 2.0. A module that imports
//! anything else is refused by `Module::new`; what it exports of other kinds (tags, 64-bit memories, references to exceptions) is left out
//! of the lists of exports. Settings of Weir are those of the engine: `Engine::from(weir::Engine::new(&config)?)`. Errors are those
//! of Weir, in an `anyhow::Error`: a trap downcasts to `weir::Trap`.
#![forbid(unsafe_code)]

mod convert;
mod items;
mod store;
mod types;

pub use types::{Engine, ExternRef, Func, Global, Instance, Memory, Module, Store, StoreContext, StoreContextMut, Table};
