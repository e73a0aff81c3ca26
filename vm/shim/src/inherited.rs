//! Descriptors that a guest's process inherits from the zygote, and that are not the guest's: those with which shim and zygotes talk, and
//! the log. A native program loses them when it is executed.

use log::LevelFilter;
use nix::sys::socket::{UnixAddr, getpeername};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// More than the descriptors of a process that creates a container.
const MAX_DESCRIPTORS: RawFd = 1024;

/// The descriptors of a process but its standard streams.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Inherited(Vec<RawFd>);

impl Inherited {
    /// Lists those that are open now but `kept`, in the process that will be the parent.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn list(kept: &[&dyn AsRawFd]) -> io::Result<Inherited> {
        let mut found: Vec<RawFd> = Vec::new();
        for entry in std::fs::read_dir("/proc/self/fd")? {
            let number: Option<RawFd> = entry?.file_name().to_str().and_then(|name| name.parse().ok());
            found.extend(number.filter(|number| *number > 2 && !kept.iter().any(|kept| kept.as_raw_fd() == *number)));
        }
        // The directory that was read is in its own list, and closed by now.
        let is_open = |descriptor: &RawFd| std::fs::exists(format!("/proc/self/fd/{descriptor}")).unwrap_or(false);
        found.retain(is_open);
        Ok(Inherited(found))
    }

    /// Closes them in the guest's process, which logs nothing from then on.
    ///
    /// # Safety
    /// The process is forked from the one that made the list, and neither has closed one of them since. Nothing that owns one of them
    /// is used again in this process.
    pub unsafe fn close(&self) {
        log::set_max_level(LevelFilter::Off);
        for descriptor in &self.0 {
            // SAFETY: it was open when the list was made, and is by the contract, so its number is that of the same file. Nobody uses
            // it again.
            unsafe { rustix::io::close(*descriptor) };
        }
    }
}

/// Closes connections to services of the machine. libcontainer leaves one to systemd open if that makes the control groups: it would have
/// root's rights. Its own channels are pairs of sockets, which have no names.
///
/// # Safety
/// Nothing that owns such a connection is used again in this process.
pub(crate) unsafe fn close_connections() {
    for descriptor in 3..MAX_DESCRIPTORS {
        let has_name = |peer: UnixAddr| peer.path().is_some() || peer.as_abstract().is_some();
        if getpeername::<UnixAddr>(descriptor).is_ok_and(has_name) {
            // SAFETY: it is open, and nobody uses it again.
            unsafe { rustix::io::close(descriptor) };
        }
    }
}
