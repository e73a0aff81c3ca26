//! The settings that allow or refuse proposals. What is off is really refused: a module that needs it is invalid.

use crate::records::config::{Config, Unavailable};
use weir_bytecode::validate::Proposal;

/// Defines a method for each proposal that can be refused.
macro_rules! proposals {
    ($($(#[doc = $doc:literal])* $name:ident = $proposal:ident;)*) => {
        /// Settings that allow or refuse proposals.
        impl Config {
            $(
                $(#[doc = $doc])*
                pub fn $name(&mut self, enable: bool) -> &mut Config {
                    self.proposals.set(Proposal::$proposal, enable);
                    self
                }
            )*
        }
    };
}

proposals! {
    /// Allows modules to have tail calls. Default: on.
    wasm_tail_call = TailCall;
    /// Allows modules to have `externref`, tables of references, and instructions for them. Default: on.
    wasm_reference_types = ReferenceTypes;
    /// Allows modules to have typed function references and `call_ref`. They also need
    /// [`wasm_reference_types`](Config::wasm_reference_types). Default: on.
    wasm_function_references = FunctionReferences;
    /// Allows modules to have 128-bit addition and subtraction and the wide product. Default: on; wasmtime's is off.
    wasm_wide_arithmetic = WideArithmetic;
    /// Allows modules to have vectors. Default: on.
    wasm_simd = Simd;
    /// Allows modules to have relaxed vector instructions, whose results are the same in every tier and on every host. They also need
    /// [`wasm_simd`](Config::wasm_simd). Default: on.
    wasm_relaxed_simd = RelaxedSimd;
    /// Allows modules to fill, copy and initialise ranges of memories and tables with one instruction. Default: on.
    wasm_bulk_memory = BulkMemory;
    /// Allows functions and blocks to have several results, and blocks to have parameters. Default: on.
    wasm_multi_value = MultiValue;
    /// Allows modules to have several memories. Default: on.
    wasm_multi_memory = MultiMemory;
    /// Allows modules to have memories and tables with 64-bit indices. Default: on.
    wasm_memory64 = Memory64;
    /// Allows constant expressions to have additions, subtractions and products. Default: on.
    wasm_extended_const = ExtendedConst;
    /// Allows memories to have pages of one byte. Default: on; wasmtime's is off.
    wasm_custom_page_sizes = CustomPageSizes;
    /// Allows modules to have tags and the instructions `throw`, `throw_ref` and `try_table`. Default: on.
    wasm_exceptions = Exceptions;
    /// Allows modules to have the legacy instructions of exception handling: `try`, `catch`, `catch_all`, `delegate` and
    /// `rethrow`, which compilers still emit. They also need [`wasm_exceptions`](Config::wasm_exceptions). Default: off.
    wasm_legacy_exceptions = LegacyExceptions;
}

/// Defines a method for each proposal that Weir does not have.
macro_rules! missing {
    ($($(#[doc = $doc:literal])* $name:ident, $message:literal;)*) => {
        /// Settings of proposals that Weir does not have. On is an error of [`Engine::new`](crate::Engine::new).
        impl Config {
            $(
                $(#[doc = $doc])*
                pub fn $name(&mut self, enable: bool) -> &mut Config {
                    self.demand($message, enable)
                }
            )*
        }
    };
}

missing! {
    /// Garbage-collected objects. Default: off; wasmtime's is on.
    wasm_gc, "Weir does not have garbage-collected objects yet (`Config::wasm_gc`)";
    /// Support for references to collected objects. Default: off; wasmtime's is on. References to functions and to the host
    /// (`externref`) need no support.
    gc_support, "Weir does not have garbage-collected objects yet (`Config::gc_support`)";
    /// Atomic instructions and shared memories. Default: off; wasmtime's is on.
    wasm_threads, "Weir does not have threads yet (`Config::wasm_threads`)";
    /// Shared memories. Default: off.
    shared_memory, "Weir does not have shared memories yet (`Config::shared_memory`)";
    /// Shared tables, globals and references. Default: off.
    wasm_shared_everything_threads, "Weir does not have threads yet (`Config::wasm_shared_everything_threads`)";
    /// Stack switching. Default: off.
    wasm_stack_switching, "Weir does not have stack switching (`Config::wasm_stack_switching`)";
}

impl Config {
    /// Reads branch hints. They change no result, and Weir ignores them: it counts branches. Default: off.
    pub fn wasm_branch_hinting(&mut self, _enable: bool) -> &mut Config {
        self
    }

    /// Adds or removes a requirement that this version does not meet.
    pub(super) fn demand(&mut self, message: &'static str, enable: bool) -> &mut Config {
        self.unmet.retain(|other| *other != message);
        if enable {
            self.unmet.push(message);
        }
        self
    }

    /// Returns an error for settings that contradict each other, or demand what Weir does not have.
    ///
    /// # Errors
    /// The first such setting.
    pub(crate) fn check(&self) -> Result<(), Unavailable> {
        let without = |one, other| self.proposals.contains(one) && !self.proposals.contains(other);
        let contradiction = if self.max_wasm_stack == 0 {
            Some("max_wasm_stack size cannot be zero")
        } else if self.async_stack_size.is_some_and(|bytes| bytes < self.max_wasm_stack) {
            Some("max_wasm_stack cannot be more than async_stack_size")
        } else if without(Proposal::RelaxedSimd, Proposal::Simd) {
            Some("cannot disable the simd proposal but enable the relaxed simd proposal")
        } else {
            None
        };
        match contradiction.or(self.unmet.first().copied()) {
            Some(message) => Err(Unavailable(message)),
            None => Ok(()),
        }
    }
}
