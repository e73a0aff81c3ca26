//! The most memory that each phase of a compilation to machine code allocates. Of large lists that are reserved and not filled, the system
//! gives less.

use crate::measure::peak::Watched;
use crate::shapes;
use crate::whole::defined;
use bumpalo::Bump;
use std::cmp::Reverse;
use std::ops::ControlFlow;
use weir_bytecode::{Module, validate};
use weir_jit::form::{Form, Observer};
use weir_jit::ir::Entry;
use weir_jit::meter::Meter;
use weir_jit::pipeline::{self, Unit};
use weir_jit::{Backend, Options, Request};

/// The number of functions of a module that are shown, those with the most bytes for each byte of code, and their least length.
const SHOWN: usize = 10;
const LEAST: u32 = 2_000;
/// The size of generated functions.
const SIZE: usize = 1 << 20;

/// The memory of a compilation.
struct Memory {
    bytes: u32,
    /// By phase, the most that was allocated at once.
    phases: Vec<(&'static str, usize)>,
    /// The reason if the function was refused.
    refused: Option<String>,
}

impl Observer for Memory {
    fn after(&mut self, phase: &'static str, form: &Form<'_>) -> ControlFlow<()> {
        self.phases.push((phase, Watched::most_since()));
        if matches!((phase, form), ("lower", Form::Machine(_))) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Memory {
    /// Compiles a function as [`weir_jit::compile`] does.
    fn of(module: &Module, func: u32) -> Memory {
        let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
        let options = Options { verify: false, ..Options::default() };
        let (entry, backend) = (Entry::Call, Backend::Native);
        let request =
            Request { module, func, entry, sig_ids: &sig_ids, backend, profile: None, callees: None, options: &options };
        let mut memory = Memory { bytes: bytes(module, func), phases: Vec::new(), refused: None };
        Watched::start();
        let mut arena = Bump::new();
        let form = Form::Bytecode(&arena);
        let mut phases = pipeline::rest(&form, backend);
        let loops = module.body(func).map_or(0, |body| body.loops.len());
        let mut unit = Unit::metered(&request, form, Bump::new(), Meter::of(memory.bytes, loops, &|| false));
        let done = match pipeline::run(&mut unit, &mut phases, &mut memory) {
            Ok(_) => {
                let mut unit = unit.after_ssa();
                pipeline::clear(&mut arena);
                pipeline::run(&mut unit, phases, &mut memory)
            }
            Err(refusal) => Err(refusal),
        };
        memory.phases.push(("end", Watched::most_since()));
        memory.refused = done.err().map(|refusal| refusal.to_string());
        memory
    }

    fn most_per_byte(&self) -> f64 {
        let most = self.phases.iter().map(|phase| phase.1).max().unwrap_or_default();
        most as f64 / f64::from(self.bytes)
    }

    fn print(mut self, name: &str) {
        let Memory { bytes, refused, .. } = &self;
        let per_byte = self.most_per_byte();
        let most = per_byte * f64::from(*bytes) / 1e6;
        println!("{name:32} {bytes:>8} bytes {most:>7.1} MB {per_byte:>6.1} B/B  {}", refused.as_deref().unwrap_or_default());
        self.phases.sort_by_key(|phase| Reverse(phase.1));
        let text = self.phases.iter().take(6).map(|(name, most)| format!("{name} {:.1}", *most as f64 / f64::from(self.bytes)));
        println!("    {}", text.collect::<Vec<_>>().join(", "));
    }
}

fn bytes(module: &Module, func: u32) -> u32 {
    module.body(func).expect("it is defined").len()
}

/// Prints the memory of some functions of a module.
pub fn of_module(name: &str, module: &Module) {
    let long = defined(module).filter(|&func| bytes(module, func) >= LEAST);
    let mut all: Vec<(u32, Memory)> = long.map(|func| (func, Memory::of(module, func))).collect();
    all.sort_by(|(_, a), (_, b)| b.most_per_byte().total_cmp(&a.most_per_byte()));
    for (func, memory) in all.into_iter().take(SHOWN) {
        memory.print(&format!("{name}, {func}"));
    }
}

/// Prints the memory of generated functions.
pub fn of_shapes() -> Result<(), String> {
    for (name, shape) in shapes::ALL {
        let module = validate::parse(shapes::module(*shape, SIZE).into()).map_err(|error| format!("{name}: {error}"))?;
        Memory::of(&module, defined(&module).end - 1).print(name);
    }
    Ok(())
}
