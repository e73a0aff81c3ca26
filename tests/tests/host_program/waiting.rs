//! Futures that are pending, and what polls them.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// Polls a future once.
pub fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future until it has completed. Returns how often it was pending, too.
pub fn block_on<F: Future>(future: F) -> (F::Output, usize) {
    let mut future = pin!(future);
    let mut pending = 0;
    loop {
        match poll(future.as_mut()) {
            Poll::Ready(output) => return (output, pending),
            Poll::Pending => pending += 1,
        }
    }
}

/// Is pending once.
#[derive(Default)]
pub struct Once(bool);

impl Future for Once {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
