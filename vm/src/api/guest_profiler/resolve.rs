//! Names, instructions and source lines of sampled frames.
//!
//! All of it is looked up once, at the end, and takes time linear in the profile and the sampled functions.

use super::profile::{GuestEvent, GuestFrame, GuestProfile, GuestSample, GuestStack, ProfiledModule};
use super::sampled::{Event, MAX_STACKS, Place, Sample, Sampled};
use super::stacks::{Node, Stacks};
use crate::Module;
use crate::records::frame_tier::FrameTier;
use crate::records::pc::Pc;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use weir_bytecode::Opcode;
use weir_bytecode::instrs::{Imm, Instrs};
use weir_bytecode::module::{ExternIndex, ExternType};
use weir_bytecode::names::Demangled;

/// Bytes of a name.
const MAX_NAME: usize = 512;
/// Instructions whose source lines are looked up.
const MAX_LINES: usize = 20_000;
/// Functions of the source that are shown at one instruction.
const MAX_INLINED: usize = 16;
/// The name of a host function that is called through a table or a reference.
const HOST: &str = "host function";
/// The name of frames that were not kept.
const OMITTED: &str = "(outer frames not kept)";

/// The places in the source of instructions, and where they were looked up.
type Lines = HashMap<(u32, u32), Vec<GuestFrame>>;

/// Returns the profile with everything looked up.
pub(super) fn resolve(sampled: Sampled) -> GuestProfile {
    let Sampled { name, interval, modules, stacks, samples, events, started_at, duration, lost } = &sampled;
    let calls = calls(modules, &stacks.frames);
    let mut names: Vec<Names<'_>> = modules.iter().map(|(_, module)| Names::of(module)).collect();
    let mut lines = Lines::new();
    // Inlined functions make more nodes of one.
    let mut resolved: Stacks<u32> = Stacks::new(4 * MAX_STACKS);
    let mut frames = Frames::default();
    let mut node_of: Vec<Option<u32>> = Vec::with_capacity(stacks.nodes.len());
    for node in &stacks.nodes {
        let mut parent = node.parent().and_then(|parent| node_of[parent as usize]);
        for frame in frames_of(stacks, node, &calls, modules, &mut names, &mut lines) {
            parent = resolved.push(parent, frames.index(frame)).or(parent);
        }
        if let Some(parent) = parent {
            resolved.nodes[parent as usize].weight += node.weight;
        }
        node_of.push(parent);
    }
    let node_at = |stack: u32| node_of[stack as usize];
    let sample =
        |&Sample { at, stack, weight, cpu }: &Sample| Some(GuestSample { time: at, stack: node_at(stack)?, weight, cpu });
    let mut event = |event: &Event| match event {
        Event::HostCall { start, end, stack } => {
            GuestEvent::HostCall { start: *start, end: *end, stack: stack.and_then(node_at) }
        }
        Event::Tier { at, module, func, osr, what } => GuestEvent::Tier {
            time: *at,
            module: *module,
            func: *func,
            name: names[*module as usize].func(*func),
            osr: *osr,
            what: what.clone(),
        },
    };
    GuestProfile {
        name: name.clone(),
        interval: *interval,
        start: *started_at,
        duration: *duration,
        modules: modules.iter().map(|(name, module)| ProfiledModule::of(name, module)).collect(),
        events: events.iter().map(&mut event).collect(),
        samples: samples.iter().filter_map(sample).collect(),
        stacks: resolved
            .nodes
            .iter()
            .map(|node| GuestStack { parent: node.parent(), frame: resolved.frames[node.frame as usize], weight: node.weight })
            .collect(),
        frames: frames.all,
        lost: *lost,
    }
}

/// Frames, each once.
#[derive(Default)]
struct Frames {
    all: Vec<GuestFrame>,
    indices: HashMap<GuestFrame, u32>,
}

impl Frames {
    fn index(&mut self, frame: GuestFrame) -> u32 {
        let Frames { all, indices } = self;
        *indices.entry(frame).or_insert_with_key(|frame| {
            all.push(frame.clone());
            all.len() as u32 - 1
        })
    }
}

/// The names of a module's functions.
struct Names<'m> {
    module: &'m Module,
    exports: HashMap<u32, &'m str>,
    known: HashMap<u32, Arc<str>>,
}

impl Names<'_> {
    fn of(module: &Module) -> Names<'_> {
        let mut exports = HashMap::new();
        for export in &module.bytecode().exports {
            if let ExternIndex::Func(func) = export.item {
                exports.entry(func).or_insert(&*export.name);
            }
        }
        Names { module, exports, known: HashMap::new() }
    }

    /// Returns the name of a function: that of the name section, as the source has it, or that of an export, or else its index.
    fn func(&mut self, func: u32) -> Arc<str> {
        let Names { module, exports, known } = self;
        let name = || {
            let name = module.bytecode().func_name(func).or_else(|| exports.get(&func).copied());
            let name = name.filter(|name| !name.is_empty());
            name.map_or_else(|| format!("function {func}"), |name| format!("{:#}", Demangled(name)))
        };
        known.entry(func).or_insert_with(|| short(&name())).clone()
    }

    /// Returns the names of an import.
    fn import(&self, func: u32) -> Arc<str> {
        let mut imports = self.module.bytecode().imports.iter().filter(|import| matches!(import.ty, ExternType::Func(_)));
        imports.nth(func as usize).map_or_else(|| HOST.into(), |import| short(&format!("{}.{}", import.module, import.name)))
    }
}

/// Returns the beginning of a name.
fn short(name: &str) -> Arc<str> {
    if name.len() <= MAX_NAME {
        return name.into();
    }
    let end = name.floor_char_boundary(MAX_NAME - '…'.len_utf8());
    format!("{}…", &name[..end]).into()
}

/// The call before an instruction, by module, function and offset.
type Calls = HashMap<(u32, u32, u32), u32>;

/// Finds the calls before the instructions that frames give. Each function is decoded once.
fn calls(modules: &[(String, Module)], frames: &[Place]) -> Calls {
    let mut wanted: BTreeMap<(u32, u32), HashSet<u32>> = BTreeMap::new();
    for place in frames {
        if let &Place::Code { module, func, pc: Pc::Before(pc), .. } = place {
            wanted.entry((module, func)).or_default().insert(pc);
        }
    }
    let mut calls = Calls::new();
    for ((module, func), pcs) in wanted {
        let bytecode = modules[module as usize].1.bytecode();
        let Some(body) = bytecode.body(func) else { continue };
        let mut before = body.entry;
        for instr in Instrs::new(bytecode, body.entry, body.end) {
            if pcs.contains(&instr.pc) {
                calls.insert((module, func, instr.pc), before);
            }
            before = instr.pc;
        }
    }
    calls
}

/// Returns the frames of a node: more than one if the producer has inlined functions there, the outermost first.
fn frames_of(
    stacks: &Stacks<Place>,
    node: &Node,
    calls: &Calls,
    modules: &[(String, Module)],
    names: &mut [Names<'_>],
    lines: &mut Lines,
) -> Vec<GuestFrame> {
    let bare = |name: Arc<str>, tier| GuestFrame {
        name,
        tier,
        module: None,
        func: None,
        pc: None,
        inline_depth: 0,
        file: None,
        line: None,
        column: None,
    };
    let at = |module: u32, func: u32, pc: Pc| match pc {
        Pc::At(pc) => pc,
        Pc::Before(pc) => calls.get(&(module, func, pc)).copied().unwrap_or(pc),
    };
    match stacks.frames[node.frame as usize] {
        Place::Omitted => vec![bare(OMITTED.into(), FrameTier::Interpreter)],
        Place::Host => {
            let caller = node.parent().map(|parent| stacks.frames[stacks.nodes[parent as usize].frame as usize]);
            let Some(Place::Code { module, func, pc, .. }) = caller else { return vec![bare(HOST.into(), FrameTier::Host)] };
            let callee = callee(&modules[module as usize].1, func, at(module, func, pc));
            let name = callee.map_or_else(|| HOST.into(), |callee| names[module as usize].import(callee));
            vec![GuestFrame { module: Some(module), func: callee, ..bare(name, FrameTier::Host) }]
        }
        Place::Code { module, func, pc, tier } => {
            let pc = at(module, func, pc);
            let known = lines.len();
            let places = lines.entry((module, pc)).or_insert_with(|| {
                let own = names[module as usize].func(func);
                let frame = |name| GuestFrame { module: Some(module), func: Some(func), pc: Some(pc), ..bare(name, tier) };
                let symbols = match known < MAX_LINES {
                    true => modules[module as usize].1.record().symbols_at(func, pc),
                    false => Vec::new(),
                };
                let mut places: Vec<GuestFrame> = Vec::new();
                for (depth, symbol) in symbols.iter().rev().take(MAX_INLINED).enumerate() {
                    // The function itself is the outermost of those inlined here.
                    let inlined = symbol.name().filter(|_| depth > 0).map(|name| short(&format!("{:#}", Demangled(name))));
                    places.push(GuestFrame {
                        inline_depth: depth as u32,
                        file: symbol.file().map(short),
                        line: symbol.line(),
                        column: symbol.column(),
                        ..frame(inlined.unwrap_or_else(|| own.clone()))
                    });
                }
                if places.is_empty() {
                    places.push(frame(own));
                }
                places
            });
            places.iter().map(|place| GuestFrame { tier, ..place.clone() }).collect()
        }
    }
}

/// Returns the imported function that the instruction calls, if it calls one directly.
fn callee(module: &Module, func: u32, pc: u32) -> Option<u32> {
    let bytecode = module.bytecode();
    let body = bytecode.body(func)?;
    let call = Instrs::new(bytecode, pc, body.end).next()?;
    match call.imm {
        Imm::Index(callee) if call.op == Opcode::Call && callee < bytecode.imported_funcs => Some(callee),
        _ => None,
    }
}
