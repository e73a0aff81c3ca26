//! Waiting for descriptors and times in futures: one thread of the process, which starts when it is first needed, waits for all.

use super::calls::Call;
use super::poll::Interest;
use super::retry::retry;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use weir::__PerProcess as PerProcess;

/// Completes when there is an event on one of the descriptors, or the time is over; sometimes earlier.
#[derive(Debug)]
pub(crate) struct Wait(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    waker: Option<Waker>,
}

/// What the thread waits for. The descriptors are duplicates, because the program may close its own meanwhile.
struct Request {
    fds: Vec<(OwnedFd, PollFlags)>,
    deadline: Option<Instant>,
    state: Arc<Mutex<State>>,
}

/// The thread's end of the connection with the others.
struct Waiter {
    inbox: Mutex<Vec<Request>>,
    /// A byte ends the thread's wait.
    bell: UnixStream,
}

static WAITER: PerProcess<Place> = PerProcess::new();

#[derive(Default)]
struct Place {
    waiter: OnceLock<Waiter>,
    /// Held while the thread is started.
    starting: Mutex<()>,
}

impl Wait {
    /// Begins to wait. A timeout that cannot be represented is treated as none.
    ///
    /// # Errors
    /// The host's error: descriptors cannot be duplicated, or the thread cannot be started.
    pub fn new(fds: &[(BorrowedFd<'_>, Interest)], timeout: Option<Duration>) -> io::Result<Wait> {
        retry(|| Call::Poll.enter())?;
        let waiter = waiter()?;
        let duplicate = |&(fd, interest): &(BorrowedFd<'_>, Interest)| {
            let flags = match interest {
                Interest::Read => PollFlags::IN,
                Interest::Write => PollFlags::OUT,
            };
            Ok((fd.try_clone_to_owned()?, flags))
        };
        let fds = fds.iter().map(duplicate).collect::<io::Result<_>>()?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let state = Arc::default();
        waiter.inbox.lock().unwrap_or_else(PoisonError::into_inner).push(Request { fds, deadline, state: Arc::clone(&state) });
        waiter.ring();
        Ok(Wait(state))
    }
}

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_over {
            drop(state);
            self.0 = Arc::default();
            // The thread closes its descriptors.
            if let Some(waiter) = WAITER.get().waiter.get() {
                waiter.ring();
            }
        }
    }
}

/// Returns the thread's end, and starts the thread if it does not run.
fn waiter() -> io::Result<&'static Waiter> {
    let place = WAITER.get();
    let _starting = place.starting.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(waiter) = place.waiter.get() {
        return Ok(waiter);
    }
    let (bell, ringing) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    ringing.set_nonblocking(true)?;
    let waiter = place.waiter.get_or_init(|| Waiter { inbox: Mutex::default(), bell });
    std::thread::Builder::new().name("weir-wasi-waiter".into()).spawn(move || waiter.run(ringing))?;
    Ok(waiter)
}

impl Waiter {
    /// Ends the thread's wait. If the bell is full, it rings already.
    fn ring(&self) {
        let _ = (&self.bell).write(&[1]);
    }

    fn run(&self, mut ringing: UnixStream) {
        let mut requests: Vec<Request> = Vec::new();
        loop {
            requests.append(&mut mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner)));
            // Those whose future was dropped.
            requests.retain(|request| Arc::strong_count(&request.state) > 1);
            let deadline = requests.iter().filter_map(|request| request.deadline).min();
            let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let mut fds = vec![PollFd::new(&ringing, PollFlags::IN)];
            fds.extend(
                requests
                    .iter()
                    .flat_map(|request| request.fds.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(fd.as_fd(), *flags))),
            );
            let timeout: Option<Timespec> = timeout.and_then(|timeout| timeout.try_into().ok());
            let waited = rustix::event::poll(&mut fds, timeout.as_ref());
            // After an error other than an interruption, each future looks for itself, and reports the error.
            let failed = matches!(waited, Err(error) if error != rustix::io::Errno::INTR);
            let (now, mut events) = (Instant::now(), fds[1..].iter().map(|fd| !fd.revents().is_empty()));
            let over: Vec<bool> = requests
                .iter()
                .map(|request| {
                    let happened = events.by_ref().take(request.fds.len()).filter(|&happened| happened).count() > 0;
                    failed || happened || request.deadline.is_some_and(|deadline| deadline <= now)
                })
                .collect();
            drop(fds);
            let mut bytes = [0; 64];
            while ringing.read(&mut bytes).is_ok_and(|count| count > 0) {}
            let mut over = over.into_iter();
            for request in requests.extract_if(.., |_| over.next().unwrap_or(false)) {
                let mut state = request.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.is_over = true;
                let waker = state.waker.take();
                drop(state);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread::block_on;
    use std::thread;

    #[test]
    fn times_and_descriptors_end_waits() {
        let begun = Instant::now();
        let waits: Vec<Wait> = (1..=20).map(|i| Wait::new(&[], Some(Duration::from_millis(i))).unwrap()).collect();
        waits.into_iter().for_each(block_on);
        assert!(begun.elapsed() >= Duration::from_millis(20));
        let (here, there) = UnixStream::pair().unwrap();
        let never = Wait::new(&[(here.as_fd(), Interest::Read)], None).unwrap();
        drop(never);
        let wait = Wait::new(&[(here.as_fd(), Interest::Read)], Some(Duration::from_secs(60))).unwrap();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            (&there).write_all(b"x").unwrap();
            thread::sleep(Duration::from_secs(1));
        });
        block_on(wait);
        block_on(Wait::new(&[(here.as_fd(), Interest::Write)], None).unwrap());
    }
}
