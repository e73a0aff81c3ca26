//! The state machine of an entry, which is a function's call or one of its loops: its states and all transitions.
//!
//! ```text
//! Cold ── queued ──▶ Queued ── installed ──▶ Ready ── retired ──▶ BackingOff ── enough requests ──▶ (decided again)
//!   │                  │ │                     │ ▲                   ▲
//!   │                  │ └── no_room ──────────┼─┼───────────────────┘
//!   └──── refused ─────┴── refused ──▶ Refused └─┘ used, swept
//! ```
//!
//! A request for the code of a `Ready` entry marks it as used. The eviction sweep clears the mark, and retires code
//! that has none (second chance). `BackingOff` is exponential back-off, counted in requests. Under stress a refused
//! entry may back off, too.
//!
//! There is one slot for each function and entry, not for each tier: there is one level of compilation, and an engine
//! has one back end.
//!
//! Everything here, and `publish`, requires the lock of the module's [`Entries`].

use std::collections::HashMap;
use weir_contract::Entry;

/// The address of published code, which is immutable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Code(pub *const u8);

// SAFETY: only an address. The code at it does not change while it is ready, nor after that until it is reclaimed.
unsafe impl Send for Code {}

/// The state of an entry.
#[derive(Clone, Copy, Default, Debug)]
enum State {
    /// Nothing has been decided about it.
    #[default]
    Cold,
    /// It is being compiled, or waits for a compiler thread.
    Queued,
    /// There is code. `used` is whether it was requested since the last sweep.
    Ready { code: Code, used: bool },
    /// No back end can compile it; final.
    Refused,
    /// It is compiled again after this many requests.
    BackingOff { requests: u32 },
}

/// The state of an entry, with the part of its history that decisions depend on.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Slot {
    state: State,
    /// How often its code was retired or did not fit.
    backoffs: u32,
    /// How often in a row its code did not fit.
    failures: u32,
}

/// The response to a request for an entry's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// Run this code.
    Run(Code),
    /// It is being compiled: request it again soon.
    Wait,
    /// It backs off: request it again later.
    BackOff,
    /// There will be no code.
    Never,
    /// The policy decides.
    Decide,
}

/// The result of a sweep for one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Swept {
    /// There is no code.
    Gone,
    /// The code was used. Its mark is cleared.
    Used(Code),
    /// The code was not used since the last sweep and is to be retired.
    Unused(Code),
}

impl Slot {
    /// A thread requests the code.
    pub fn request(&mut self) -> Action {
        match &mut self.state {
            State::Ready { code, used } => {
                *used = true;
                Action::Run(*code)
            }
            State::Queued => Action::Wait,
            State::Refused => Action::Never,
            State::Cold | State::BackingOff { requests: 0 } => Action::Decide,
            State::BackingOff { requests } => {
                *requests -= 1;
                Action::BackOff
            }
        }
    }

    /// The policy has decided to compile it.
    fn queued(&mut self) {
        debug_assert!(matches!(self.state, State::Cold | State::BackingOff { requests: 0 }), "{self:?}");
        self.state = State::Queued;
    }

    /// Its code is in place. `used` is whether a thread waits for it.
    fn installed(&mut self, code: Code, used: bool) {
        debug_assert!(matches!(self.state, State::Queued), "{self:?}");
        (self.state, self.failures) = (State::Ready { code, used }, 0);
    }

    /// No back end can compile it.
    fn refused(&mut self) {
        debug_assert!(matches!(self.state, State::Cold | State::Queued | State::BackingOff { requests: 0 }), "{self:?}");
        self.state = State::Refused;
    }

    /// A sweep reaches the entry. `in_use` overrides the mark: for code of a call, the pointers to it say whether it is
    /// in use.
    fn swept(&mut self, in_use: Option<bool>) -> Swept {
        let State::Ready { code, used } = &mut self.state else { return Swept::Gone };
        let marked = std::mem::take(used);
        if in_use.unwrap_or(marked) { Swept::Used(*code) } else { Swept::Unused(*code) }
    }

    /// Backs off for `backoff` requests, a function of the number of back-offs.
    fn back_off(&mut self, failures: u32, backoff: impl FnOnce(u32) -> u32) {
        self.backoffs += 1;
        (self.state, self.failures) = (State::BackingOff { requests: backoff(self.backoffs) }, failures);
    }

    /// Returns how often its code was retired or did not fit.
    pub fn backoffs(&self) -> u32 {
        self.backoffs
    }

    /// Returns how often in a row its code did not fit.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// The entries of a module that are not cold.
#[derive(Debug, Default)]
pub(super) struct Entries {
    slots: HashMap<(u32, Entry), Slot>,
    /// Number of OSR bodies that each function has or waits for.
    osr_bodies: HashMap<u32, u32>,
}

impl Entries {
    /// Returns a copy of the entry.
    pub fn get(&self, func: u32, entry: Entry) -> Slot {
        self.slots.get(&(func, entry)).copied().unwrap_or_default()
    }

    /// A thread requests the code of an entry: see [`Slot::request`].
    pub fn request(&mut self, func: u32, entry: Entry) -> Action {
        self.slots.get_mut(&(func, entry)).map_or(Action::Decide, Slot::request)
    }

    /// Returns the number of OSR bodies that a function has or waits for.
    pub fn osr_bodies(&self, func: u32) -> u32 {
        self.osr_bodies.get(&func).copied().unwrap_or_default()
    }

    fn slot(&mut self, func: u32, entry: Entry) -> &mut Slot {
        self.slots.entry((func, entry)).or_default()
    }

    /// See [`Slot::queued`].
    pub fn queued(&mut self, func: u32, entry: Entry) {
        self.slot(func, entry).queued();
        self.count_body(func, entry);
    }

    /// See [`Slot::refused`]. `decided` is set if the entry was not queued before.
    pub fn refused(&mut self, func: u32, entry: Entry, decided: bool) {
        self.slot(func, entry).refused();
        if decided {
            self.count_body(func, entry);
        }
    }

    /// Counts an OSR body. A refused one counts too, because compiling it again would be refused again.
    fn count_body(&mut self, func: u32, entry: Entry) {
        if entry != Entry::Call {
            *self.osr_bodies.entry(func).or_default() += 1;
        }
    }

    /// See [`Slot::installed`].
    pub fn installed(&mut self, func: u32, entry: Entry, code: Code, used: bool) {
        self.slot(func, entry).installed(code, used);
    }

    /// A sweep reaches an entry: see [`Slot::swept`].
    pub fn swept(&mut self, func: u32, entry: Entry, in_use: Option<bool>) -> Swept {
        self.slots.get_mut(&(func, entry)).map_or(Swept::Gone, |slot| slot.swept(in_use))
    }

    /// An entry's code did not fit, for the `failures`th time in a row.
    pub fn no_room(&mut self, func: u32, entry: Entry, failures: u32, backoff: impl FnOnce(u32) -> u32) {
        self.back_off(func, entry, failures, backoff);
    }

    /// An entry's code is retired.
    pub fn retired(&mut self, func: u32, entry: Entry, backoff: impl FnOnce(u32) -> u32) {
        self.back_off(func, entry, 0, backoff);
    }

    fn back_off(&mut self, func: u32, entry: Entry, failures: u32, backoff: impl FnOnce(u32) -> u32) {
        self.slot(func, entry).back_off(failures, backoff);
        if let Some(bodies) = self.osr_bodies.get_mut(&func).filter(|_| entry != Entry::Call) {
            *bodies -= 1;
        }
    }

    /// Returns the entries of `func` that have code, each with whether the code was requested since the last sweep.
    pub fn ready(&self, func: u32) -> Vec<(Entry, Code, bool)> {
        let ready = |(&(of, entry), slot): (&(u32, Entry), &Slot)| match slot.state {
            State::Ready { code, used } if of == func => Some((entry, code, used)),
            _ => None,
        };
        self.slots.iter().filter_map(ready).collect()
    }

    /// Under stress: lets refused entries be compiled again.
    pub fn retry_refused(&mut self, func: u32, backoff: impl Fn(u32) -> u32) {
        let refused =
            |(&(of, entry), slot): (&(u32, Entry), &Slot)| (of == func && matches!(slot.state, State::Refused)).then_some(entry);
        let refused: Vec<Entry> = self.slots.iter().filter_map(refused).collect();
        refused.into_iter().for_each(|entry| self.back_off(func, entry, 0, &backoff));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    const CALL: Entry = Entry::Call;
    const LOOP: Entry = Entry::Osr(7);

    fn code(address: usize) -> Code {
        Code(ptr::without_provenance(address))
    }

    #[test]
    fn an_entry_goes_from_cold_to_ready_and_backs_off() {
        let mut entries = Entries::default();
        assert_eq!(entries.request(3, CALL), Action::Decide);
        entries.queued(3, CALL);
        assert_eq!(entries.request(3, CALL), Action::Wait);
        entries.installed(3, CALL, code(16), false);
        assert_eq!(entries.request(3, CALL), Action::Run(code(16)));
        entries.retired(3, CALL, |count| 2 * count);
        assert_eq!([(); 3].map(|()| entries.request(3, CALL)), [Action::BackOff, Action::BackOff, Action::Decide]);
        assert_eq!(entries.get(3, CALL).backoffs(), 1);
    }

    #[test]
    fn a_sweep_spares_what_was_used_since_the_last() {
        let mut entries = Entries::default();
        assert_eq!(entries.swept(3, LOOP, None), Swept::Gone);
        entries.queued(3, LOOP);
        assert_eq!(entries.swept(3, LOOP, None), Swept::Gone);
        entries.installed(3, LOOP, code(16), false);
        entries.request(3, LOOP);
        assert_eq!(entries.swept(3, LOOP, None), Swept::Used(code(16)));
        assert_eq!(entries.swept(3, LOOP, None), Swept::Unused(code(16)));
        // The code of a call is in use if its pointers lead to it, also without a request.
        assert_eq!(entries.swept(3, LOOP, Some(true)), Swept::Used(code(16)));
    }

    #[test]
    fn failures_count_in_a_row_and_backoffs_in_total() {
        let mut entries = Entries::default();
        for failures in 1..=3 {
            entries.queued(3, CALL);
            entries.no_room(3, CALL, failures, |_| 0);
            assert_eq!(entries.get(3, CALL).failures(), failures);
        }
        entries.queued(3, CALL);
        entries.installed(3, CALL, code(16), true);
        let slot = entries.get(3, CALL);
        assert_eq!((slot.failures(), slot.backoffs()), (0, 3));
    }

    #[test]
    fn osr_bodies_are_counted_while_they_wait_and_while_they_are_there() {
        let mut entries = Entries::default();
        entries.queued(3, LOOP);
        entries.queued(3, Entry::Osr(9));
        entries.queued(3, CALL);
        assert_eq!(entries.osr_bodies(3), 2);
        entries.no_room(3, LOOP, 1, |_| 0);
        assert_eq!(entries.osr_bodies(3), 1);
        entries.refused(3, Entry::Osr(9), false);
        assert_eq!((entries.osr_bodies(3), entries.request(3, Entry::Osr(9))), (1, Action::Never));
        entries.retry_refused(3, |_| 0);
        assert_eq!((entries.osr_bodies(3), entries.request(3, Entry::Osr(9))), (0, Action::Decide));
    }
}
