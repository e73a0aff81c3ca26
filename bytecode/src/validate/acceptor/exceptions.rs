//! Blocks with handlers of exceptions, and throws.

use super::super::options::Proposal;
use super::super::signatures::EXNREF;
use super::{Acceptor, BlockKind, Class, Code, Control, Cursor, Signature, Signatures};

impl Acceptor {
    /// An instruction that throws, or that opens, divides or ends a block with handlers. Not inlined: modules without exceptions take
    /// no time for it.
    #[inline(never)]
    pub(super) fn exceptions(
        &mut self,
        code: &Code<'_>,
        signatures: &Signatures,
        at: &mut Cursor<'_>,
        control: Control,
    ) -> Option<Class> {
        let legacy = matches!(control, Control::Try | Control::Catch | Control::CatchAll | Control::Delegate | Control::Rethrow);
        if legacy && !code.unvalidated.options.proposals.contains(Proposal::LegacyExceptions) {
            return None;
        }
        match control {
            Control::TryTable => {
                let ty = at.block_type(signatures)?;
                self.pop_all(&signatures.bytes[ty.params()])?;
                for _ in 0..at.u32()? {
                    self.clause(code, signatures, at)?;
                }
                self.open(signatures, BlockKind::Block, ty);
                Some(Class::TryTable)
            }
            Control::Throw => {
                let payload = payload(code, signatures, at)?;
                self.pop_all(&signatures.bytes[payload.params()])?;
                self.stop();
                Some(Class::Throw)
            }
            Control::ThrowRef => {
                self.pop(EXNREF)?;
                self.stop();
                Some(Class::ThrowRef)
            }
            Control::Try => {
                let ty = at.block_type(signatures)?;
                self.enter(signatures, BlockKind::Try, ty)?;
                Some(Class::Try)
            }
            Control::Catch => {
                let payload = payload(code, signatures, at)?;
                self.begin_catch(signatures, BlockKind::Catch)?;
                self.push_all(&signatures.bytes[payload.params()]);
                Some(Class::Catch)
            }
            Control::CatchAll => {
                self.begin_catch(signatures, BlockKind::CatchAll)?;
                Some(Class::CatchAll)
            }
            Control::Delegate => {
                let block = self.close(signatures)?;
                // The label is counted from outside the block.
                self.label(signatures, at.u32()?)?;
                if block.kind != BlockKind::Try {
                    return None;
                }
                self.push_all(&signatures.bytes[block.ty.results()]);
                Some(Class::Delegate)
            }
            Control::Rethrow => {
                let block = self.block(at.u32()?)?;
                if !matches!(block.kind, BlockKind::Catch | BlockKind::CatchAll) {
                    return None;
                }
                self.stop();
                Some(Class::Rethrow)
            }
            Control::Nop | Control::Unreachable | Control::Block | Control::Loop | Control::If | Control::Else | Control::End => {
                None
            }
            Control::Br | Control::BrIf | Control::BrTable | Control::BrOnNull | Control::BrOnNonNull | Control::Return => None,
            Control::Call(_) | Control::ReturnCall(_) => None,
        }
    }

    /// A clause of a `try_table` that is not open yet. Its label takes exactly what the clause passes.
    fn clause(&self, code: &Code<'_>, signatures: &Signatures, at: &mut Cursor<'_>) -> Option<()> {
        let kind = at.byte()?;
        let payload = match kind {
            0 | 1 => payload(code, signatures, at)?.params(),
            2 | 3 => 0..0,
            _ => return None,
        };
        let types = self.label(signatures, at.u32()?)?;
        let with_reference = kind % 2 == 1;
        let types = if with_reference { types.strip_suffix(&[EXNREF])? } else { types };
        (types == &signatures.bytes[payload]).then_some(())
    }

    /// Ends the part of a `try` before a `catch` or `catch_all`, and opens the part after it, whose operands are the payload.
    fn begin_catch(&mut self, signatures: &Signatures, kind: BlockKind) -> Option<()> {
        let block = self.close(signatures)?;
        if !matches!(block.kind, BlockKind::Try | BlockKind::Catch) {
            return None;
        }
        self.open(signatures, kind, block.ty.without_params());
        Some(())
    }
}

/// The signature of a tag, whose parameters are the payload of its exceptions.
fn payload(code: &Code<'_>, signatures: &Signatures, at: &mut Cursor<'_>) -> Option<Signature> {
    let ty = *code.tags.get(at.u32()? as usize)?;
    signatures.types[ty as usize]
}
