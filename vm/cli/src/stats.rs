//! `--stats`: prints statistics of the interpreter and the compilers on standard error.

use crate::args::StatsFormat;
use crate::units;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::time::Duration;
use weir::{Counters, Fallback, StatDeclaration, StatUnit, StatValue, Stats, TierUp};
use weir_bytecode::names::Demangled;

/// Prints the statistics.
pub(crate) fn print(format: StatsFormat, stats: &Stats, wall: Duration, trapped: bool) -> std::io::Result<()> {
    let text = match format {
        StatsFormat::Text => text(stats, wall),
        StatsFormat::Compiler => text(stats, wall) + &of_compilers(stats),
        StatsFormat::Json => json(stats, wall, trapped).to_string(),
    };
    writeln!(std::io::stderr(), "{text}")
}

/// Formats a summary: time, memory, the engines that ran functions, the functions that were compiled.
fn text(stats: &Stats, wall: Duration) -> String {
    let functions = &stats.functions;
    let compilers = [
        (functions.native, "compiled by the native back end"),
        (functions.cranelift, "compiled by Cranelift"),
        (functions.baseline, "compiled by the baseline compiler"),
        (functions.evaluated, "evaluated as SSA"),
    ];
    let used = compilers.into_iter().filter(|(count, _)| *count > 0);
    let mut compiled: Vec<String> = used.map(|(count, how)| format!("{count} {how}")).collect();
    if compiled.is_empty() {
        compiled.push("none compiled".into());
    }
    let memory = peak_memory().map_or_else(String::new, |bytes| format!(", {} of memory at most", units::show(bytes)));
    let mut text = format!("weir: {:.3} s{memory}; validated in {:.1} ms", wall.as_secs_f64(), stats.validate_ms);
    let stored = &stats.stored;
    if let Some(cache) = &stored.cache {
        text.push_str(&format!("; cache: {cache}"));
    }
    if let Some(reason) = &stored.unwritten {
        text.push_str(&format!("; nothing was added to it: {reason}"));
    }
    let (optimised, baseline) = (stored.optimised, stored.baseline);
    let ran = match optimised + baseline {
        0 => format!("{} ran", functions.called),
        began => format!(
            "{began} began in code of earlier processes ({optimised} optimised, {baseline} in baseline code), {} without",
            functions.called
        ),
    };
    let (all, interpreted, compiled) =
        (number(functions.total, "function", "functions"), functions.interpreted, compiled.join(", "));
    text.push_str(&format!("\nweir: of {all} {ran}: {interpreted} only interpreted, {compiled}"));
    if stats.osr_entries > 0 {
        let times = if stats.osr_entries == 1 { "once" } else { &format!("{} times", stats.osr_entries) };
        text.push_str(&format!("; switched to compiled code within a running loop {times}"));
    }
    if stored.damaged > 0 {
        let damaged = number(stored.damaged, "function", "functions");
        text.push_str(&format!("\nweir: the code that earlier processes left of {damaged} was damaged, and not used"));
    }
    if stats.code_bytes > 0 {
        let compile_ms: f64 = stats.compile_ms.iter().map(|(_, ms)| ms).sum();
        let (bytecode, code) = (stats.bytecode_bytes_compiled, stats.code_bytes);
        text.push_str(&format!("\nweir: compiled {bytecode} bytes of bytecode to {code} bytes of code in {compile_ms:.1} ms"));
    }
    text.push_str(&tier_up(stats));
    for line in unusual(stats) {
        text.push_str(&format!("\nweir: {line}"));
    }
    if stats.retired > 0 {
        text.push_str(&format!(
            "\nweir: retired {} bytes of code in {}, of which {} bytes are free again; {} compiled again",
            stats.retired_bytes,
            number(stats.retired, "body", "bodies"),
            stats.freed_bytes,
            number(stats.recompiled, "body", "bodies"),
        ));
    }
    text
}

/// Maximum number of functions that are listed because they were hot.
const HOT: usize = 8;

/// Formats a line about the functions that were compiled because they were hot.
fn tier_up(stats: &Stats) -> String {
    let names = stats.tier_up.iter().take(HOT).map(|TierUp { func, name, .. }| match name {
        Some(name) => format!("{:#}", Demangled(name)),
        None => format!("function {func}"),
    });
    let list: Vec<String> = names.collect();
    match (list.is_empty(), stats.tier_up.len().saturating_sub(HOT)) {
        (true, _) => String::new(),
        (false, 0) => format!("\nweir: hot, the first one first: {}", list.join(", ")),
        (false, more) => format!("\nweir: hot, the first one first: {} and {more} more", list.join(", ")),
    }
}

/// Formats a number of things.
pub(crate) fn number(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Maximum number of refused functions that are listed with the reason; the others are counted.
const LISTED: usize = 10;

/// Formats the reasons why functions were not compiled as requested, one line each.
fn unusual(stats: &Stats) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(reason) = &stats.no_native_code {
        lines.push(format!("no native code: {reason}"));
    }
    if stats.compiler_panics > 0 {
        lines.push(format!("the compiler panicked {} times, which is a fault of Weir's", stats.compiler_panics));
    }
    let fallbacks = &stats.functions.fallbacks;
    lines.extend(
        fallbacks
            .iter()
            .take(LISTED)
            .map(|Fallback { func, by, reason, .. }| format!("function {func}: refused by {by}: {reason}")),
    );
    if let Some(more @ 1..) = fallbacks.len().checked_sub(LISTED) {
        lines.push(format!("{more} more refusals"));
    }
    lines
}

/// Formats lines about validation and the optimiser.
fn of_compilers(stats: &Stats) -> String {
    let mut text = String::new();
    // Of bodies that an earlier process has validated, only the others are validated in this one.
    if stats.body_bytes > 0 && stats.stored.optimised + stats.stored.baseline == 0 {
        let share = 100.0 * stats.accepted_bytes as f64 / stats.body_bytes as f64;
        text.push_str(&format!("\nweir: {share:.1} % of the bodies validated without wasmparser"));
    }
    if stats.code_bytes > 0 {
        let rewrites: u64 = stats.opt.iter().map(|(_, changes)| changes).sum();
        let numbering: u64 = stats.opt.iter().filter(|(pass, _)| pass == "gvn").map(|(_, changes)| changes).sum();
        let counters = &stats.compiler;
        text.push_str(&format!(
            "\nweir: optimised in {rewrites} rewrites; shared {} values in construction, {numbering} by value numbering; \
             proved by gates alone: constants {}, branches {}, dead blocks {}",
            counters.shared, counters.gated_constants, counters.gated_branches, counters.gated_blocks,
        ));
        let phases: Vec<String> = stats.compile_ms.iter().map(|(phase, ms)| format!("{phase} {ms:.1}")).collect();
        text.push_str(&format!("\nweir: compilation in ms: {}", phases.join(", ")));
    }
    text
}

/// The statistics that only a run has: name, unit and documentation. The others are declared in `weir`.
const WALL: (&str, StatUnit, &str) = ("wall_ms", StatUnit::Milliseconds, "Time of the run, from loading the module.");
const TRAPS: (&str, StatUnit, &str) = ("traps", StatUnit::Count, "1 if the run ended with a trap, otherwise 0.");
const PEAK_MEMORY: (&str, StatUnit, &str) =
    ("peak_memory", StatUnit::Bytes, "The peak memory of the process. `null` where the system does not report it.");

/// Returns the declarations of the statistics that `--stats=json` prints, in its order, each group and list before its parts.
pub fn statistics() -> Vec<StatDeclaration> {
    let of_run = |(name, unit, about): (&str, StatUnit, &'static str)| StatDeclaration { name: name.to_owned(), unit, about };
    let mut list = vec![of_run(WALL)];
    list.extend(Stats::declarations());
    list.extend([TRAPS, PEAK_MEMORY].map(of_run));
    list.extend(Counters::declarations());
    list
}

fn json(stats: &Stats, wall: Duration, trapped: bool) -> Value {
    let mut report = Map::new();
    report.insert(WALL.0.to_owned(), json!(wall.as_secs_f64() * 1e3));
    report.extend(stats.values().into_iter().map(|(name, value)| (name.to_owned(), in_json(value))));
    report.insert(TRAPS.0.to_owned(), json!(u32::from(trapped)));
    report.insert(PEAK_MEMORY.0.to_owned(), json!(peak_memory()));
    let mut report = Value::Object(report);
    for (name, count) in stats.compiler.each() {
        match name.split_once('.') {
            Some((group, name)) => report[group][name] = json!(count),
            None => report[name] = json!(count),
        }
    }
    report
}

fn in_json(value: StatValue<'_>) -> Value {
    match value {
        StatValue::Count(count) => json!(count),
        StatValue::Milliseconds(time) => json!(time),
        StatValue::Text(text) => json!(text),
        StatValue::Group(parts) => parts.into_iter().map(|(name, part)| (name.to_owned(), in_json(part))).collect(),
        StatValue::List(rows) => rows.into_iter().map(in_json).collect(),
    }
}

/// Returns the peak memory of this process in bytes, where the system reports it.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?;
    Some(kibibytes.parse::<u64>().ok()? * 1024)
}
