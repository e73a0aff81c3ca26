//! Compiler options from the settings of an engine.

use crate::records::config::{Allocator, Config, Tier};
use weir_jit::Options;
use weir_jit::opt::{inline, passes};
use weir_jit::request;

/// Returns the compiler's options for an engine with these settings.
pub(crate) fn options(config: &Config) -> Options {
    let defaults = Options::default();
    let mut passes_off = config.passes_off.clone();
    // An activation of the evaluator is a frame of one function: backtraces would lack the inlined ones.
    let evaluates = config.tier == Tier::Ssa && !config.opt_all;
    // Calls of these functions must be calls.
    let chooses = !config.interpret_calls.is_empty() || !config.baseline_calls.is_empty();
    if !config.optimises {
        passes_off.extend(passes::ORDER.iter().map(|pass| pass.name.to_owned()));
    } else if evaluates || chooses || !config.inlines {
        passes_off.push(inline::PASS.name.into());
    }
    Options {
        fuel: config.consume_fuel,
        poll: config.polls(),
        guard_regions: config.guards_memory(),
        reserves_guards: config.reserves_guards(),
        segment: config.uses_segment(),
        signals: config.signals_based_traps,
        spectre_mitigation: config.spectre_mitigation,
        canonical_nans: config.canonicalises_nans(),
        verify: config.verify,
        allocator: match config.allocator {
            Allocator::LinearScan => request::Allocator::LinearScan,
            Allocator::Regalloc2 => request::Allocator::Regalloc2,
        },
        texts: config.function_texts.clone(),
        passes_off,
        rewrite_fuel: config.rewrite_fuel,
        padding: config.padding,
        ticks: config.has_baseline(),
        counts: config.profiles() && (config.has_baseline() || config.tier == Tier::Baseline),
        // Odd stress seeds disable peeling, so that small loops are entered like big ones.
        peel_limit: if config.stress.is_some_and(|seed| seed % 2 == 1) { 0 } else { defaults.peel_limit },
        opt_all: config.opt_all || config.stress.is_some_and(|seed| seed / 2 % 2 == 1),
        ..defaults
    }
}
