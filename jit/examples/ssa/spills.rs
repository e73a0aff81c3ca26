//! The copies, reloads and spills that register allocation inserts, weighted by block frequency.

use crate::whole::defined;
use bumpalo::Bump;
use std::ops::{AddAssign, ControlFlow};
use weir_bytecode::Module;
use weir_jit::ir::Entry;
use weir_jit::mir::code::MachineCode;
use weir_jit::mir::isa::Inst;
use weir_jit::pipeline::{self, Form, Observer, Unit};
use weir_jit::regalloc::Place;
use weir_jit::request::Allocator;
use weir_jit::{Backend, Options, Request};

/// Sums of block frequencies.
#[derive(Default)]
struct Weights {
    /// Instructions, inserted ones included.
    insts: f64,
    /// Copies between registers.
    copies: f64,
    /// Those before a jump back to a loop's header.
    on_back_edges: f64,
    reloads: f64,
    spills: f64,
    /// Reloads and spills in blocks that end in an indirect jump, in a loop.
    in_dispatch: f64,
    /// The number of functions that were refused, and are in no sum.
    refused: u32,
}

impl AddAssign for Weights {
    fn add_assign(&mut self, other: Weights) {
        self.insts += other.insts;
        self.copies += other.copies;
        self.on_back_edges += other.on_back_edges;
        self.reloads += other.reloads;
        self.spills += other.spills;
        self.in_dispatch += other.in_dispatch;
        self.refused += other.refused;
    }
}

/// Prints the table for one module.
pub fn spills(name: &str, module: &Module) {
    println!(
        "{name:24} {:>10} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}",
        "weighted", "insts", "copies", "on back", "reloads", "spills", "dispatch", "refused"
    );
    let allocators = [Allocator::LinearScan, Allocator::Regalloc2];
    for allocator in allocators.into_iter().filter(|&of| cfg!(feature = "regalloc2") || of == Allocator::LinearScan) {
        let weights = weights(module, &Options { verify: false, allocator, ..Options::default() });
        let Weights { insts, copies, on_back_edges, reloads, spills, in_dispatch, refused } = weights;
        println!(
            "{:24} {:>10} {insts:>9.0} {copies:>9.0} {on_back_edges:>9.0} {reloads:>9.0} {spills:>8.0} {in_dispatch:>8.0} {refused:>8}",
            "",
            format!("{allocator:?}")
        );
        let share = |of: f64| format!("{:.1} %", 100.0 * of / insts);
        println!(
            "{:45} {:>9} {:>9} {:>9} {:>8} {:>8}",
            "",
            share(copies),
            share(on_back_edges),
            share(reloads),
            share(spills),
            share(in_dispatch)
        );
    }
}

/// The sums over all functions of a module.
fn weights(module: &Module, options: &Options) -> Weights {
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    let mut sum = Weights::default();
    for func in defined(module) {
        let (entry, backend) = (Entry::Call, Backend::Native);
        let request = Request { module, func, entry, sig_ids: &sig_ids, backend, profile: None, callees: None, options };
        let arena = Bump::new();
        let mut unit = Unit::new(&request, Form::Bytecode(&arena), Bump::new());
        let phases = pipeline::rest(&unit.form, backend);
        if pipeline::run(&mut unit, phases, &mut AfterAllocation(&mut sum)).is_err() {
            sum.refused += 1;
        }
    }
    sum
}

/// Weighs machine code after allocation, and ends the compilation.
struct AfterAllocation<'w>(&'w mut Weights);

impl Observer for AfterAllocation<'_> {
    fn after(&mut self, phase: &'static str, form: &Form<'_>) -> ControlFlow<()> {
        match form {
            Form::Machine(code) if phase == "regalloc" => {
                *self.0 += weigh(code);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn weigh<I: Inst>(code: &MachineCode<I>) -> Weights {
    let mut weights = Weights::default();
    let mut moves = code.allocated().moves.iter().peekable();
    for (i, block) in (0..).zip(&code.blocks) {
        let frequency = f64::from(block.frequency);
        let back = block.succs.iter().any(|&succ| succ <= i);
        let dispatches = code.dispatches(i as usize) && code.loops.iter().any(|range| range.contains(&i));
        weights.insts += frequency * block.insts.len() as f64;
        while let Some(inserted) = moves.next_if(|inserted| inserted.before < block.insts.end) {
            weights.insts += frequency;
            let memory = match (inserted.from, inserted.to) {
                (Place::Reg(_), Place::Reg(_)) => {
                    weights.copies += frequency;
                    weights.on_back_edges += if back { frequency } else { 0.0 };
                    continue;
                }
                (Place::Slot(_), _) => &mut weights.reloads,
                (_, Place::Slot(_)) => &mut weights.spills,
            };
            *memory += frequency;
            weights.in_dispatch += if dispatches { frequency } else { 0.0 };
        }
    }
    weights
}
