//! Where the time of a guest went, by function and tier.

use crate::profile_kind::Interval;
use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use weir::{FrameTier, GuestProfile};
use weir_bytecode::names::Plain;

/// Number of functions that are printed.
const ROWS: usize = 20;

/// The weight of samples in each tier.
pub(super) type ByTier = [u64; FrameTier::ALL.len()];

/// What samples say of a function.
#[derive(Clone, Default, Debug)]
pub(super) struct FuncTime {
    pub name: String,
    /// The weight of samples in which it is innermost.
    pub own: u64,
    /// The weight of samples in which it is.
    pub total: u64,
    /// Of its own weight.
    pub by_tier: ByTier,
}

/// Returns the position of a tier in [`ByTier`].
pub(super) fn position(tier: FrameTier) -> usize {
    FrameTier::ALL.iter().position(|&known| known == tier).expect("all tiers are listed")
}

/// Returns the functions, those with the most time of their own first. Functions of one name are one.
pub(super) fn functions(profile: &GuestProfile) -> Vec<FuncTime> {
    let mut indices: HashMap<&str, usize> = HashMap::new();
    let mut funcs: Vec<FuncTime> = Vec::new();
    let func_of: Vec<usize> = (profile.frames.iter())
        .map(|frame| {
            *indices.entry(&frame.name).or_insert_with(|| {
                funcs.push(FuncTime { name: frame.name.to_string(), ..FuncTime::default() });
                funcs.len() - 1
            })
        })
        .collect();
    let totals = totals(profile);
    for (stack, &total) in profile.stacks.iter().zip(&totals) {
        let func = func_of[stack.frame as usize];
        let entry = &mut funcs[func];
        entry.own += stack.weight;
        entry.by_tier[position(profile.frames[stack.frame as usize].tier)] += stack.weight;
        // In a recursion the outermost frame has the time of all.
        let mut outer = stack.parent.map(|parent| &profile.stacks[parent as usize]);
        while let Some(stack) = outer.filter(|stack| func_of[stack.frame as usize] != func) {
            outer = stack.parent.map(|parent| &profile.stacks[parent as usize]);
        }
        if outer.is_none() {
            entry.total += total;
        }
    }
    funcs.sort_by(|a, b| (b.own, b.total, &a.name).cmp(&(a.own, a.total, &b.name)));
    funcs
}

/// Returns the weight of each stack and of those that continue it.
pub(super) fn totals(profile: &GuestProfile) -> Vec<u64> {
    let mut totals: Vec<u64> = profile.stacks.iter().map(|stack| stack.weight).collect();
    for (i, stack) in profile.stacks.iter().enumerate().rev() {
        if let Some(parent) = stack.parent {
            totals[parent as usize] += totals[i];
        }
    }
    totals
}

/// Returns the weight of all samples in each tier.
pub(super) fn by_tier(profile: &GuestProfile) -> ByTier {
    let mut sums = ByTier::default();
    for stack in &profile.stacks {
        sums[position(profile.frames[stack.frame as usize].tier)] += stack.weight;
    }
    sums
}

/// Returns the number of samples and what they stand for.
pub(super) fn measure(profile: &GuestProfile, interval: Interval) -> String {
    let total = profile.total();
    let samples = if total == 1 { "1 sample".into() } else { format!("{total} samples") };
    match interval {
        Interval::Time(interval) => format!("{samples}, one for each {:?} in {:.2} s", interval, profile.duration.as_secs_f64()),
        Interval::Fuel(fuel) => format!("{samples}, one for each {fuel} units of fuel"),
    }
}

/// Returns the shares of the tiers that have any, such as `baseline 12 %, host 3 %`.
pub(super) fn shares(sums: &ByTier, total: u64) -> String {
    let mut tiers: Vec<(u64, &str)> = sums.iter().zip(FrameTier::ALL).map(|(&sum, tier)| (sum, tier.name())).collect();
    tiers.retain(|(sum, _)| *sum > 0);
    tiers.sort_by_key(|(sum, _)| std::cmp::Reverse(*sum));
    let shares: Vec<String> = tiers.iter().map(|(sum, tier)| format!("{tier} {:.1} %", percent(*sum, total))).collect();
    shares.join(", ")
}

pub(super) fn percent(part: u64, total: u64) -> f64 {
    100.0 * part as f64 / total.max(1) as f64
}

/// The message for a profile without samples.
pub(super) const NOTHING: &str = "no sample was taken: the program ended before the first one";

/// Prints a table on standard error.
pub(super) fn print(profile: &GuestProfile, interval: Interval) -> io::Result<()> {
    let mut out = BufWriter::new(io::stderr().lock());
    let total = profile.total();
    if total == 0 {
        writeln!(out, "weir: {NOTHING}")?;
        return out.flush();
    }
    writeln!(out, "weir: {}", measure(profile, interval))?;
    writeln!(out, "tiers: {}", shares(&by_tier(profile), total))?;
    writeln!(out, "   self   total  function")?;
    let funcs = functions(profile);
    let shown = funcs.iter().take_while(|func| func.own > 0).take(ROWS);
    for FuncTime { name, own, total: all, by_tier } in shown {
        let (share, whole) = (percent(*own, total), percent(*all, total));
        writeln!(out, "{share:5.1} % {whole:5.1} %  {}  ({})", Plain(name), shares_of(by_tier, *own))?;
    }
    let more = funcs.iter().filter(|func| func.own > 0).count().saturating_sub(ROWS);
    if more > 0 {
        writeln!(out, "and {more} more functions")?;
    }
    let lost = profile.lost.to_string();
    if !lost.is_empty() {
        writeln!(out, "{lost}")?;
    }
    out.flush()
}

/// Returns the only tier, or the shares of several.
fn shares_of(by_tier: &ByTier, own: u64) -> String {
    match FrameTier::ALL.iter().zip(by_tier).find(|(_, sum)| **sum == own) {
        Some((tier, _)) => tier.name().into(),
        None => shares(by_tier, own),
    }
}
