//! TABLE 3 as the instruction set of the machine layer, and the text of its instructions.

use super::abi;
use super::insts::{Asm, Cond, Encoding, Field, Inst, Mem, Rm, STORED, Segment, Shape, Width};
use crate::mir::text::{Line, Show};
use crate::mir::{Control, FlagSet, RegList, isa};
use crate::regalloc::{AllocationError, Operand, Place, Reg, RegSet};
use std::fmt;
use weir_bytecode::Trap;

impl isa::Inst for Inst {
    const COMPARED_ENTRIES: usize = 3;
    const CALLER_SAVED: RegSet = abi::CALLER_SAVED;
    const CALLEE_SAVED: RegSet = abi::CALLEE_SAVED;

    fn pc(&self) -> u32 {
        self.pc
    }

    fn at(self, pc: u32) -> Inst {
        Inst { pc, ..self }
    }

    fn control(&self) -> Control {
        match self.op.encoding() {
            Encoding::Sequence(sequence) => sequence.control(self.imm as u32),
            Encoding::Opcode(_) => Control::Next,
        }
    }

    fn list(&self) -> Option<u32> {
        (self.op.shape() == Shape::List).then_some(self.imm as u32)
    }

    fn set_index(&mut self, index: u32) {
        self.imm = index.into();
    }

    fn is_call(&self) -> bool {
        matches!(self.op, Asm::Call | Asm::TryCall | Asm::Throw)
    }

    fn is_tail_call(&self) -> bool {
        self.op == Asm::TailCall
    }

    fn operands(&mut self, lists: &mut [RegList], mut f: impl FnMut(Operand)) {
        self.visit(lists, |field, constraint, role, position| f(Operand { reg: field.get(), constraint, role, position }));
    }

    fn assign(&mut self, lists: &mut [RegList], mut next: impl FnMut() -> Place) -> Result<(), AllocationError> {
        let (op, mut result) = (self.op, Ok(()));
        self.visit(lists, |field, _, _, _| match (field, next()) {
            (Field::Reg(reg), Place::Reg(place)) => *reg = place,
            (Field::Rm(rm), Place::Reg(place)) => *rm = Rm::Reg(place),
            (Field::Rm(rm), Place::Slot(slot)) => *rm = Rm::Slot(slot),
            (Field::Reg(_), Place::Slot(slot)) => {
                result = Err(AllocationError(format!("spill slot {slot} for an operand of {op:?} that must be a register")));
            }
        });
        result
    }

    fn places(&mut self, lists: &mut [RegList], mut f: impl FnMut(Operand, Place)) {
        self.visit_all(lists, |field, constraint, role, position| {
            let place = match &field {
                Field::Rm(Rm::Slot(slot)) => Place::Slot(*slot),
                Field::Reg(_) | Field::Rm(_) if field.get().is_none() => return,
                Field::Reg(_) | Field::Rm(_) => Place::Reg(field.get()),
            };
            f(Operand { reg: field.get(), constraint, role, position }, place);
        });
    }

    fn flags_read(&self) -> FlagSet {
        Inst::flags_read(self)
    }

    fn flags_defined(&self) -> Option<FlagSet> {
        Inst::flags_defined(self)
    }

    fn clobbers(&self, lists: &[RegList]) -> RegSet {
        Inst::clobbers(self, lists)
    }

    fn check(&self, pool_bytes: usize) -> Result<(), String> {
        let Form { dst, src, rm, imm } = Form::of(self.op);
        let has_imm = imm.takes(self);
        let fits = match imm {
            Immediate::Any | Immediate::Never => true,
            Immediate::WithoutRm | Immediate::WithoutSrc if !has_imm => true,
            Immediate::Trap => trap_name(self.imm).is_some(),
            Immediate::Always | Immediate::WithoutRm | Immediate::WithoutSrc => {
                i32::try_from(self.imm).is_ok() || u32::try_from(self.imm).is_ok()
            }
        };
        let indexed = self.op.shape() == Shape::List;
        let wrong = match self.rm {
            _ if self.long && !self.op.is_on_halves() => Some("the length"),
            _ if dst == self.dst.is_none() => Some("the destination"),
            _ if src == Presence::Never && !self.src.is_none() => Some("the left operand"),
            _ if src == Presence::Always && self.src.is_none() => Some("the left operand"),
            Rm::None if rm == Presence::Always => Some("the right operand"),
            Rm::Reg(_) | Rm::Mem(_) | Rm::Slot(_) if rm == Presence::Never => Some("the right operand"),
            Rm::Mem(Mem { pooled: true, disp, .. }) if disp as usize >= pool_bytes => Some("the constant's offset"),
            Rm::Mem(Mem { shift, .. }) if shift > 3 => Some("the factor of the index"),
            Rm::Mem(Mem { index, .. }) if index == abi::RSP => Some("the index register"),
            Rm::None | Rm::Reg(_) | Rm::Mem(_) | Rm::Slot(_) => {
                (!has_imm && !indexed && self.imm != 0 || !fits).then_some("the immediate")
            }
        };
        wrong.map_or(Ok(()), |wrong| Err(wrong.into()))
    }

    fn register_name(reg: Reg) -> &'static str {
        abi::name(reg)
    }

    fn name(&self) -> String {
        let mut name = self.op.mnemonic().to_string();
        if self.op.reads_flags() {
            name += &format!("_{:?}", self.cond).to_lowercase();
        }
        if has_width(self.op) {
            name += WIDTHS.iter().find(|width| width.0 == self.width).map_or("", |width| width.1);
        }
        if self.long {
            name += LONG;
        }
        name
    }

    fn named(name: &str, list: u32) -> Option<Inst> {
        let (name, long) = name.strip_suffix(LONG).map_or((name, false), |name| (name, true));
        let (name, width) = match WIDTHS.iter().find_map(|width| name.strip_suffix(width.1).map(|name| (name, width.0))) {
            Some((name, width)) => (name, Some(width)),
            None => (name, None),
        };
        let plain = || Asm::ALL.iter().copied().find(|op| op.mnemonic() == name && !op.reads_flags());
        let conditional = || {
            let (name, cond) = name.rsplit_once('_')?;
            let op = Asm::ALL.iter().copied().find(|op| op.mnemonic() == name && op.reads_flags())?;
            Some((op, Cond::ALL.into_iter().find(|other| format!("{other:?}").to_lowercase() == cond)?))
        };
        let (op, cond) = plain().map(|op| (op, Cond::O)).or_else(conditional)?;
        if has_width(op) != width.is_some() {
            return None;
        }
        let inst = Inst::new(op, width.unwrap_or(Width::Q)).long(long).cond(cond);
        Some(if op.shape() == Shape::List { inst.imm(list.into()) } else { inst })
    }

    fn write(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        let reg = |reg| Show(Place::Reg(reg), abi::name);
        if !self.dst.is_none() {
            write!(f, "{} = ", reg(self.dst))?;
        }
        f.write_str(&self.name())?;
        let mut operands = Vec::new();
        let destination = is_memory_destination(self.op);
        let rm = (self.rm != Rm::None).then(|| show_rm(&self.rm));
        operands.extend(rm.clone().filter(|_| destination));
        operands.extend((!self.src.is_none()).then(|| reg(self.src).to_string()));
        operands.extend(rm.filter(|_| !destination));
        let imm = Form::of(self.op).imm;
        if imm.takes(self) {
            operands.push(if imm == Immediate::Trap { trap_name(self.imm).unwrap_or_default() } else { self.imm.to_string() });
        }
        let space = if operands.is_empty() { "" } else { " " };
        write!(f, "{space}{}", operands.join(", "))
    }

    fn read(&mut self, dst: Option<Reg>, line: &mut Line<'_>) -> Result<(), String> {
        let form = Form::of(self.op);
        if dst.is_some() != form.dst {
            return Err(format!("{} has {} destination", self.op.mnemonic(), if form.dst { "a" } else { "no" }));
        }
        self.dst = dst.unwrap_or(Reg::NONE);
        let mut comma = Comma { first: true };
        let destination = is_memory_destination(self.op);
        if destination {
            self.rm = comma.next(line, read_rm)?;
        }
        if form.src == Presence::Always || form.src == Presence::Optional && self.has_src(&comma, line) {
            self.src = comma.next(line, |line| line.reg(abi::name))?;
        }
        if !destination && (form.rm == Presence::Always || form.rm == Presence::Optional && comma.is_rm(line)) {
            self.rm = comma.next(line, read_rm)?;
        }
        if form.imm.takes(self) {
            let read = |line: &mut Line<'_>| if form.imm == Immediate::Trap { read_trap(line) } else { line.number() };
            self.imm = comma.next(line, read)?;
        }
        Ok(())
    }
}

impl Inst {
    /// Whether the next operand is `src`. A comparison has it unless an immediate follows `rm`; a scratch register comes before
    /// `rm`.
    fn has_src(&self, comma: &Comma, line: &Line<'_>) -> bool {
        let mut ahead = line.clone();
        if !(comma.first || ahead.eat(",")) || ahead.reg(abi::name).is_err() {
            return false;
        }
        match self.op.shape() {
            Shape::Compare | Shape::WithScratch | Shape::WithScratchImm => ahead.eat(",") && ahead.starts_place(),
            Shape::Move | Shape::MoveImm | Shape::MoveRegister | Shape::RegisterImm | Shape::Const | Shape::Fill => true,
            Shape::TwoAddress | Shape::Unary | Shape::UnaryImm | Shape::ByCl => true,
            Shape::ThreeAddress | Shape::ThreeRegister | Shape::ThreeImm | Shape::Extract => true,
            Shape::HighProduct | Shape::Quotient | Shape::Remainder => true,
            Shape::Store | Shape::StoreLane | Shape::Update | Shape::Set | Shape::OneUse => true,
            Shape::Nullary | Shape::Trap | Shape::List | Shape::Table => true,
        }
    }
}

/// Whether an instruction has a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Never,
    Optional,
    Always,
}

/// When an instruction has an immediate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Immediate {
    Never,
    Always,
    /// Always, of 64 bits.
    Any,
    /// Always, a trap's code or [`STORED`].
    Trap,
    /// Instead of an absent `rm`.
    WithoutRm,
    /// Instead of an absent `src`.
    WithoutSrc,
}

impl Immediate {
    fn takes(self, inst: &Inst) -> bool {
        match self {
            Immediate::Never => false,
            Immediate::Always | Immediate::Any | Immediate::Trap => true,
            Immediate::WithoutRm => inst.rm == Rm::None,
            Immediate::WithoutSrc => inst.src.is_none(),
        }
    }
}

/// The fields that the text of an instruction has.
struct Form {
    dst: bool,
    src: Presence,
    rm: Presence,
    imm: Immediate,
}

impl Form {
    fn of(op: Asm) -> Form {
        use Immediate::{Always as WithImm, Any, Never as NoImm, Trap, WithoutRm, WithoutSrc};
        use Presence::{Always, Never, Optional};
        let (dst, src, rm, imm) = match op.shape() {
            Shape::Move | Shape::MoveRegister => (true, Never, Always, NoImm),
            Shape::MoveImm | Shape::RegisterImm => (true, Never, Always, WithImm),
            Shape::Const => (true, Never, Never, Any),
            Shape::Fill => (true, Never, Never, NoImm),
            Shape::TwoAddress => (true, Always, Optional, WithoutRm),
            Shape::Unary => (true, Always, Never, NoImm),
            Shape::UnaryImm => (true, Always, Never, WithImm),
            Shape::ByCl | Shape::ThreeAddress | Shape::ThreeRegister => (true, Always, Always, NoImm),
            Shape::ThreeImm => (true, Always, Always, WithImm),
            Shape::Extract => (true, Always, Never, WithImm),
            Shape::HighProduct | Shape::Quotient | Shape::Remainder => (true, Always, Always, NoImm),
            Shape::WithScratch => (true, Optional, Always, NoImm),
            Shape::WithScratchImm => (true, Optional, Always, WithImm),
            Shape::Compare => (false, Optional, Always, WithoutSrc),
            Shape::StoreLane => (false, Always, Always, WithImm),
            Shape::Store | Shape::Update => (false, Optional, Always, WithoutSrc),
            Shape::Set => (true, Never, Never, NoImm),
            Shape::OneUse => (false, Always, Never, WithImm),
            Shape::Nullary | Shape::List => (false, Never, Never, NoImm),
            Shape::Trap => (false, Optional, Never, Trap),
            // The registers are scratch registers.
            Shape::Table => (true, Always, Always, WithImm),
        };
        Form { dst, src, rm, imm }
    }
}

/// The suffix of an instruction on vectors of 256 bits, after that of its width.
const LONG: &str = ".l";

/// Widths, with their suffixes.
const WIDTHS: [(Width, &str); 5] = [(Width::B, ".b"), (Width::W, ".w"), (Width::D, ".d"), (Width::Q, ".q"), (Width::X, ".x")];

fn has_width(op: Asm) -> bool {
    match op.shape() {
        Shape::Nullary | Shape::Trap | Shape::List => false,
        Shape::Move | Shape::MoveImm | Shape::MoveRegister | Shape::RegisterImm | Shape::Const | Shape::Fill => true,
        Shape::TwoAddress | Shape::Unary | Shape::UnaryImm | Shape::ByCl => true,
        Shape::ThreeAddress | Shape::ThreeRegister | Shape::ThreeImm | Shape::Extract => true,
        Shape::HighProduct | Shape::Quotient | Shape::Remainder | Shape::WithScratch | Shape::WithScratchImm => true,
        Shape::Compare | Shape::Store | Shape::StoreLane | Shape::Update | Shape::Set | Shape::OneUse | Shape::Table => true,
    }
}

fn is_memory_destination(op: Asm) -> bool {
    match op.shape() {
        Shape::Store | Shape::StoreLane | Shape::Update => true,
        Shape::Move | Shape::MoveImm | Shape::MoveRegister | Shape::RegisterImm | Shape::Const | Shape::Fill => false,
        Shape::TwoAddress | Shape::Unary | Shape::UnaryImm | Shape::ByCl => false,
        Shape::ThreeAddress | Shape::ThreeRegister | Shape::ThreeImm | Shape::Extract => false,
        Shape::HighProduct | Shape::Quotient | Shape::Remainder | Shape::WithScratch | Shape::WithScratchImm => false,
        Shape::Compare | Shape::Set | Shape::OneUse | Shape::Nullary | Shape::Trap | Shape::List | Shape::Table => false,
    }
}

/// The name of a trap, or `None` for an immediate that is not a trap.
fn trap_name(imm: i64) -> Option<String> {
    match imm {
        STORED => Some("Stored".into()),
        code => u8::try_from(code).ok().and_then(Trap::from_code).map(|trap| format!("{trap:?}")),
    }
}

fn read_trap(line: &mut Line<'_>) -> Result<i64, String> {
    let word = line.word();
    if word == "Stored" {
        return Ok(STORED);
    }
    let found = Trap::ALL.iter().find(|trap| format!("{trap:?}") == word);
    found.map(|&trap| trap as i64).ok_or_else(|| format!("no trap `{word}`"))
}

fn show_rm(rm: &Rm) -> String {
    let mem = match rm {
        Rm::None => return String::new(),
        Rm::Reg(reg) => return Show(Place::Reg(*reg), abi::name).to_string(),
        Rm::Slot(slot) => return Show(Place::Slot(*slot), abi::name).to_string(),
        Rm::Mem(mem) => mem,
    };
    let Mem { base, index, shift, disp, pooled, segment, pc } = *mem;
    let mut terms = Vec::new();
    match segment {
        Segment::Flat => {}
        Segment::Memory => terms.push("gs".to_string()),
        Segment::Memory32 => terms.push("gs32".to_string()),
    }
    if pooled {
        terms.push("pool".to_string());
    }
    if !base.is_none() {
        terms.push(Show(Place::Reg(base), abi::name).to_string());
    }
    if !index.is_none() {
        terms.push(format!("{} * {}", Show(Place::Reg(index), abi::name), 1 << shift));
    }
    if disp != 0 || terms.is_empty() {
        terms.push(disp.to_string());
    }
    let fault = if pc == Mem::SAFE { String::new() } else { format!("!{pc:#x}") };
    format!("[{}]{fault}", terms.join(" + "))
}

fn read_rm(line: &mut Line<'_>) -> Result<Rm, String> {
    if !line.eat("[") {
        return Ok(match line.place(abi::name)? {
            Place::Reg(reg) => Rm::Reg(reg),
            Place::Slot(slot) => Rm::Slot(slot),
        });
    }
    let mut mem = Mem::at(Reg::NONE, 0);
    loop {
        if line.eat("pool") {
            mem.pooled = true;
        } else if line.eat("gs32") {
            mem.segment = Segment::Memory32;
        } else if line.eat("gs") {
            mem.segment = Segment::Memory;
        } else if line.starts_number() {
            mem.disp = line.number()?;
        } else {
            let reg = line.reg(abi::name)?;
            if line.eat("*") {
                let factor = line.number::<u8>()?;
                (mem.index, mem.shift) = (reg, factor.trailing_zeros() as u8);
                if factor == 0 || 1 << mem.shift != factor {
                    return Err(format!("the factor {factor} is no power of two"));
                }
            } else if mem.base.is_none() {
                mem.base = reg;
            } else {
                return Err("an index has a factor".into());
            }
        }
        if line.eat("]") {
            break;
        }
        line.expect("+")?;
    }
    if line.eat("!") {
        mem.pc = line.pc()?;
    }
    Ok(Rm::Mem(mem))
}

/// Operands are separated by commas.
struct Comma {
    first: bool,
}

impl Comma {
    fn next<'t, T>(&mut self, line: &mut Line<'t>, read: impl FnOnce(&mut Line<'t>) -> Result<T, String>) -> Result<T, String> {
        if !std::mem::take(&mut self.first) {
            line.expect(",")?;
        }
        read(line)
    }

    /// Whether the next operand is a place or memory.
    fn is_rm(&self, line: &Line<'_>) -> bool {
        let mut ahead = line.clone();
        (self.first || ahead.eat(",")) && ahead.starts_place()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regalloc::Class;
    use crate::x64::insts::Trunc;
    use isa::Inst as _;

    #[test]
    fn no_two_rows_have_the_same_name() {
        for &op in Asm::ALL {
            let inst = Inst::new(op, if has_width(op) { Width::D } else { Width::Q });
            assert_eq!(Inst::named(&inst.name(), 0), Some(inst), "{op:?}");
        }
    }

    #[test]
    fn memory_operands_have_a_text() {
        let (base, index) = (abi::RDI, Reg::int(13));
        let mems = [
            Mem::at(base, 0),
            Mem::at(base, -8),
            Mem::indexed(base, index, 3, 0),
            Mem::indexed(Reg::NONE, index, 0, i32::MIN),
            Mem { pc: 70, ..Mem::indexed(base, index, 1, 16) },
            Mem::constant(0),
            Mem::constant(24),
            Mem::at(Reg::NONE, 64).relative_to(Segment::Memory),
            Mem::at(base, 8).relative_to(Segment::Memory),
            Mem::indexed(base, index, 2, -8).relative_to(Segment::Memory32),
        ];
        for rm in mems.map(Rm::Mem).into_iter().chain([Rm::Reg(index), Rm::Slot(7)]) {
            let text = show_rm(&rm);
            let mut line = Line::new(&text);
            assert_eq!(read_rm(&mut line), Ok(rm), "{text}");
            assert!(line.is_empty(), "{text}");
        }
    }

    #[test]
    fn wrong_fields_are_found() {
        let (pool, reg) = (8, abi::RCX);
        let load = |mem| Inst::new(Asm::Mov, Width::D).dst(reg).mem(mem);
        assert_eq!(load(Mem::at(reg, 4)).check(pool), Ok(()));
        let wrong = [
            (load(Mem::constant(8)), "the constant's offset"),
            (load(Mem::indexed(reg, reg, 4, 0)), "the factor of the index"),
            (load(Mem::at(reg, 4)).imm(1), "the immediate"),
            (load(Mem::at(reg, 4)).src(reg), "the left operand"),
            (Inst::new(Asm::Mov, Width::D).mem(Mem::at(reg, 4)), "the destination"),
            (Inst::new(Asm::Vadd, Width::D).dst(reg).src(reg), "the right operand"),
            (Inst::new(Asm::Add, Width::Q).dst(reg).src(reg).imm(1 << 33), "the immediate"),
            (Inst::new(Asm::Ud2, Width::Q).imm(200), "the immediate"),
        ];
        for (inst, what) in wrong {
            assert_eq!(inst.check(pool), Err(what.to_string()), "{inst:?}");
        }
    }

    #[test]
    fn a_spill_slot_for_an_operand_that_must_be_a_register_is_an_error() {
        let [dst, rm] = [0, 1].map(|n| Reg::new_virtual(Class::Int, n));
        let assigned = |places: [Place; 2]| {
            let (mut inst, mut places) = (Inst::new(Asm::Mov, Width::D).dst(dst).reg(rm), places.into_iter());
            let result = inst.assign(&mut [], || places.next().unwrap());
            result.map(|()| inst).map_err(|error| error.0)
        };
        let (slot, reg) = (Place::Slot(3), Place::Reg(abi::RCX));
        assert_eq!(assigned([reg, slot]), Ok(Inst { dst: abi::RCX, rm: Rm::Slot(3), ..Inst::new(Asm::Mov, Width::D) }));
        let error = assigned([slot, reg]).unwrap_err();
        assert_eq!(error, "spill slot 3 for an operand of Mov that must be a register");
    }

    #[test]
    fn immediates_of_truncation_are_read_back() {
        for imm in 0..8 {
            assert_eq!(Trunc::from_imm(imm).to_imm(), imm);
        }
    }
}
