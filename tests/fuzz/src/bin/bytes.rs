//! The harness of [`weir_tests::targets::bytes`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (weir_tests::targets::bytes::TARGET.run)(data));
