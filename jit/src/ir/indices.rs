//! The rule about indices of the module in `aux` and `imm`, for the [verifier](mod@crate::analysis::verify).

use super::func::Inst;
use super::ops::Fields;
use weir_bytecode::module::Module;

/// Checks that the module has what an instruction refers to.
///
/// # Errors
/// The first item that it does not have.
pub fn check(inst: &Inst<'_>, module: &Module) -> Result<(), String> {
    let in_range = |kind: &str, index: u64, len: usize| match index < len as u64 {
        true => Ok(()),
        false => Err(format!("{kind} {index} of {len}")),
    };
    let (aux, imm) = (u64::from(inst.aux), inst.imm);
    match inst.op.fields() {
        Fields::Access | Fields::Memory => in_range("memory", aux, module.memories.len()),
        Fields::Memories => {
            in_range("memory", aux, module.memories.len())?;
            in_range("memory", imm, module.memories.len())
        }
        Fields::MemorySegment => {
            in_range("memory", aux, module.memories.len())?;
            in_range("data segment", imm, module.data.len())
        }
        Fields::Segment => in_range("data segment", imm, module.data.len()),
        Fields::Global => in_range("global", aux, module.globals.len()),
        Fields::Table => in_range("table", aux, module.tables.len()),
        Fields::Tables => {
            in_range("table", aux, module.tables.len())?;
            in_range("table", imm, module.tables.len())
        }
        Fields::TableSegment => {
            in_range("table", aux, module.tables.len())?;
            in_range("element segment", imm, module.elems.len())
        }
        Fields::ElemSegment => in_range("element segment", imm, module.elems.len()),
        Fields::Func => in_range("function", aux, module.funcs.len()),
        fields @ (Fields::Element | Fields::Indirect) => {
            let (kind, len) =
                if fields == Fields::Element { ("function", module.funcs.len()) } else { ("type", module.types.len()) };
            in_range(kind, aux, len)?;
            in_range("table", imm, module.tables.len())
        }
        Fields::Type => in_range("type", aux, module.types.len()),
        Fields::Tag => in_range("tag", aux, module.tags.len()),
        Fields::None | Fields::Bits | Fields::Number | Fields::Trap | Fields::Vector | Fields::Probability => Ok(()),
        Fields::Handler => Ok(()),
    }
}
