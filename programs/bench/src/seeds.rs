//! `weir-bench seeds`: how much the time of a program depends on the addresses of its code.
//!
//! Each seed shifts functions, arms of switches and return points by other numbers of bytes before layout. The seeds take turns in
//! each round, each with an engine of its own. The time of a seed is its best, without compilation, which is in the first round.

use crate::in_store::run;
use crate::options::Seeds;
use crate::programs::{self, Program, Work};
use crate::run::progress;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use weir::{CompiledBy, Config, Engine, Module, Padding, Tier, TierEventKind};

/// Two switch machines, string hashing, JSON, a regex matcher, and one that allocates. Lua must be fetched.
const PROGRAMS: [&str; 6] = ["switch", "lua", "word-count", "json", "regex", "binary-trees"];
/// Addresses are compared modulo this, the size of a cache line.
const LINE: usize = 64;

/// The number of addresses that a hot arm should have under 60 seeds.
const MANY: usize = 30;

/// An arm of a switch: its function, the loop of an OSR body, and the number of the arm in the code.
type Arm = (u32, Option<u32>, usize);
/// The address of each arm. Of code that was compiled again, the last one.
type Arms = Arc<Mutex<BTreeMap<Arm, usize>>>;

/// A module whose code is laid out with a seed.
struct Seeded {
    module: Module,
    arms: Arms,
    /// The least time of a run, in milliseconds.
    best: f64,
}

/// Measures each program under all seeds, and prints a line for it. Returns whether all programs of [`PROGRAMS`] were found, if no
/// others are asked for.
///
/// # Errors
/// A program cannot be read, fails, or prints something else with another seed.
pub fn seeds(options: &Seeds) -> Result<bool, String> {
    let asked = options.selection.filter.is_some();
    let mut programs = programs::find(&options.selection.programs, options.selection.filter.as_deref())?;
    programs.retain(|program| asked || PROGRAMS.contains(&program.name.as_str()));
    for program in &programs {
        let work = program.scaled(options.share).unwrap_or_else(|| program.small.clone());
        println!("{:16} {}", program.name, measure(options, program, &work)?);
    }
    let missing = PROGRAMS.iter().filter(|name| !asked && !programs.iter().any(|program| program.name == **name));
    Ok(missing.inspect(|name| println!("{name:16} is not there: programs/fetch.py fetches real programs")).count() == 0)
}

/// Measures a program.
fn measure(options: &Seeds, program: &Program, work: &Work) -> Result<String, String> {
    let mut all = (0..options.seeds).map(|seed| Seeded::new(program, seed, options.auto)).collect::<Result<Vec<_>, String>>()?;
    let mut expected = None;
    for round in 0..=options.rounds {
        for (seed, seeded) in all.iter_mut().enumerate() {
            progress(&format!("{}, round {round} of {}, seed {seed}", program.name, options.rounds));
            let (ms, output) = run(program, &seeded.module, work, None)?;
            if *expected.get_or_insert_with(|| output.clone()) != output {
                return Err(format!("{}: seed {seed} prints something else", program.name));
            }
            if round > 0 {
                seeded.best = seeded.best.min(ms);
            }
        }
    }
    progress("");
    let fastest = all.iter().map(|seeded| seeded.best).fold(f64::INFINITY, f64::min);
    let slowest = all.iter().map(|seeded| seeded.best).fold(0.0, f64::max);
    let arms: Vec<_> = all.iter().map(|seeded| seeded.arms.lock().expect("no listener panics").clone()).collect();
    let ratio = slowest / fastest;
    Ok(format!("fastest seed {fastest:8.2} ms, slowest {slowest:8.2} ms: {ratio:.3} times; {}", addresses(&arms)))
}

/// Describes how many addresses modulo [`LINE`] each arm has that is there under every seed. A target that layout packs into a line with
/// a dispatch has few.
fn addresses(arms: &[BTreeMap<Arm, usize>]) -> String {
    let of = |arm: &Arm| arms.iter().map(|arms| Some(arms.get(arm)? % LINE)).collect::<Option<BTreeSet<usize>>>();
    let counts: Vec<usize> = arms.first().into_iter().flat_map(BTreeMap::keys).filter_map(of).map(|set| set.len()).collect();
    let Some(least) = counts.iter().min() else { return "no jump table".into() };
    let many = counts.iter().filter(|&&count| count >= MANY).count();
    format!("of {} arms, {many} are at {MANY} or more addresses modulo {LINE}, all at {least} or more", counts.len())
}

impl Seeded {
    fn new(program: &Program, seed: u64, auto: bool) -> Result<Seeded, String> {
        let arms = Arms::default();
        let listener = arms.clone();
        let mut config = Config::new();
        config.tier(if auto { Tier::Auto } else { Tier::Native }).synchronous_compilation(true);
        config.padding(Padding { after: None, seed: Some(seed) });
        config.on_tier_event(move |event| {
            if let (TierEventKind::Compiled { by: CompiledBy::Native, code, .. }, Some(func)) = (&event.kind, event.func) {
                let found = targets(code).into_iter().enumerate();
                let mut arms = listener.lock().expect("no listener panics");
                arms.extend(found.map(|(arm, offset)| ((func, event.osr, arm), code.as_ptr().addr() + offset)));
            }
        });
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", program.name);
        let engine = Engine::new(&config).map_err(|error| failed(&error))?;
        let module = Module::from_file(&engine, &program.wasm).map_err(|error| failed(&error))?;
        Ok(Seeded { module, arms, best: f64::INFINITY })
    }
}

/// The offsets of the targets of all jump tables, in their order. The tables are at the end of the code, in the order of their jumps,
/// and hold distances from the table.
fn targets(code: &[u8]) -> Vec<usize> {
    let tables = tables(code);
    let ends = tables.iter().skip(1).copied().chain([code.len()]);
    let of_table = |(table, end): (usize, usize)| {
        let distance = |entry: &[u8; 4]| i32::from_le_bytes(*entry) as isize;
        code[table..end].as_chunks().0.iter().map(move |entry| table.wrapping_add_signed(distance(entry)))
    };
    tables.iter().copied().zip(ends).flat_map(of_table).collect()
}

/// The offsets of the jump tables, ascending: of the addresses that are loaded before `movsxd`, `add` and an indirect jump. Copies of a
/// dispatch have one table.
fn tables(code: &[u8]) -> Vec<usize> {
    let mut last = [Instruction::default(); 3];
    let mut tables = BTreeSet::new();
    for inst in Decoder::with_ip(64, code, 0, DecoderOptions::NONE).iter() {
        let is_jump = inst.code() == Code::Jmp_rm64 && inst.op0_kind() == OpKind::Register;
        let [address, load, add] = last;
        let before = [address.code(), load.code(), add.code()];
        if is_jump && matches!(before, [Code::Lea_r64_m, Code::Movsxd_r64_rm32, Code::Add_r64_rm64 | Code::Add_rm64_r64]) {
            tables.insert(address.ip_rel_memory_address() as usize);
        }
        last = [load, add, inst];
        if tables.first().is_some_and(|&first| inst.next_ip() as usize >= first) {
            break;
        }
    }
    tables.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The arms of a switch are found, and the seeds move most of them.
    #[test]
    fn seeds_move_the_arms() {
        let programs = programs::find(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), Some("switch")).unwrap();
        let arms: Vec<_> = (0..8)
            .map(|seed| {
                let seeded = Seeded::new(&programs[0], seed, false).unwrap();
                let (_, output) = run(&programs[0], &seeded.module, &programs[0].small, None).unwrap();
                assert_eq!(Some(&output), programs[0].small.expected.as_ref());
                seeded.arms.lock().unwrap().clone()
            })
            .collect();
        assert!(arms[0].len() >= 10, "{:?}", arms[0]);
        assert!(arms.iter().all(|other| other.keys().eq(arms[0].keys())), "the same arms");
        // Arms of nearly a whole number of lines begin at few places.
        let moves = |arm: &Arm| arms.iter().map(|arms| arms[arm] % LINE).collect::<BTreeSet<usize>>().len() > 2;
        let moved = arms[0].keys().copied().filter(moves).count();
        assert!(moved * 4 >= arms[0].len() * 3, "{moved} of {} arms", arms[0].len());
    }
}
