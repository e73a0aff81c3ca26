//! The operating system.

/// Bytes that the arguments and the environment take of the first thread's stack, at most.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
const ARGUMENTS: u64 = 6 << 20;

/// Lets the stack of the process's first thread grow to `bytes`, which are at most 64 MiB. Returns whether it may.
///
/// The system keeps 128 MiB free below that stack, whatever its limit was when the process began. It compares the size with
/// the limit only when the stack grows.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
pub(crate) fn grow_stack(bytes: usize) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let bytes = bytes as u64 + ARGUMENTS;
    let limit = getrlimit(Resource::Stack);
    // No limit is the highest one.
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= bytes);
    enough(limit.current) || enough(limit.maximum) && setrlimit(Resource::Stack, Rlimit { current: Some(bytes), ..limit }).is_ok()
}

/// Other systems fix the size of that stack, or other C libraries do not say how far it may grow.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
pub(crate) fn grow_stack(_bytes: usize) -> bool {
    false
}
