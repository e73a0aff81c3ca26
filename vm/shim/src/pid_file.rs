//! The file to which libcontainer writes the number of a container's first process: here a pipe, from which this process learns that its
//! number is known.
//!
//! libcontainer forks an *intermediate* process, which forks the first one. Up to version 0.6 both report to the creator over one channel:
//! the intermediate one the number, the first one that it is ready. The creator takes these messages in this order only. But on a busy
//! machine the first process may be ready before its parent has run again: one run of all cases in twelve had such a failure. So the first
//! process waits until the number has been written. Version 0.7 has a channel for each; it needs version 0.9 of containerd's library, with
//! which containerd waits until the shim has been loaded.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// The time in which a number is written that will be. libcontainer goes on if it cannot write it.
const PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
/// How libcontainer says that a message came before the number, around that message's name.
const OVERTAKEN: [&str; 2] = ["failed to create container: received unexpected message: ", ", expected: IntermediateReady"];

/// The pipe.
#[derive(Debug)]
pub(crate) struct PidFile {
    reader: PipeReader,
    writer: PipeWriter,
}

impl PidFile {
    /// Makes a pipe, in the process that creates the container. It must live until the container is created.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new() -> io::Result<PidFile> {
        let (reader, writer) = io::pipe()?;
        Ok(PidFile { reader, writer })
    }

    /// The path of its end for writing, in the process that creates the container.
    pub fn path(&self) -> PathBuf {
        // libcontainer resolves the links of a path if something is there; a pipe has no other name. Of a path through what does not exist
        // it removes the `..` only.
        format!("/proc/self/fd/none/../{}", self.writer.as_raw_fd()).into()
    }

    /// Waits until the number is written, in the container's first process. Returns after a while in any case.
    ///
    /// # Errors
    /// The creator has ended before.
    pub fn wait(self) -> io::Result<()> {
        self.wait_for(&PATIENCE)
    }

    fn wait_for(self, patience: &Timespec) -> io::Result<()> {
        let PidFile { mut reader, writer } = self;
        // Otherwise this process would wait for itself.
        drop(writer);
        // An error is that of a seccomp filter.
        let has_answer = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(patience)).is_ok_and(|ready| ready > 0);
        if has_answer { reader.read_exact(&mut [0]) } else { Ok(()) }
    }
}

/// Whether this error of libcontainer's says that a container's first process reported before its number did. That of a container with hooks
/// reports before it can wait. No hook was executed then, so that the creation may be tried again.
pub(crate) fn was_overtaken(message: &str) -> bool {
    let rest = message.strip_prefix(OVERTAKEN[0]).and_then(|rest| rest.split_once(OVERTAKEN[1]));
    // A report of a failure is no bare name: it has the image's words.
    rest.is_some_and(|(name, _)| name.chars().all(char::is_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use libcontainer::utils::PathBufExt;

    #[test]
    fn the_number_is_written_by_path() {
        let file = PidFile::new().unwrap();
        let path = file.path().canonicalize_safely().unwrap();
        std::fs::write(path, "7").unwrap();
        file.wait().unwrap();
    }

    #[test]
    fn the_end_of_the_creator_ends_the_wait() {
        let file = PidFile::new().unwrap();
        assert_eq!(file.wait().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_number_that_is_never_written_is_not_awaited() {
        let file = PidFile::new().unwrap();
        let _creator = file.writer.try_clone().unwrap();
        file.wait_for(&Timespec { tv_sec: 0, tv_nsec: 1 }).unwrap();
    }

    #[test]
    fn only_a_bare_message_has_overtaken() {
        let begin = "failed to create container: received unexpected message: ";
        assert!(was_overtaken(&format!("{begin}HookRequest, expected: IntermediateReady(0)")));
        assert!(was_overtaken(&format!("{begin}InitReady, expected: IntermediateReady(0). error during cleanup: io")));
        assert!(!was_overtaken(&format!("{begin}ExecFailed(\"a, expected: IntermediateReady\"), expected: HookRequest")));
        let refused = format!("failed to create container: exec process failed with error {begin}a, expected: IntermediateReady");
        assert!(!was_overtaken(&refused));
    }
}
