//! `poll_oneoff`: waiting for clocks and descriptors.

use crate::Answer;
use crate::clock::{MONOTONIC, now};
use crate::ctx::WasiCtx;
use crate::errno::Errno;
use crate::fd::rights;
use crate::guest::{Buffer, Guest, element, offset};
use rustix::event::Timespec;
use std::time::Duration;

const SUBSCRIPTION_SIZE: u32 = 48;
const EVENT_SIZE: u32 = 32;
const CLOCK: u8 = 0;
const FD_READ: u8 = 1;
const FD_WRITE: u8 = 2;
/// The time of a clock subscription is one of the clock, not a distance from now.
const ABSOLUTE: u16 = 1;

struct Subscription {
    userdata: u64,
    kind: u8,
    what: What,
}

enum What {
    /// The monotonic clock reaches this.
    Deadline(u64),
    /// The descriptor can be read.
    Readable(u32),
    /// The descriptor can be written.
    Writable(u32),
    /// It can't be waited for.
    Wrong(Errno),
}

pub(crate) fn poll_oneoff(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    subscriptions: u32,
    events: u32,
    count: u32,
    ready: u32,
) -> Answer {
    if count == 0 {
        return Err(Errno::Inval.into());
    }
    // Before anything is allocated in proportion to `count`.
    let bytes = |size: u32| count.checked_mul(size).ok_or(Errno::Fault);
    guest.slice(Buffer { at: subscriptions, len: bytes(SUBSCRIPTION_SIZE)? })?;
    guest.slice(Buffer { at: events, len: bytes(EVENT_SIZE)? })?;

    let start = now(MONOTONIC)?;
    let waiting: Vec<Subscription> =
        (0..count).map(|i| subscription(guest, subscriptions + i * SUBSCRIPTION_SIZE, start)).collect::<Result<_, _>>()?;
    let mut happened = 0;
    loop {
        let time = now(MONOTONIC)?;
        for subscription in &waiting {
            if let Some(event) = event(ctx, subscription, time)? {
                guest.write(element(events, happened, EVENT_SIZE)?, &event)?;
                happened += 1;
            }
        }
        if happened > 0 {
            return Ok(guest.write_u32(ready, happened)?);
        }
        wait(ctx, &waiting, time)?;
    }
}

fn subscription(guest: &Guest<'_>, at: u32, start: u64) -> Result<Subscription, Errno> {
    let kind = guest.read_u8(offset(at, 8)?)?;
    let what = match kind {
        CLOCK => {
            let clock = guest.read_u32(offset(at, 16)?)?;
            let time = guest.read_u64(offset(at, 24)?)?;
            let absolute = guest.read_u16(offset(at, 40)?)? & ABSOLUTE != 0;
            deadline(clock, time, absolute, start).map_or_else(What::Wrong, What::Deadline)
        }
        FD_READ => What::Readable(guest.read_u32(offset(at, 16)?)?),
        FD_WRITE => What::Writable(guest.read_u32(offset(at, 16)?)?),
        _ => return Err(Errno::Inval),
    };
    Ok(Subscription { userdata: guest.read_u64(at)?, kind, what })
}

/// When that will be, on the monotonic clock. Only it and the wall clock can be waited for.
fn deadline(clock: u32, time: u64, absolute: bool, start: u64) -> Result<u64, Errno> {
    if clock > MONOTONIC {
        return Err(Errno::Notsup);
    }
    let from_now = if absolute { time.saturating_sub(now(clock)?) } else { time };
    Ok(start.saturating_add(from_now))
}

/// The event, if it has happened.
fn event(ctx: &mut WasiCtx, subscription: &Subscription, time: u64) -> Result<Option<[u8; EVENT_SIZE as usize]>, Errno> {
    let outcome = match subscription.what {
        What::Deadline(deadline) if time < deadline => return Ok(None),
        What::Deadline(_) => Ok(0),
        What::Readable(fd) => match ctx.stream(fd, rights::POLL_FD_READWRITE) {
            Ok(stream) if !stream.readable() => Err(Errno::Badf),
            Ok(stream) if !stream.poll_read(Some(Timespec { tv_sec: 0, tv_nsec: 0 }))? => return Ok(None),
            Ok(stream) => Ok(stream.available()),
            Err(errno) => Err(errno),
        },
        What::Writable(fd) => match ctx.stream(fd, rights::POLL_FD_READWRITE) {
            Ok(stream) if stream.readable() => Err(Errno::Badf),
            Ok(_) => Ok(0),
            Err(errno) => Err(errno),
        },
        What::Wrong(errno) => Err(errno),
    };
    let mut event = [0; EVENT_SIZE as usize];
    event[0..8].copy_from_slice(&subscription.userdata.to_le_bytes());
    event[10] = subscription.kind;
    match outcome {
        Ok(bytes) => event[16..24].copy_from_slice(&bytes.to_le_bytes()),
        Err(errno) => event[8..10].copy_from_slice(&(errno as u16).to_le_bytes()),
    }
    Ok(Some(event))
}

/// Waits until something may have happened.
fn wait(ctx: &mut WasiCtx, waiting: &[Subscription], time: u64) -> Result<(), Errno> {
    let mut earliest = None;
    let mut input = None;
    for subscription in waiting {
        match subscription.what {
            What::Deadline(deadline) => earliest = Some(earliest.map_or(deadline, |other: u64| other.min(deadline))),
            What::Readable(fd) => input = Some(fd),
            What::Writable(_) | What::Wrong(_) => {}
        }
    }
    let timeout = earliest.map(|deadline| Duration::from_nanos(deadline.saturating_sub(time)));
    match (input, timeout) {
        (Some(fd), timeout) => {
            // A time too long to express is as good as none.
            let timeout = timeout.and_then(|timeout| timeout.try_into().ok());
            ctx.stream(fd, rights::POLL_FD_READWRITE)?.poll_read(timeout)?;
        }
        (None, Some(timeout)) => std::thread::sleep(timeout),
        (None, None) => {}
    }
    Ok(())
}
