//! The harness of [`weir_tests::targets::wasi`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (weir_tests::targets::wasi::TARGET.run)(data));
