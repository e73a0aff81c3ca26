//! The engines of the tests.

pub use crate::panics::abort_on_panics;
use weir::{Config, Engine, Result, TierEvent};

/// An engine with these settings, in which a panic of the compiler ends the process.
///
/// # Errors
/// The errors of [`Engine::new`].
pub fn engine(config: &Config) -> Result<Engine> {
    engine_with_events(config, |_| ())
}

/// An engine as [`engine`] returns, with a callback for tier events.
///
/// # Errors
/// The errors of [`Engine::new`].
pub fn engine_with_events(config: &Config, callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) -> Result<Engine> {
    let mut config = config.clone();
    abort_on_panics(&mut config, callback);
    #[expect(clippy::disallowed_methods, reason = "this is what the others use")]
    Engine::new(&config)
}
