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
    /// Memories, tables, globals and what imports were called with. The reference to function `i` is `1 + i`.
    pub sandbox: Sandbox,
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
        sandbox.tables = module.tables.iter().map(|table| vec![0; table.ty.limits.min as usize]).collect();
        for segment in &module.elems {
            let mut items: Vec<u64> = segment.items.iter().map(constant).collect();
            match &segment.mode {
                ElemMode::Active { table, offset } => {
                    let start = constant(offset) as usize;
                    sandbox.tables[*table as usize][start..start + items.len()].copy_from_slice(&items);
                    items.clear();
                }
                ElemMode::Declared => items.clear(),
                ElemMode::Passive => {}
            }
            sandbox.elems.push(items);
        }
        ModuleWorld { module, sandbox, options, transform, steps: 0, depth: 0 }
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
                let entry = usize::try_from(index).ok().and_then(|index| self.sandbox.tables[table as usize].get(index));
                let func = entry.ok_or(Trap::UndefinedElement)?.checked_sub(1).ok_or(Trap::IndirectCallToNull)? as u32;
                let same = *self.module.func_type(func) == self.module.types[ty as usize];
                if same { Ok(func) } else { Err(Trap::BadSignature) }
            }
            Callee::Reference { reference, .. } => Ok(reference.checked_sub(1).ok_or(Trap::NullReference)? as u32),
        }
    }
}

fn constant(expr: &ConstExpr) -> u64 {
    match *expr.0 {
        [ConstOp::I32(value)] => u64::from(value as u32),
        [ConstOp::I64(value)] => value as u64,
        [ConstOp::F32(bits)] => bits.into(),
        [ConstOp::F64(bits)] => bits,
        [ConstOp::RefFunc(func)] => 1 + u64::from(func),
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

    fn ref_func(&mut self, func: u32) -> u64 {
        self.sandbox.ref_func(func)
    }

    fn table_get(&mut self, table: u32, index: u64) -> Result<u64, Trap> {
        self.sandbox.table_get(table, index)
    }

    fn table_set(&mut self, table: u32, index: u64, reference: u64) -> Result<(), Trap> {
        self.sandbox.table_set(table, index, reference)
    }

    fn table_size(&mut self, table: u32) -> u64 {
        self.sandbox.table_size(table)
    }

    fn table_grow(&mut self, table: u32, reference: u64, delta: u64) -> Option<u64> {
        self.sandbox.table_grow(table, reference, delta)
    }

    fn table_fill(&mut self, table: u32, index: u64, reference: u64, len: u64) -> Result<(), Trap> {
        self.sandbox.table_fill(table, index, reference, len)
    }

    fn table_copy(&mut self, tables: (u32, u32), to: u64, from: u64, len: u64) -> Result<(), Trap> {
        self.sandbox.table_copy(tables, to, from, len)
    }

    fn table_init(&mut self, table: u32, segment: u32, to: u64, from: u32, len: u32) -> Result<(), Trap> {
        self.sandbox.table_init(table, segment, to, from, len)
    }

    fn elem_drop(&mut self, segment: u32) {
        self.sandbox.elem_drop(segment);
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
            Stop::Steps | Stop::Vectors => Trap::Interrupt,
        })
    }

    fn fuel(&mut self, cost: u64) -> Result<(), Trap> {
        self.sandbox.fuel(cost)
    }

    fn poll(&mut self) -> Result<(), Trap> {
        self.sandbox.poll()
    }
}
