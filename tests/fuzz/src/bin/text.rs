//! The harness of [`weir_tests::targets::text`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (weir_tests::targets::text::TARGET.run)(data));
