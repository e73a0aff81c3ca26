//! The log of the processes that create containers. It is the shim's, which containerd reads from a FIFO in the bundle.

use log::{LevelFilter, Log, Metadata, Record};
use std::fs::File;
use std::io::Write;

/// The FIFO.
const LOG: &str = "log";

struct Fifo(File);

impl Log for Fifo {
    fn enabled(&self, metadata: &Metadata) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record) {
        if self.enabled(record.metadata()) {
            let text = format!("level={} msg={:?}\n", record.level().as_str().to_lowercase(), record.args().to_string());
            // Nobody reads while containerd restarts.
            let _ = (&self.0).write_all(text.as_bytes());
        }
    }

    fn flush(&self) {}
}

/// Lets this process, whose working directory is the bundle, and those that are forked from it write errors to the shim's log. Without
/// the FIFO there is no log.
pub(crate) fn begin() {
    if let Ok(file) = File::options().write(true).open(LOG)
        && log::set_boxed_logger(Box::new(Fifo(file))).is_ok()
    {
        log::set_max_level(LevelFilter::Error);
    }
}
