//! A module's functions run as SSA: every call builds the callee, passes it through a given transformation, and
//! evaluates it.

use bumpalo::Bump;
use weir_bytecode::module::{ConstExpr, ConstOp, ElemMode};
use weir_bytecode::{Module, Trap};
use weir_jit::Options;
use weir_jit::build::{BuildStats, build};
use weir_jit::ir::eval::Callee;
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{Entry, Func, Outcome, Stop, World, eval};

/// A module's instance for the evaluator. Imported functions answer as [`Sandbox`] does.
pub struct ModuleWorld<'m> {
    module: &'m Module,
    /// Memories, globals and what imports were called with.
    pub sandbox: Sandbox,
    /// Functions in each table.
    tables: Vec<Vec<Option<u32>>>,
    options: &'m Options,
    transform: &'m dyn Fn(&mut Func<'_>),
    steps: u64,
    depth: u32,
}

/// Bytes of a page.
const PAGE: u64 = 1 << 16;
/// Nested calls before a stack overflow.
const MAX_DEPTH: u32 = 200;

impl<'m> ModuleWorld<'m> {
    /// An instance of `module`. Functions run as SSA that was built with `options` and then given to `transform`.
    /// Initialisers other than numeric constants count as 0.
    pub fn new(module: &'m Module, options: &'m Options, transform: &'m dyn Fn(&mut Func<'_>)) -> ModuleWorld<'m> {
        let bytes = |segment: &std::ops::Range<u32>| module.bytes[segment.start as usize..segment.end as usize].to_vec();
        let mut sandbox = Sandbox {
            memories: module.memories.iter().map(|ty| vec![0; (ty.limits.min * PAGE) as usize]).collect(),
            globals: vec![0; module.imported_globals as usize],
            data: module.data.iter().map(|segment| bytes(&segment.range)).collect(),
            ..Sandbox::default()
        };
        sandbox.globals.extend(module.global_inits.iter().map(constant));
        for (i, segment) in module.data.iter().enumerate() {
            if let Some((memory, offset)) = &segment.active {
                let (start, data) = (constant(offset) as usize, std::mem::take(&mut sandbox.data[i]));
                sandbox.memories[*memory as usize][start..start + data.len()].copy_from_slice(&data);
            }
        }
        let mut tables: Vec<_> = module.tables.iter().map(|table| vec![None; table.ty.limits.min as usize]).collect();
        for segment in &module.elems {
            if let ElemMode::Active { table, offset } = &segment.mode {
                let start = constant(offset) as usize;
                for (slot, item) in tables[*table as usize][start..].iter_mut().zip(&segment.items) {
                    *slot = match *item.0 {
                        [ConstOp::RefFunc(func)] => Some(func),
                        _ => None,
                    };
                }
            }
        }
        ModuleWorld { module, sandbox, tables, options, transform, steps: 0, depth: 0 }
    }

    /// Calls function `func` with slots as arguments, for at most `steps` instructions.
    ///
    /// # Errors
    /// A trap, or the end of the budget.
    ///
    /// # Panics
    /// If the function cannot be built.
    pub fn run(&mut self, func: u32, args: &[u64], steps: u64) -> Result<Vec<u64>, Stop> {
        self.steps = steps;
        let (mut func, mut args) = (func, args.to_vec());
        loop {
            if func < self.module.imported_funcs {
                return Ok(self.sandbox.call(Callee::Direct(func), &args)?);
            }
            let arena = Bump::new();
            let mut ssa = build(&arena, self.module, func, Entry::Call, self.options, &mut BuildStats::default())
                .unwrap_or_else(|refusal| panic!("function {func}: {refusal}"));
            (self.transform)(&mut ssa);
            let left = self.steps;
            match eval(&ssa, self, &args, left)? {
                Outcome::Return(results) => return Ok(results),
                Outcome::TailCall(callee, passed) => {
                    func = self.resolve(callee)?;
                    args = passed;
                }
            }
        }
    }

    fn resolve(&self, callee: Callee) -> Result<u32, Trap> {
        match callee {
            Callee::Direct(func) => Ok(func),
            Callee::Indirect { ty, table, index } => {
                let entry = usize::try_from(index).ok().and_then(|index| self.tables[table as usize].get(index));
                let func = entry.ok_or(Trap::UndefinedElement)?.ok_or(Trap::UninitializedElement)?;
                let same = *self.module.func_type(func) == self.module.types[ty as usize];
                if same { Ok(func) } else { Err(Trap::IndirectCallTypeMismatch) }
            }
        }
    }
}

fn constant(expr: &ConstExpr) -> u64 {
    match *expr.0 {
        [ConstOp::I32(value)] => u64::from(value as u32),
        [ConstOp::I64(value)] => value as u64,
        [ConstOp::F32(bits)] => bits.into(),
        [ConstOp::F64(bits)] => bits,
        _ => 0,
    }
}

impl World for ModuleWorld<'_> {
    fn load(&mut self, memory: u32, address: u64, offset: u64, width: u32) -> Result<u64, Trap> {
        self.sandbox.load(memory, address, offset, width)
    }

    fn store(&mut self, memory: u32, address: u64, offset: u64, width: u32, value: u64) -> Result<(), Trap> {
        self.sandbox.store(memory, address, offset, width, value)
    }

    fn memory_size(&mut self, memory: u32) -> u64 {
        self.sandbox.memory_size(memory)
    }

    fn memory_grow(&mut self, memory: u32, delta: u64) -> Option<u64> {
        self.sandbox.memory_grow(memory, delta)
    }

    fn memory_fill(&mut self, memory: u32, to: u64, byte: u8, len: u64) -> Result<(), Trap> {
        self.sandbox.memory_fill(memory, to, byte, len)
    }

    fn memory_copy(&mut self, memories: (u32, u32), to: u64, from: u64, len: u64) -> Result<(), Trap> {
        self.sandbox.memory_copy(memories, to, from, len)
    }

    fn memory_init(&mut self, memory: u32, segment: u32, to: u64, from: u32, len: u32) -> Result<(), Trap> {
        self.sandbox.memory_init(memory, segment, to, from, len)
    }

    fn data_drop(&mut self, segment: u32) {
        self.sandbox.data_drop(segment);
    }

    fn global(&mut self, global: u32) -> u64 {
        self.sandbox.global(global)
    }

    fn set_global(&mut self, global: u32, value: u64) {
        self.sandbox.set_global(global, value);
    }

    fn call(&mut self, callee: Callee, args: &[u64]) -> Result<Vec<u64>, Trap> {
        let func = self.resolve(callee)?;
        if self.depth == MAX_DEPTH {
            return Err(Trap::StackOverflow);
        }
        self.depth += 1;
        let results = self.run(func, args, self.steps);
        self.depth -= 1;
        results.map_err(|stop| match stop {
            Stop::Trap(trap) => trap,
            Stop::Steps => Trap::Interrupt,
        })
    }

    fn fuel(&mut self, cost: u64) -> Result<(), Trap> {
        self.sandbox.fuel(cost)
    }

    fn poll(&mut self) -> Result<(), Trap> {
        self.sandbox.poll()
    }
}
