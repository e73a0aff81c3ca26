//! The format of the Firefox profiler: one JSON object, whose tables are stored by column. This is version 55 of the "processed" form, as
//! the profiler's documents and the crate fxprof-processed-profile have it; the profiler converts it to later ones. That crate is not used,
//! because its frames have either an address or a name, never both with a line, and it would add eight crates to the library.

use super::json::{List, OrNull, Quoted};
use super::profile::{GuestEvent, GuestFrame, GuestProfile};
use crate::records::frame_tier::FrameTier;
use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, BufWriter, Write};
use std::iter::repeat_n;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// The version of the format.
const VERSION: u32 = 55;
/// The type of a marker for an event of a tier, and of one for a host call.
const TIER: &str = "tier";
const HOST_CALL: &str = "host call";
/// In the place of an index or an address: none.
const NONE: i64 = -1;
/// The phases of markers at one time and from one time to another.
const INSTANT: u32 = 0;
const INTERVAL: u32 = 1;
/// The type of a resource that is a library.
const LIBRARY: u32 = 1;
/// Text of a library's identity that no symbol server knows: a breakpad identity of zeros.
const NO_ID: &str = "000000000000000000000000000000000";

/// Returns the colour of a tier.
fn colour(tier: FrameTier) -> &'static str {
    match tier {
        FrameTier::Interpreter => "orange",
        FrameTier::Evaluator => "brown",
        FrameTier::Baseline => "yellow",
        FrameTier::Optimised => "green",
        FrameTier::Osr => "lightblue",
        FrameTier::Host => "purple",
    }
}

/// Returns the index of a tier's category. The first category is the one for anything else.
fn category(tier: FrameTier) -> usize {
    1 + FrameTier::ALL.iter().position(|&known| known == tier).expect("all tiers are listed")
}

/// Returns a time in milliseconds.
fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Values, each once.
struct Once<T> {
    all: Vec<T>,
    indices: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> Once<T> {
    fn new() -> Once<T> {
        Once { all: Vec::new(), indices: HashMap::new() }
    }

    fn index(&mut self, value: T) -> usize {
        let Once { all, indices } = self;
        *indices.entry(value).or_insert_with_key(|value| {
            all.push(value.clone());
            all.len() - 1
        })
    }
}

/// A function as the format has it: name, module, and source file, the strings by index.
type Func = (usize, Option<u32>, Option<usize>);

impl GuestProfile {
    /// Writes the profile in the JSON format of [the Firefox profiler](https://profiler.firefox.com). The category of a frame is its tier,
    /// and its address the offset of the instruction in the module. Events of tiers are markers.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn write_firefox(&self, output: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(output);
        write!(out, r#"{{"meta":"#)?;
        self.write_meta(&mut out)?;
        write!(out, r#","libs":["#)?;
        for (i, module) in self.modules.iter().enumerate() {
            let (comma, name) = (if i > 0 { "," } else { "" }, Quoted(&module.name));
            let hash: String = module.hash.iter().map(|byte| format!("{byte:02x}")).collect();
            write!(
                out,
                r#"{comma}{{"name":{name},"path":{name},"debugName":{name},"debugPath":{name},"breakpadId":"{NO_ID}","codeId":"{hash}","arch":null}}"#
            )?;
        }
        write!(out, r#"],"threads":["#)?;
        self.write_thread(&mut out)?;
        write!(out, r#"],"pages":[],"profilerOverhead":[],"counters":[]}}"#)?;
        out.flush()
    }

    fn write_meta(&self, out: &mut impl Write) -> io::Result<()> {
        let start = self.start.duration_since(UNIX_EPOCH).unwrap_or_default();
        write!(
            out,
            r#"{{"version":24,"preprocessedProfileVersion":{VERSION},"product":{},"interval":{},"startTime":{},"processType":0,"debug":false,"symbolicated":true,"usesOnlyOneStackType":true,"sourceCodeIsNotOnSearchfox":true,"pausedRanges":[],"#,
            Quoted(&self.name),
            ms(self.interval),
            ms(start),
        )?;
        write!(out, r#""extensions":{{"length":0,"baseURL":[],"id":[],"name":[]}},"#)?;
        write!(out, r#""sampleUnits":{{"time":"ms","eventDelay":"ms","threadCPUDelta":"µs"}},"#)?;
        write!(out, r#""categories":[{{"name":"Other","color":"grey","subcategories":["Other"]}}"#)?;
        for tier in FrameTier::ALL {
            write!(out, r#",{{"name":"{}","color":"{}","subcategories":["Other"]}}"#, tier.name(), colour(tier))?;
        }
        let display = r#""display":["marker-chart","marker-table","timeline-overview"]"#;
        write!(
            out,
            r#"],"markerSchema":[{{"name":"{HOST_CALL}",{display},"fields":[]}},{{"name":"{TIER}",{display},"chartLabel":"{{marker.data.function}}: {{marker.data.event}}","tooltipLabel":"{{marker.data.function}}: {{marker.data.event}}","tableLabel":"{{marker.data.function}}: {{marker.data.event}}","fields":[{{"key":"function","label":"Function","format":"string","searchable":true}},{{"key":"event","label":"Event","format":"string","searchable":true}},{{"key":"index","label":"Index","format":"integer"}},{{"key":"module","label":"Module","format":"integer"}},{{"key":"loop","label":"Offset of the loop","format":"integer"}}]}}]}}"#
        )
    }

    fn write_thread(&self, out: &mut impl Write) -> io::Result<()> {
        let mut strings: Once<Arc<str>> = Once::new();
        let mut funcs: Once<Func> = Once::new();
        let resources: Vec<usize> = self.modules.iter().map(|module| strings.index(module.name.as_str().into())).collect();
        let func_of: Vec<usize> = (self.frames.iter())
            .map(|frame| {
                let name = strings.index(frame.name.clone());
                let file = frame.file.clone().map(|file| strings.index(file));
                funcs.index((name, frame.module, file))
            })
            .collect();
        let marker_names = [strings.index(HOST_CALL.into()), strings.index(TIER.into())];
        write!(out, r#"{{"name":"guest","isMainThread":true,"processType":"default","processName":{},"#, Quoted(&self.name))?;
        write!(
            out,
            r#""pid":"0","tid":"0","registerTime":0,"unregisterTime":{0},"processStartupTime":0,"processShutdownTime":{0},"pausedRanges":[],"showMarkersInTimeline":true,"#,
            ms(self.duration)
        )?;
        self.write_samples(out)?;
        write_frames(out, &self.frames, &func_of)?;
        write!(
            out,
            r#""stackTable":{{"length":{},"prefix":{},"frame":{}}},"#,
            self.stacks.len(),
            List(self.stacks.iter().map(|stack| OrNull(stack.parent))),
            List(self.stacks.iter().map(|stack| stack.frame)),
        )?;
        write_funcs(out, &funcs.all)?;
        write!(
            out,
            r#""resourceTable":{{"length":{},"lib":{},"name":{},"host":{},"type":{}}},"#,
            resources.len(),
            List(0..resources.len()),
            List(resources.iter()),
            List(repeat_n("null", resources.len())),
            List(repeat_n(LIBRARY, resources.len())),
        )?;
        write!(out, r#""nativeSymbols":{{"length":0,"address":[],"functionSize":[],"libIndex":[],"name":[]}},"#)?;
        self.write_markers(out, marker_names)?;
        write!(out, r#","stringArray":{}}}"#, List(strings.all.iter().map(|string| Quoted(string))))
    }

    fn write_samples(&self, out: &mut impl Write) -> io::Result<()> {
        let samples = &self.samples;
        write!(
            out,
            r#""samples":{{"length":{},"weightType":"samples","stack":{},"time":{},"weight":{},"threadCPUDelta":{}}},"#,
            samples.len(),
            List(samples.iter().map(|sample| sample.stack)),
            List(samples.iter().map(|sample| ms(sample.time))),
            List(samples.iter().map(|sample| sample.weight)),
            List(samples.iter().map(|sample| sample.cpu.as_micros())),
        )
    }

    fn write_markers(&self, out: &mut impl Write, names: [usize; 2]) -> io::Result<()> {
        let is_call = |event: &GuestEvent| matches!(event, GuestEvent::HostCall { .. });
        let start = |event: &GuestEvent| match event {
            GuestEvent::HostCall { start, .. } => ms(*start),
            GuestEvent::Tier { time, .. } => ms(*time),
        };
        let end = |event: &GuestEvent| match event {
            GuestEvent::HostCall { end, .. } => OrNull(Some(ms(*end))),
            GuestEvent::Tier { .. } => OrNull(None),
        };
        let category_of = |event: &GuestEvent| if is_call(event) { category(FrameTier::Host) } else { 0 };
        let events = self.events.iter();
        write!(
            out,
            r#""markers":{{"length":{},"category":{},"startTime":{},"endTime":{},"name":{},"phase":{},"data":["#,
            self.events.len(),
            List(events.clone().map(category_of)),
            List(events.clone().map(start)),
            List(events.clone().map(end)),
            List(events.clone().map(|event| names[usize::from(!is_call(event))])),
            List(events.clone().map(|event| if is_call(event) { INTERVAL } else { INSTANT })),
        )?;
        for (i, event) in events.enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match event {
                GuestEvent::HostCall { stack: Some(stack), .. } => {
                    write!(out, r#"{comma}{{"type":"{HOST_CALL}","cause":{{"stack":{stack}}}}}"#)?;
                }
                GuestEvent::HostCall { stack: None, .. } => write!(out, r#"{comma}{{"type":"{HOST_CALL}"}}"#)?,
                GuestEvent::Tier { module, func, name, osr, what, .. } => {
                    let (name, what) = (Quoted(name), Quoted(what));
                    write!(out, r#"{comma}{{"type":"{TIER}","function":{name},"event":{what},"index":{func},"module":{module}"#)?;
                    if let Some(pc) = osr {
                        write!(out, r#","loop":{pc}"#)?;
                    }
                    write!(out, "}}")?;
                }
            }
        }
        write!(out, "]}}")
    }
}

fn write_frames(out: &mut impl Write, frames: &[GuestFrame], func_of: &[usize]) -> io::Result<()> {
    let categories = frames.iter().map(|frame| category(frame.tier));
    write!(
        out,
        r#""frameTable":{{"length":{},"address":{},"inlineDepth":{},"category":{},"subcategory":{},"func":{},"#,
        frames.len(),
        List(frames.iter().map(|frame| frame.pc.map_or(NONE, i64::from))),
        List(frames.iter().map(|frame| frame.inline_depth)),
        List(categories),
        List(repeat_n(0, frames.len())),
        List(func_of.iter()),
    )?;
    write!(
        out,
        r#""nativeSymbol":{},"innerWindowID":{},"line":{},"column":{}}},"#,
        List(repeat_n("null", frames.len())),
        List(repeat_n(0, frames.len())),
        List(frames.iter().map(|frame| OrNull(frame.line))),
        List(frames.iter().map(|frame| OrNull(frame.column))),
    )
}

fn write_funcs(out: &mut impl Write, funcs: &[Func]) -> io::Result<()> {
    write!(
        out,
        r#""funcTable":{{"length":{},"name":{},"isJS":{},"relevantForJS":{},"resource":{},"fileName":{},"lineNumber":{},"columnNumber":{}}},"#,
        funcs.len(),
        List(funcs.iter().map(|func| func.0)),
        List(repeat_n(false, funcs.len())),
        List(repeat_n(false, funcs.len())),
        List(funcs.iter().map(|func| func.1.map_or(NONE, i64::from))),
        List(funcs.iter().map(|func| OrNull(func.2))),
        List(repeat_n("null", funcs.len())),
        List(repeat_n("null", funcs.len())),
    )
}
