//! Tests in processes of their own. Tests of other packages include this file, too.

#![allow(dead_code, reason = "not every test forks")]

use std::process::Command;

/// Runs a test in a process of its own: no other test has locked or mapped anything meanwhile. The standard library captures no
/// backtraces there; that takes a lock, and looks at the code of all frames, some of which a forked child does not have. Returns whether this is
/// that process.
pub fn is_alone(test: &str) -> bool {
    const ALONE: &str = "WEIR_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args([test, "--exact", "--nocapture"]).env(ALONE, "1").env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
    assert!(alone.status().unwrap().success(), "the test fails in a process of its own");
    false
}

/// Calls `child` in a forked process, and waits for its end.
#[cfg(target_os = "linux")]
pub fn forked(child: impl FnOnce()) {
    // SAFETY: the child ends here, and of what other threads may have locked it uses the allocator only, which the C library unlocks.
    let process = unsafe { libc::fork() };
    assert!(process >= 0, "{}", std::io::Error::last_os_error());
    if process == 0 {
        // SAFETY: whatever waits for a lock is ended by a signal.
        unsafe { libc::alarm(60) };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
        if let Err(panic) = &ended {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "the child panicked".into());
            // SAFETY: the bytes are `text`.
            unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
        }
        // SAFETY: nothing of this process is used any more.
        unsafe { libc::_exit(i32::from(ended.is_err())) };
    }
    let mut status = 0;
    // SAFETY: it fills in `status`.
    assert_eq!(unsafe { libc::waitpid(process, &mut status, 0) }, process);
    assert_eq!(status, 0, "the child failed, or waited for a lock");
}
