//! `weir validate`.

use crate::args::Validate;
use crate::failure::{Done, Failure};
use crate::{load, progress};
use weir::{Config, Engine};

/// Loads every module, so that the first one that is not valid is reported.
pub(crate) fn validate(args: &Validate) -> Done {
    let engine = engine()?;
    let what = || Some(format!("validating {} modules", args.modules.len()));
    match &args.modules[..] {
        [module] => load::module(&engine, module).map(drop)?,
        modules => {
            progress::during(what, || modules.iter().try_for_each(|path| load::module_quietly(&engine, path.as_ref()).map(drop)))?
        }
    }
    Ok(0)
}

/// An engine that accepts the modules that `weir run` accepts.
pub(crate) fn engine() -> Result<Engine, Failure> {
    Engine::new(Config::new().wasm_legacy_exceptions(true)).map_err(Failure::of_engine)
}
