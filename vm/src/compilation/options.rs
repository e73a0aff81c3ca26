//! Compiler options from the settings of an engine.

use crate::records::config::{Allocator, Config, Tier};
use weir_jit::Options;
use weir_jit::request;

/// Returns the compiler's options for an engine with these settings.
pub(crate) fn options(config: &Config) -> Options {
    let defaults = Options::default();
    Options {
        fuel: config.consume_fuel,
        poll: config.polls(),
        guard_regions: config.guards_memory(),
        signals: config.signals_based_traps,
        canonical_nans: config.canonicalises_nans(),
        verify: config.verify,
        allocator: match config.allocator {
            Allocator::LinearScan => request::Allocator::LinearScan,
            Allocator::Regalloc2 => request::Allocator::Regalloc2,
        },
        texts: config.function_texts.clone(),
        passes_off: config.passes_off.clone(),
        rewrite_fuel: config.rewrite_fuel,
        padding: config.padding,
        ticks: config.has_baseline(),
        counts: config.profiles() && (config.has_baseline() || config.tier == Tier::Baseline),
        // Odd stress seeds disable peeling, so that small loops are entered like big ones.
        peel_limit: if config.stress.is_some_and(|seed| seed % 2 == 1) { 0 } else { defaults.peel_limit },
        ..defaults
    }
}
