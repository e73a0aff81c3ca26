//! The settings that allow or refuse proposals. What is off is really refused: a module that needs it is invalid.

use crate::records::config::{Config, Unavailable};
use std::borrow::Cow;
use weir_bytecode::validate::{Proposal, WasmFeatures};

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

/// Defines a method for each proposal that Weir does not have, and their table.
macro_rules! missing {
    ($($(#[doc = $doc:literal])* $name:ident = $feature:ident, $message:literal;)*) => {
        /// Settings of proposals that Weir does not have. On is an error of [`Engine::new`](crate::Engine::new).
        impl Config {
            $(
                $(#[doc = $doc])*
                pub fn $name(&mut self, enable: bool) -> &mut Config {
                    self.wasm_features(WasmFeatures::$feature, enable)
                }
            )*
        }

        /// The features of these proposals, each with the error for it.
        const MISSING: &[(WasmFeatures, &str)] =
            &[$((WasmFeatures::$feature, concat!($message, " (`Config::", stringify!($name), "`)")),)*];
    };
}

missing! {
    /// Shared tables, globals and references. Default: off.
    wasm_shared_everything_threads = SHARED_EVERYTHING_THREADS, "Weir does not have threads yet";
    /// Stack switching. Default: off.
    wasm_stack_switching = STACK_SWITCHING, "Weir does not have stack switching";
    /// Components. Default: off; wasmtime's is on.
    wasm_component_model = COMPONENT_MODEL, "Weir does not have components";
    /// Asynchronous functions of components. Default: off; wasmtime's is on.
    wasm_component_model_async = CM_ASYNC, "Weir does not have components";
    /// More built-in functions for asynchronous components. Default: off.
    wasm_component_model_more_async_builtins = CM_MORE_ASYNC_BUILTINS, "Weir does not have components";
    /// Asynchronous functions of components with stacks of their own. Default: off.
    wasm_component_model_async_stackful = CM_ASYNC_STACKFUL, "Weir does not have components";
    /// Threads of components. Default: off.
    wasm_component_model_threading = CM_THREADING, "Weir does not have components";
    /// The type `error-context` of components. Default: off.
    wasm_component_model_error_context = CM_ERROR_CONTEXT, "Weir does not have components";
    /// Collected objects as values of components. Default: off.
    wasm_component_model_gc = CM_GC, "Weir does not have components";
    /// Maps of components. Default: off.
    wasm_component_model_map = CM_MAP, "Weir does not have components";
    /// Memories of components with 64-bit indices. Default: off.
    wasm_component_model_memory64 = CM64, "Weir does not have components";
    /// Lists of components with a fixed length. Default: off.
    wasm_component_model_fixed_length_lists = CM_FIXED_LENGTH_LISTS, "Weir does not have components";
    /// Names of what a component's imports implement. Default: off.
    wasm_component_model_implements = CM_IMPLEMENTS, "Weir does not have components";
}

/// What wasmtime's default allows and Weir does not have. A module that has it is refused when it is loaded, whatever the settings.
const ON_IN_WASMTIME: WasmFeatures = WasmFeatures::GC.union(WasmFeatures::THREADS);

/// Says that Weir does not have the first of these features, if there is any.
fn lacks(features: WasmFeatures) -> Option<Cow<'static, str>> {
    let (name, first) = features.iter_names().next()?;
    let named = MISSING.iter().find(|(feature, _)| *feature == first);
    Some(named.map_or_else(
        || format!("Weir does not have the feature `{}` (`Config::wasm_features`)", name.to_lowercase()).into(),
        |(_, message)| (*message).into(),
    ))
}

impl Config {
    /// Allows modules to have features of the validator, or refuses them: the proposals that the other methods name, and parts of the
    /// language, such as [`WasmFeatures::FLOATS`]. On is an error of [`Engine::new`](crate::Engine::new) for what Weir does not have.
    ///
    /// ```
    /// use weir::{Config, Engine, Module, WasmFeatures};
    ///
    /// let mut config = Config::new();
    /// config.wasm_features(WasmFeatures::all(), false).wasm_features(WasmFeatures::WASM1, true);
    /// let engine = Engine::new(&config)?;
    /// assert!(Module::new(&engine, "(module (func (param f32)))").is_ok());
    /// assert!(Module::new(&engine, "(module (func (param v128)))").is_err());
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn wasm_features(&mut self, features: WasmFeatures, enable: bool) -> &mut Config {
        let other = self.proposals.set_features(features, enable);
        self.unmet_features.set(other.difference(ON_IN_WASMTIME), enable);
        self
    }

    /// Has no effect: Weir does not have garbage-collected objects yet, and refuses modules with them, as it does by default. wasmtime's
    /// default is on, and hosts say so whose modules have none.
    pub fn wasm_gc(&mut self, enable: bool) -> &mut Config {
        self.wasm_features(WasmFeatures::GC, enable)
    }

    /// Has no effect: Weir does not have atomic instructions and shared memories yet, and refuses modules with them, as it does by
    /// default. wasmtime's default is on, and hosts say so whose modules have none.
    pub fn wasm_threads(&mut self, enable: bool) -> &mut Config {
        self.wasm_features(WasmFeatures::THREADS, enable)
    }

    /// Has no effect: see [`Config::wasm_gc`]. References to functions and to the host (`externref`) need no support.
    pub fn gc_support(&mut self, _enable: bool) -> &mut Config {
        self
    }

    /// Shared memories. Default: off. On is an error of [`Engine::new`](crate::Engine::new).
    pub fn shared_memory(&mut self, enable: bool) -> &mut Config {
        self.demand("Weir does not have shared memories yet (`Config::shared_memory`)", enable)
    }

    /// Concurrent tasks of components. Default: off; wasmtime's is on. On is an error of [`Engine::new`](crate::Engine::new).
    pub fn concurrency_support(&mut self, enable: bool) -> &mut Config {
        self.demand("Weir does not have components (`Config::concurrency_support`)", enable)
    }

    /// Has no effect: branch hints change no result, and Weir uses those of any module until it has counted the branches.
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
            Some("max_wasm_stack size cannot exceed the async_stack_size")
        } else if without(Proposal::RelaxedSimd, Proposal::Simd) {
            Some("cannot disable the simd proposal but enable the relaxed simd proposal")
        } else {
            None
        };
        let lacks = || self.unmet.first().map(|&message| message.into()).or_else(|| lacks(self.unmet_features));
        match contradiction.map(Cow::Borrowed).or_else(lacks) {
            Some(message) => Err(Unavailable::new(message)),
            None => Ok(()),
        }
    }
}
