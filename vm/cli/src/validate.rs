//! `weir validate`.

use crate::args::Validate;
use crate::failure::{Done, Failure};
use crate::load;
use weir::{Config, Engine};

/// Loads every module, so that the first one that is not valid is reported.
pub(crate) fn validate(args: &Validate) -> Done {
    let engine = engine()?;
    for path in &args.modules {
        load::module(&engine, path)?;
    }
    Ok(0)
}

/// An engine that accepts the modules that `weir run` accepts.
pub(crate) fn engine() -> Result<Engine, Failure> {
    Engine::new(Config::new().wasm_legacy_exceptions(true)).map_err(Failure::of_engine)
}
