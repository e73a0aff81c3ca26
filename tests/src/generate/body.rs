//! Function bodies: statements, which preserve the operand stack, and expressions, which push one value.

mod calls;
mod memory;

use super::shape::{FUEL_GLOBAL, Global, Shape, TYPES, encoder_type, types};
use super::value::Value;
use crate::rng::Rng;
use std::sync::LazyLock;
use wasm_encoder as enc;
use wasm_encoder::InstructionSink;
use weir_bytecode::Opcode;
use weir_bytecode::opcodes::{Effect, Immediates};
use weir_bytecode::semantics::nan::{self, Floats};
use weir_bytecode::types::{FuncType, ValType};

/// The maximum depth of expressions and of loops.
const MAX_DEPTH: u32 = 5;
const MAX_LOOPS: u32 = 3;

/// Numeric instructions by the type of their result, in the order of [`TYPES`].
static NUMERIC: LazyLock<[Vec<Opcode>; 5]> = LazyLock::new(|| instructions(|op| !op.is_vector()));

/// Vector instructions, except relaxed ones.
static VECTOR: LazyLock<[Vec<Opcode>; 5]> = LazyLock::new(|| instructions(|op| op.is_vector() && !is_relaxed(op)));

/// Relaxed instructions, all of which return vectors.
static RELAXED: LazyLock<Vec<Opcode>> = LazyLock::new(|| Opcode::ALL.iter().copied().filter(|&op| is_relaxed(op)).collect());

fn is_relaxed(op: Opcode) -> bool {
    op.mnemonic().contains("relaxed")
}

fn instructions(kind: impl Fn(Opcode) -> bool) -> [Vec<Opcode>; 5] {
    TYPES.map(|ty| {
        let gives = |op: &Opcode| op.signature().is_some_and(|s| s.result == ty && !s.operands.is_empty());
        Opcode::ALL.iter().copied().filter(|op| gives(op) && kind(*op)).collect()
    })
}

/// The body of function `func`.
pub(super) fn generate(shape: &mut Shape, rng: &mut Rng, func: usize) -> enc::Function {
    let ty = shape.func_type(func as u32).clone();
    let in_signature = ty.params.iter().chain(&ty.results).any(|&ty| ty == ValType::V128);
    let types = types(in_signature || shape.vectors && rng.percent(75));
    let mut locals = ty.params.to_vec();
    locals.extend(types);
    locals.extend((0..rng.below(6)).map(|_| *rng.pick(types)));
    let writable = locals.len();
    locals.extend([ValType::F32, ValType::F64]);
    locals.extend([ValType::I32; MAX_LOOPS as usize]);
    locals.extend(&types[4..]);
    let declared = locals[ty.params.len()..].iter().map(|&ty| encoder_type(ty));
    let code = enc::Function::new_with_locals_types(declared);
    // A few functions are large, with many live values or many blocks.
    let large = !shape.brief && rng.one_in(16);
    let budget = match large {
        true => 2500,
        false if shape.brief => 20 + rng.below(60) as i32,
        false => 40 + rng.below(400) as i32,
    };
    let labels = vec![Label { types: ty.results.to_vec(), target: true }];
    let mut body = Body { shape, rng, code, types, locals, writable, results: ty.results, labels, budget, trips: 1, loops: 0 };
    body.pay();
    if body.shape.brief {
        body.counting_loop(&[], &[], 3);
    }
    let count = if large { 24 } else { 2 + body.rng.below(6) };
    let diverged = body.statements(count, MAX_DEPTH);
    if !diverged || body.rng.percent(50) {
        body.function_results();
    }
    body.sink().end();
    body.code
}

struct Body<'a> {
    shape: &'a mut Shape,
    rng: &'a mut Rng,
    code: enc::Function,
    /// The types of its values. Values of other types, for calls, are only leaves.
    types: &'static [ValType],
    /// All locals: parameters and others that statements write, one scratch f32 and f64, loop counters, and a scratch v128 if
    /// it has vectors.
    locals: Vec<ValType>,
    /// The number of locals that statements may write.
    writable: usize,
    results: Box<[ValType]>,
    /// The enclosing blocks, outermost first.
    labels: Vec<Label>,
    /// The remaining number of nodes; at 0 only leaves are made.
    budget: i32,
    /// The product of the iterations of the enclosing loops.
    trips: u32,
    /// The number of enclosing loops.
    loops: u32,
}

struct Label {
    types: Vec<ValType>,
    /// Whether it may be a branch target. The head of a loop that counts at its end may not, because the loop might not end.
    target: bool,
}

impl Body<'_> {
    fn sink(&mut self) -> InstructionSink<'_> {
        self.code.instructions()
    }

    /// Returns zeros if the fuel is used up, else takes one unit of it, and counts the call where calls are counted.
    fn pay(&mut self) {
        self.sink().global_get(FUEL_GLOBAL).i32_eqz().if_(enc::BlockType::Empty);
        self.zeros(&self.results.clone());
        self.sink().return_().end();
        self.sink().global_get(FUEL_GLOBAL).i32_const(1).i32_sub().global_set(FUEL_GLOBAL);
        if let Some(calls) = self.shape.calls_global() {
            self.sink().global_get(calls).i32_const(1).i32_add().global_set(calls);
        }
    }

    fn function_results(&mut self) {
        for ty in self.results.clone() {
            self.expr(ty, 2);
        }
    }

    // Values

    fn constant(&mut self, value: Value) {
        value.push(&mut self.sink());
    }

    fn zeros(&mut self, types: &[ValType]) {
        types.iter().for_each(|&ty| self.constant(Value::zero(ty)));
    }

    fn values(&mut self, types: &[ValType], depth: u32) {
        for &ty in types {
            self.expr(ty, depth);
        }
    }

    /// Pops values of these types into locals, or drops them.
    fn consume(&mut self, types: &[ValType]) {
        for &ty in types.iter().rev() {
            match self.local(ty, self.writable) {
                Some(local) if self.rng.percent(75) => self.sink().local_set(local),
                _ => self.sink().drop(),
            };
        }
    }

    /// One of the first `count` locals, of this type.
    fn local(&mut self, ty: ValType, count: usize) -> Option<u32> {
        let candidates: Vec<u32> = (0..count as u32).filter(|&i| self.locals[i as usize] == ty).collect();
        (!candidates.is_empty()).then(|| *self.rng.pick(&candidates))
    }

    /// A global's index in the module.
    fn global(&mut self, ty: ValType, write: bool) -> Option<u32> {
        let fits = |(_, global): &(u32, &Global)| global.ty == ty && (global.mutable || !write);
        let candidates: Vec<u32> = (1..).zip(&self.shape.globals).filter(fits).map(|(i, _)| i).collect();
        (!candidates.is_empty()).then(|| *self.rng.pick(&candidates))
    }

    fn leaf(&mut self, ty: ValType) {
        // The scratch vector may hold NaNs with any bits.
        let all = if ty == ValType::V128 { self.writable } else { self.locals.len() };
        match self.rng.below(10) {
            0..3 => {
                let value = Value::random(ty, self.rng);
                self.constant(value);
            }
            3 => {
                let global = self.global(ty, false).expect("there is a global of each type");
                self.sink().global_get(global);
            }
            _ => {
                match self.local(ty, all) {
                    Some(local) => {
                        self.sink().local_get(local);
                    }
                    None => self.zeros(&[ty]),
                };
            }
        }
    }

    fn expr(&mut self, ty: ValType, depth: u32) {
        self.budget -= 1;
        if depth == 0 || self.budget <= 0 || !self.types.contains(&ty) {
            return self.leaf(ty);
        }
        let depth = depth - 1;
        match self.rng.below(100) {
            0..14 => self.leaf(ty),
            14..60 => self.numeric(ty, depth),
            60..68 => self.load(ty, depth),
            68..73 => self.select(ty, depth),
            73..81 => self.construct(&[ty], depth),
            81..86 => self.call(Some(ty), depth),
            86..89 => self.call_indirect(Some(ty), depth),
            89..92 => {
                self.expr(ty, depth);
                let local = self.local(ty, self.writable).expect("there is a local of each type");
                self.sink().local_tee(local);
            }
            92..95 => self.branch_with_value(ty, depth),
            95..98 if ty == ValType::I32 => self.inquiry(depth),
            95..98 if ty == ValType::I64 => self.wide(depth),
            _ => self.numeric(ty, depth),
        }
    }

    fn select(&mut self, ty: ValType, depth: u32) {
        self.values(&[ty, ty, ValType::I32], depth);
        // wasmi 1.1 treats the result of `replace_lane` as a number, and refuses to select it as a vector.
        if ty == ValType::V128 || self.rng.percent(70) {
            self.sink().select();
        } else {
            self.sink().typed_select(encoder_type(ty));
        }
    }

    /// Branches with a value that stays on the stack if the branch is not taken.
    fn branch_with_value(&mut self, ty: ValType, depth: u32) {
        let candidates = self.targets(|types| types == [ty]);
        self.expr(ty, depth);
        if !candidates.is_empty() {
            let target = *self.rng.pick(&candidates);
            self.expr(ValType::I32, depth);
            self.sink().br_if(target);
        }
    }

    /// Pushes an i32 that depends on the state of a memory or a table.
    fn inquiry(&mut self, depth: u32) {
        let (memory, table) = (self.memory(), self.table());
        let ty = match self.rng.below(8) {
            0..3 => {
                self.sink().memory_size(memory);
                self.address_type(memory)
            }
            3 => {
                let (ty, delta) = (self.address_type(memory), self.rng.below(2));
                self.index(ty, delta.into());
                self.sink().memory_grow(memory);
                ty
            }
            4 => {
                self.sink().table_size(table);
                self.index_type(table)
            }
            5 if !self.shape.tables[table as usize].private && self.rng.one_in(3) => {
                let ty = self.index_type(table);
                self.reference(depth);
                self.index(ty, 1);
                self.sink().table_grow(table);
                ty
            }
            _ => {
                self.reference(depth);
                self.sink().ref_is_null();
                ValType::I32
            }
        };
        if ty == ValType::I64 {
            self.sink().i32_wrap_i64();
        }
    }

    /// Pushes an address, index, length or size of this type.
    fn index(&mut self, ty: ValType, value: u64) {
        self.constant(Value::integer(ty, value));
    }

    /// Appends an instruction on integers of this type.
    fn integer(&mut self, ty: ValType, narrow: Opcode, wide: Opcode) {
        self.opcode(if ty == ValType::I64 { wide } else { narrow });
    }

    // Numbers

    fn opcode(&mut self, op: Opcode) {
        let mut bytes = Vec::new();
        op.encode(&mut bytes);
        self.code.raw(bytes);
    }

    fn numeric(&mut self, ty: ValType, depth: u32) {
        let index = TYPES.iter().position(|&known| known == ty).expect("a type of values");
        let vector = ty == ValType::V128 || self.types.contains(&ValType::V128) && self.rng.percent(15);
        let ops = match vector {
            true if ty == ValType::V128 && self.shape.beyond_wasmi && self.rng.percent(40) => &RELAXED,
            true => &VECTOR[index],
            false => &NUMERIC[index],
        };
        let op = *self.rng.pick(ops);
        let operands = op.signature().expect("numeric").operands;
        let name = op.mnemonic();
        let guarded = !self.rng.one_in(50);
        for (i, &operand) in operands.iter().enumerate() {
            self.expr(operand, depth);
            let last = i + 1 == operands.len();
            if last && guarded && (name.contains(".div_") || name.contains(".rem_")) {
                self.constant(if operand == ValType::I32 { Value::I32(1) } else { Value::I64(1) });
                self.opcode(if operand == ValType::I32 { Opcode::I32Or } else { Opcode::I64Or });
            }
            if last && guarded && name.contains(".trunc_f") {
                self.clamp(operand, name.ends_with("_u"));
            }
            let kept = vector || name.contains("copysign") || name.contains("reinterpret_f");
            if last && kept && matches!(operand, ValType::F32 | ValType::F64) {
                self.canonical(operand);
            }
        }
        self.opcode(op);
        if vector {
            self.lanes(op);
        }
    }

    /// Appends the lanes of a vector instruction, and the replacement of NaNs in its result by the canonical one.
    fn lanes(&mut self, op: Opcode) {
        match op.immediates() {
            Immediates::Lane => {
                let lanes = op.lanes().expect("only instructions on vectors name a lane").shape.lanes();
                let lane = self.rng.below(lanes) as u8;
                self.code.raw([lane]);
            }
            Immediates::Shuffle => {
                let (first, size) = (self.rng.below(32) as u8, 1 << self.rng.below(4));
                let mut lanes = [0; 16];
                match self.rng.below(3) {
                    0 => (first..).zip(&mut lanes).for_each(|(i, lane)| *lane = i % 32),
                    _ => lanes.chunks_mut(size).for_each(|group| {
                        let first = self.rng.below(32 / size as u32) as u8 * size as u8;
                        (first..).zip(group).for_each(|(i, lane)| *lane = i);
                    }),
                }
                self.code.raw(lanes);
            }
            _ => {}
        }
        if let Some(floats) = nan::open(op) {
            let scratch = self.locals.len() as u32 - 1;
            let equal = if floats == Floats::F32x4 { Opcode::F32x4Eq } else { Opcode::F64x2Eq };
            self.sink().local_tee(scratch);
            self.constant(Value::V128(floats.canonical()));
            self.sink().local_get(scratch).local_get(scratch);
            self.opcode(equal);
            self.opcode(Opcode::V128Bitselect);
        }
    }

    /// Pushes either half of the result of a wide-arithmetic instruction, or a mixture of both.
    fn wide(&mut self, depth: u32) {
        let op = *self.rng.pick(&[Opcode::I64Add128, Opcode::I64Sub128, Opcode::I64MulWideS, Opcode::I64MulWideU]);
        let Effect::Fixed { operands, .. } = op.effect() else { unreachable!("the types depend on the opcode alone") };
        self.values(operands, depth);
        self.opcode(op);
        match self.rng.below(3) {
            0 => self.sink().drop(),
            1 => self.sink().i64_xor(),
            _ => self.sink().i64_sub(),
        };
    }

    fn is_nan(&mut self, ty: ValType, scratch: u32) {
        self.sink().local_get(scratch).local_get(scratch);
        self.opcode(if ty == ValType::F32 { Opcode::F32Ne } else { Opcode::F64Ne });
    }

    fn scratch(&self, ty: ValType) -> u32 {
        self.writable as u32 + u32::from(ty == ValType::F64)
    }

    /// Replaces the float on top of the stack by `instead` if it is a NaN. The scratch local is never live across an
    /// expression.
    fn replace_nan(&mut self, ty: ValType, instead: f64) {
        let scratch = self.scratch(ty);
        self.sink().local_set(scratch);
        self.float(ty, instead);
        self.sink().local_get(scratch);
        self.is_nan(ty, scratch);
        self.sink().select();
    }

    fn float(&mut self, ty: ValType, value: f64) {
        self.constant(if ty == ValType::F32 { Value::F32((value as f32).to_bits()) } else { Value::F64(value.to_bits()) });
    }

    /// Replaces a NaN on top of the stack by the canonical one.
    fn canonical(&mut self, ty: ValType) {
        let nan = if ty == ValType::F32 { Value::F32(0x7FC0_0000) } else { Value::F64(0x7FF8 << 48) };
        let scratch = self.scratch(ty);
        self.sink().local_set(scratch);
        self.constant(nan);
        self.sink().local_get(scratch);
        self.is_nan(ty, scratch);
        self.sink().select();
    }

    /// Limits the float on top of the stack to the range of every integer type.
    fn clamp(&mut self, ty: ValType, unsigned: bool) {
        let (max, min) = if ty == ValType::F32 { (Opcode::F32Max, Opcode::F32Min) } else { (Opcode::F64Max, Opcode::F64Min) };
        self.replace_nan(ty, 7.5);
        self.float(ty, if unsigned { -0.75 } else { -2147483648.0 });
        self.opcode(max);
        self.float(ty, 2147483520.0);
        self.opcode(min);
    }

    // Control

    /// The depths of labels that may be branched to and whose types satisfy `test`.
    fn targets(&self, test: impl Fn(&[ValType]) -> bool) -> Vec<u32> {
        let innermost_first = (0..).zip(self.labels.iter().rev());
        innermost_first.filter(|(_, label)| label.target && test(&label.types)).map(|(depth, _)| depth).collect()
    }

    fn block_type(&mut self, params: &[ValType], results: &[ValType]) -> enc::BlockType {
        match (params, results) {
            ([], []) => enc::BlockType::Empty,
            ([], [result]) => enc::BlockType::Result(encoder_type(*result)),
            _ => {
                let ty = FuncType { params: params.into(), results: results.into() };
                enc::BlockType::FunctionType(self.shape.intern(ty))
            }
        }
    }

    fn few_types(&mut self) -> Vec<ValType> {
        let len = *self.rng.pick(&[0, 0, 0, 1, 1, 2, 3]);
        (0..len).map(|_| *self.rng.pick(self.types)).collect()
    }

    /// Generates a block, an `if` or a loop with these results.
    fn construct(&mut self, results: &[ValType], depth: u32) {
        let params = self.few_types();
        let loop_fits = self.loops < MAX_LOOPS && self.trips < self.shape.max_trips / 2;
        match self.rng.below(10) {
            0..2 => self.block(&params, results, depth),
            2..6 => self.if_else(&params, results, depth),
            6..9 if loop_fits => self.counting_loop(&params, results, depth),
            9 if loop_fits && self.shape.dispatches && self.loops + 1 < MAX_LOOPS => self.dispatching_loop(results, depth),
            9 if loop_fits => self.counting_loop(&[], results, depth),
            _ => self.if_else(&params, results, depth),
        }
    }

    /// Generates the inside of a block: takes parameters from the stack, executes statements, leaves results.
    fn inside(&mut self, params: &[ValType], results: &[ValType], depth: u32) {
        self.consume(params);
        let count = self.rng.below(4);
        let diverged = self.statements(count, depth);
        if !diverged || self.rng.percent(50) {
            self.values(results, depth);
        }
    }

    fn open(&mut self, types: &[ValType], target: bool) {
        self.labels.push(Label { types: types.to_vec(), target });
    }

    fn close(&mut self) {
        self.labels.pop();
        self.sink().end();
    }

    fn block(&mut self, params: &[ValType], results: &[ValType], depth: u32) {
        self.values(params, depth);
        let ty = self.block_type(params, results);
        self.sink().block(ty);
        self.open(results, true);
        self.inside(params, results, depth);
        self.close();
    }

    fn if_else(&mut self, params: &[ValType], results: &[ValType], depth: u32) {
        self.values(params, depth);
        self.expr(ValType::I32, depth);
        let ty = self.block_type(params, results);
        self.sink().if_(ty);
        self.open(results, true);
        self.inside(params, results, depth);
        if params != results || self.rng.percent(50) {
            self.sink().else_();
            self.inside(params, results, depth);
        }
        self.close();
    }

    fn counting_loop(&mut self, params: &[ValType], results: &[ValType], depth: u32) {
        let outer = self.trips;
        let trips = 1 + self.rng.below(self.shape.max_trips / self.trips);
        self.trips *= trips;
        self.loops += 1;
        let counter = self.writable as u32 + 1 + self.loops;
        self.sink().i32_const(trips as i32).local_set(counter);
        self.values(params, depth);
        if self.rng.percent(50) {
            self.loop_counting_at_head(counter, params, results, depth);
        } else {
            self.loop_counting_at_end(counter, params, results, depth);
        }
        self.loops -= 1;
        self.trips = outer;
    }

    /// Generates a loop that ends when the counter is zero at its head, so that any code inside may branch there.
    fn loop_counting_at_head(&mut self, counter: u32, params: &[ValType], results: &[ValType], depth: u32) {
        let ty = self.block_type(params, results);
        self.sink().block(ty);
        self.open(results, true);
        self.sink().loop_(ty);
        self.open(params, true);

        self.sink().local_get(counter).i32_eqz();
        let exit = self.block_type(params, params);
        self.sink().if_(exit);
        self.open(params, false);
        self.consume(params);
        self.zeros(results);
        self.sink().br(2);
        self.close();
        self.sink().local_get(counter).i32_const(1).i32_sub().local_set(counter);

        self.consume(params);
        let count = 1 + self.rng.below(3);
        self.statements(count, depth);
        self.values(params, depth);
        if self.rng.percent(50) {
            self.expr(ValType::I32, depth);
            self.sink().br_if(0);
            self.consume(params);
            self.values(results, depth);
        } else {
            self.sink().br(0);
        }
        self.close();
        self.close();
    }

    /// Generates a loop that repeats while the counter, which is decremented at the end, is not zero.
    fn loop_counting_at_end(&mut self, counter: u32, params: &[ValType], results: &[ValType], depth: u32) {
        let ty = self.block_type(params, results);
        self.sink().loop_(ty);
        self.open(params, false);
        self.consume(params);
        let count = 1 + self.rng.below(3);
        self.statements(count, depth);
        self.values(params, depth);
        self.sink().local_get(counter).i32_const(1).i32_sub().local_tee(counter).br_if(0);
        self.consume(params);
        self.values(results, depth);
        self.close();
    }

    /// Generates a loop around a `br_table`, whose arms jump to each other by setting a local and going back to the loop's head. The counter is
    /// decremented before each jump, and allows as many.
    fn dispatching_loop(&mut self, results: &[ValType], depth: u32) {
        let outer = self.trips;
        let arms = 1 + self.rng.below(5);
        // An iteration may execute all arms.
        let trips = 1 + self.rng.below((self.shape.max_trips / (self.trips * arms)).max(1));
        self.trips *= trips * arms;
        let [label, counter] = [1, 2].map(|loops| self.writable as u32 + 1 + self.loops + loops);
        self.loops += 2;
        self.sink().i32_const(trips as i32).local_set(counter);
        if self.rng.percent(50) {
            self.expr(ValType::I32, depth);
        } else {
            let first = self.rng.below(arms + 1);
            self.sink().i32_const(first as i32);
        }
        self.sink().local_set(label);

        let ty = self.block_type(&[], results);
        self.sink().block(ty);
        self.open(results, true);
        self.sink().loop_(enc::BlockType::Empty);
        self.open(&[], false);
        for _ in 0..arms {
            self.sink().block(enc::BlockType::Empty);
            self.open(&[], true);
        }
        let default = self.rng.below(arms);
        self.sink().local_get(label).br_table(0..arms, default);
        for arm in 0..arms {
            self.close();
            let count = self.rng.below(3);
            self.statements(count, depth);
            if self.rng.percent(75) {
                self.jump_to_arm(label, counter, arms, arm);
            }
        }
        self.close();
        self.values(results, depth);
        self.close();
        self.loops -= 2;
        self.trips = outer;
    }

    /// Jumps from this arm to another, if the counter allows it and often on a condition.
    fn jump_to_arm(&mut self, label: u32, counter: u32, arms: u32, arm: u32) {
        let next = self.rng.below(arms + 1) as i32;
        self.sink().local_get(counter).i32_const(1).i32_sub().local_tee(counter).i32_const(0).i32_gt_s();
        if self.rng.percent(60) {
            self.expr(ValType::I32, 2);
            self.sink().i32_const(1).i32_and().i32_and();
        }
        let to_head = arms - arm;
        self.sink().if_(enc::BlockType::Empty).i32_const(next).local_set(label).br(to_head).end();
    }

    // Statements

    /// Generates up to `count` statements. Returns whether the following code is dead.
    fn statements(&mut self, count: u32, depth: u32) -> bool {
        for _ in 0..count {
            if self.budget <= 0 {
                return false;
            }
            let nested = self.labels.len() > 1;
            if self.rng.percent(if nested { 5 } else { 1 }) && self.leave(depth) {
                // Sometimes continues in dead code.
                if self.rng.percent(20) {
                    self.statement(1);
                }
                return true;
            }
            self.statement(depth);
        }
        false
    }

    fn statement(&mut self, depth: u32) {
        self.budget -= 1;
        let depth = depth.saturating_sub(1);
        let ty = *self.rng.pick(self.types);
        match self.rng.below(100) {
            0..24 => {
                self.expr(ty, depth);
                let local = self.local(ty, self.writable).expect("there is a local of each type");
                self.sink().local_set(local);
            }
            24..32 => {
                self.expr(ty, depth);
                let global = self.global(ty, true).expect("there is a mutable global of each type");
                self.sink().global_set(global);
            }
            32..48 => self.store(depth),
            48..66 if depth > 0 => {
                let results = self.few_types();
                self.construct(&results, depth);
                self.consume(&results);
            }
            66..72 => self.call(None, depth),
            72..76 => self.call_indirect(None, depth),
            76..84 => self.conditional_branch(depth),
            84..88 => self.bulk_memory(depth),
            88..92 => self.table_operation(depth),
            92..97 if depth > 0 => {
                self.expr(ValType::I32, depth);
                self.sink().if_(enc::BlockType::Empty);
                self.open(&[], true);
                self.leave(depth);
                self.close();
            }
            97 => {
                self.sink().nop();
            }
            _ => {
                self.expr(ty, depth);
                self.sink().drop();
            }
        }
    }

    fn conditional_branch(&mut self, depth: u32) {
        let targets = self.targets(|_| true);
        let target = *self.rng.pick(&targets);
        let types = self.labels[self.labels.len() - 1 - target as usize].types.clone();
        self.values(&types, depth.min(2));
        self.expr(ValType::I32, depth);
        self.sink().br_if(target);
        self.consume(&types);
    }

    /// Generates an instruction after which the code is dead, if possible. Returns whether it was.
    fn leave(&mut self, depth: u32) -> bool {
        let targets = self.targets(|_| true);
        let target = *self.rng.pick(&targets);
        let types = self.labels[self.labels.len() - 1 - target as usize].types.clone();
        match self.rng.below(20) {
            0..7 => {
                self.values(&types, depth.min(2));
                self.sink().br(target);
            }
            7..13 => {
                let alike = self.targets(|others| others == types);
                let table: Vec<u32> = (0..self.rng.below(6)).map(|_| *self.rng.pick(&alike)).collect();
                self.values(&types, depth.min(2));
                self.expr(ValType::I32, depth);
                if self.rng.percent(70) {
                    self.sink().i32_const(7).i32_and();
                }
                self.sink().br_table(table, target);
            }
            13..15 => {
                self.function_results();
                self.sink().return_();
            }
            15..19 => return self.tail_call(depth),
            _ => {
                if self.rng.one_in(3) {
                    self.sink().unreachable();
                } else {
                    return false;
                }
            }
        }
        true
    }
}
