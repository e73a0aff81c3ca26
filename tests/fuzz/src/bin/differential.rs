//! The harness of [`weir_tests::targets::differential`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (weir_tests::targets::differential::TARGET.run)(data));
