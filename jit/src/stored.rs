//! Compiled code as bytes, for a later process: see [`weir_bytecode::stored`](mod@weir_bytecode::stored).
//!
//! A [`Request`](crate::Request) is all that code depends on, besides the build of this crate and the processor. What the bytes of code depend on there:
//!
//! - the module, the function, and the options: stored code is kept separately for each;
//! - the profile, which changes no result;
//! - the signature identities, which are [`RelocTarget::Signature`](weir_contract::code::RelocTarget::Signature) in the code of the native back end and of the baseline compiler, and
//!   constants in Cranelift's, which is therefore not written;
//! - no address: cells, ticks and counters are relocations, and helpers are read from the instance.

use crate::request::{Backend, CompileStats, Compiled};
use weir_bytecode::FuncBody;
use weir_bytecode::stored::Stored;
use weir_contract::profile::CounterCounts;
use weir_contract::tables::Tables;

/// Code with its tables as bytes, and what else is known of its compilation.
#[derive(Debug)]
pub struct Packed {
    /// What [`UnplacedCode`](weir_contract::unplaced::UnplacedCode) refers to.
    pub bytes: Vec<u8>,
    /// The back end that compiled it.
    pub backend: Backend,
    /// The number of bytes of machine code.
    pub code_len: usize,
    /// Counters and times of the compilation.
    pub stats: CompileStats,
}

impl Compiled {
    /// Packs the code of a function, which has this body. The lines are left out. The code is moved, because that of a large function takes
    /// 20 MB.
    pub fn pack(self, body: &FuncBody) -> Packed {
        let Compiled { backend, code, relocs, traps, calls, headers, landings, frame, roots, inlining, lines: _, stats } = self;
        let code_len = code.len();
        let mut head = Vec::new();
        backend.write(&mut head);
        (code_len as u32).write(&mut head);
        let rows = 13 * relocs.len() + 9 * traps.len() + 8 * (calls.len() + headers.len());
        let mut bytes = code;
        bytes.reserve_exact(head.len() + rows + 128);
        bytes.splice(..0, head);
        CounterCounts::of(body).write(&mut bytes);
        relocs.write(&mut bytes);
        landings.write(&mut bytes);
        frame.write(&mut bytes);
        inlining.write(&mut bytes);
        Tables::write(&traps, &calls, &headers, &roots, &mut bytes);
        Packed { bytes, backend, code_len, stats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Context, compile};
    use crate::ir::Entry;
    use crate::request::{Backend, Options, RelocTarget, Request};
    use weir_bytecode::stored::Damaged;
    use weir_bytecode::validate;
    use weir_contract::unplaced::UnplacedCode;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn code_is_read_as_it_was_written_and_damage_is_an_error() {
        let text = "(module (table 1 funcref) (memory 1) (type $t (func (param i32) (result i32)))
            (func (param i32) (result i32)
                (block $out (loop $again
                    (br_if $out (i32.load (local.get 0)))
                    (local.set 0 (call_indirect (type $t) (local.get 0) (i32.const 0)))
                    (br_if $again (call 0 (local.get 0)))))
                (i32.div_u (i32.const 1) (local.get 0))))";
        let module = validate::parse(wat::parse_str(text).expect("it is well formed").into()).expect("it is valid");
        let options = Options { ticks: true, counts: true, ..Options::default() };
        for backend in [Backend::Native, Backend::Baseline] {
            let request = Request {
                module: &module,
                func: 0,
                entry: Entry::Call,
                sig_ids: &[77],
                backend,
                profile: None,
                callees: None,
                options: &options,
            };
            let compiled = compile(&mut Context::default(), &request).expect("it is compiled");
            let signatures = compiled.relocs.iter().filter(|reloc| reloc.target == RelocTarget::Signature);
            let mut signatures: Vec<u32> = signatures.map(|reloc| reloc.index).collect();
            signatures.dedup();
            assert_eq!(signatures, [0], "{backend:?}");
            assert_eq!(compiled.inlining.links.is_empty(), backend == Backend::Baseline, "the function is inlined in itself");
            let bytes = compiled.clone().pack(module.body(0).expect("it is defined there")).bytes;
            let read = UnplacedCode::read(&bytes, &module).expect("nothing is damaged");
            assert_eq!((read.backend, read.code, read.frame), (backend, &*compiled.code, compiled.frame));
            assert_eq!(read.inlining, compiled.inlining);
            assert!(read.relocs.iter().eq(compiled.relocs.iter().copied()));
            let tables = Tables::at(read.tables.to_vec().into(), 0).expect("they are tables");
            assert!(tables.traps().iter().eq(compiled.traps.iter().copied()) && tables.calls().iter().eq(compiled.calls));
            assert!(compiled.headers.iter().all(|header| tables.header(header.0) == Some(header.1)));
            for len in 0..bytes.len() {
                assert_eq!(UnplacedCode::read(&bytes[..len], &module).err(), Some(Damaged));
            }
            for bit in 0..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                // Any code, or an error.
                let _ = UnplacedCode::read(&damaged, &module);
            }
        }
    }
}
