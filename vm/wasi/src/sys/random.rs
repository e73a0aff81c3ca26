//! Random bytes.

use super::calls::Call;
use super::retry::retry;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Fills `rest` with random bytes of the host.
///
/// # Errors
/// The host's error.
pub(crate) fn fill(mut rest: &mut [u8]) -> io::Result<()> {
    while !rest.is_empty() {
        let filled = retry(|| {
            Call::Random.enter()?;
            Ok(getrandom(&mut *rest, GetRandomFlags::empty())?)
        })?;
        rest = &mut rest[filled..];
    }
    Ok(())
}
