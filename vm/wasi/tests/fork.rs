//! A process forks after its guests have used the threads of WASI, which the child does not have. Its own guests start new ones.

#![cfg(all(target_os = "linux", feature = "async"))]

mod common;
#[path = "../../tests/common/process.rs"]
mod process;

use common::{Guest, SUCCESS, scratch};
use process::{forked, is_alone};
use std::fs;
use std::path::Path;
use weir::ForkedEngine;
use weir_wasi::{FsPerms, WasiCtxBuilder};

/// Reads a file, on a thread of the pool, and waits for a time, which the waiter's thread does.
fn uses_both_threads(folder: &Path) -> Guest {
    let mut ctx = WasiCtxBuilder::new();
    ctx.preopened_dir(folder, "/", FsPerms::ReadOnly).expect("it is there");
    let mut guest = Guest::suspended(ctx);
    let file = guest.open(3, "text", 0, [2, 0], 0).expect("it is there");
    assert_eq!(guest.take(file, 10, None), Ok(b"bytes".to_vec()));
    // A subscription to the monotonic clock, for a millisecond.
    guest.write(8192, &[0; 48]);
    guest.write_words(8208, &[1]);
    guest.write_words(8216, &[1_000_000]);
    assert_eq!(guest.call("poll_oneoff", &[8192, 8300, 1, 8400]), SUCCESS);
    guest
}

#[test]
fn guests_of_a_child_have_threads_of_their_own() {
    if !is_alone("guests_of_a_child_have_threads_of_their_own") {
        return;
    }
    let folder = scratch("fork");
    fs::write(folder.join("text"), "bytes").expect("it can be written");
    // A child of a process without such threads, and one of a process with them.
    forked(|| drop(uses_both_threads(&folder)));
    let mut guest = uses_both_threads(&folder);
    for _ in 0..3 {
        forked(|| {
            let error = guest.try_call("sched_yield", &[]).expect_err("its engine is the parent's");
            assert_eq!(error.downcast_ref(), Some(&ForkedEngine));
            let own = uses_both_threads(&folder);
            forked(|| drop(uses_both_threads(&folder)));
            drop(own);
        });
        assert_eq!(guest.call("sched_yield", &[]), SUCCESS);
    }
    drop(uses_both_threads(&folder));
}
