//! The messages of wasmtime, which Weir's are compared with: see `tests/tests/messages`. With `WEIR_BLESS=1` they are written down.

extern crate wasmtime;

#[path = "../../../../tests/tests/messages/program.rs"]
#[allow(unsafe_code, reason = "a module is deserialised")]
mod program;

use std::path::Path;

#[test]
fn wasmtimes_are_as_they_were() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/tests/messages/expected.txt");
    let text = program::transcript(&|_| ()).unwrap();
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (i, (line, expected)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, expected, "line {} of expected.txt", i + 1);
    }
    assert_eq!(text.len(), expected.len());
}
