//! The uses of addresses by programs that can create sockets, which those of preview 1 cannot.

/// The use of a socket's address, for [`WasiCtxBuilder::socket_addr_check`](crate::WasiCtxBuilder::socket_addr_check).
#[derive(Clone, Copy, Debug)]
pub enum SocketAddrUse {
    /// A TCP socket is bound to it.
    TcpBind,
    /// A TCP socket listens on it.
    TcpListen,
    /// A TCP socket accepts a connection from it.
    TcpAccept,
    /// A TCP socket connects to it.
    TcpConnect,
    /// A UDP socket is bound to it.
    UdpBind,
    /// A UDP socket sends a message to it.
    UdpSend,
    /// A UDP socket receives a message from it.
    UdpReceive,
}
