//! The life of an entry: what there is for a function's call, or for one of its loops, and the only ways in which that changes.
//!
//! ```text
//! Cold ── queued ──▶ Queued ── installed ──▶ Ready ── retired ──▶ Resting ── asked often enough ──▶ (decided again)
//!   │                  │ │                     │ ▲                   ▲
//!   │                  │ └── no_room ──────────┼─┼───────────────────┘
//!   └──── refused ─────┴── refused ──▶ Refused └─┘ used, swept
//! ```
//!
//! A `Ready` entry is asked for its code: it is used. A sweep takes the mark away, and retires what it finds without (second
//! chance). `Resting` is exponential back-off, counted in questions. Under stress a refused entry may be set to rest, too.
//!
//! A slot belongs to a function and an entry, and not to a tier: there is one level of compilation, and an engine has one back end.
//!
//! Everything here is under the lock of the module's [`Entries`]; `publish` is called under it as well.

use std::collections::HashMap;
use weir_contract::Entry;

/// The address of published code, which is immutable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Code(pub *const u8);

// SAFETY: only an address; what it points to never changes while it is ready, and after that until it is reclaimed.
unsafe impl Send for Code {}

/// What there is for an entry.
#[derive(Clone, Copy, Default, Debug)]
enum State {
    /// Nobody decided about it yet.
    #[default]
    Cold,
    /// It is being compiled, or waits for that.
    Queued,
    /// There is code, which was asked for since the last sweep, or was not.
    Ready { code: Code, used: bool },
    /// No back end can compile it, and that won't change.
    Refused,
    /// To be asked about so many times before it is compiled again.
    Resting { questions: u32 },
}

/// An entry's state, and its history as far as that decides anything.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Slot {
    state: State,
    /// How often it had to give its code up, or found no room for it.
    setbacks: u32,
    /// How often in a row there was no room.
    failures: u32,
}

/// What to do for a thread that asks for an entry's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// Run this code.
    Run(Code),
    /// Ask again soon: it is being compiled.
    Wait,
    /// Ask again after a rest.
    Rest,
    /// Nothing: there will be no code.
    Never,
    /// Let the policy decide.
    Decide,
}

/// What a sweep found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Swept {
    /// No code.
    Gone,
    /// Code that was used, and is not marked any more.
    Used(Code),
    /// Code that was not used since the last sweep: to be retired.
    Unused(Code),
}

impl Slot {
    /// A thread asks for the code.
    pub fn ask(&mut self) -> Action {
        match &mut self.state {
            State::Ready { code, used } => {
                *used = true;
                Action::Run(*code)
            }
            State::Queued => Action::Wait,
            State::Refused => Action::Never,
            State::Cold | State::Resting { questions: 0 } => Action::Decide,
            State::Resting { questions } => {
                *questions -= 1;
                Action::Rest
            }
        }
    }

    /// It is decided to compile it.
    fn queued(&mut self) {
        debug_assert!(matches!(self.state, State::Cold | State::Resting { questions: 0 }), "{self:?}");
        self.state = State::Queued;
    }

    /// Its code is in place, asked for by a thread that waits for it, or by none.
    fn installed(&mut self, code: Code, used: bool) {
        debug_assert!(matches!(self.state, State::Queued), "{self:?}");
        (self.state, self.failures) = (State::Ready { code, used }, 0);
    }

    /// No back end compiles it.
    fn refused(&mut self) {
        debug_assert!(matches!(self.state, State::Cold | State::Queued | State::Resting { questions: 0 }), "{self:?}");
        self.state = State::Refused;
    }

    /// A sweep comes by. Whether the code of a call is in use shows in its pointers: `in_use` says so.
    fn swept(&mut self, in_use: Option<bool>) -> Swept {
        let State::Ready { code, used } = &mut self.state else { return Swept::Gone };
        let marked = std::mem::take(used);
        if in_use.unwrap_or(marked) { Swept::Used(*code) } else { Swept::Unused(*code) }
    }

    /// It rests, for so many questions that `rest` says of the number of its setbacks.
    fn rest(&mut self, failures: u32, rest: impl FnOnce(u32) -> u32) {
        self.setbacks += 1;
        (self.state, self.failures) = (State::Resting { questions: rest(self.setbacks) }, failures);
    }

    /// How often it had to give its code up, or found no room for it.
    pub fn setbacks(&self) -> u32 {
        self.setbacks
    }

    /// How often in a row there was no room.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// A module's entries about which anything was decided.
#[derive(Debug, Default)]
pub(super) struct Entries {
    slots: HashMap<(u32, Entry), Slot>,
    /// How many OSR bodies each function has or waits for.
    osr_bodies: HashMap<u32, u32>,
}

impl Entries {
    /// The entry, as it is.
    pub fn get(&self, func: u32, entry: Entry) -> Slot {
        self.slots.get(&(func, entry)).copied().unwrap_or_default()
    }

    /// A thread asks for the code of an entry.
    pub fn ask(&mut self, func: u32, entry: Entry) -> Action {
        self.slots.get_mut(&(func, entry)).map_or(Action::Decide, Slot::ask)
    }

    /// How many OSR bodies a function has or waits for.
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

    /// See [`Slot::refused`]; for an entry about which nothing was decided before, `decided` is set.
    pub fn refused(&mut self, func: u32, entry: Entry, decided: bool) {
        self.slot(func, entry).refused();
        if decided {
            self.count_body(func, entry);
        }
    }

    /// A refused loop counts as a body, too: it would be refused again.
    fn count_body(&mut self, func: u32, entry: Entry) {
        if entry != Entry::Call {
            *self.osr_bodies.entry(func).or_default() += 1;
        }
    }

    /// See [`Slot::installed`].
    pub fn installed(&mut self, func: u32, entry: Entry, code: Code, used: bool) {
        self.slot(func, entry).installed(code, used);
    }

    /// A sweep comes by an entry: see [`Slot::swept`].
    pub fn swept(&mut self, func: u32, entry: Entry, in_use: Option<bool>) -> Swept {
        self.slots.get_mut(&(func, entry)).map_or(Swept::Gone, |slot| slot.swept(in_use))
    }

    /// There was no room for an entry's code, for the `failures`th time in a row.
    pub fn no_room(&mut self, func: u32, entry: Entry, failures: u32, rest: impl FnOnce(u32) -> u32) {
        self.back_off(func, entry, failures, rest);
    }

    /// An entry's code is taken out of use.
    pub fn retired(&mut self, func: u32, entry: Entry, rest: impl FnOnce(u32) -> u32) {
        self.back_off(func, entry, 0, rest);
    }

    fn back_off(&mut self, func: u32, entry: Entry, failures: u32, rest: impl FnOnce(u32) -> u32) {
        self.slot(func, entry).rest(failures, rest);
        if let Some(bodies) = self.osr_bodies.get_mut(&func).filter(|_| entry != Entry::Call) {
            *bodies -= 1;
        }
    }

    /// The entries of `func` with code, and whether that was asked for since the last sweep.
    pub fn ready(&self, func: u32) -> Vec<(Entry, Code, bool)> {
        let ready = |(&(of, entry), slot): (&(u32, Entry), &Slot)| match slot.state {
            State::Ready { code, used } if of == func => Some((entry, code, used)),
            _ => None,
        };
        self.slots.iter().filter_map(ready).collect()
    }

    /// Under stress: what was refused may be tried again.
    pub fn forgive(&mut self, func: u32, rest: impl Fn(u32) -> u32) {
        let refused =
            |(&(of, entry), slot): (&(u32, Entry), &Slot)| (of == func && matches!(slot.state, State::Refused)).then_some(entry);
        let refused: Vec<Entry> = self.slots.iter().filter_map(refused).collect();
        refused.into_iter().for_each(|entry| self.back_off(func, entry, 0, &rest));
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
    fn an_entry_goes_from_cold_to_ready_and_back_to_rest() {
        let mut entries = Entries::default();
        assert_eq!(entries.ask(3, CALL), Action::Decide);
        entries.queued(3, CALL);
        assert_eq!(entries.ask(3, CALL), Action::Wait);
        entries.installed(3, CALL, code(16), false);
        assert_eq!(entries.ask(3, CALL), Action::Run(code(16)));
        entries.retired(3, CALL, |setbacks| 2 * setbacks);
        assert_eq!([(); 3].map(|()| entries.ask(3, CALL)), [Action::Rest, Action::Rest, Action::Decide]);
        assert_eq!(entries.get(3, CALL).setbacks(), 1);
    }

    #[test]
    fn a_sweep_spares_what_was_used_since_the_last() {
        let mut entries = Entries::default();
        assert_eq!(entries.swept(3, LOOP, None), Swept::Gone);
        entries.queued(3, LOOP);
        assert_eq!(entries.swept(3, LOOP, None), Swept::Gone);
        entries.installed(3, LOOP, code(16), false);
        entries.ask(3, LOOP);
        assert_eq!(entries.swept(3, LOOP, None), Swept::Used(code(16)));
        assert_eq!(entries.swept(3, LOOP, None), Swept::Unused(code(16)));
        // The code of a call is in use if it is reached through its pointers, whoever asked for it.
        assert_eq!(entries.swept(3, LOOP, Some(true)), Swept::Used(code(16)));
    }

    #[test]
    fn failures_count_in_a_row_and_setbacks_for_ever() {
        let mut entries = Entries::default();
        for failures in 1..=3 {
            entries.queued(3, CALL);
            entries.no_room(3, CALL, failures, |_| 0);
            assert_eq!(entries.get(3, CALL).failures(), failures);
        }
        entries.queued(3, CALL);
        entries.installed(3, CALL, code(16), true);
        let slot = entries.get(3, CALL);
        assert_eq!((slot.failures(), slot.setbacks()), (0, 3));
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
        assert_eq!((entries.osr_bodies(3), entries.ask(3, Entry::Osr(9))), (1, Action::Never));
        entries.forgive(3, |_| 0);
        assert_eq!((entries.osr_bodies(3), entries.ask(3, Entry::Osr(9))), (0, Action::Decide));
    }
}
