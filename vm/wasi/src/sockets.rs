//! The uses of addresses by programs that can create sockets, which those of preview 1 cannot.

/// The use of a socket's address, for [`WasiCtxBuilder::socket_addr_check`](crate::WasiCtxBuilder::socket_addr_check).
#[derive(Clone, Copy, Debug)]
pub enum SocketAddrUse {
    /// A TCP socket is bound to it.
    TcpBind,
    /// A TCP socket connects to it.
    TcpConnect,
    /// A UDP socket is bound to it.
    UdpBind,
    /// A UDP socket sends to it and receives from it alone.
    UdpConnect,
    /// A UDP socket sends one message to it.
    UdpOutgoingDatagram,
}
