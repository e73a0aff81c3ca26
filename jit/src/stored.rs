//! Compiled code as bytes, for a later process: see [`weir_bytecode::stored`](mod@weir_bytecode::stored).
//!
//! A [`Request`](crate::Request) is all that code depends on, besides the build of this crate and the processor. What the bytes of code depend on there:
//!
//! - the module, the function, and the options: stored code is kept separately for each;
//! - the profile, which changes no result;
//! - the signature identities, which are [`RelocTarget::Signature`] in the code of the native back end and of the baseline compiler, and
//!   constants in Cranelift's, which is therefore not written;
//! - no address: cells, ticks and counters are relocations, and helpers are read from the instance.

use crate::request::{Backend, CompileStats, Compiled, Inlining, Reloc, RelocTarget};
use weir_bytecode::Module;
use weir_bytecode::stored::{Damaged, Reader, Stored};

impl Compiled {
    /// Appends the code with its tables, if it is not Cranelift's. The lines and the statistics of the compilation are not written.
    /// Returns whether it has done that.
    pub fn write(&self, to: &mut Vec<u8>) -> bool {
        let Compiled { backend, code, relocs, traps, calls, headers, landings, frame, roots, inlining, lines: _, stats: _ } =
            self;
        if *backend == Backend::Cranelift {
            return false;
        }
        backend.write(to);
        (code.len() as u32).write(to);
        to.extend_from_slice(code);
        relocs.write(to);
        traps.write(to);
        calls.write(to);
        headers.write(to);
        landings.write(to);
        frame.write(to);
        roots.write(to);
        inlining.write(to);
        true
    }

    /// Reads code of a function of `module` that takes all of the bytes.
    ///
    /// # Errors
    /// [`Damaged`]; also if a table leads out of the code or of the module.
    pub fn read(bytes: &[u8], module: &Module) -> Result<Compiled, Damaged> {
        let mut from = Reader::new(bytes);
        let backend = Stored::read(&mut from)?;
        let len = u32::read(&mut from)?;
        let compiled = Compiled {
            backend,
            code: from.take(len as usize)?.to_vec(),
            relocs: Stored::read(&mut from)?,
            traps: Stored::read(&mut from)?,
            calls: Stored::read(&mut from)?,
            headers: Stored::read(&mut from)?,
            landings: Stored::read(&mut from)?,
            frame: Stored::read(&mut from)?,
            roots: Stored::read(&mut from)?,
            inlining: Stored::read(&mut from)?,
            lines: Vec::new(),
            stats: CompileStats::default(),
        };
        from.finish()?;
        if compiled.is_within(module) { Ok(compiled) } else { Err(Damaged) }
    }

    /// Whether no table leads out of the code or of the module.
    fn is_within(&self, module: &Module) -> bool {
        let end = self.code.len();
        let inside = |offset: u32| (offset as usize) < end;
        let field = |reloc: &Reloc| {
            let is_index = match reloc.target {
                RelocTarget::Cell | RelocTarget::Ticks(_) | RelocTarget::Counters(_) => {
                    (module.imported_funcs..module.funcs.len() as u32).contains(&reloc.index)
                }
                RelocTarget::Signature => (reloc.index as usize) < module.types.len(),
            };
            is_index && reloc.offset as usize + size_of::<i32>() <= end
        };
        end > 0
            && self.backend != Backend::Cranelift
            && self.relocs.iter().all(field)
            && self.traps.iter().all(|trap| inside(trap.offset))
            && self.calls.iter().all(|call| call.0 as usize <= end)
            && self.headers.iter().all(|header| inside(header.1))
            && self.landings.iter().all(|landing| inside(landing.offset))
            && self.roots.is_within(&self.frame)
            && self.has_chains()
    }

    /// Whether every chain of inlined calls ends.
    fn has_chains(&self) -> bool {
        let Inlining { traps, calls, links } = &self.inlining;
        let is_link = |&(_, link): &(u32, u32)| (link as usize) < links.len();
        let mut outer = (0..).zip(links);
        outer.all(|(index, link)| link.outer.is_none_or(|outer| outer < index)) && traps.iter().chain(calls).all(is_link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Context, compile};
    use crate::ir::Entry;
    use crate::request::{Options, Request};
    use weir_bytecode::validate;

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
                options: &options,
            };
            let compiled = compile(&mut Context::default(), &request).expect("it is compiled");
            let signatures = compiled.relocs.iter().filter(|reloc| reloc.target == RelocTarget::Signature);
            assert_eq!(signatures.map(|reloc| reloc.index).collect::<Vec<_>>(), [0], "{backend:?}");
            let mut bytes = Vec::new();
            assert!(compiled.write(&mut bytes));
            let read = Compiled::read(&bytes, &module).expect("nothing is damaged");
            let mut again = Vec::new();
            read.write(&mut again);
            assert_eq!((again == bytes, read.code == compiled.code, read.relocs == compiled.relocs), (true, true, true));
            for len in 0..bytes.len() {
                assert_eq!(Compiled::read(&bytes[..len], &module).err(), Some(Damaged));
            }
            for bit in 0..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                // Any code, or an error.
                let _ = Compiled::read(&damaged, &module);
            }
        }
    }
}
