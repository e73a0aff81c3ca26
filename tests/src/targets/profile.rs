//! Profiles and hints of a module. The first byte says whether the others are a profile as text, without its first two lines, or the
//! contents of a section with hints. Counts that are read guide the compilation of their function.

use super::target::Target;
use crate::profiles;
use crate::rng::Rng;
use weir::Config;
use weir_bytecode::hints::{HintKind, replace};
use weir_bytecode::{Module, validate};
use weir_contract::hints::{Hints, priorities};
use weir_contract::profile::Profile;
use weir_contract::profile_text::{ModuleHash, ModuleProfile};
use weir_contract::{Entry, code::Backend};
use weir_jit::compile::{Context, compile};
use weir_jit::request::CalleeCounts;
use weir_jit::{Options, Request};

/// The target.
pub const TARGET: Target = Target { name: "profile", run, seeds };

/// A module with every kind of branch and of call that a profile counts.
const MODULE: &str = r#"(module
    (type $t (func (param i32) (result i32)))
    (import "m" "f" (func $imported (type $t)))
    (table 4 funcref) (elem (i32.const 0) $imported $switch $loop $calls)
    (elem declare func $switch)
    (memory 1)
    (func $switch (type $t)
        (block (block (block (br_table 0 1 2 (local.get 0)))
            (return (i32.const 7)))
            (return (if (result i32) (local.get 0) (then (i32.const 1)) (else (i32.load (local.get 0))))))
        (i32.const 3))
    (func $loop (type $t) (local i32)
        (loop $outer
            (loop $inner
                (local.set 1 (i32.add (local.get 1) (call $switch (local.get 1))))
                (br_if $inner (i32.lt_s (local.get 1) (i32.const 40))))
            (br_if $outer (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 1))
    (func $calls (type $t)
        (call_indirect (type $t) (local.get 0) (i32.const 1))
        (call_ref $t (ref.func $switch))
        (block (param i32) (result i32) (br_if 0 (i32.eqz (local.get 0))) (call $loop)))
)"#;

const HASH: ModuleHash = [0xAB; 32];

/// The module, and where its sections are.
struct Subject {
    module: Module,
    sections: Vec<(u8, std::ops::Range<usize>)>,
}

thread_local! {
    static SUBJECT: Subject = {
        let wasm = wat::parse_str(MODULE).expect("it is well formed");
        let sections = sections(&wasm);
        Subject { module: validate::parse(wasm.into()).expect("it is valid"), sections }
    };
}

fn sections(wasm: &[u8]) -> Vec<(u8, std::ops::Range<usize>)> {
    let payloads = wasmparser::Parser::new(0).parse_all(wasm).map(|payload| payload.expect("a section"));
    let sections = payloads.filter_map(|payload| payload.as_section());
    sections.map(|(id, range)| (id, range.start as usize..range.end as usize)).collect()
}

fn run(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    SUBJECT.with(|subject| match HintKind::ALL.get(usize::from(choice) % (HintKind::ALL.len() + 1)) {
        None => text(&subject.module, data),
        Some(&kind) => hints(subject, kind, data),
    });
}

/// The beginning of a profile of the module.
fn head() -> String {
    let digits: String = HASH.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("weir profile 1\nmodule {digits}\n")
}

fn text(module: &Module, data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    // Without its module it is any text.
    let _ = text.parse::<ModuleProfile>();
    let Ok(profile) = ModuleProfile::read(&(head() + text), HASH, module) else { return };
    let printed = profile.to_string();
    let again = ModuleProfile::read(&printed, HASH, module).unwrap_or_else(|error| panic!("{error}:\n{printed}"));
    assert!(again == profile, "this profile is read as another:\n{printed}");
    profile.entries.keys().for_each(|&(func, entry)| guide(module, func, entry, &profile));
    let embedded = weir_contract::hints::embed(module, &profile, |_| HASH);
    let embedded = validate::parse(embedded.into()).expect("sections with hints change nothing");
    let hints = Hints::read(&embedded, |_| HASH);
    // The offsets of loops are others there.
    let funcs = profile.entries.keys().filter(|key| key.1 == Entry::Call);
    funcs.for_each(|&(func, entry)| hints.exact().into_iter().for_each(|profile| guide(&embedded, func, entry, profile)));
}

fn hints(Subject { module, sections }: &Subject, kind: HintKind, data: &[u8]) {
    let wasm = replace(&module.bytes, sections, &[(kind, data.to_vec())]);
    let module = validate::parse(wasm.into()).expect("sections with hints change nothing");
    // Whatever the hints are.
    let _ = priorities(&module);
    let hints = Hints::read(&module, |_| HASH);
    for func in module.imported_funcs..module.funcs.len() as u32 {
        hints.exact().into_iter().for_each(|profile| guide(&module, func, Entry::Call, profile));
        if let Some(profile) = hints.profile(&module, func) {
            compile_with(&module, func, Entry::Call, &profile, None);
        }
    }
}

/// The counts of the functions that are inlined in an entry.
#[derive(Debug)]
struct Inlined<'p>(&'p ModuleProfile, u32, Entry);

impl CalleeCounts for Inlined<'_> {
    fn counts(&self, func: u32) -> Option<Profile> {
        self.0.inlined(self.1, self.2, func).cloned()
    }
}

/// Compiles an entry with the counts that the profile has for it, if any.
fn guide(module: &Module, func: u32, entry: Entry, profile: &ModuleProfile) {
    if let Some(counts) = profile.counts(func, entry) {
        compile_with(module, func, entry, counts, Some(&Inlined(profile, func, entry)));
    }
}

/// Compiles an entry with these counts. Each form of it is verified.
fn compile_with(module: &Module, func: u32, entry: Entry, profile: &Profile, callees: Option<&dyn CalleeCounts>) {
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    let options = Options { verify: true, ..Options::default() };
    let request = Request {
        module,
        func,
        entry,
        sig_ids: &sig_ids,
        backend: Backend::Native,
        profile: Some(profile),
        callees,
        options: &options,
    };
    compile(&mut Context::default(), &request).expect("no profile makes the compiler refuse a function");
}

/// Profiles and hints of random counts.
fn seeds() -> Vec<Vec<u8>> {
    let engine = crate::engines::engine(Config::new().keep_profiles(true)).expect("nothing that could fail is asked for");
    let mut seeds = Vec::new();
    for seed in 0..8 {
        let module = weir::Module::new(&engine, MODULE).expect("it is valid");
        profiles::use_random(&module, &mut Rng::new(seed)).expect("counts of the module");
        let profile = module.saved_profile().expect("the engine keeps profiles").to_string();
        let body = profile.splitn(3, '\n').nth(2).unwrap_or_default();
        seeds.push([&[HintKind::ALL.len() as u8], body.as_bytes()].concat());
        let embedded = module.embed_profile().expect("it has a profile");
        for (name, contents) in weir::Module::new(&engine, embedded).expect("it is valid").custom_sections() {
            let kind = HintKind::ALL.into_iter().position(|kind| kind.name() == name);
            seeds.extend(kind.map(|kind| [&[kind as u8], contents].concat()));
        }
    }
    seeds
}
