//! What every module has: tags, the imported host function, functions, and what is observed.

use wasm_encoder::ValType;

/// The parameters of the tags. The first one is imported.
pub(super) const TAGS: [&[ValType]; 4] = [&[ValType::I32], &[], &[ValType::I64, ValType::F64, ValType::I32], &[ValType::I32]];

/// The number of exported functions, `f0` and so on, with two i32 and a result.
pub(super) const FUNCS: u32 = 5;

/// The functions before them: the imported one, with an i32 that says what it does and an i32 for the function that it calls, and the
/// one that adds an i32 to the trace.
pub(super) const CALL_HOST: u32 = 0;
pub(super) const MIX: u32 = 1;

/// The globals: a hash of what was executed, and the number of calls that remain.
pub(super) const TRACE: u32 = 0;
pub(super) const FUEL: u32 = 1;

/// The number of calls that a call from the host may make.
pub(super) const CALLS: i32 = 200;
