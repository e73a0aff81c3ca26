//! `weir validate`.

use crate::args::Validate;
use crate::failure::{Done, Failure};
use weir::{Engine, Module};

/// Loads every module, so that the first one that is not valid is reported.
pub(crate) fn validate(args: &Validate) -> Done {
    let engine = Engine::default();
    for path in &args.modules {
        Module::from_file(&engine, path).map_err(Failure::Module)?;
    }
    Ok(0)
}
