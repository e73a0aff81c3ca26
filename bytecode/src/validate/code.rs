//! The data of a module that the validation of bodies needs.

use super::invalid::InvalidModule;
use super::memory::{EXPORT, IMPORT};
use super::options::Options;
use super::signatures::Signatures;
use crate::account::Account;
use crate::types::{FuncType, GlobalType, ValType};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use wasmparser::ValidatorResources;

/// The data of a module that the validation of a body needs.
pub(crate) struct Code<'m> {
    /// Bytes of the module: those of the bodies that are validated, at least.
    pub bytes: &'m [u8],
    /// The offset of the first of them in the module.
    pub start: u32,
    /// The number of the module's bytes.
    pub module_len: usize,
    pub types: &'m [FuncType],
    pub globals: &'m [GlobalType],
    /// Type index of each function.
    pub funcs: &'m [u32],
    /// Type index of each tag.
    pub tags: &'m [u32],
    pub imported_funcs: u32,
    pub unvalidated: &'m Unvalidated,
    /// What the bodies' tables are charged to.
    pub account: &'m Account,
    /// Whether a body may be refused for its memory, its locals or the steps of its validation. If not, a run that had room for as much has
    /// validated it, perhaps with larger limits, and code of it may be running.
    pub may_refuse: bool,
}

impl<'m> Code<'m> {
    /// Returns the place in `bytes` of an offset in the module.
    #[inline]
    pub fn place(&self, pc: u32) -> usize {
        (pc - self.start) as usize
    }

    /// Whether the global is a v128; `index` is only called if any is.
    #[inline]
    pub fn is_vector_global(&self, index: impl FnOnce() -> u32) -> bool {
        self.unvalidated.vector_globals && self.globals[index() as usize].value == ValType::V128
    }

    /// Whether the type has a v128 among its parameters or results; `index` is only called if any has.
    #[inline]
    pub fn is_vector_type(&self, index: impl FnOnce() -> u32) -> bool {
        self.unvalidated.vector_types && self.types[index() as usize].has_vector()
    }

    /// Charges memory for the body at `pc`.
    ///
    /// # Errors
    /// It is more than is allowed.
    pub fn charge(&self, bytes: usize, pc: u32) -> Result<(), InvalidModule> {
        if self.may_refuse {
            return self.account.charge(bytes).map_err(|error| InvalidModule::exceeding(error, pc.into()));
        }
        self.account.charge_anyway(bytes);
        Ok(())
    }

    /// Replaces what was charged for the tables of the body at `pc`.
    ///
    /// # Errors
    /// As for [`Code::charge`]; then it is not replaced.
    pub fn replace(&self, charged: usize, bytes: usize, pc: u32) -> Result<(), InvalidModule> {
        self.account.give_back(charged.saturating_sub(bytes));
        self.charge(bytes.saturating_sub(charged), pc)
    }
}

/// Bytes that wasmparser keeps for a type, without its parameters and results.
const TYPE_KEPT: usize = 128;
/// Bytes that it takes for a parameter or result.
const VALUE: usize = 4;

/// The parts of a module that the validation of its bodies needs, kept from the validation of its other sections.
#[derive(Debug)]
pub struct Unvalidated {
    resources: ValidatorResources,
    /// Whether some function type has a v128.
    vector_types: bool,
    /// Whether some global is a v128.
    vector_globals: bool,
    /// Also for bodies that are validated later.
    pub(super) options: Options,
    /// The types that the acceptor needs; `None` if wasmparser validates all bodies.
    signatures: Option<Signatures>,
    /// The number of locals of the bodies validated so far.
    locals: AtomicUsize,
    /// Bytes of instructions in the bodies that the acceptor has validated so far.
    accepted: AtomicU64,
    /// The steps that the bodies validated so far have taken.
    steps: AtomicU64,
    /// The number of parameters and results of the function type that has most.
    pub(super) widest: u64,
}

impl Unvalidated {
    /// For a module with these types and globals, whose bodies are not validated.
    pub(super) fn new(
        resources: ValidatorResources,
        types: &[FuncType],
        globals: &[GlobalType],
        signatures: Option<Signatures>,
        options: Options,
    ) -> Unvalidated {
        let widest = types.iter().map(|ty| (ty.params.len() + ty.results.len()) as u64).max().unwrap_or_default();
        let vector_types = types.iter().any(FuncType::has_vector);
        let vector_globals = globals.iter().any(|global| global.value == ValType::V128);
        Unvalidated {
            resources,
            vector_types,
            vector_globals,
            options,
            signatures,
            locals: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            widest,
        }
    }

    /// The types of the module's items for the acceptor; `None` if wasmparser validates all bodies.
    pub(super) fn signatures(&self) -> Option<&Signatures> {
        self.signatures.as_ref()
    }

    /// About the bytes that it and wasmparser's description hold, for a module with these types and these numbers of imports and exports.
    pub(super) fn size(&self, types: &[FuncType], imports: usize, exports: usize) -> usize {
        let values = types.iter().map(|ty| ty.params.len() + ty.results.len()).sum::<usize>();
        let types = types.len() * TYPE_KEPT + values * VALUE;
        let names = exports * EXPORT + imports * IMPORT;
        self.signatures.as_ref().map_or(0, Signatures::size) + types + names
    }

    /// wasmparser's description of the module.
    pub(super) fn resources(&self) -> ValidatorResources {
        self.resources.clone()
    }

    /// Adds the locals of some bodies; returns the number of locals of all bodies so far.
    pub(super) fn add_locals(&self, count: usize) -> usize {
        self.locals.fetch_add(count, Ordering::Relaxed) + count
    }

    /// Counts bodies whose instructions have this many bytes, and which the acceptor has validated.
    pub(super) fn add_accepted(&self, bytes: u64) {
        self.accepted.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the steps of some bodies; returns the number of steps of all bodies so far.
    pub(super) fn add_steps(&self, steps: u64) -> u64 {
        self.steps.fetch_add(steps, Ordering::Relaxed) + steps
    }

    /// The steps of all bodies so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The error for more steps than are allowed, at this offset.
    ///
    /// # Errors
    /// `steps` are more.
    pub(super) fn check_steps(&self, steps: u64, at: u32) -> Result<(), InvalidModule> {
        let max = self.options.max_steps;
        if steps <= max {
            return Ok(());
        }
        Err(InvalidModule::new(format!("validating the module takes more than the {max} steps that are allowed"), at.into()))
    }

    /// Returns whether there is a maximum number of steps.
    pub(crate) fn has_max_steps(&self) -> bool {
        self.options.max_steps != u64::MAX
    }

    /// Bytes of instructions in the bodies that the acceptor has validated so far.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }
}
