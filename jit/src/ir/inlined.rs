//! The positions of code of inlined functions.
//!
//! An instruction has the offset of its Wasm instruction in the module, its pc. A function that is inlined at two calls
//! has its instructions twice, with different frames around them. So the instructions of each *copy* have pcs of their
//! own, beyond the end of the module: they are those of the function, moved by a distance. After the back end,
//! [`Copies::chains`] and [`Copies::own`] give the function's own, and the calls around each trap and each call.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use weir_contract::code::{InlinedCall, Inlining, TrapEntry};

/// The code of a function in place of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy {
    /// The first of its pcs.
    pub start: u32,
    /// The number of its pcs.
    pub len: u32,
    /// The function.
    pub func: u32,
    /// The offset in the module to which `start` corresponds.
    pub origin: u32,
    /// The pc of the call in whose place it is. That may be in an earlier copy.
    pub call: u32,
}

/// Its line in the text of SSA and of machine code: `inlined f7 0x12c as 0x3e8 to 0x3fb in 0x28`, which is the function, `origin`, the
/// first and the last of its pcs, and `call`.
impl Display for Copy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Copy { start, len, func, origin, call } = *self;
        write!(f, "inlined f{func} {origin:#x} as {start:#x} to {:#x} in {call:#x}", start + (len - 1))
    }
}

impl FromStr for Copy {
    type Err = ();

    fn from_str(text: &str) -> Result<Copy, ()> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["inlined", func, origin, "as", start, "to", last, "in", call] = words[..] else { return Err(()) };
        let hex = |word: &str| u32::from_str_radix(word.strip_prefix("0x").ok_or(())?, 16).map_err(|_| ());
        let func = func.strip_prefix('f').and_then(|digits| digits.parse().ok()).ok_or(())?;
        let (origin, start, last, call) = (hex(origin)?, hex(start)?, hex(last)?, hex(call)?);
        let len = last.checked_sub(start).and_then(|len| len.checked_add(1)).ok_or(())?;
        Ok(Copy { start, len, func, origin, call })
    }
}

/// The copies in a function, in the order of their pcs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Copies(Vec<Copy>);

impl Copies {
    /// Whether nothing is inlined.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The copies.
    pub fn iter(&self) -> impl Iterator<Item = &Copy> {
        self.0.iter()
    }

    /// Adds a copy whose pcs come after those of the others.
    ///
    /// # Errors
    /// Returns the copy if its pcs are not after those of the others, or the call is not before them.
    pub fn push(&mut self, copy: Copy) -> Result<(), Copy> {
        let after = self.0.last().is_none_or(|last| last.start + last.len <= copy.start);
        if !after || copy.start <= copy.call || copy.start.checked_add(copy.len).is_none() {
            return Err(copy);
        }
        self.0.push(copy);
        Ok(())
    }

    /// The first pc that no copy has, if `module` bytes are those of the module.
    pub fn next_pc(&self, module: u32) -> u32 {
        self.0.last().map_or(module, |last| last.start + last.len)
    }

    /// The index of the copy that has this pc.
    fn find(&self, pc: u32) -> Option<usize> {
        let index = self.0.partition_point(|copy| copy.start <= pc).checked_sub(1)?;
        (pc - self.0[index].start < self.0[index].len).then_some(index)
    }

    /// The functions around an instruction with this pc, innermost first, and the offset in the module at which each is: `func` is the
    /// function that has the copies.
    pub fn frames(&self, func: u32, pc: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut next = Some(pc);
        std::iter::from_fn(move || {
            let pc = next?;
            let found = self.find(pc).map(|index| self.0[index]);
            next = found.map(|copy| copy.call);
            Some(found.map_or((func, pc), |copy| (copy.func, copy.origin + (pc - copy.start))))
        })
    }

    /// The offset in the module of the instruction, or of the call in whose place it is: the pc in the function that has the copies.
    pub fn outermost(&self, mut pc: u32) -> u32 {
        while let Some(index) = self.find(pc) {
            pc = self.0[index].call;
        }
        pc
    }

    /// The offset in the module of the instruction with this pc.
    pub fn own(&self, pc: u32) -> u32 {
        self.find(pc).map_or(pc, |index| self.0[index].origin + (pc - self.0[index].start))
    }

    /// The chains of calls around traps, and around calls, which are given by their pcs.
    pub fn chains(&self, traps: &[TrapEntry], calls: &[(u32, u32)]) -> Inlining {
        // The link of a copy has the copy's number: its call is in an earlier one.
        let link = |pc: u32| self.find(pc).map(|index| index as u32);
        let links = self.0.iter().map(|copy| InlinedCall { func: copy.func, pc: self.own(copy.call), outer: link(copy.call) });
        let traps = (0..).zip(traps).filter_map(|(i, trap)| Some((i, link(trap.pc)?)));
        let calls = (0..).zip(calls).filter_map(|(i, call)| Some((i, link(call.1)?)));
        Inlining { traps: traps.collect(), calls: calls.collect(), links: links.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pc_has_the_frames_of_the_copies_around_it() {
        let mut copies = Copies::default();
        let outer = Copy { start: 1000, len: 20, func: 7, origin: 300, call: 40 };
        let inner = Copy { start: 1020, len: 10, func: 8, origin: 500, call: 1005 };
        copies.push(outer).unwrap();
        copies.push(inner).unwrap();
        let frames = |pc| copies.frames(2, pc).collect::<Vec<_>>();
        assert_eq!(frames(41), [(2, 41)]);
        assert_eq!(frames(1019), [(7, 319), (2, 40)]);
        assert_eq!(frames(1021), [(8, 501), (7, 305), (2, 40)]);
        assert_eq!((copies.own(1021), copies.outermost(1021), copies.outermost(41), copies.next_pc(900)), (501, 40, 41, 1030));
        assert_eq!(outer.to_string(), "inlined f7 0x12c as 0x3e8 to 0x3fb in 0x28");
        assert_eq!(copies.iter().map(|copy| copy.to_string().parse()).collect::<Vec<_>>(), [Ok(outer), Ok(inner)]);
        assert_eq!("inlined f7 0x12c as 0x3fb to 0x3e8 in 0x28".parse::<Copy>(), Err(()));
        assert_eq!(copies.push(Copy { start: 1029, ..inner }), Err(Copy { start: 1029, ..inner }), "its pcs are taken");
        assert_eq!(copies.push(Copy { start: 1040, call: 1040, ..inner }), Err(Copy { start: 1040, call: 1040, ..inner }));
    }
}
