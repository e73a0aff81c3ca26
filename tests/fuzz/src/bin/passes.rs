//! The harness of [`weir_tests::targets::passes`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (weir_tests::targets::passes::TARGET.run)(data));
