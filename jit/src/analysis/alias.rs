//! Alias analysis: which accesses may touch the same bytes, and what state an operation may change.
//!
//! Two accesses do not overlap if
//! - they access different memories. Two imported memories may be the same, as may two imported globals;
//! - their addresses differ by a constant that is large enough, modulo the size of the address space. An address is a
//!   base plus the offset of the access, and a base may be the sum of a value and a constant, so two sums of the same
//!   value can be compared, wherever they wrap around.
//!
//! They certainly touch the same bytes only if base, offset and width are equal: `x + 4` at offset 0 and `x` at offset
//! 4 differ if the sum wraps around. Calls, and all operations not listed here, may change every memory and every
//! mutable global. Memories that may be shared between threads are never queried.

use crate::ir::family::{Accounting, Family, Global, Memory};
use crate::ir::{Func, Op, Type, Value};
use weir_bytecode::Module;

/// The bytes that a load or store accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The memory.
    pub memory: u32,
    /// The address operand.
    pub base: Value,
    /// The offset, which is added to the base without wrap-around.
    pub offset: u64,
    /// The number of bytes.
    pub width: u32,
    /// The value to which `distance` is added to give the base; `None` if the base is constant.
    root: Option<Value>,
    /// Distance from the root, modulo the address space.
    distance: u64,
    /// The base-2 logarithm of the address space's size.
    bits: u32,
}

impl Access {
    /// The bytes that `value`, a load or a store of a number, accesses. Its arguments are not resolved.
    pub fn of(func: &Func<'_>, value: Value) -> Option<Access> {
        let inst = func.inst(value);
        let ty = func.operand_type(value);
        if !ty.is_number() {
            return None;
        }
        let width = inst.op.access_width(ty)?;
        let base = *inst.args.first()?;
        let bits = if func.ty(base) == Type::I64 { 64 } else { 32 };
        let (root, constant) = decompose(func, base);
        let distance = constant.wrapping_add(inst.imm) & mask(bits);
        Some(Access { memory: inst.aux, base, offset: inst.imm, width, root, distance, bits })
    }

    /// Whether both accesses start at the same byte.
    pub fn same_start(&self, other: &Access) -> bool {
        (self.memory, self.base, self.offset) == (other.memory, other.base, other.offset)
    }

    /// Whether the accesses have no byte in common.
    pub fn is_apart(&self, other: &Access, module: Option<&Module>) -> bool {
        if !may_be_one(self.memory, other.memory, module.map(|module| module.imported_memories)) {
            return true;
        }
        if self.memory != other.memory || self.root != other.root || self.bits != other.bits {
            return false;
        }
        let ahead = other.distance.wrapping_sub(self.distance) & mask(self.bits);
        let behind = self.distance.wrapping_sub(other.distance) & mask(self.bits);
        ahead >= u64::from(self.width) && behind >= u64::from(other.width)
    }
}

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The number of nested sums that are decomposed.
const DEPTH: u32 = 4;

/// Splits `value` into a root and a constant.
fn decompose(func: &Func<'_>, value: Value) -> (Option<Value>, u64) {
    let (mut root, mut distance) = (value, 0u64);
    for _ in 0..DEPTH {
        if func.op(root) != Op::Add {
            break;
        }
        let &[x, c] = func.args(root) else { break };
        let Some(constant) = func.as_const(c) else { break };
        (root, distance) = (x, distance.wrapping_add(constant));
    }
    match func.as_const(root) {
        Some(bits) => (None, distance.wrapping_add(bits)),
        None => (Some(root), distance),
    }
}

/// Whether two indices may denote the same item; items with indices below `imported` are imported.
fn may_be_one(a: u32, b: u32, imported: Option<u32>) -> bool {
    a == b || imported.is_none_or(|imported| a < imported && b < imported)
}

/// Whether two indices may denote the same global.
pub fn globals_may_be_one(a: u32, b: u32, module: Option<&Module>) -> bool {
    may_be_one(a, b, module.map(|module| module.imported_globals))
}

/// The memories and globals that an operation may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changes {
    /// None.
    Nothing,
    /// These bytes.
    Bytes(Access),
    /// This global.
    Global(u32),
    /// All memories.
    Memories,
    /// All memories and all globals.
    Everything,
}

/// The state that `value` may change.
pub fn changes(func: &Func<'_>, value: Value) -> Changes {
    let inst = func.inst(value);
    match inst.op.family() {
        Family::Store(_) => Access::of(func, value).map_or(Changes::Memories, Changes::Bytes),
        Family::Memory(op) => match op {
            Memory::MemoryFill | Memory::MemoryCopy | Memory::MemoryInit => Changes::Memories,
            // The contents stay valid when a memory grows.
            Memory::MemorySize | Memory::MemoryGrow | Memory::DataDrop => Changes::Nothing,
        },
        Family::Global(op) => match op {
            Global::GlobalSet => Changes::Global(inst.aux),
            Global::GlobalGet => Changes::Nothing,
        },
        // The callback of a poll may do anything, and so may that of a deadline during the search for a handler.
        Family::Call(_) | Family::Exception(_) | Family::Accounting(Accounting::Poll) => Changes::Everything,
        Family::Accounting(Accounting::FuelLeft | Accounting::Epoch | Accounting::Deadline) => Changes::Nothing,
        Family::Accounting(
            Accounting::Fuel | Accounting::Miss | Accounting::OsrTick | Accounting::OsrTarget | Accounting::OsrStore,
        ) => Changes::Nothing,
        Family::Table(_) => Changes::Nothing,
        Family::Leaf(_) | Family::Load(_) | Family::Reference(_) | Family::Terminator(_) => Changes::Nothing,
        Family::Integer(_) | Family::Compare(_) | Family::Bits(_) | Family::Convert(_) => Changes::Nothing,
        Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) | Family::Simd(_) => Changes::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Block, parse};
    use bumpalo::Bump;

    /// The accesses of a parsed function, in order.
    fn accesses(body: &str) -> Vec<Access> {
        let arena = Bump::new();
        let text = format!("func 0 (i32, i32)\nb0:\n  v0: i32 = param 0\n  v1: i32 = param 1\n{body}  return\n");
        let func = parse(&arena, &text).unwrap();
        func.block(Block::ENTRY).insts.iter().filter_map(|&value| Access::of(&func, value)).collect()
    }

    #[test]
    fn constant_distances_keep_accesses_apart() {
        let all = accesses(
            "  v2: i32 = const 4\n  v3: i32 = add v0, v2\n  v4: i32 = const 4294967292\n  v5: i32 = add v0, v4
  v6: i32 = load v0 +8
  v7: i32 = load v3 +4
  v8: i32 = load v3 +8
  v9: i64 = load v5 +8
  v10: i64 = load v5 +4
  v11: i32 = load v1
  v12: i32 = load8_u v2
  v13: i32 = load v4 +4294967292
",
        );
        let apart = |i: usize, j: usize| all[i].is_apart(&all[j], None);
        assert!(!apart(0, 1), "x + 8, both ways");
        assert!(!all[0].same_start(&all[1]), "unless x + 4 wraps around");
        assert!(apart(0, 2) && apart(2, 0), "x + 8 and x + 12");
        assert!(!apart(0, 3), "x - 4 + 8, eight bytes wide, reaches x + 8");
        assert!(apart(0, 4) && apart(4, 0), "x - 4 + 4 does not");
        assert!(!apart(0, 5), "another base");
        assert!(apart(6, 7), "constants: 4 and 2^33 - 8");
    }

    #[test]
    fn imported_memories_may_be_one() {
        let wat = r#"(module (import "a" "m" (memory 1)) (import "a" "n" (memory 1)) (memory 1))"#;
        let module = weir_bytecode::validate::parse(wat::parse_str(wat).unwrap().into()).unwrap();
        let all = accesses("  v2: i32 = load v0\n  v3: i32 = load mem1 v0\n  v4: i32 = load mem2 v0\n");
        assert!(!all[0].is_apart(&all[1], Some(&module)));
        assert!(all[0].is_apart(&all[2], Some(&module)) && all[1].is_apart(&all[2], Some(&module)));
        assert!(!all[0].is_apart(&all[2], None), "nothing is known without a module");
    }
}
