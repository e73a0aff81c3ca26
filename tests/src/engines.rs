//! The engines of the tests: a panic of the compiler, which the host of a program does not notice, ends the process. A test
//! would pass otherwise, because another back end or the interpreter runs the function.

use weir::{Config, Engine, Result, TierEvent, TierEventKind};

/// An engine with these settings, on which a panic of the compiler ends the process.
///
/// # Errors
/// Those of [`Engine::new`].
pub fn engine(config: &Config) -> Result<Engine> {
    engine_with_events(config, |_| ())
}

/// The same, with a callback for what its tiers do.
///
/// # Errors
/// Those of [`Engine::new`].
pub fn engine_with_events(config: &Config, callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) -> Result<Engine> {
    let mut config = config.clone();
    abort_on_panics(&mut config, callback);
    #[expect(clippy::disallowed_methods, reason = "this is what the others use")]
    Engine::new(&config)
}

/// Makes a panic of the compiler end the process, in engines with these settings. `callback` takes the place of what
/// [`Config::on_tier_event`] had.
pub fn abort_on_panics(config: &mut Config, callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) {
    config.on_tier_event(move |event| {
        if let TierEventKind::Panicked { message, .. } = &event.kind {
            eprintln!("the compiler panicked over {}: {message}", event.name());
            std::process::abort();
        }
        callback(event);
    });
}
