//! The host's error numbers.

use rustix::io::Errno;
use std::io;

/// An error number of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HostErrno(i32);

macro_rules! numbers {
    ($($name:ident),*) => {
        impl HostErrno {
            $(pub const $name: HostErrno = HostErrno(Errno::$name.raw_os_error());)*
        }
    };
}

numbers! {
    TOOBIG, ACCESS, ADDRINUSE, ADDRNOTAVAIL, AFNOSUPPORT, AGAIN, ALREADY, BADF, BADMSG, BUSY, CANCELED, CHILD, CONNABORTED, CONNREFUSED, CONNRESET, DEADLK, DESTADDRREQ, DOM, DQUOT, EXIST, FAULT, FBIG, HOSTUNREACH, IDRM, ILSEQ, INPROGRESS, INTR, INVAL, IO, ISCONN, ISDIR, LOOP, MFILE, MLINK, MSGSIZE, MULTIHOP, NAMETOOLONG, NETDOWN, NETRESET, NETUNREACH, NFILE, NOBUFS, NODEV, NOENT, NOEXEC, NOLCK, NOLINK, NOMEM, NOMSG, NOPROTOOPT, NOSPC, NOSYS, NOTCONN, NOTDIR, NOTEMPTY, NOTRECOVERABLE, NOTSOCK, OPNOTSUPP, NOTTY, NXIO, OVERFLOW, OWNERDEAD, PERM, PIPE, PROTO, PROTONOSUPPORT, PROTOTYPE, RANGE, ROFS, SPIPE, SRCH, STALE, TIMEDOUT, TXTBSY, XDEV
}

/// Returns the number of an error that came from the host.
pub(crate) fn number(error: &io::Error) -> Option<HostErrno> {
    error.raw_os_error().map(HostErrno)
}

#[cfg(test)]
impl HostErrno {
    /// A number without a counterpart in WASI.
    pub const BADRQC: HostErrno = HostErrno(Errno::BADRQC.raw_os_error());

    /// Returns the error with this number.
    pub fn error(self) -> io::Error {
        io::Error::from_raw_os_error(self.0)
    }
}
