//! The harness of [`weir_tests::targets::machine`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (weir_tests::targets::machine::TARGET.run)(data));
