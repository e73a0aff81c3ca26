//! The error numbers of WASI preview 1.

macro_rules! errnos {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal $(<- $host:ident)*;)*) => {
        /// Why a call failed: what the guest gets as the function's result.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub(crate) enum Errno {
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl From<rustix::io::Errno> for Errno {
            fn from(host: rustix::io::Errno) -> Errno {
                match host {
                    $($(rustix::io::Errno::$host => Errno::$name,)*)*
                    _ => Errno::Io,
                }
            }
        }
    };
}

errnos! {
    /// The descriptor would block and must not.
    Again = 6 <- AGAIN;
    /// No such descriptor.
    Badf = 8 <- BADF;
    /// A pointer reaches past the guest's memory.
    Fault = 21 <- FAULT;
    /// Interrupted by a signal.
    Intr = 27 <- INTR;
    /// An argument has no meaning here.
    Inval = 28 <- INVAL;
    /// The host failed.
    Io = 29 <- IO;
    /// The file would be too large.
    Fbig = 22 <- FBIG;
    /// The disk is full.
    Nospc = 51 <- NOSPC;
    /// The function is not provided.
    Nosys = 52;
    /// The descriptor is not a directory.
    Notdir = 54 <- NOTDIR;
    /// The descriptor is not a socket.
    Notsock = 57 <- NOTSOCK;
    /// Not possible with this descriptor.
    Notsup = 58 <- NOTSUP;
    /// A result does not fit its type.
    Overflow = 61 <- OVERFLOW;
    /// The host does not permit it.
    Perm = 63 <- PERM;
    /// The reader of the pipe is gone.
    Pipe = 64 <- PIPE;
    /// A stream has no position.
    Spipe = 70 <- SPIPE;
    /// More rights were asked for than there are.
    Notcapable = 76;
}
