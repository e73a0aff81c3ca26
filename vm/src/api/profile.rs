//! The profile of a module: counts of branches and indirect calls, and their text for later processes.

use crate::records::error::{Error, Result};
use crate::records::hints::hash;
use crate::records::module::{Module, ModuleRecord};
use weir_contract::hints::embed;
use weir_contract::profile::Profile;
use weir_contract::profile_text::ModuleProfile;

impl Module {
    /// Returns the counts of the interpreter for function `func` (index in the module). `None` if the function is
    /// imported or has not run long enough, or if profiling is off ([`Config::profile`](crate::Config::profile)).
    ///
    /// ```
    /// use weir::{Config, Engine, Instance, Module, Store, Tier};
    ///
    /// let engine = Engine::new(Config::new().tier(Tier::Interpreter).profile(true))?;
    /// let module = Module::new(&engine, r#"(module
    ///     (func (export "count") (param i32)
    ///         (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))"#)?;
    /// let mut store = Store::new(&engine, ());
    /// let instance = Instance::new(&mut store, &module, &[])?;
    /// instance.get_typed_func::<i32, ()>(&mut store, "count")?.call(&mut store, 10)?;
    /// assert_eq!(*module.profile(0).unwrap().branches[0].counts, [9, 1]);
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn profile(&self, func: u32) -> Option<Profile> {
        if self.engine().record().is_inherited() {
            return None;
        }
        let index = func.checked_sub(self.bytecode().imported_funcs)? as usize;
        self.record().code.get(index)?.profile(self.bytecode(), self.record().body(func)?)
    }

    /// Returns the profile of this run: the counts that each compilation used, and the last counts of functions that
    /// were counted and not compiled. Counts of a used profile that this run does not replace are kept. Its `to_string`
    /// is the text that [`Module::use_profile`] reads.
    ///
    /// # Errors
    /// The engine was made without [`Config::keep_profiles`](crate::Config::keep_profiles).
    ///
    /// ```
    /// use weir::{Config, Engine, Instance, Module, Store, Tier};
    ///
    /// let engine = Engine::new(Config::new().tier(Tier::Interpreter).profile(true).keep_profiles(true))?;
    /// let text = r#"(module
    ///     (func (export "count") (param i32)
    ///         (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))"#;
    /// let module = Module::new(&engine, text)?;
    /// let mut store = Store::new(&engine, ());
    /// let instance = Instance::new(&mut store, &module, &[])?;
    /// instance.get_typed_func::<i32, ()>(&mut store, "count")?.call(&mut store, 10)?;
    /// let profile = module.saved_profile()?.to_string();
    /// assert!(profile.starts_with("weir profile 1\nmodule ") && profile.ends_with(" 9 1\n"));
    ///
    /// let engine = Engine::new(Config::new().keep_profiles(true))?;
    /// Module::new(&engine, text)?.use_profile(&profile)?;
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn saved_profile(&self) -> Result<ModuleProfile> {
        let record = self.record();
        record.engine.record().check_process()?;
        let ModuleRecord { bytecode, code, kept_profile, .. } = &**record;
        let kept = kept_profile.as_ref().ok_or_else(not_kept)?;
        let funcs = (bytecode.imported_funcs..).zip(code);
        Ok(kept.profile(funcs.filter_map(|(func, code)| Some((func, code.profile(bytecode, bytecode.body(func)?)?)))))
    }

    /// Uses the profile that an earlier run saved: its counts guide all later compilations, in the place of those [in the
    /// module](Module::embed_profile). A profile changes the speed of code, never its results.
    ///
    /// # Errors
    /// [`ProfileError`](crate::ProfileError), with the number of the line, if the text is malformed, of another version, or of another
    /// module. The engine was made without [`Config::keep_profiles`](crate::Config::keep_profiles); the module uses a profile already.
    pub fn use_profile(&self, text: &str) -> Result<()> {
        self.engine().record().check_process()?;
        let kept = self.record().kept_profile.as_ref().ok_or_else(not_kept)?;
        let profile = ModuleProfile::read(text, kept.hash(), self.bytecode()).map_err(Error::new)?;
        kept.use_profile(profile).map_err(|_| Error::msg("the module uses a profile already"))
    }

    /// Returns the module's bytes with [its profile](Module::saved_profile) in custom sections. Whoever loads these bytes compiles with the
    /// profile, as if [`Module::use_profile`] had been called.
    ///
    /// Branch hints and the compilation hints `compilation_priority` and `call_targets` are for any engine that knows them. Weir reads them in
    /// modules of any producer, and `instr_freq`, too. They stand for counts of instructions that a run has not executed. The section
    /// `weir.profile` has the profile itself.
    ///
    /// # Errors
    /// As [`Module::saved_profile`].
    ///
    /// ```
    /// use weir::{Config, Engine, Module};
    ///
    /// let engine = Engine::new(Config::new().keep_profiles(true))?;
    /// let module = Module::new(&engine, "(module (func))")?;
    /// let profiled = Module::new(&Engine::default(), module.embed_profile()?)?;
    /// assert!(profiled.custom_sections().any(|(name, _)| name == "weir.profile"));
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn embed_profile(&self) -> Result<Vec<u8>> {
        Ok(embed(self.bytecode(), &self.saved_profile()?, hash))
    }
}

#[cold]
fn not_kept() -> Error {
    Error::msg("the engine keeps no profiles: see Config::keep_profiles")
}
