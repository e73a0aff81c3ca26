//! Weir and wasmtime in one process, in which Weir has installed its handlers of signals first.

mod together;

#[test]
fn both_run_and_trap() {
    together::test(false);
}
