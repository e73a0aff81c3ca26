//! A host program that provokes errors and writes down all that a host can see of them: the text of [`transcript`]. It uses only
//! wasmtime's documented API, and names the crate `wasmtime` throughout.

#[path = "asynchronous.rs"]
mod asynchronous;
#[path = "hosts.rs"]
mod hosts;
#[path = "limits.rs"]
mod limits;
#[path = "links.rs"]
mod links;
#[path = "modules.rs"]
mod modules;
#[path = "report.rs"]
mod report;
#[path = "traps.rs"]
mod traps;
#[path = "../host_program/waiting.rs"]
mod waiting;

use crate::wasmtime;
use report::Report;
use wasmtime::{Config, Engine, Result};

/// A part of the transcript: its title, the setting that it needs, and what it does.
type Part = (&'static str, fn(&mut Config), fn(&Engine, &mut Report) -> Result<()>);

const PARTS: &[Part] = &[
    ("Every trap", |_| (), traps::texts),
    ("Traps of instructions", |_| (), traps::instructions),
    ("Traps of calls", |_| (), traps::calls),
    ("Backtraces", |_| (), traps::backtraces),
    ("No backtraces", |config| _ = config.wasm_backtrace_max_frames(None), traps::without_backtraces),
    ("Core dumps", |config| _ = config.coredump_on_trap(true), traps::core_dumps),
    ("Recursion", |config| _ = config.max_wasm_stack(256 << 10), traps::recursion),
    ("Fuel", |config| _ = config.consume_fuel(true), traps::fuel),
    ("Epochs", |config| _ = config.epoch_interruption(true), traps::epochs),
    ("Exceptions", |config| _ = config.wasm_exceptions(true), traps::exceptions),
    ("Errors of host functions", |_| (), hosts::errors),
    ("Guests in guests", |_| (), hosts::nested),
    ("Errors that a host makes", |_| (), hosts::own),
    ("Imports", |_| (), links::imports),
    ("Imports with the wrong types", |config| _ = config.wasm_exceptions(true), links::types),
    ("Linkers", |_| (), links::linkers),
    ("Exports", |_| (), links::exports),
    ("Arguments", |_| (), links::arguments),
    ("Values", |_| (), links::values),
    ("Other stores", |_| (), links::other_stores),
    ("Results that are not set", |_| (), hosts::unset_results),
    ("Start functions and segments", |_| (), modules::start),
    ("Invalid modules", |_| (), modules::invalid),
    ("Proposals", modules::no_proposals, modules::proposals),
    ("Limits of stores", |_| (), limits::stores),
    ("Limiters", |_| (), limits::limiters),
    ("Limits of engines", limits::pooling, limits::engines),
    ("Asynchronous calls", |_| (), asynchronous::calls),
    ("Asynchronous limiters", |_| (), asynchronous::limiters),
    ("Yields after fuel", |config| _ = config.consume_fuel(true), asynchronous::fuel),
    ("Yields at deadlines", |config| _ = config.epoch_interruption(true), asynchronous::epochs),
];

/// Provokes the errors, on engines that `configure` is the last to configure. Returns the text.
pub fn transcript(configure: &dyn Fn(&mut Config)) -> Result<String> {
    let mut report = Report::default();
    for (title, change, part) in PARTS {
        let mut config = Config::new();
        change(&mut config);
        configure(&mut config);
        report.part(title);
        part(&Engine::new(&config)?, &mut report)?;
    }
    Ok(report.into_text())
}
