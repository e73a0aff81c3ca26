//! Progress on a terminal, of work that takes longer than a second.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long work may take before anything is shown.
const QUIET: Duration = Duration::from_secs(1);
/// The time between two updates.
const UPDATE: Duration = Duration::from_millis(250);
/// Goes to the beginning of the line, and deletes it.
const ERASE: &str = "\r\x1b[K";

/// Does `work`. If standard error is a terminal and `what` returns a text, a thread shows the text and the elapsed time in a line meanwhile.
/// The line is deleted at the end.
pub(crate) fn during<T>(what: impl FnOnce() -> Option<String>, work: impl FnOnce() -> T) -> T {
    let dumb = || std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    let Some(what) = stderr().is_terminal().then_some(()).filter(|()| !dumb()).and_then(|()| what()) else { return work() };
    let started = Instant::now();
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // Without a thread nothing is shown.
        let thread = std::thread::Builder::new().name("progress".into());
        let shown = thread.spawn_scoped(scope, move || show(&mut stderr(), &what, started, QUIET, &is_done));
        let result = work();
        drop((done, shown));
        result
    })
}

/// As [`during`], for work that prints as it goes on: what standard output shows on a terminal is progress enough.
pub(crate) fn while_printing<T>(what: impl FnOnce() -> Option<String>, work: impl FnOnce() -> T) -> T {
    if stdout().is_terminal() { work() } else { during(what, work) }
}

/// Shows the line until the work is done, from `quiet` on.
fn show(out: &mut impl Write, what: &str, started: Instant, quiet: Duration, is_done: &mpsc::Receiver<()>) {
    let mut wait = quiet;
    let mut is_shown = false;
    while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        // A terminal that does not take it makes no difference to the work.
        let _ = write!(out, "{ERASE}weir: {what}: {:.0} s", started.elapsed().as_secs_f64());
        (wait, is_shown) = (UPDATE, true);
    }
    if is_shown {
        let _ = write!(out, "{ERASE}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends the work at the first line.
    struct Screen(Vec<u8>, Option<mpsc::Sender<()>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.extend_from_slice(bytes);
            self.1 = None;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_line_is_shown_and_deleted() {
        let (done, is_done) = mpsc::channel();
        let mut screen = Screen(Vec::new(), Some(done));
        let started = Instant::now().checked_sub(Duration::from_secs(3)).expect("the clock has run");
        show(&mut screen, "loading x", started, Duration::from_millis(1), &is_done);
        assert_eq!(String::from_utf8(screen.0).expect("text"), "\r\x1b[Kweir: loading x: 3 s\r\x1b[K");
    }

    #[test]
    fn short_work_shows_nothing() {
        let (done, is_done) = mpsc::channel();
        drop(done);
        let mut screen = Screen(Vec::new(), None);
        show(&mut screen, "loading x", Instant::now(), QUIET, &is_done);
        assert!(screen.0.is_empty());
        assert_eq!(during(|| None, || 5), 5);
    }
}
