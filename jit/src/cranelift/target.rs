//! The machine for which Cranelift compiles: this one, if it is an x86-64.

use super::unsupported::unsupported;
use crate::request::Refusal;
use cranelift_codegen::isa::{self, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use std::sync::OnceLock;

/// The target, with or without Cranelift's verifier; each is made once.
pub(super) fn isa(verify: bool) -> Result<&'static dyn TargetIsa, Refusal> {
    static TARGETS: [OnceLock<Result<OwnedTargetIsa, Refusal>>; 2] = [const { OnceLock::new() }; 2];
    TARGETS[usize::from(verify)].get_or_init(|| make(verify)).as_ref().map(|isa| &**isa).map_err(Refusal::clone)
}

fn make(verify: bool) -> Result<OwnedTargetIsa, Refusal> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        // r15 is the instance; rbp is always a frame pointer.
        ("enable_pinned_reg", "true"),
        ("preserve_frame_pointers", "true"),
        // Frames are small, and the translation emits its own stack check.
        ("enable_probestack", "false"),
        ("unwind_info", "true"),
        ("is_pic", "false"),
        ("enable_verifier", if verify { "true" } else { "false" }),
    ] {
        flags.set(name, value).expect("a shared setting of Cranelift");
    }
    let mut builder = isa::lookup_by_name("x86_64").map_err(|error| unsupported(error.to_string()))?;
    for (name, present) in features() {
        if present {
            builder.enable(name).expect("an x86-64 setting of Cranelift");
        }
    }
    builder.finish(settings::Flags::new(flags)).map_err(|error| unsupported(error.to_string()))
}

/// Processor features that Cranelift can use, and whether this processor has them.
#[cfg(target_arch = "x86_64")]
fn features() -> Vec<(&'static str, bool)> {
    macro_rules! detect {
        ($($name:literal $feature:tt,)*) => {
            vec![$(($name, std::is_x86_feature_detected!($feature)),)*]
        };
    }
    detect! {
        "has_sse3" "sse3",
        "has_ssse3" "ssse3",
        "has_cmpxchg16b" "cmpxchg16b",
        "has_sse41" "sse4.1",
        "has_sse42" "sse4.2",
        "has_popcnt" "popcnt",
        "has_avx" "avx",
        "has_avx2" "avx2",
        "has_fma" "fma",
        "has_bmi1" "bmi1",
        "has_bmi2" "bmi2",
        "has_lzcnt" "lzcnt",
    }
}

/// On other processors there is no x86-64 target.
#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<(&'static str, bool)> {
    Vec::new()
}
