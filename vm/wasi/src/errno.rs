//! The error numbers of WASI preview 1, and the corresponding ones of the host.

use crate::sys::errno::{HostErrno, number};
use std::io;

macro_rules! errnos {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal $(<- $host:ident)?;)*) => {
        /// The reason of a failed call, which the function returns to the guest.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub(crate) enum Errno {
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl From<HostErrno> for Errno {
            fn from(host: HostErrno) -> Errno {
                match host {
                    $($(HostErrno::$host => Errno::$name,)?)*
                    _ => Errno::Io,
                }
            }
        }
    };
}

errnos! {
    Toobig = 1 <- TOOBIG;
    Acces = 2 <- ACCESS;
    Addrinuse = 3 <- ADDRINUSE;
    Addrnotavail = 4 <- ADDRNOTAVAIL;
    Afnosupport = 5 <- AFNOSUPPORT;
    /// The descriptor would block and must not.
    Again = 6 <- AGAIN;
    Already = 7 <- ALREADY;
    /// No such descriptor, or not opened for this.
    Badf = 8 <- BADF;
    Badmsg = 9 <- BADMSG;
    Busy = 10 <- BUSY;
    Canceled = 11 <- CANCELED;
    Child = 12 <- CHILD;
    Connaborted = 13 <- CONNABORTED;
    Connrefused = 14 <- CONNREFUSED;
    Connreset = 15 <- CONNRESET;
    Deadlk = 16 <- DEADLK;
    Destaddrreq = 17 <- DESTADDRREQ;
    Dom = 18 <- DOM;
    Dquot = 19 <- DQUOT;
    Exist = 20 <- EXIST;
    /// A pointer reaches past the guest's memory.
    Fault = 21 <- FAULT;
    /// The file would be too large.
    Fbig = 22 <- FBIG;
    Hostunreach = 23 <- HOSTUNREACH;
    Idrm = 24 <- IDRM;
    /// A path is not UTF-8.
    Ilseq = 25 <- ILSEQ;
    Inprogress = 26 <- INPROGRESS;
    Intr = 27 <- INTR;
    /// An argument has no meaning here.
    Inval = 28 <- INVAL;
    /// The host failed, or in a way that has no number here.
    Io = 29 <- IO;
    Isconn = 30 <- ISCONN;
    Isdir = 31 <- ISDIR;
    Loop = 32 <- LOOP;
    Mfile = 33 <- MFILE;
    Mlink = 34 <- MLINK;
    Msgsize = 35 <- MSGSIZE;
    Multihop = 36 <- MULTIHOP;
    Nametoolong = 37 <- NAMETOOLONG;
    Netdown = 38 <- NETDOWN;
    Netreset = 39 <- NETRESET;
    Netunreach = 40 <- NETUNREACH;
    Nfile = 41 <- NFILE;
    Nobufs = 42 <- NOBUFS;
    Nodev = 43 <- NODEV;
    Noent = 44 <- NOENT;
    Noexec = 45 <- NOEXEC;
    Nolck = 46 <- NOLCK;
    Nolink = 47 <- NOLINK;
    Nomem = 48 <- NOMEM;
    Nomsg = 49 <- NOMSG;
    Noprotoopt = 50 <- NOPROTOOPT;
    /// The disk is full.
    Nospc = 51 <- NOSPC;
    Nosys = 52 <- NOSYS;
    Notconn = 53 <- NOTCONN;
    Notdir = 54 <- NOTDIR;
    Notempty = 55 <- NOTEMPTY;
    Notrecoverable = 56 <- NOTRECOVERABLE;
    Notsock = 57 <- NOTSOCK;
    /// Not possible with this descriptor.
    Notsup = 58 <- OPNOTSUPP;
    Notty = 59 <- NOTTY;
    Nxio = 60 <- NXIO;
    /// A result does not fit its type.
    Overflow = 61 <- OVERFLOW;
    Ownerdead = 62 <- OWNERDEAD;
    /// The host does not permit it, or a path leads out of its directory.
    Perm = 63 <- PERM;
    /// The reader of the pipe is gone.
    Pipe = 64 <- PIPE;
    Proto = 65 <- PROTO;
    Protonosupport = 66 <- PROTONOSUPPORT;
    Prototype = 67 <- PROTOTYPE;
    Range = 68 <- RANGE;
    Rofs = 69 <- ROFS;
    /// A stream has no position.
    Spipe = 70 <- SPIPE;
    Srch = 71 <- SRCH;
    Stale = 72 <- STALE;
    Timedout = 73 <- TIMEDOUT;
    Txtbsy = 74 <- TXTBSY;
    Xdev = 75 <- XDEV;
    /// The descriptor lacks the right.
    Notcapable = 76;
}

impl From<io::Error> for Errno {
    /// An error without a number is cap-std's own, of a path that leads outside or that cannot be a path, or that of a stream of the
    /// embedder.
    fn from(error: io::Error) -> Errno {
        match (number(&error), error.kind()) {
            (Some(host), _) => host.into(),
            (None, io::ErrorKind::PermissionDenied) => Errno::Perm,
            (None, io::ErrorKind::NotFound) => Errno::Noent,
            (None, io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Errno::Inval,
            (None, io::ErrorKind::Unsupported) => Errno::Notsup,
            (None, io::ErrorKind::AlreadyExists) => Errno::Exist,
            (None, io::ErrorKind::BrokenPipe) => Errno::Pipe,
            (None, io::ErrorKind::Interrupted) => Errno::Intr,
            (None, io::ErrorKind::StorageFull) => Errno::Nospc,
            (None, io::ErrorKind::WouldBlock) => Errno::Again,
            (None, _) => Errno::Io,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_errors_keep_their_meaning() {
        assert_eq!(Errno::from(HostErrno::NOTEMPTY) as u16, 55);
        assert_eq!(Errno::from(HostErrno::LOOP.error()), Errno::Loop);
        assert_eq!(Errno::from(io::Error::new(io::ErrorKind::PermissionDenied, "outside")), Errno::Perm);
        assert_eq!(Errno::from(HostErrno::BADRQC), Errno::Io, "without a number of its own");
    }
}
