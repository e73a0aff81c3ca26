//! The processors for which the back end emits code.

use crate::request::{Backend, Refusal};

/// Whether this processor can execute the emitted code.
///
/// # Errors
/// [`Refusal::Unsupported`] if not.
pub fn check() -> Result<(), Refusal> {
    #[cfg(target_arch = "x86_64")]
    let supported = is_x86_feature_detected!("avx")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    #[cfg(not(target_arch = "x86_64"))]
    let supported = false;
    match supported {
        true => Ok(()),
        false => Err(Refusal::Unsupported { backend: Backend::Native, what: "a processor below x86-64-v3".into() }),
    }
}

/// Whether the processor has the additional instructions for vectors.
pub fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    let supported = is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let supported = false;
    supported
}
