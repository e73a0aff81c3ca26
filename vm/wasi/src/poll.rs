//! `poll_oneoff`: waiting for clocks and descriptors.

use crate::ctx::WasiCtx;
use crate::descriptor::{Object, Table};
use crate::errno::Errno;
use crate::guest::{Buffer, Guest, element, offset};
use crate::offload::Blocking;
use crate::outcome::{Failure, Outcome};
use crate::rights;
use crate::stream::Stream;
use crate::sys::file;
use crate::sys::poll::{self, Interest, Waited};
use crate::sys::waiter::Wait;
use crate::time::{Clocks, MONOTONIC};
use std::future::poll_fn;
use std::io::{self, SeekFrom};
use std::os::fd::BorrowedFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const SUBSCRIPTION_SIZE: u32 = 48;
const EVENT_SIZE: u32 = 32;
const CLOCK: u8 = 0;
const FD_READ: u8 = 1;
const FD_WRITE: u8 = 2;
/// The time of a clock subscription is absolute, not relative to now.
const ABSOLUTE: u16 = 1;

/// The one bit of `eventrwflags`: the other end was closed.
const HANG_UP: u16 = 1;

struct Subscription {
    userdata: u64,
    kind: u8,
    what: What,
}

impl Subscription {
    fn reads(&self) -> bool {
        matches!(self.what, What::Readable(_))
    }
}

enum What {
    /// The clock by which programs wait reaches this time.
    Deadline(u64),
    /// The descriptor can be read.
    Readable(u32),
    /// The descriptor can be written.
    Writable(u32),
    /// The subscription is invalid.
    Wrong(Errno),
}

pub(crate) async fn poll_oneoff(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    subscriptions: u32,
    events: u32,
    count: u32,
    ready: u32,
) -> Outcome {
    let mut polling = Polling::begin(ctx, guest, subscriptions, events, count, ready)?;
    while let Some(time) = polling.look(ctx, guest)? {
        polling.wait(ctx, time).await?;
    }
    Ok(())
}

/// A call of `poll_oneoff`.
struct Polling {
    waiting: Vec<Subscription>,
    events: u32,
    ready: u32,
    /// Those of the embedder's streams that are ready.
    given: Vec<u32>,
}

impl Polling {
    /// Reads the subscriptions.
    fn begin(
        ctx: &mut WasiCtx,
        guest: &mut Guest<'_>,
        subscriptions: u32,
        events: u32,
        count: u32,
        ready: u32,
    ) -> Result<Polling, Failure> {
        if count == 0 {
            return Err(Errno::Inval.into());
        }
        // Checked before anything is allocated in proportion to `count`.
        let bytes = |size: u32| count.checked_mul(size).ok_or(Errno::Fault);
        guest.slice(Buffer { at: subscriptions, len: bytes(SUBSCRIPTION_SIZE)? })?;
        guest.slice(Buffer { at: events, len: bytes(EVENT_SIZE)? })?;

        let clocks = &mut ctx.clocks;
        let start = clocks.waited();
        let at = |i| subscriptions + i * SUBSCRIPTION_SIZE;
        let subscriptions = (0..count).map(|i| subscription(guest, clocks, at(i), start));
        let waiting: Vec<Subscription> = subscriptions.collect::<Result<_, _>>()?;
        if waiting.iter().any(|subscription| subscription.kind == CLOCK) {
            ctx.nondeterministic("poll_oneoff")?;
        }
        let mut polling = Polling { waiting, events, ready, given: Vec::new() };
        let fd = |subscription: &Subscription| match subscription.what {
            What::Readable(fd) | What::Writable(fd) => Some(fd),
            What::Deadline(_) | What::Wrong(_) => None,
        };
        let fds: Vec<u32> = polling.waiting.iter().filter_map(fd).collect();
        let mut cx = Context::from_waker(Waker::noop());
        for (fd, stream) in ctx.table.given(&fds) {
            if pin!(stream.ready()).poll(&mut cx).is_ready() {
                polling.given.push(fd);
            }
        }
        Ok(polling)
    }

    /// Writes the events that have happened. If there are none, returns the time at which that was so.
    fn look(&self, ctx: &mut WasiCtx, guest: &mut Guest<'_>) -> Result<Option<u64>, Failure> {
        let (clocks, mut happened) = (&mut ctx.clocks, 0);
        let time = clocks.waited();
        for subscription in &self.waiting {
            if let Some(event) = self.event(&ctx.table, subscription, time, clocks.are_virtual())? {
                guest.write(element(self.events, happened, EVENT_SIZE)?, &event)?;
                happened += 1;
            }
        }
        if happened == 0 {
            return Ok(Some(time));
        }
        guest.write_u32(self.ready, happened)?;
        Ok(None)
    }

    /// Waits, from this time on, until an event may have happened.
    async fn wait(&mut self, ctx: &mut WasiCtx, time: u64) -> Result<(), Failure> {
        let awaited = self.awaited(&ctx.table)?;
        if let Some(deadline) = awaited.deadline
            && ctx.clocks.skip_to(deadline)
        {
            return Ok(());
        }
        let timeout = awaited.deadline.map(|deadline| Duration::from_nanos(deadline.saturating_sub(time)));
        if ctx.blocking == Blocking::Here && awaited.given.is_empty() {
            let mut waited: Vec<Waited<'_>> = awaited.host.into_iter().map(|(fd, interest)| Waited::new(fd, interest)).collect();
            return Ok(wait_for(&mut waited, timeout)?);
        }
        let mut host = Wait::new(&awaited.host, timeout).map_err(Errno::from)?;
        let fds = awaited.given;
        let mut streams: Vec<_> = ctx.table.given(&fds).map(|(fd, stream)| (fd, Box::pin(stream.ready()))).collect();
        let given = &mut self.given;
        poll_fn(|cx| {
            let mut is_ready = streams.iter_mut().map(|(fd, ready)| ready.as_mut().poll(cx).is_ready().then_some(*fd));
            given.extend(is_ready.by_ref().flatten());
            if given.is_empty() { Pin::new(&mut host).poll(cx) } else { Poll::Ready(()) }
        })
        .await;
        Ok(())
    }

    /// Returns what to wait for.
    fn awaited<'t>(&self, table: &'t Table) -> Result<Awaited<'t>, Errno> {
        let mut awaited = Awaited::default();
        for subscription in &self.waiting {
            match subscription.what {
                What::Deadline(deadline) => {
                    awaited.deadline = Some(awaited.deadline.map_or(deadline, |other| other.min(deadline)))
                }
                What::Readable(fd) | What::Writable(fd) => {
                    let object = object(table, fd)?;
                    let interest = object.interest(subscription.reads())?;
                    match object.waited_for() {
                        Some(host) => awaited.host.push((host, interest)),
                        None => awaited.given.push(fd),
                    }
                }
                What::Wrong(_) => {}
            }
        }
        Ok(awaited)
    }

    /// Returns the event, if it has happened. With `virtual_time` the host's descriptors count as ready without a call to the host.
    fn event(
        &self,
        table: &Table,
        subscription: &Subscription,
        time: u64,
        virtual_time: bool,
    ) -> Result<Option<[u8; EVENT_SIZE as usize]>, Errno> {
        let outcome = match subscription.what {
            What::Deadline(deadline) if time < deadline => return Ok(None),
            What::Deadline(_) => Ok(Ready::default()),
            What::Readable(fd) | What::Writable(fd) => {
                let given = self.given.contains(&fd);
                match object(table, fd).map(|object| ready(object, subscription.reads(), given, virtual_time)) {
                    Ok(Ok(None)) => return Ok(None),
                    Ok(Ok(Some(ready))) => Ok(ready),
                    Ok(Err(errno)) | Err(errno) => Err(errno),
                }
            }
            What::Wrong(errno) => Err(errno),
        };
        let mut event = [0; EVENT_SIZE as usize];
        event[0..8].copy_from_slice(&subscription.userdata.to_le_bytes());
        event[10] = subscription.kind;
        match outcome {
            Ok(ready) => {
                event[16..24].copy_from_slice(&ready.bytes.to_le_bytes());
                event[24..26].copy_from_slice(&(if ready.hung_up { HANG_UP } else { 0 }).to_le_bytes());
            }
            Err(errno) => event[8..10].copy_from_slice(&(errno as u16).to_le_bytes()),
        }
        Ok(Some(event))
    }
}

/// What a program waits for.
#[derive(Default)]
struct Awaited<'t> {
    /// The earliest.
    deadline: Option<u64>,
    host: Vec<(BorrowedFd<'t>, Interest)>,
    /// The streams of the embedder.
    given: Vec<u32>,
}

fn subscription(guest: &Guest<'_>, clocks: &mut Clocks, at: u32, start: u64) -> Result<Subscription, Errno> {
    let kind = guest.read_u8(offset(at, 8)?)?;
    let what = match kind {
        CLOCK => {
            let clock = guest.read_u32(offset(at, 16)?)?;
            let time = guest.read_u64(offset(at, 24)?)?;
            let absolute = guest.read_u16(offset(at, 40)?)? & ABSOLUTE != 0;
            deadline(clocks, clock, time, absolute, start).map_or_else(What::Wrong, What::Deadline)
        }
        FD_READ => What::Readable(guest.read_u32(offset(at, 16)?)?),
        FD_WRITE => What::Writable(guest.read_u32(offset(at, 16)?)?),
        _ => return Err(Errno::Inval),
    };
    Ok(Subscription { userdata: guest.read_u64(at)?, kind, what })
}

/// Returns the deadline on the clock by which programs wait. Only the monotonic and the wall clock can be named.
fn deadline(clocks: &mut Clocks, clock: u32, time: u64, absolute: bool, start: u64) -> Result<u64, Errno> {
    if clock > MONOTONIC {
        return Err(Errno::Notsup);
    }
    let from_now = if absolute { time.saturating_sub(clocks.now(clock)?) } else { time };
    Ok(start.saturating_add(from_now))
}

/// The state of a ready descriptor.
#[derive(Default)]
struct Ready {
    /// Number of bytes that can be read, if known.
    bytes: u64,
    hung_up: bool,
}

/// Returns the object, if it can be waited for.
fn object(table: &Table, fd: u32) -> Result<&Object, Errno> {
    let descriptor = table.get(fd)?;
    descriptor.require(rights::POLL_FD_READWRITE)?;
    Ok(&descriptor.object)
}

/// Returns the state of an object if a call would return at once. `given` is whether a stream of the embedder is ready.
fn ready(object: &Object, read: bool, given: bool, virtual_time: bool) -> Result<Option<Ready>, Errno> {
    let interest = object.interest(read)?;
    if let Object::Stream(Stream::Input { .. } | Stream::Output { .. }) = object {
        // At least.
        return Ok(given.then_some(Ready { bytes: u64::from(read), hung_up: false }));
    }
    let Some(host) = object.waited_for() else {
        let bytes = if read { buffered(object)? } else { 0 };
        return Ok(Some(Ready { bytes, hung_up: false }));
    };
    if virtual_time {
        return Ok(Some(Ready { bytes: u64::from(read), hung_up: false }));
    }
    let mut waited = Waited::new(host, interest);
    wait_for(std::slice::from_mut(&mut waited), Some(Duration::ZERO))?;
    if !waited.happened() {
        return Ok(None);
    }
    // Objects that do not report a number, such as listening sockets, have at least something to read.
    let bytes = if read { poll::readable_bytes(host).unwrap_or(1) } else { 0 };
    Ok(Some(Ready { bytes, hung_up: waited.hung_up() }))
}

/// Returns how many bytes can be read from an object that never blocks.
fn buffered(object: &Object) -> Result<u64, Errno> {
    Ok(match object {
        Object::File(file, _) => match file::seek(file, SeekFrom::Current(0)) {
            Ok(at) => file.metadata()?.len().saturating_sub(at),
            // A device has no position.
            Err(_) => 1,
        },
        Object::Stream(_) | Object::Dir(_) | Object::Listener(_) | Object::Socket(_) => 0,
    })
}

/// A signal ends the wait early, as if nothing had happened.
fn wait_for(fds: &mut [Waited<'_>], timeout: Option<Duration>) -> io::Result<()> {
    match poll::wait(fds, timeout) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        result => result,
    }
}
