//! Function bodies: statements, which leave the operand stack as it was, over expressions, which push one value.

use super::{FUEL_GLOBAL, PASSIVE_DATA, PASSIVE_ELEMS, SMALL_TABLE, Shape, TYPES, Value, encoder_type, types};
use crate::rng::Rng;
use std::sync::LazyLock;
use wasm_encoder as enc;
use wasm_encoder::{Encode, InstructionSink};
use weir_bytecode::opcodes::Immediates;
use weir_bytecode::semantics::nan::{self, Floats};
use weir_bytecode::semantics::{Access, access};
use weir_bytecode::types::{FuncType, ValType};
use weir_bytecode::{Opcode, for_each_lane_access, for_each_vector_load};

/// How deep expressions nest at most, and loops.
const MAX_DEPTH: u32 = 5;
const MAX_LOOPS: u32 = 3;

/// Numeric instructions by the type of their result, in the order of [`TYPES`].
static NUMERIC: LazyLock<[Vec<Opcode>; 5]> = LazyLock::new(|| instructions(|op| !op.is_vector()));

/// Instructions on vectors, the relaxed ones excepted.
static VECTOR: LazyLock<[Vec<Opcode>; 5]> = LazyLock::new(|| instructions(|op| op.is_vector() && !is_relaxed(op)));

/// Relaxed instructions: all give vectors.
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

macro_rules! loads {
    ($($op:ident, $width:literal, $name:ident;)*) => {
        &[$((Opcode::$op, $width)),*]
    };
}

macro_rules! lane_accesses {
    ($($op:ident, $kind:ident, $width:literal, $name:ident;)*) => {
        &[$((Opcode::$op, $width, is_store!($kind))),*]
    };
}

macro_rules! is_store {
    (load) => {
        false
    };
    (store) => {
        true
    };
}

/// Loads of vectors, with their widths.
const VECTOR_LOADS: &[(Opcode, u32)] = for_each_vector_load!(loads);
/// Accesses of lanes, with their widths, and whether they store.
const LANE_ACCESSES: &[(Opcode, u32, bool)] = for_each_lane_access!(lane_accesses);

static ACCESSES: LazyLock<Vec<(Opcode, Access)>> =
    LazyLock::new(|| Opcode::ALL.iter().filter_map(|&op| Some((op, access(op)?))).collect());

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
    // A few are large: many values live at once, many blocks.
    let large = rng.one_in(16);
    let budget = if large { 2500 } else { 40 + rng.below(400) as i32 };
    let labels = vec![Label { types: ty.results.to_vec(), target: true }];
    let mut body = Body { shape, rng, code, types, locals, writable, results: ty.results, labels, budget, trips: 1, loops: 0 };
    body.pay();
    let count = if large { 24 } else { 2 + body.rng.below(6) };
    let diverged = body.statements(count, MAX_DEPTH);
    if !diverged || body.rng.percent(50) {
        body.function_results();
    }
    body.sink().end();
    body.code
}

/// How many lanes the shape in an instruction's name has.
fn lanes_of(op: Opcode) -> u32 {
    let shape = op.mnemonic().split('.').next().and_then(|shape| shape.split_once('x'));
    shape.and_then(|(_, lanes)| lanes.parse().ok()).expect("a shape")
}

struct Body<'a> {
    shape: &'a mut Shape,
    rng: &'a mut Rng,
    code: enc::Function,
    /// What types its values have; if others are asked for, as by calls, there are only leaves of them.
    types: &'static [ValType],
    /// All locals: parameters and others that statements write, one scratch f32 and f64, loop counters, and a scratch
    /// v128 if it has vectors.
    locals: Vec<ValType>,
    /// How many of them statements may write.
    writable: usize,
    results: Box<[ValType]>,
    /// Blocks around this place, outermost first.
    labels: Vec<Label>,
    /// Nodes left; without any, only leaves are made.
    budget: i32,
    /// Iterations that the loops around this place make together.
    trips: u32,
    /// Loops around this place.
    loops: u32,
}

struct Label {
    types: Vec<ValType>,
    /// Whether anything may branch to it. The head of a loop that counts at its end is none: that loop might not end.
    target: bool,
}

impl Body<'_> {
    fn sink(&mut self) -> InstructionSink<'_> {
        self.code.instructions()
    }

    /// Returns zeros if the fuel is used up, else takes one unit.
    fn pay(&mut self) {
        self.sink().global_get(FUEL_GLOBAL).i32_eqz().if_(enc::BlockType::Empty);
        self.zeros(&self.results.clone());
        self.sink().return_().end();
        self.sink().global_get(FUEL_GLOBAL).i32_const(1).i32_sub().global_set(FUEL_GLOBAL);
    }

    fn function_results(&mut self) {
        for ty in self.results.clone() {
            self.expr(ty, 2);
        }
    }

    // Values

    fn constant(&mut self, value: Value) {
        match value {
            Value::I32(x) => self.sink().i32_const(x),
            Value::I64(x) => self.sink().i64_const(x),
            Value::F32(x) => self.sink().f32_const(enc::Ieee32::new(x)),
            Value::F64(x) => self.sink().f64_const(enc::Ieee64::new(x)),
            Value::V128(x) => self.sink().v128_const(x as i128),
        };
    }

    fn zeros(&mut self, types: &[ValType]) {
        for ty in types {
            self.constant(match ty {
                ValType::I32 => Value::I32(0),
                ValType::I64 => Value::I64(0),
                ValType::F32 => Value::F32(0),
                ValType::F64 => Value::F64(0),
                _ => Value::V128(0),
            });
        }
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
        let fits = |&(_, &(of, mutable)): &(u32, &(ValType, bool))| of == ty && (mutable || !write);
        let candidates: Vec<u32> = (1..).zip(&self.shape.globals).filter(fits).map(|(i, _)| i).collect();
        (!candidates.is_empty()).then(|| *self.rng.pick(&candidates))
    }

    fn leaf(&mut self, ty: ValType) {
        // The scratch vector may hold NaNs of any bits.
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
        // wasmi 1.1 takes what `replace_lane` gives for a number, and refuses to select it as a vector.
        if ty == ValType::V128 || self.rng.percent(70) {
            self.sink().select();
        } else {
            self.sink().typed_select(encoder_type(ty));
        }
    }

    /// A value that is left on the stack if a branch is not taken.
    fn branch_with_value(&mut self, ty: ValType, depth: u32) {
        let candidates = self.targets(|types| types == [ty]);
        self.expr(ty, depth);
        if !candidates.is_empty() {
            let target = *self.rng.pick(&candidates);
            self.expr(ValType::I32, depth);
            self.sink().br_if(target);
        }
    }

    /// An i32 that says something of a memory or a table.
    fn inquiry(&mut self, depth: u32) {
        match self.rng.below(8) {
            0..3 => {
                self.sink().memory_size(0);
            }
            3 => {
                let delta = self.rng.below(2) as i32;
                self.sink().i32_const(delta).memory_grow(0);
            }
            4 => {
                let table = self.rng.below(2);
                self.sink().table_size(table);
            }
            5 if self.rng.one_in(3) => {
                self.reference(depth);
                self.sink().i32_const(1).table_grow(0);
            }
            _ => {
                self.reference(depth);
                self.sink().ref_is_null();
            }
        }
    }

    // Numbers

    fn opcode(&mut self, op: Opcode) {
        let code = op as u16;
        match code.checked_sub(0x100) {
            None => self.code.raw([code as u8]),
            Some(behind_prefix) if !op.is_vector() => self.code.raw([0xFC, behind_prefix as u8]),
            _ => {
                let mut bytes = vec![0xFD];
                u32::from(code - 0x200).encode(&mut bytes);
                self.code.raw(bytes)
            }
        };
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

    /// What follows an instruction on vectors: its lanes, and what makes NaNs in its result canonical.
    fn lanes(&mut self, op: Opcode) {
        match op.immediates() {
            Immediates::Lane => {
                let lane = self.rng.below(lanes_of(op)) as u8;
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

    /// Either half of what an instruction of wide arithmetic gives, or both mixed.
    fn wide(&mut self, depth: u32) {
        let (op, operands) =
            *self.rng.pick(&[(Opcode::I64Add128, 4), (Opcode::I64Sub128, 4), (Opcode::I64MulWideS, 2), (Opcode::I64MulWideU, 2)]);
        self.values(&vec![ValType::I64; operands], depth);
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

    /// Replaces the float on top of the stack by `instead` if it is NaN. The scratch local is never live across an
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

    /// Makes the bits of the float on top of the stack the same everywhere.
    fn canonical(&mut self, ty: ValType) {
        let nan = if ty == ValType::F32 { Value::F32(0x7FC0_0000) } else { Value::F64(0x7FF8 << 48) };
        let scratch = self.scratch(ty);
        self.sink().local_set(scratch);
        self.constant(nan);
        self.sink().local_get(scratch);
        self.is_nan(ty, scratch);
        self.sink().select();
    }

    /// Moves the float on top of the stack into the range of every integer type.
    fn clamp(&mut self, ty: ValType, unsigned: bool) {
        let (max, min) = if ty == ValType::F32 { (Opcode::F32Max, Opcode::F32Min) } else { (Opcode::F64Max, Opcode::F64Min) };
        self.replace_nan(ty, 7.5);
        self.float(ty, if unsigned { -0.75 } else { -2147483648.0 });
        self.opcode(max);
        self.float(ty, 2147483520.0);
        self.opcode(min);
    }

    // Memory

    /// Pushes an address, nearly always one that leaves room for `room` bytes in the first page.
    fn address(&mut self, depth: u32) {
        match self.rng.below(60) {
            0..30 => {
                self.expr(ValType::I32, depth);
                let mask = *self.rng.pick(&[0xFFE0, 0x3FF, 0x78]);
                self.sink().i32_const(mask).i32_and();
            }
            30..45 => {
                let local = self.local(ValType::I32, self.locals.len()).expect("there is a local of each type");
                let shift = self.rng.below(4) as i32;
                self.sink().local_get(local).i32_const(0xFF).i32_and().i32_const(shift).i32_shl();
            }
            45..59 => {
                let address = self.rng.below(0x800) as i32;
                self.sink().i32_const(address);
            }
            // At the end of some page, or anywhere.
            _ if self.rng.one_in(2) => {
                let address = ((1 + self.rng.below(3)) << 16) - self.rng.below(12);
                self.sink().i32_const(address as i32);
            }
            _ if self.rng.one_in(4) => self.expr(ValType::I32, depth),
            _ => {
                self.sink().memory_size(0).i32_const(16).i32_shl().i32_const(8).i32_sub();
            }
        }
    }

    fn access(&mut self, op: Opcode, width: u32) {
        self.opcode(op);
        let align = self.rng.below(width.trailing_zeros() + 1);
        let offset = match self.rng.below(400) {
            0 => *self.rng.pick(&[0xFFFF_FFFF, 0x8000_0000, 0x7FFF_FFF8, 0x2_0000]),
            1..200 => 0,
            _ => self.rng.below(24),
        };
        let mut immediates = Vec::new();
        align.encode(&mut immediates);
        offset.encode(&mut immediates);
        self.code.raw(immediates);
    }

    fn pick_access(&mut self, store: bool, ty: Option<ValType>) -> (Opcode, Access) {
        let fits = |(_, access): &&(Opcode, Access)| access.store == store && ty.is_none_or(|ty| access.ty == ty);
        let candidates: Vec<_> = ACCESSES.iter().filter(fits).collect();
        **self.rng.pick(&candidates)
    }

    fn load(&mut self, ty: ValType, depth: u32) {
        if ty == ValType::V128 {
            return self.load_vector(depth);
        }
        let (op, access) = self.pick_access(false, Some(ty));
        self.address(depth);
        self.access(op, access.width);
    }

    fn load_vector(&mut self, depth: u32) {
        if self.rng.one_in(3) {
            return self.access_lane(false, depth);
        }
        let (op, width) = *self.rng.pick(VECTOR_LOADS);
        self.address(depth);
        self.access(op, width);
    }

    fn access_lane(&mut self, store: bool, depth: u32) {
        let candidates: Vec<_> = LANE_ACCESSES.iter().filter(|access| access.2 == store).collect();
        let (op, width, _) = **self.rng.pick(&candidates);
        self.address(depth);
        self.expr(ValType::V128, depth);
        self.access(op, width);
        let lane = self.rng.below(16 / width) as u8;
        self.code.raw([lane]);
    }

    fn store(&mut self, depth: u32) {
        if self.types.contains(&ValType::V128) && self.rng.one_in(4) {
            if self.rng.one_in(2) {
                return self.access_lane(true, depth);
            }
            self.address(depth);
            self.expr(ValType::V128, depth);
            return self.access(Opcode::V128Store, 16);
        }
        let (op, access) = self.pick_access(true, None);
        self.address(depth);
        self.expr(access.ty, depth);
        if matches!(access.ty, ValType::F32 | ValType::F64) {
            self.canonical(access.ty);
        }
        self.access(op, access.width);
    }

    fn bulk_memory(&mut self, depth: u32) {
        let len = if self.rng.one_in(60) { 70_000 } else { self.rng.below(200) as i32 };
        self.address(depth);
        match self.rng.below(10) {
            0..4 => {
                self.expr(ValType::I32, depth);
                self.sink().i32_const(len).memory_fill(0);
            }
            4..8 => {
                self.address(depth);
                self.sink().i32_const(len).memory_copy(0, 0);
            }
            _ => {
                let from = self.rng.below(PASSIVE_DATA / 2) as i32;
                let len = self.rng.below(PASSIVE_DATA / 2) as i32;
                self.sink().i32_const(from).i32_const(len).memory_init(0, 1);
                if self.rng.one_in(10) {
                    self.sink().data_drop(1);
                }
            }
        }
    }

    // Tables

    fn reference(&mut self, depth: u32) {
        match self.rng.below(10) {
            0 => {
                self.sink().ref_null(enc::HeapType::FUNC);
            }
            1 => {
                let index = self.rng.below(SMALL_TABLE) as i32;
                self.sink().i32_const(index).table_get(1);
            }
            2 => {
                self.reference(0);
                self.reference(0);
                self.expr(ValType::I32, depth);
                self.sink().typed_select(enc::ValType::FUNCREF);
            }
            _ => {
                let func = self.rng.below(self.shape.funcs.len() as u32);
                self.sink().ref_func(func);
            }
        }
    }

    fn table_operation(&mut self, depth: u32) {
        let size = self.shape.table;
        match self.rng.below(12) {
            // Replace an element by a function of the same type, so that calls through it go on.
            0..6 => {
                let index = self.rng.below(self.shape.elements.len() as u32);
                let ty = self.shape.funcs[self.shape.elements[index as usize] as usize];
                let funcs = &self.shape.funcs;
                let alike: Vec<u32> = (0..funcs.len() as u32).filter(|&func| funcs[func as usize] == ty).collect();
                let func = *self.rng.pick(&alike);
                self.sink().i32_const(index as i32).ref_func(func).table_set(0);
            }
            6..8 => {
                let index = if self.rng.one_in(20) { 9 } else { self.rng.below(SMALL_TABLE) };
                self.sink().i32_const(index as i32);
                self.reference(depth);
                self.sink().table_set(1);
            }
            8 => {
                let (to, from, len) = (self.rng.below(3), self.rng.below(size - 2), self.rng.below(3));
                self.sink().i32_const(to as i32).i32_const(from as i32).i32_const(len as i32).table_copy(1, 0);
            }
            9 => {
                let (to, from) = (self.rng.below(3), self.rng.below(PASSIVE_ELEMS));
                self.sink().i32_const(to as i32).i32_const(from as i32).i32_const(1).table_init(1, 1);
                if self.rng.one_in(6) {
                    self.sink().elem_drop(1);
                }
            }
            _ => {
                let (from, len) = (self.rng.below(SMALL_TABLE), self.rng.below(2));
                self.sink().i32_const(from as i32);
                self.reference(depth);
                self.sink().i32_const(len as i32).table_fill(1);
            }
        }
    }

    // Calls

    /// Keeps, of the results of a call, the last one of type `keep`, if any is asked for.
    fn keep(&mut self, results: &[ValType], keep: Option<ValType>) {
        match keep {
            None => self.consume(results),
            Some(ty) if results.last() == Some(&ty) => {
                let below = &results[..results.len() - 1];
                if !below.is_empty() {
                    let local = self.local(ty, self.writable).expect("there is a local of each type");
                    self.sink().local_set(local);
                    self.consume(below);
                    self.sink().local_get(local);
                }
            }
            Some(ty) => {
                self.consume(results);
                self.leaf(ty);
            }
        }
    }

    fn call(&mut self, keep: Option<ValType>, depth: u32) {
        let func = self.rng.below(self.shape.funcs.len() as u32);
        let ty = self.shape.func_type(func).clone();
        self.values(&ty.params, depth.min(2));
        self.sink().call(func);
        self.keep(&ty.results, keep);
    }

    fn call_indirect(&mut self, keep: Option<ValType>, depth: u32) {
        if self.shape.beyond_wasmi && self.rng.percent(50) {
            return self.call_ref(keep, depth);
        }
        let (ty, index) = self.indirect_callee(|_| true).expect("there are elements");
        let signature = self.shape.types[ty as usize].clone();
        self.values(&signature.params, depth.min(2));
        self.table_index(index, depth);
        self.sink().call_indirect(0, ty);
        self.keep(&signature.results, keep);
    }

    /// An element whose type passes the test: its type and its index.
    fn indirect_callee(&mut self, test: impl Fn(&FuncType) -> bool) -> Option<(u32, u32)> {
        let shape = &self.shape;
        let callees: Vec<(u32, u32)> = (0..)
            .zip(&shape.elements)
            .map(|(index, &func)| (shape.funcs[func as usize], index))
            .filter(|&(ty, _)| test(&shape.types[ty as usize]))
            .collect();
        (!callees.is_empty()).then(|| *self.rng.pick(&callees))
    }

    fn call_ref(&mut self, keep: Option<ValType>, depth: u32) {
        let func = self.rng.below(self.shape.funcs.len() as u32);
        let ty = self.arguments_and_reference(func, depth);
        self.sink().call_ref(ty);
        self.keep(&self.shape.types[ty as usize].results.clone(), keep);
    }

    /// Pushes what a call through a typed reference takes, and gives its type: that of `func`.
    fn arguments_and_reference(&mut self, func: u32, depth: u32) -> u32 {
        let ty = self.shape.funcs[func as usize];
        self.values(&self.shape.types[ty as usize].params.clone(), depth.min(2));
        let targets = self.targets(<[ValType]>::is_empty);
        match self.rng.below(8) {
            0..2 => {
                self.sink().ref_func(func);
            }
            2..4 => self.nullable(func, ty, depth),
            4 => {
                self.nullable(func, ty, depth);
                self.sink().ref_as_non_null();
            }
            5 if !targets.is_empty() => {
                self.nullable(func, ty, depth);
                let target = *self.rng.pick(&targets);
                self.sink().br_on_null(target);
            }
            _ => {
                let result = enc::RefType { nullable: false, heap_type: enc::HeapType::Concrete(ty) };
                self.sink().block(enc::BlockType::Result(enc::ValType::Ref(result)));
                self.open(&[], false);
                self.nullable(func, ty, depth);
                self.sink().br_on_non_null(0).ref_func(func);
                self.close();
            }
        }
        ty
    }

    /// Pushes a nullable reference of type `ty`: mostly to a function, one of which is `func`.
    fn nullable(&mut self, func: u32, ty: u32, depth: u32) {
        let heap_type = enc::HeapType::Concrete(ty);
        let funcs = &self.shape.funcs;
        let alike: Vec<u32> = (0..funcs.len() as u32).filter(|&func| funcs[func as usize] == ty).collect();
        let other = *self.rng.pick(&alike);
        if self.rng.one_in(8) {
            self.sink().ref_null(heap_type);
        } else {
            self.sink().ref_func(other);
        }
        self.sink().ref_func(func);
        self.expr(ValType::I32, depth.min(1));
        self.sink().typed_select(enc::ValType::Ref(enc::RefType { nullable: true, heap_type }));
    }

    /// Pushes a table index: this one, or seldom another, of the wrong type, null or past the end.
    fn table_index(&mut self, index: u32, depth: u32) {
        match self.rng.below(60) {
            0 => {
                self.expr(ValType::I32, depth);
                let mask = self.shape.table as i32 - 1;
                self.sink().i32_const(mask).i32_and();
            }
            1 => {
                let index = self.rng.below(self.shape.table + 6);
                self.sink().i32_const(index as i32);
            }
            2 if self.rng.one_in(4) => self.expr(ValType::I32, depth),
            // Of the same type or the same index, as a computed value.
            3..20 => {
                let local = self.local(ValType::I32, self.locals.len()).expect("there is a local of each type");
                self.sink().local_get(local).i32_const(0).i32_mul().i32_const(index as i32).i32_add();
            }
            _ => {
                self.sink().i32_const(index as i32);
            }
        }
    }

    /// Calls a function in place of this one; false if none has the same results.
    fn tail_call(&mut self, depth: u32) -> bool {
        let results = self.results.clone();
        if self.rng.percent(50) {
            let shape = &self.shape;
            let callees: Vec<u32> =
                (0..shape.funcs.len() as u32).filter(|&func| shape.func_type(func).results == results).collect();
            let func = *self.rng.pick(&callees);
            if self.shape.beyond_wasmi && self.rng.percent(50) {
                let ty = self.arguments_and_reference(func, depth);
                self.sink().return_call_ref(ty);
                return true;
            }
            let params = self.shape.func_type(func).params.clone();
            self.values(&params, depth.min(2));
            self.sink().return_call(func);
            return true;
        }
        let Some((ty, index)) = self.indirect_callee(|ty| ty.results == results) else { return false };
        let params = self.shape.types[ty as usize].params.clone();
        self.values(&params, depth.min(2));
        self.table_index(index, depth);
        self.sink().return_call_indirect(0, ty);
        true
    }

    // Control

    /// Depths of the labels that may be branched to and whose types pass the test.
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

    /// A block, an `if` or a loop that leaves these results.
    fn construct(&mut self, results: &[ValType], depth: u32) {
        let params = self.few_types();
        let loop_fits = self.loops < MAX_LOOPS && self.trips < self.shape.max_trips / 2;
        match self.rng.below(10) {
            0..2 => self.block(&params, results, depth),
            2..6 => self.if_else(&params, results, depth),
            6..9 if loop_fits => self.counting_loop(&params, results, depth),
            9 if loop_fits => self.counting_loop(&[], results, depth),
            _ => self.if_else(&params, results, depth),
        }
    }

    /// The inside of a block: takes parameters from the stack, does something, leaves results.
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

    /// Leaves when the counter is zero at the head, so anything inside may branch there.
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

    /// Goes round while the counter, counted down at the end, isn't zero.
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

    // Statements

    /// Up to `count` statements; whether what follows is dead.
    fn statements(&mut self, count: u32, depth: u32) -> bool {
        for _ in 0..count {
            if self.budget <= 0 {
                return false;
            }
            let nested = self.labels.len() > 1;
            if self.rng.percent(if nested { 5 } else { 1 }) && self.leave(depth) {
                // Sometimes go on, in dead code.
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

    /// Leaves this place for good, if it can; whether it did.
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
