//! The host functions that generated programs import: what each does depends on its name, its arguments and the state of the instance that
//! imports it, and on nothing else. It is written once, for any engine that is a [`Guest`].
//!
//! A function reads and writes the memories and globals of the instance, grows a memory, and calls exported functions. Its results are made
//! of its name, its arguments, and all that it has read and that its calls have returned.

use super::uses::Uses;
use crate::generate::{Action, Value};
use crate::rng::Rng;
use std::fmt;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use weir_bytecode::types::ValType;

/// The instance that imports a host function, by the names under which it exports its items: memories `m0`, …, globals `g0`, … and
/// functions `f0`, …. What it does not export is not there.
pub trait Guest {
    /// The error of a call.
    type Error: Send;

    /// The bytes of a memory.
    fn memory(&mut self, index: u32) -> Option<&mut [u8]>;

    /// Grows a memory, and returns its size before that, in pages.
    fn grow(&mut self, index: u32, pages: u64) -> Option<u64>;

    /// The value of a global.
    fn global(&mut self, index: u32) -> Option<Value>;

    /// Sets a global to a value of its type. Returns whether it is mutable.
    fn set_global(&mut self, index: u32, value: Value) -> bool;

    /// The parameters of a function.
    fn params(&mut self, func: u32) -> Option<Vec<ValType>>;

    /// Calls a function that is there.
    fn call(&mut self, func: u32, args: &[Value]) -> impl Future<Output = Result<Vec<Value>, Self::Error>> + Send;

    /// The error of a host function that fails.
    fn failure(&self, failure: HostFailure) -> Self::Error;
}

/// The error with which a host function fails, which a number distinguishes from others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostFailure(pub u32);

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the host function fails with {}", self.0)
    }
}

impl std::error::Error for HostFailure {}

/// The state of a function: a sum of all that it has seen, which decides what it does next.
struct Digest(u64);

impl Digest {
    fn add(&mut self, bits: u128) {
        for half in [bits as u64, (bits >> 64) as u64] {
            self.0 = (self.0.rotate_left(23) ^ half).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }

    fn add_values(&mut self, values: &[Value]) {
        values.iter().for_each(|value| self.add(value.canonical_bits()));
    }

    fn rng(&self) -> Rng {
        Rng::new(self.0)
    }
}

/// Bytes at a time.
const WORD: usize = 8;

/// Does an action. Nested actions, of functions that these call, end because a program's calls are limited.
///
/// # Errors
/// That of a call, unless the action is calm, or a failure of its own.
pub async fn act<G: Guest>(
    guest: &mut G,
    action: Action,
    args: &[Value],
    results: &[ValType],
    uses: &Uses,
) -> Result<Vec<Value>, G::Error> {
    let mut digest = Digest(action.seed);
    digest.add_values(args);
    for _ in 0..1 + digest.rng().below(3) {
        let mut rng = digest.rng();
        // A missing item counts as 0.
        let seen = match rng.below(12) {
            0..2 => word(guest, &mut rng).map_or(0, |word| u64::from_le_bytes(*word)),
            2..4 => word(guest, &mut rng).map_or(0, |word| u64::from_le_bytes(std::mem::replace(word, digest.0.to_le_bytes()))),
            4 => {
                let value = guest.global(rng.below(12));
                digest.add_values(value.as_slice());
                0
            }
            5..7 => set_global(guest, &mut rng).into(),
            7 => guest.grow(rng.below(3), u64::from(rng.below(8) / 7)).unwrap_or(0),
            _ => {
                match call(guest, &mut rng, uses).await {
                    Ok(values) => digest.add_values(&values),
                    Err(_) if action.calm => uses.caught(),
                    Err(error) => {
                        uses.passed();
                        return Err(error);
                    }
                }
                1
            }
        };
        digest.add(seen.into());
    }
    let mut rng = digest.rng();
    if rng.one_in(24) && !action.calm {
        uses.failed();
        return Err(guest.failure(HostFailure(rng.below(1 << 16))));
    }
    Ok(results.iter().map(|&ty| Value::random(ty, &mut rng)).collect())
}

/// A word of a memory, at no particular alignment.
fn word<'g, G: Guest>(guest: &'g mut G, rng: &mut Rng) -> Option<&'g mut [u8; WORD]> {
    let (index, at) = (rng.below(3), rng.below(0x1000) as usize);
    guest.memory(index)?.get_mut(at..)?.first_chunk_mut()
}

fn set_global<G: Guest>(guest: &mut G, rng: &mut Rng) -> bool {
    let index = rng.below(12);
    let Some(value) = guest.global(index) else { return false };
    guest.set_global(index, Value::random(value.ty(), rng))
}

/// Calls a function with random arguments; does nothing if there is no such function, or too many calls of this kind are open.
async fn call<G: Guest>(guest: &mut G, rng: &mut Rng, uses: &Uses) -> Result<Vec<Value>, G::Error> {
    let func = rng.below(8);
    let (Some(params), Some(_open)) = (guest.params(func), uses.enter()) else { return Ok(Vec::new()) };
    let args: Vec<Value> = params.into_iter().map(|ty| Value::random(ty, rng)).collect();
    guest.call(func, &args).await
}

/// Runs a future that is never pending.
///
/// # Panics
/// If it is pending.
pub fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a synchronous call does not wait"),
    }
}
