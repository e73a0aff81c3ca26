//! The targets of coverage-guided fuzzing. Each is a function of bytes, which panics if it finds a fault. libFuzzer calls it
//! (`tests/fuzz`), and `tests/tests/corpus.rs` replays the inputs that are kept. Engines are made once and used for all inputs, and a
//! target starts no process.

pub mod bytes;
pub mod differential;
pub mod machine;
pub mod passes;
pub mod profile;
pub mod smith;
pub mod ssa;
pub mod stored;
mod target;
pub mod text;
pub mod wasi;

pub use target::Target;

/// Every target.
pub const ALL: [Target; 10] = [
    bytes::TARGET,
    differential::TARGET,
    machine::TARGET,
    passes::TARGET,
    profile::TARGET,
    smith::TARGET,
    ssa::TARGET,
    stored::TARGET,
    text::TARGET,
    wasi::TARGET,
];

/// The target with this name.
pub fn by_name(name: &str) -> Option<Target> {
    ALL.into_iter().find(|target| target.name == name)
}

/// The module that a target makes of an input; `None` if it makes none.
pub fn module(target: &str, input: &[u8]) -> Option<Vec<u8>> {
    match target {
        "bytes" => Some(input.to_vec()),
        "differential" => Some(differential::program(input).wasm),
        "smith" => smith::module(input),
        "text" => std::str::from_utf8(input).ok().and_then(|text| wat::parse_str(text).ok()),
        _ => None,
    }
}
