//! The harness of [`weir_tests::targets::profile`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (weir_tests::targets::profile::TARGET.run)(data));
