//! The information about every value that selection needs before it starts.

use crate::analysis::uses::count_uses;
use crate::analysis::{Cfg, DefBlocks};
use crate::ir::family::{Call, Convert, Family, Integer, Table, Terminator};
use crate::ir::{Effect, Func, Op, Type, Value};
use crate::meter::{Ended, Meter};
use crate::seeded::{self, Fault};

/// Information about the values in reachable blocks, indexed by value.
#[derive(Debug)]
pub struct ValueInfo {
    /// The value whose register this one shares, which for most is itself: see [`ValueInfo::find_aliases`].
    pub alias: Vec<Value>,
    /// Use counts, which include the uses of a value's aliases.
    pub uses: Vec<u32>,
    /// Whether it is an i32 whose register is read in its upper half.
    pub upper: Vec<bool>,
    /// The definition blocks.
    pub def_blocks: DefBlocks,
    /// The number of instructions before it in its block that may trap or write.
    pub effects_before: Vec<u32>,
}

impl ValueInfo {
    /// The bytes for each value.
    pub const OF_VALUE: usize = size_of::<Value>() + 3 * size_of::<u32>() + size_of::<bool>();

    /// Collects the information about `func`; `cfg` has its reachable blocks.
    ///
    /// # Errors
    /// The compilation is to end.
    pub fn of(func: &Func<'_>, cfg: &Cfg, meter: &Meter<'_>) -> Result<ValueInfo, Ended> {
        let values = func.num_values();
        let mut info = ValueInfo {
            alias: (0..values as u32).map(Value).collect(),
            uses: vec![0; values],
            upper: vec![false; values],
            def_blocks: DefBlocks::compute(func),
            effects_before: vec![0; values],
        };
        for &block in cfg.order() {
            let mut effects = 0;
            for &value in &func.block(block).insts {
                info.effects_before[value.index()] = effects;
                effects += u32::from(!matches!(func.op(value).effect(), Effect::Pure | Effect::Read));
            }
        }
        meter.ask()?;
        info.find_upper(func, cfg);
        meter.ask()?;
        info.find_aliases(func, cfg);
        meter.ask()?;
        count_uses(func, cfg.order().iter().copied(), |value| info.alias[value.index()], &mut info.uses);
        Ok(info)
    }

    /// Whether a phi becomes a parameter of its block.
    pub fn is_live_phi(&self, phi: Value) -> bool {
        self.uses[phi.index()] > 0 && self.alias[phi.index()] == phi
    }

    fn find_upper(&mut self, func: &Func<'_>, cfg: &Cfg) {
        if seeded::is(Fault::UpperHalfDirty) {
            return;
        }
        let mut work = Vec::with_capacity(func.num_values());
        for &block in cfg.order() {
            for &value in &func.block(block).insts {
                let args = func.args(value);
                work.extend_from_slice(reads_upper(func, func.op(value), args));
            }
        }
        while let Some(value) = work.pop() {
            if func.ty(value) == Type::I32
                && !std::mem::replace(&mut self.upper[value.index()], true)
                && func.op(value) == Op::Phi
            {
                work.extend_from_slice(func.args(value));
            }
        }
    }

    /// Finds the values that share a register with another. `extend_u` shares its argument's register, which is zero-extended
    /// because `extend_u` requires it. `wrap` shares it unless its upper half is read, and a phi with one argument always does.
    fn find_aliases(&mut self, func: &Func<'_>, cfg: &Cfg) {
        for &block in cfg.order() {
            for &value in &func.block(block).insts {
                let args = func.args(value);
                let op = func.op(value);
                let same = if op == Op::ExtendU || op == Op::Wrap && !self.upper[value.index()] {
                    Some(args[0])
                } else if op == Op::Phi {
                    let preds = &func.block(block).preds;
                    let mut live = preds.iter().zip(args).filter(|&(&pred, _)| cfg.is_reachable(pred));
                    live.next().filter(|_| live.next().is_none()).map(|(_, &only)| only)
                } else {
                    None
                };
                if let Some(same) = same {
                    self.alias[value.index()] = self.alias[same.index()];
                }
            }
        }
    }
}

/// The arguments of an operation whose registers are read in all 64 bits, even if they are i32.
fn reads_upper<'f>(func: &Func<'_>, op: Op, args: &'f [Value]) -> &'f [Value] {
    let first = || &args[..1];
    let last = || &args[args.len() - 1..];
    match op.family() {
        Family::Load(_) | Family::Store(_) => first(),
        Family::Convert(Convert::ExtendU | Convert::ConvertU) | Family::Terminator(Terminator::BrTable) => first(),
        // Division by a constant multiplies in 64 bits.
        Family::Integer(Integer::DivU | Integer::RemU) if func.as_const(args[1]).is_some() => first(),
        Family::Call(Call::CallIndirect) | Family::Terminator(Terminator::ReturnCallIndirect) => last(),
        // Indices of tables, and arguments of helpers.
        Family::Table(Table::TableGet) => args,
        Family::Table(_) | Family::Memory(_) if op.is_call() => args,
        Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Compare(_) | Family::FloatCompare(_) => &[],
        Family::Float(_) | Family::FloatUnary(_) | Family::Convert(_) | Family::Simd(_) | Family::Reference(_) => &[],
        Family::Memory(_) | Family::Global(_) | Family::Table(_) | Family::Call(_) => &[],
        Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => &[],
    }
}
