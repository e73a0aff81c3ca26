//! The harness of [`weir_tests::targets::stored`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (weir_tests::targets::stored::TARGET.run)(data));
