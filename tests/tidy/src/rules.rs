//! The rules. Each returns its findings; exceptions are applied afterwards.

pub mod arrows;
pub mod clients;
pub mod commands;
pub mod cycles;
pub mod documents;
pub mod engines;
pub mod packages;
pub mod places;
pub mod size;
pub mod system;
pub mod words;
