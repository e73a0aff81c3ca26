//! A panic of the compiler, which a program's host does not notice, must end the process of a test. Otherwise the test
//! would pass, because another back end or the interpreter would run the function. The engine also catches a panic of the callback
//! for events, such as a failed assertion. The tests of other packages include this file too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use weir::{Config, TierEvent, TierEventKind};

/// Makes a panic of the compiler or of `callback` end the process, in engines with these settings. `callback` replaces the one of
/// [`Config::on_tier_event`].
pub fn abort_on_panics(config: &mut Config, callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) {
    config.on_tier_event(move |event| {
        if let TierEventKind::Panicked { message, .. } = &event.kind {
            eprintln!("the compiler panicked on {}: {message}", event.name());
            std::process::abort();
        }
        if catch_unwind(AssertUnwindSafe(|| callback(event))).is_err() {
            eprintln!("the callback for events panicked on {}", event.name());
            std::process::abort();
        }
    });
}
