//! The engines of the tests. The tests of other packages include this file too.
//!
//! A panic of the compiler, which a program's host does not notice, must end the process of a test. Otherwise the test would pass,
//! because another back end or the interpreter would run the function. The engine also catches a panic of the callback for events,
//! such as a failed assertion.

use std::panic::{AssertUnwindSafe, catch_unwind};
use weir::{Config, Engine, Result, TierEvent, TierEventKind};

/// An engine with these settings, in which a panic of the compiler ends the process.
///
/// # Errors
/// The errors of [`Engine::new`].
pub fn engine(config: &Config) -> Result<Engine> {
    engine_with_events(config, |_| ())
}

/// An engine with the settings of [`Engine::default`], in which a panic of the compiler ends the process.
///
/// # Panics
/// If there is no such engine.
pub fn default_engine() -> Engine {
    engine(&Config::new()).expect("nothing that could fail is asked for")
}

/// An engine as [`engine`] returns, with a callback for tier events.
///
/// # Errors
/// The errors of [`Engine::new`].
pub fn engine_with_events(config: &Config, callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) -> Result<Engine> {
    let mut config = config.clone();
    abort_on_panics(&mut config, callback);
    new(&config)
}

/// An engine as [`engine_with_events`] returns, for a test in which `callback` panics: such a panic does not end the process.
///
/// # Errors
/// The errors of [`Engine::new`].
pub fn engine_with_panicking_events(
    config: &Config,
    callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static,
) -> Result<Engine> {
    let mut config = config.clone();
    abort_on_panics_of_the_compiler(&mut config, callback);
    new(&config)
}

#[allow(clippy::disallowed_methods, reason = "the callers set the callback that ends the process")]
fn new(config: &Config) -> Result<Engine> {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let mut config = config.clone();
    // For running any test with a collector that moves everything at every safepoint.
    if is_set("WEIR_GC_STRESS") {
        config.gc_stress(true);
    }
    // For tools that do not see what the interpreter in assembly accesses.
    if is_set("WEIR_PORTABLE") {
        config.portable_interpreter(true);
    }
    Engine::new(&config)
}

/// Makes a panic of the compiler or of `callback` end the process, in engines with these settings. `callback` replaces the one of
/// [`Config::on_tier_event`].
pub fn abort_on_panics(config: &mut Config, callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) {
    abort_on_panics_of_the_compiler(config, move |event| {
        if catch_unwind(AssertUnwindSafe(|| callback(event))).is_err() {
            eprintln!("the callback for events panicked on {}", event.name());
            std::process::abort();
        }
    });
}

/// As [`abort_on_panics`], but a panic of `callback` does not end the process.
fn abort_on_panics_of_the_compiler(config: &mut Config, callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) {
    config.on_tier_event(move |event| {
        if let TierEventKind::Panicked { message, .. } = &event.kind {
            eprintln!("the compiler panicked on {}: {message}", event.name());
            std::process::abort();
        }
        callback(event);
    });
}
