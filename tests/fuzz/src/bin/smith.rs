//! The harness of [`weir_tests::targets::smith`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (weir_tests::targets::smith::TARGET.run)(data));
