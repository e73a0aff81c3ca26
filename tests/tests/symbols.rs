//! Source lines in backtraces and messages, from the DWARF of modules that are written here.

use gimli::write::{Address, AttributeValue, DwarfUnit, EndianVec, LineProgram, LineString, Sections};
use gimli::{Encoding, Format, LineEncoding, LittleEndian, constants};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wasm_encoder::{
    CodeSection, CustomSection, ExportKind, ExportSection, Function, FunctionSection, Module as Encoded, NameMap, NameSection,
    TagKind, TagSection, TagType, TypeSection,
};
use weir::{
    Config, Engine, Error, GuestProfile, GuestProfiler, GuestStack, Instance, Module, Result, Store, Tier, Trap, UpdateDeadline,
    WasmBacktrace, WasmBacktraceDetails,
};
use weir_tests::rng::Rng;

const FILE: &str = "sum.c";

/// Bytes of the code section before its first body, and of a body before its first instruction: counts and sizes.
const TO_FIRST: u64 = 3;

/// `crash`, whose body has two instructions before it traps, of which line 7 of [`FILE`] consists; in the DWARF it is inlined in
/// `outer`, at line 12. `throw` throws in line 20, and `inlined_throw` in line 31, which is in `inner` again, inlined at line 41.
fn module(debugging: bool) -> Vec<u8> {
    let mut encoded = Encoded::new();
    let mut types = TypeSection::new();
    types.ty().function([], []);
    encoded.section(&types);
    let mut functions = FunctionSection::new();
    functions.function(0).function(0).function(0);
    encoded.section(&functions);
    let mut tags = TagSection::new();
    tags.tag(TagType { kind: TagKind::Exception, func_type_idx: 0 });
    encoded.section(&tags);
    let mut exports = ExportSection::new();
    exports.export("crash", ExportKind::Func, 0).export("throw", ExportKind::Func, 1).export("inlined", ExportKind::Func, 2);
    encoded.section(&exports);
    let mut code = CodeSection::new();
    let mut crash = Function::new([]);
    crash.instructions().nop().nop().unreachable().end();
    let mut throw = Function::new([]);
    throw.instructions().throw(0).end();
    code.function(&crash).function(&throw).function(&throw);
    encoded.section(&code);
    let mut names = NameSection::new();
    let mut functions = NameMap::new();
    functions.append(2, "_Z6throwsv");
    names.functions(&functions);
    let mut tags = NameMap::new();
    tags.append(0, "oops");
    names.tag(&tags);
    encoded.section(&names);
    if debugging {
        for (name, contents) in dwarf() {
            encoded.section(&CustomSection { name: name.into(), data: contents.into() });
        }
    }
    encoded.finish()
}

/// The sections of debugging information for [`module`].
fn dwarf() -> Vec<(&'static str, Vec<u8>)> {
    let encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 4 };
    let mut dwarf = DwarfUnit::new(encoding);
    let directory = LineString::String(b"/source".to_vec());
    let file = LineString::String(FILE.into());
    let mut lines = LineProgram::new(encoding, LineEncoding::default(), directory, None, file.clone(), None);
    let file = lines.add_file(file, lines.default_directory(), None);
    // `crash` has four bytes of instructions, and then its successor's size and number of local declarations follow.
    let (crash, throw) = (TO_FIRST, TO_FIRST + 4 + 2);
    // `throw` has three bytes of instructions.
    let (inlined_throw, end) = (throw + 3 + 2, throw + 3 + 2 + 3);
    lines.begin_sequence(Some(Address::Constant(crash)));
    for (at, line, column) in [(crash, 6, 0), (crash + 2, 7, 5), (throw, 20, 3), (inlined_throw, 31, 9)] {
        let row = lines.row();
        (row.address_offset, row.file, row.line, row.column) = (at - crash, file, line, column);
        lines.generate_row();
    }
    lines.end_sequence(end - crash);
    dwarf.unit.line_program = lines;

    let root = dwarf.unit.root();
    let range = |of: &mut gimli::write::DebuggingInformationEntry, from: u64, to: u64| {
        of.set(constants::DW_AT_low_pc, AttributeValue::Address(Address::Constant(from)));
        of.set(constants::DW_AT_high_pc, AttributeValue::Udata(to - from));
    };
    let name = |of: &mut gimli::write::DebuggingInformationEntry, name: &str| {
        of.set(constants::DW_AT_name, AttributeValue::String(name.into()));
    };
    range(dwarf.unit.get_mut(root), crash, end);
    let inlined = dwarf.unit.add(root, constants::DW_TAG_subprogram);
    name(dwarf.unit.get_mut(inlined), "inner");
    let outer = dwarf.unit.add(root, constants::DW_TAG_subprogram);
    name(dwarf.unit.get_mut(outer), "outer");
    range(dwarf.unit.get_mut(outer), crash, crash + 4);
    let throws = dwarf.unit.add(root, constants::DW_TAG_subprogram);
    name(dwarf.unit.get_mut(throws), "throws");
    range(dwarf.unit.get_mut(throws), inlined_throw, end);
    for (caller, line, from, to) in [(outer, 12, crash, crash + 4), (throws, 41, inlined_throw, end)] {
        let call = dwarf.unit.add(caller, constants::DW_TAG_inlined_subroutine);
        let call = dwarf.unit.get_mut(call);
        call.set(constants::DW_AT_abstract_origin, AttributeValue::UnitRef(inlined));
        call.set(constants::DW_AT_call_file, AttributeValue::FileIndex(Some(file)));
        call.set(constants::DW_AT_call_line, AttributeValue::Udata(line));
        range(call, from, to);
    }

    let mut sections = Sections::new(EndianVec::new(LittleEndian));
    dwarf.write(&mut sections).unwrap();
    let mut written = Vec::new();
    let add = |id: gimli::SectionId, data: &EndianVec<LittleEndian>| -> Result<(), ()> {
        if !data.slice().is_empty() {
            written.push((id.name(), data.slice().to_vec()));
        }
        Ok(())
    };
    sections.for_each(add).unwrap();
    written
}

fn engine(details: WasmBacktraceDetails) -> Engine {
    weir_tests::engines::engine(Config::new().wasm_backtrace_details(details).wasm_exceptions(true)).unwrap()
}

fn failure(engine: &Engine, module: &Module, function: &str) -> Error {
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, module, &[]).unwrap();
    instance.get_typed_func::<(), ()>(&mut store, function).unwrap().call(&mut store, ()).unwrap_err()
}

/// Asserts that the functions of the module fail in their lines.
fn has_lines(engine: &Engine, module: &Module) {
    let error = failure(engine, module, "crash");
    let frame = &error.downcast_ref::<WasmBacktrace>().unwrap().frames()[0];
    let places: Vec<_> = frame.symbols().iter().map(|at| (at.name(), at.file(), at.line(), at.column())).collect();
    let file = Some("sum.c");
    assert_eq!(places, [(Some("inner"), file, Some(7), Some(5)), (Some("outer"), file, Some(12), None)]);
    let text = frame.to_string();
    assert!(text.ends_with("\n         sum.c:7:5 in inner\n         sum.c:12"), "{text}");

    let thrown = |name: &str| failure(engine, module, name).details().expect("the tag and the place").to_string();
    let error = thrown("throw");
    assert!(error.starts_with("uncaught exception oops() thrown by function 1 at offset 0x0, "), "{error}");
    assert!(error.ends_with(", sum.c:20:3"), "{error}");
    let error = thrown("inlined");
    let throws = weir_bytecode::names::Demangled("_Z6throwsv");
    assert!(
        error.starts_with(&format!("uncaught exception oops() thrown by inner, inlined in {throws} at offset 0x0, ")),
        "{error}"
    );
    assert!(error.ends_with(", sum.c:31:9"), "{error}");
}

/// Samples `function` at the poll where it begins, and returns the profile.
fn profile(tier: Tier, debugging: bool, function: &str) -> GuestProfile {
    let mut config = Config::new();
    config.tier(tier).epoch_interruption(true).wasm_exceptions(true).wasm_backtrace_details(WasmBacktraceDetails::Enable);
    let engine = weir_tests::engines::engine(&config).unwrap();
    let module = Module::new(&engine, module(debugging)).unwrap();
    let mut store = Store::new(&engine, ());
    let modules = [("sum".to_string(), module.clone())];
    let profiler = GuestProfiler::new(&engine, "sum", Duration::from_millis(1), modules).unwrap();
    let profiler = Arc::new(Mutex::new(Some(profiler)));
    let sampled = profiler.clone();
    store.epoch_deadline_callback(move |store| {
        sampled.lock().unwrap().as_mut().expect("it is sampling").sample(&store, Duration::ZERO);
        Ok(UpdateDeadline::Continue(0))
    });
    store.set_epoch_deadline(0);
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    instance.get_typed_func::<(), ()>(&mut store, function).unwrap().call(&mut store, ()).unwrap_err();
    let profiler = profiler.lock().unwrap().take().expect("it was sampling");
    profiler.into_profile()
}

/// The name, file, line and column of a frame.
type Shown = (String, Option<String>, Option<u32>, Option<u32>);

/// The frames of the first sample, from the innermost on.
fn first_sample(profile: &GuestProfile) -> Vec<Shown> {
    let mut stack = Some(profile.samples.first().expect("a sample").stack);
    let frames = std::iter::from_fn(|| {
        let GuestStack { parent, frame, .. } = profile.stacks[stack? as usize];
        stack = parent;
        let frame = &profile.frames[frame as usize];
        Some((frame.name.to_string(), frame.file.as_deref().map(String::from), frame.line, frame.column))
    });
    frames.collect()
}

#[test]
fn sampled_frames_have_lines() {
    let file = || Some(FILE.to_string());
    for tier in [Tier::Interpreter, Tier::Baseline, Tier::Native] {
        let profile_of = |debugging, function| profile(tier, debugging, function);
        let crash = profile_of(true, "crash");
        // The name of the function itself is the module's, not that of the debugging information.
        let expected = [("inner".into(), file(), Some(6), None), ("crash".into(), file(), Some(12), None)];
        assert_eq!(first_sample(&crash), expected, "{tier:?}");
        assert_eq!(crash.frames.iter().map(|frame| frame.inline_depth).max(), Some(1), "{tier:?}");
        let throw = first_sample(&profile_of(true, "throw"));
        assert_eq!((&throw[0].1, throw[0].2, throw[0].3), (&file(), Some(20), Some(3)), "{tier:?}");
        let mut firefox = Vec::new();
        crash.write_firefox(&mut firefox).unwrap();
        let firefox = String::from_utf8(firefox).unwrap();
        assert!(["\"inner\"", "\"crash\"", "\"sum.c\""].iter().all(|text| firefox.contains(text)), "{firefox}");
        let plain = first_sample(&profile_of(false, "crash"));
        assert_eq!(plain, [("crash".into(), None, None, None)], "{tier:?}");
    }
}

/// A file in the system's directory for temporary files, removed at the end.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, bytes: &[u8]) -> TestFile {
        let path = std::env::temp_dir().join(format!("weir-symbols-{}-{name}.wasm", std::process::id()));
        fs::write(&path, bytes).unwrap();
        TestFile(path)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn frames_have_the_lines_of_modules_from_bytes() {
    let engine = engine(WasmBacktraceDetails::Enable);
    has_lines(&engine, &Module::new(&engine, module(true)).unwrap());
}

/// The file's debugging information is not in memory until an error needs it.
#[test]
fn frames_have_the_lines_of_modules_from_files() {
    let engine = engine(WasmBacktraceDetails::Enable);
    let file = TestFile::new("file", &module(true));
    let module = Module::from_file(&engine, &file.0).unwrap();
    let mut debugging = module.custom_sections().filter(|(name, _)| *name != "name");
    assert!(debugging.all(|(_, contents)| contents.iter().skip(16).all(|&byte| byte == 0)));
    has_lines(&engine, &module);
}

#[test]
fn there_are_no_lines_without_debugging_information_or_if_they_are_off() {
    for (details, debugging) in [(WasmBacktraceDetails::Enable, false), (WasmBacktraceDetails::Disable, true)] {
        let engine = engine(details);
        let error = failure(&engine, &Module::new(&engine, module(debugging)).unwrap(), "crash");
        assert!(error.downcast_ref::<WasmBacktrace>().unwrap().frames()[0].symbols().is_empty());
    }
}

/// A file that has changed since the module was loaded says nothing about the module.
#[test]
fn lines_of_another_file_are_not_shown() {
    let engine = engine(WasmBacktraceDetails::Enable);
    let file = TestFile::new("changed", &module(true));
    let module_before = Module::from_file(&engine, &file.0).unwrap();
    let mut changed = module(true);
    let at = changed.windows(4).position(|bytes| bytes == [1, 1, 0, 0x0B]).unwrap();
    changed[at] = 0;
    fs::write(&file.0, changed).unwrap();
    let error = failure(&engine, &module_before, "crash");
    assert!(error.downcast_ref::<WasmBacktrace>().unwrap().frames()[0].symbols().is_empty());
}

#[test]
fn damaged_debugging_information_costs_lines_only() {
    let engine = engine(WasmBacktraceDetails::Enable);
    let whole = module(true);
    let code_end = module(false).len();
    for seed in 0..2_000 {
        let (mut damaged, mut rng) = (whole.clone(), Rng::new(seed));
        for _ in 0..=rng.below(3) {
            let at = code_end + rng.below((whole.len() - code_end) as u32) as usize;
            damaged[at] = rng.below(256) as u8;
        }
        // A section's size may be damaged.
        let Ok(module) = Module::new(&engine, damaged) else { continue };
        let error = failure(&engine, &module, "crash");
        assert_eq!(error.downcast_ref(), Some(&Trap::UnreachableCodeReached), "seed {seed}");
        let _ = format!("{error:?}");
    }
}

/// The backtrace at the throw has `inner`, which has been left when the handler throws again.
#[test]
fn a_backtrace_is_taken_at_the_throw_if_asked_for() {
    let text = r#"
        (module
            (tag $t)
            (func $inner (throw $t))
            (func $middle
                (block $caught (result exnref) (try_table (catch_all_ref $caught) (call $inner)) (return))
                (throw_ref))
            (func (export "run") (call $middle)))"#;
    for tier in [Tier::Interpreter, Tier::Baseline, Tier::Native, Tier::Ssa] {
        for (at_throw, expected) in [(true, vec![Some("inner"), Some("middle"), None]), (false, vec![Some("middle"), None])] {
            let mut config = Config::new();
            config.tier(tier).wasm_exceptions(true).backtrace_on_throw(at_throw).gc_stress(true);
            let engine = weir_tests::engines::engine(&config).unwrap();
            let error = failure(&engine, &Module::new(&engine, text).unwrap(), "run");
            let frames = error.downcast_ref::<WasmBacktrace>().unwrap().frames();
            assert_eq!(frames.iter().map(|frame| frame.func_name()).collect::<Vec<_>>(), expected, "{tier:?}, {at_throw}");
        }
    }
}
