//! The samples of a module's functions, from a file of `--profile guest=FILE.json`.

use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use weir::FrameTier;
use weir_bytecode::Module as Bytecode;

/// Number of parts into which the time of the profile is divided.
pub(super) const PARTS: usize = 120;
/// Number of tiers.
pub(super) const TIERS: usize = FrameTier::ALL.len();

/// What samples say of a module.
#[derive(Default, Debug)]
pub(super) struct Samples {
    pub funcs: BTreeMap<u32, FuncSamples>,
    /// The weight of all samples.
    pub total: u64,
    /// For each part of the time, the weight in each tier.
    pub parts: Vec<[u64; TIERS]>,
    /// The duration in milliseconds.
    pub duration: f64,
    /// Time in milliseconds, function, and text of the events of tiers.
    pub events: Vec<(f64, u32, String)>,
}

/// What samples say of a function.
#[derive(Default, Debug)]
pub(super) struct FuncSamples {
    /// The weight of samples in which it, or a host function that it calls, is innermost.
    pub own: u64,
    /// The weight of samples in which it is.
    pub total: u64,
    /// Of its own weight.
    pub by_tier: [u64; TIERS],
    /// Of its own weight, by instruction.
    pub by_pc: BTreeMap<u32, u64>,
    /// The places in the source of sampled instructions.
    pub sources: BTreeMap<u32, String>,
    /// The weight of samples in which it calls each of these functions.
    pub callees: BTreeMap<u32, u64>,
}

/// A frame of the file.
struct Frame {
    tier: usize,
    /// `None` for a host function.
    place: Option<Place>,
}

/// A place in the module.
struct Place {
    func: u32,
    pc: u32,
    source: Option<String>,
}

impl Samples {
    /// Reads a profile.
    ///
    /// # Errors
    /// What is wrong with the text, or that the profile is not of the module with this hash.
    pub fn read(text: &str, module: &Bytecode, hash: &[u8]) -> Result<Samples, String> {
        let file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let libs = list(&file, "libs")?;
        let lib = libs.iter().position(|lib| lib["codeId"] == *hash).ok_or("it is not a profile of this module")? as u64;
        let thread = list(&file, "threads")?.first().ok_or("it has no thread")?;
        let frames = frames(thread, &list(&file["meta"], "categories")?[..], module, lib)?;
        let stacks = stacks(thread, frames.len())?;
        let mut samples = Samples { duration: thread["unregisterTime"].as_f64().unwrap_or(0.0), ..Samples::default() };
        samples.parts = vec![[0; TIERS]; PARTS];
        let table = &thread["samples"];
        let columns = list(table, "stack")?.iter().zip(list(table, "time")?).zip(list(table, "weight")?);
        // Samples with equal stacks are counted together.
        let mut weights: BTreeMap<usize, u64> = BTreeMap::new();
        for ((stack, time), weight) in columns {
            let (Some(stack), Some(weight)) = (stack.as_u64(), weight.as_u64()) else { continue };
            let stack = usize::try_from(stack).ok().filter(|&stack| stack < stacks.len()).ok_or("a sample has no stack")?;
            *weights.entry(stack).or_default() += weight;
            samples.total += weight;
            let part = time.as_f64().unwrap_or(0.0) / samples.duration.max(f64::MIN_POSITIVE) * PARTS as f64;
            if let Some(frame) = frame_of(&frames, stacks[stack].1) {
                samples.parts[(part as usize).min(PARTS - 1)][frame.tier] += weight;
            }
        }
        for (stack, weight) in weights {
            samples.add(&frames, &stacks, stack, weight);
        }
        samples.add_events(thread, lib, module);
        Ok(samples)
    }

    /// Adds the samples of one stack.
    fn add(&mut self, frames: &[Option<Frame>], stacks: &[(Option<usize>, usize)], stack: usize, weight: u64) {
        let mut seen = HashSet::new();
        let mut inner: Option<u32> = None;
        // Of the innermost frame, which may be a host function's.
        let mut tier = None;
        let mut calls = HashSet::new();
        let mut next = Some(stack);
        while let Some(stack) = next {
            let (parent, frame) = stacks[stack];
            next = parent;
            let Some(frame) = frame_of(frames, frame) else { continue };
            let tier = *tier.get_or_insert(frame.tier);
            // Time in a host function is its caller's own.
            let Some(place) = &frame.place else { continue };
            let func = self.funcs.entry(place.func).or_default();
            if seen.is_empty() {
                func.own += weight;
                func.by_tier[tier] += weight;
                *func.by_pc.entry(place.pc).or_default() += weight;
            }
            if seen.insert(place.func) {
                func.total += weight;
            }
            if let Some(source) = &place.source {
                func.sources.entry(place.pc).or_insert_with(|| source.clone());
            }
            if let Some(callee) = inner.filter(|&callee| callee != place.func)
                && calls.insert((place.func, callee))
            {
                *func.callees.entry(callee).or_default() += weight;
            }
            inner = Some(place.func);
        }
    }

    fn add_events(&mut self, thread: &Value, lib: u64, module: &Bytecode) {
        let markers = &thread["markers"];
        let (Some(times), Some(data)) = (markers["startTime"].as_array(), markers["data"].as_array()) else { return };
        for (time, data) in times.iter().zip(data).filter(|(_, data)| data["type"] == "tier" && data["module"] == lib) {
            let (Some(time), Some(func), Some(what)) = (time.as_f64(), data["index"].as_u64(), data["event"].as_str()) else {
                continue;
            };
            let Some(func) = u32::try_from(func).ok().filter(|&func| (func as usize) < module.funcs.len()) else { continue };
            let what = match data["loop"].as_u64() {
                Some(pc) => format!("loop at {pc:#x}: {what}"),
                None => what.to_string(),
            };
            self.events.push((time, func, what));
        }
        self.events.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
}

fn frame_of(frames: &[Option<Frame>], index: usize) -> Option<&Frame> {
    frames.get(index)?.as_ref()
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v Vec<Value>, String> {
    value[key].as_array().ok_or_else(|| format!("it has no list `{key}`"))
}

/// Returns the stack of the callers and the frame of each stack. A caller comes first, so that walks end.
fn stacks(thread: &Value, frames: usize) -> Result<Vec<(Option<usize>, usize)>, String> {
    let table = &thread["stackTable"];
    let columns = list(table, "prefix")?.iter().zip(list(table, "frame")?).enumerate();
    let stack = |(i, (prefix, frame)): (usize, (&Value, &Value))| {
        let prefix = prefix.as_u64().map(|prefix| prefix as usize);
        let frame = frame.as_u64().map(|frame| frame as usize).filter(|&frame| frame < frames);
        match (prefix.is_none_or(|prefix| prefix < i), frame) {
            (true, Some(frame)) => Ok((prefix, frame)),
            _ => Err(format!("its stack {i} is malformed")),
        }
    };
    columns.map(stack).collect()
}

/// Returns the frames of host functions, and of functions of the module with index `lib`; others are `None`.
fn frames(thread: &Value, categories: &[Value], module: &Bytecode, lib: u64) -> Result<Vec<Option<Frame>>, String> {
    let tiers: HashMap<u64, usize> = (categories.iter().enumerate())
        .filter_map(|(i, category)| {
            let tier = FrameTier::ALL.iter().position(|tier| category["name"] == *tier.name())?;
            Some((i as u64, tier))
        })
        .collect();
    let (table, funcs) = (&thread["frameTable"], &thread["funcTable"]);
    let [addresses, func_of, category_of, lines] =
        ["address", "func", "category", "line"].map(|key| list(table, key).map_or(&[][..], Vec::as_slice));
    let frame = |i: usize| {
        let func = func_of[i].as_u64()? as usize;
        let tier = *tiers.get(&category_of.get(i)?.as_u64()?)?;
        if FrameTier::ALL[tier] == FrameTier::Host {
            return Some(Frame { tier, place: None });
        }
        if funcs["resource"][func].as_u64() != Some(lib) {
            return None;
        }
        let pc = u32::try_from(addresses.get(i)?.as_u64()?).ok()?;
        let file = funcs["fileName"][func].as_u64().and_then(|file| thread["stringArray"][file as usize].as_str());
        let source = file.zip(lines.get(i)?.as_u64()).map(|(file, line)| format!("{file}:{line}"));
        Some(Frame { tier, place: Some(Place { func: module.func_at(pc)?, pc, source }) })
    };
    Ok((0..func_of.len()).map(frame).collect())
}
