//! A panic of the compiler, which the host of a program does not notice, ends the process of a test. The test would pass
//! otherwise, because another back end or the interpreter runs the function. The tests of other packages have this file, too.

use weir::{Config, TierEvent, TierEventKind};

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
