//! `sock_*`: connections on preopened sockets. The program cannot create sockets.

use crate::ctx::WasiCtx;
use crate::descriptor::{DESCRIPTOR, Descriptor, Object, Origin, flags};
use crate::errno::Errno;
use crate::file::{fd_write, fill_first, first};
use crate::guest::{Buffer, Guest};
use crate::offload::Blocking;
use crate::outcome::Outcome;
use crate::rights;
use crate::sys::poll::Interest;
use crate::sys::socket::{self, Receive};
use crate::sys::waiter::Wait;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Bits of `riflags`.
const PEEK: u32 = 1;
const WAIT_ALL: u32 = 2;

/// Bits of `sdflags`.
const RECEIVING: u32 = 1;
const SENDING: u32 = 2;

/// Returns the connected socket, for an operation that needs this right.
fn connected(ctx: &WasiCtx, fd: u32, right: u64) -> Result<&Arc<OwnedFd>, Errno> {
    let descriptor = ctx.table.get(fd)?;
    match &descriptor.object {
        Object::Socket(socket) => descriptor.require(right).map(|()| socket),
        Object::Listener(_) => Err(Errno::Notconn),
        Object::Stream(_) | Object::File(..) | Object::Dir(_) => Err(Errno::Notsock),
    }
}

/// The only flag of a connection is `nonblock`.
pub(crate) async fn sock_accept(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, fd_flags: u32, accepted: u32) -> Outcome {
    let descriptor = ctx.table.get(fd)?;
    let listener = match &descriptor.object {
        Object::Listener(listener) => listener,
        Object::Socket(_) => return Err(Errno::Inval.into()),
        Object::Stream(_) | Object::File(..) | Object::Dir(_) => return Err(Errno::Notsock.into()),
    };
    descriptor.require(rights::SOCK_ACCEPT)?;
    let nonblocking = match u16::try_from(fd_flags) {
        Ok(0) => false,
        Ok(flags::NONBLOCK) => true,
        _ => return Err(Errno::Inval.into()),
    };
    guest.check_u32(accepted)?;
    ctx.reserve(DESCRIPTOR)?;
    let listener = Arc::clone(listener);
    let (inheriting, may_wait) = (descriptor.inheriting, descriptor.flags & flags::NONBLOCK == 0);
    if ctx.blocking == Blocking::Elsewhere && may_wait {
        until_readable(&listener).await?;
    }
    // Another process may have accepted the connection meanwhile.
    let connection = ctx.blocking.call(move || socket::accept(&listener, nonblocking)).await?;
    let connection = Descriptor::new(Object::Socket(Arc::new(connection)));
    let rights = connection.rights & inheriting;
    let number = ctx.table.insert(Descriptor {
        rights,
        flags: fd_flags as u16,
        origin: Origin::Opened("a connection".into()),
        ..connection
    })?;
    Ok(guest.write_u32(accepted, number)?)
}

/// Fills only the first buffer that is not empty, also with `waitall`.
#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) async fn sock_recv(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    flags: u32,
    received: u32,
    out_flags: u32,
) -> Outcome {
    let socket = Arc::clone(connected(ctx, fd, rights::FD_READ)?);
    if flags & !(PEEK | WAIT_ALL) != 0 {
        return Err(Errno::Inval.into());
    }
    guest.check_u32(received)?;
    guest.slice(Buffer { at: out_flags, len: 2 })?;
    let how = Receive { peek: flags & PEEK != 0, wait_all: flags & WAIT_ALL != 0, wait: true };
    let buffers = guest.buffers(buffers, count)?;
    let may_wait = ctx.table.get(fd)?.flags & flags::NONBLOCK == 0;
    let bytes = match ctx.blocking {
        Blocking::Here => fill_first(guest, &buffers, |into| Ok(socket::receive(&socket, into, how)?))?,
        Blocking::Elsewhere => match first(&buffers) {
            Some(buffer) => receive_suspended(&socket, guest.slice_mut(buffer)?, how, may_wait).await? as u32,
            None => 0,
        },
    };
    guest.write_u32(received, bytes)?;
    // A stream has no messages that could be truncated.
    Ok(guest.write(out_flags, &0u16.to_le_bytes())?)
}

/// Receives while the guest is suspended. If `how` asks for all, they are received part by part.
async fn receive_suspended(socket: &OwnedFd, into: &mut [u8], how: Receive, may_wait: bool) -> io::Result<usize> {
    let mut total = 0;
    loop {
        let now = Receive { wait_all: false, wait: false, ..how };
        match socket::receive(socket, &mut into[total..], now) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && may_wait => until_readable(socket).await?,
            Err(_) if total > 0 => return Ok(total),
            Ok(count) if how.wait_all && !how.peek && count > 0 && total + count < into.len() => total += count,
            result => return result.map(|count| total + count),
        }
    }
}

async fn until_readable(socket: &OwnedFd) -> io::Result<()> {
    Wait::new(&[(socket.as_fd(), Interest::Read)], None)?.await;
    Ok(())
}

/// No flags are defined.
pub(crate) async fn sock_send(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    flags: u32,
    sent: u32,
) -> Outcome {
    connected(ctx, fd, rights::FD_WRITE)?;
    if flags != 0 {
        return Err(Errno::Inval.into());
    }
    fd_write(ctx, guest, fd, buffers, count, sent).await
}

pub(crate) fn sock_shutdown(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, how: u32) -> Outcome {
    let socket = connected(ctx, fd, rights::SOCK_SHUTDOWN)?;
    let how = match how {
        RECEIVING => Shutdown::Read,
        SENDING => Shutdown::Write,
        both if both == RECEIVING | SENDING => Shutdown::Both,
        _ => return Err(Errno::Inval.into()),
    };
    Ok(socket::shutdown(socket, how)?)
}
