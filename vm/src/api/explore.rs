//! The text of a function after every stage of compilation.

use crate::compilation::options::options;
use crate::compilation::request::{Counts, back_end, back_ends, request};
use crate::records::config::{Tier, Unavailable};
use crate::records::error::{Error, Result};
use crate::records::module::Module;
use weir_contract::Entry;
use weir_jit::Backend;
use weir_jit::explore::{Section, explore, explore_ssa};

impl Module {
    /// Compiles function `func`, or with `osr` the code that continues its running loop at this offset, and returns the text of every
    /// stage. The engine's settings apply, and the counts of the profile that is used ([`Module::use_profile`]), or else those of
    /// this run. With the profile of a run, the last stage, `bytes`, is therefore the code that the run installed, apart from baseline code,
    /// which [`Module::explore_baseline`] shows. Nothing is installed.
    ///
    /// With lazy validation, code assumes less about calls, so this setting must be that of the run, too. Type identities are
    /// part of the code. They are equal in two engines whose modules and host functions came in the same order.
    ///
    /// # Errors
    /// [`Unavailable`] if the engine's tier compiles nothing; the function is imported, invalid, or has no such loop.
    ///
    /// ```
    /// use weir::{Engine, Module};
    ///
    /// let module = Module::new(&Engine::default(), "(module (func (param i32) (result i32) (local.get 0)))")?;
    /// let stages = module.explore(0, None)?;
    /// assert_eq!(stages[0].stage, "bytecode");
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn explore(&self, func: u32, osr: Option<u32>) -> Result<Vec<Section>> {
        let config = self.engine().config();
        if config.tier == Tier::Interpreter {
            return Err(Error::new(Unavailable::new("an engine that only interprets compiles nothing")));
        }
        match back_end(config) {
            Some(first) => self.explore_with(func, osr, back_ends(first)),
            None => self.explore_with(func, osr, &[]),
        }
    }

    /// Compiles the baseline code of function `func`, which [`Tier::Auto`] runs before optimised code, and returns the
    /// text of every stage. Otherwise as [`Module::explore`].
    ///
    /// # Errors
    /// [`Unavailable`] if functions get no baseline code ([`Config::baseline`](crate::Config::baseline)); the function is imported or
    /// invalid.
    pub fn explore_baseline(&self, func: u32) -> Result<Vec<Section>> {
        if !self.engine().config().has_baseline() {
            return Err(Error::new(Unavailable::new("functions get no baseline code with these settings")));
        }
        self.explore_with(func, None, back_ends(Backend::Baseline))
    }

    /// Compiles with the first of `back_ends` that does not refuse; with none, to SSA.
    fn explore_with(&self, func: u32, osr: Option<u32>, back_ends: &[Backend]) -> Result<Vec<Section>> {
        let (record, config) = (self.record(), self.engine().config());
        record.engine.record().check_process()?;
        let body = match func < record.bytecode.funcs.len() as u32 {
            true => record.bytecode.validated_body(func),
            false => None,
        };
        let body = body.ok_or_else(|| Error::msg(format!("the module defines no function {func}")))?;
        let body = body.map_err(Error::new)?;
        let entry = match osr {
            None => Entry::Call,
            Some(pc) if body.loops.iter().any(|info| info.pc == pc) => Entry::Osr(pc),
            Some(pc) => return Err(Error::msg(format!("function {func} has no loop at {pc:#x}"))),
        };
        let (options, counts) = (options(config), Counts::new(record, func, entry));
        let request = |backend| request(record, func, entry, backend, Some(&counts), &options);
        let Some((&first, others)) = back_ends.split_first() else { return Ok(explore_ssa(&request(Backend::Native))) };
        let mut sections = explore(&request(first));
        for &next in others {
            if sections.last().is_none_or(|last| last.stage != "refusal") {
                break;
            }
            // The second back end starts from the same SSA, so the stages before it are left out.
            let of_back_end = |section: &Section| ["asm", "bytes", "refusal"].contains(&section.stage);
            sections.extend(explore(&request(next)).into_iter().skip_while(|section| !of_back_end(section)));
        }
        Ok(sections)
    }
}
