//! The harness of [`weir_tests::targets::ssa`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (weir_tests::targets::ssa::TARGET.run)(data));
