//! Profiles of programs: random ones, which must not change a program's behaviour, and a comparison of shown with
//! installed code.

use crate::rng::Rng;
use weir::{BranchProfile, CallProfile, Module, Profile, Section};
use weir_bytecode::{FuncBody, Imm, Instr, Instrs, Module as Bytecode};
use weir_contract::Entry;
use weir_contract::profile::Counted;
use weir_jit::request::CalleeCounts;

/// Counts at the limits that the compiler distinguishes.
const COUNTS: [u32; 8] = [0, 1, 8, 15, 16, 1000, u32::MAX - 1, u32::MAX];

/// Functions of fewer bytes may be inlined.
const INLINED: u32 = 500;

/// Makes `module` use random counts for the entries of its functions. Its engine must keep profiles.
///
/// # Errors
/// The errors of [`Module::use_profile`].
pub fn use_random(module: &Module, rng: &mut Rng) -> weir::Result<()> {
    let bytecode = module.bytecode();
    let mut profile = module.saved_profile()?;
    for func in bytecode.imported_funcs..bytecode.funcs.len() as u32 {
        let Some(body) = bytecode.body(func) else { continue };
        let entries = std::iter::once(Entry::Call).chain(body.loops.iter().map(|info| Entry::Osr(info.pc)));
        for entry in entries {
            profile.entries.insert((func, entry), random(bytecode, body, rng));
            for callee in bytecode.imported_funcs..bytecode.funcs.len() as u32 {
                if let Some(body) = bytecode.body(callee).filter(|body| body.len() < INLINED && rng.one_in(2)) {
                    profile.inlined.insert((func, entry, callee), random(bytecode, body, rng));
                }
            }
        }
    }
    module.use_profile(&profile.to_string())
}

/// Random counts of a function's branches and indirect calls.
pub fn random(module: &Bytecode, body: &FuncBody, rng: &mut Rng) -> Profile {
    let (mut branches, mut calls) = (Vec::new(), Vec::new());
    for instr in Instrs::new(module, body.entry, body.end) {
        if rng.one_in(8) {
            continue;
        }
        match Counted::of(&instr) {
            Some(Counted::Branch { successors }) => {
                let counts = (0..successors).map(|_| *rng.pick(&COUNTS)).collect();
                branches.push(BranchProfile { pc: instr.pc, counts });
            }
            Some(Counted::Call) => {
                let targets = (0..rng.below(4)).map(|_| (target(module, &instr, rng), *rng.pick(&COUNTS))).collect();
                calls.push(CallProfile { pc: instr.pc, targets, others: *rng.pick(&COUNTS) });
            }
            None => (),
        }
    }
    Profile { branches: branches.into(), calls: calls.into() }
}

/// Random counts of inlined functions.
#[derive(Debug)]
pub struct RandomCounts<'m>(pub &'m Bytecode);

impl CalleeCounts for RandomCounts<'_> {
    fn counts(&self, func: u32) -> Option<Profile> {
        Some(random(self.0, self.0.body(func)?, &mut Rng::new(func.into())))
    }
}

/// A function that an indirect call may have called: mostly one of the call's own type, because only such a call is inlined.
fn target(module: &Bytecode, instr: &Instr<'_>, rng: &mut Rng) -> Option<u32> {
    let count = module.funcs.len() as u32;
    let func = rng.below(count + 1);
    let (Imm::CallIndirect { ty, .. } | Imm::Index(ty)) = instr.imm else { return (func < count).then_some(func) };
    let of_type = || (0..count).map(|i| (func + i) % count.max(1)).find(|&func| module.funcs[func as usize] == ty);
    (!rng.one_in(4)).then(of_type).flatten().or((func < count).then_some(func))
}

/// The bytes that [`Module::explore`] shows, with `None` for those that a relocation fills in.
///
/// # Panics
/// If there is no code, or its text is malformed.
pub fn shown_bytes(sections: &[Section]) -> Vec<Option<u8>> {
    let last = sections.last().expect("there are stages");
    assert_eq!(last.stage, "bytes", "{}", last.text);
    let lines = last.text.lines().take_while(|line| !line.starts_with("reloc"));
    let words = lines.flat_map(|line| line.split_whitespace().skip(1));
    words.map(|word| (word != "..").then(|| u8::from_str_radix(word, 16).expect("two digits"))).collect()
}

/// Whether the installed code is the code that is shown.
pub fn same_code(shown: &[Option<u8>], installed: &[u8]) -> bool {
    shown.len() == installed.len() && shown.iter().zip(installed).all(|(shown, byte)| shown.is_none_or(|shown| shown == *byte))
}
