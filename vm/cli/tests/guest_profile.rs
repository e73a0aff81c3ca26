//! `--profile guest`, its files, and the page of a module.

mod common;

use common::{assert_fails, file, program, stderr, stdout, weir};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Returns the path of an output of the test that passes `name`. It does not exist.
fn output(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

/// Samples a program by fuel. `options` are more options.
fn sample(kind: &str, to: &Path, options: &[&str], module: &Path, args: &[&str]) -> Output {
    let profile = format!("{kind}={}", to.display());
    let mut all = vec!["--profile", &profile];
    all.extend(options);
    all.push(module.to_str().expect("UTF-8"));
    all.extend(args);
    weir(all)
}

/// A guest whose names are HTML, JSON, and parts of terminal commands.
const HOSTILE: &str = r#"(module
    (import "<script>alert(1)</script>" "\22};alert(2)//" (func $host))
    (func $"</script><img src=x onerror=alert(3)>" (param i32) (result i32)
        (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 0))
    (func $"\22,\22\\{{data}}\1b[2J'&\e2\80\a8" (param i32) (result i32)
        (call $"</script><img src=x onerror=alert(3)>" (local.get 0)))
    (func (export "<!--<script>") (result i32) (call $host) (call $"\22,\22\\{{data}}\1b[2J'&\e2\80\a8" (i32.const 20000))))"#;

/// Checks that a list has this length and only indices below `limit`, or null or -1 where `none`.
fn assert_indices(table: &Value, column: &str, length: usize, limit: usize, none: bool) {
    let list = table[column].as_array().unwrap_or_else(|| panic!("{column} is missing"));
    assert_eq!(list.len(), length, "{column}");
    for value in list {
        let is_none = value.is_null() || value.as_i64() == Some(-1);
        assert!(none && is_none || value.as_u64().is_some_and(|index| (index as usize) < limit), "{column}: {value}");
    }
}

/// Checks what the Firefox profiler requires of a file of version 55: that its tables have equal columns, and their indices targets.
fn assert_is_firefox_profile(text: &str) -> Value {
    let file: Value = serde_json::from_str(text).expect("JSON");
    let meta = &file["meta"];
    assert_eq!(meta["preprocessedProfileVersion"], 55);
    assert!(meta["version"].is_u64() && meta["interval"].is_number() && meta["startTime"].is_number());
    assert!(meta["product"].is_string() && meta["processType"] == 0 && meta["symbolicated"] == true);
    assert_eq!(meta["extensions"]["length"], 0);
    let categories = meta["categories"].as_array().expect("categories");
    assert_eq!((&categories[0]["name"], &categories[0]["color"]), (&"Other".into(), &"grey".into()));
    let colours = [
        "transparent",
        "purple",
        "green",
        "orange",
        "yellow",
        "lightblue",
        "blue",
        "brown",
        "magenta",
        "red",
        "lightred",
        "darkgrey",
        "grey",
    ];
    for category in categories {
        assert!(colours.contains(&category["color"].as_str().expect("a colour")), "{category}");
        assert_eq!(category["subcategories"][0], "Other");
    }
    let schemas = meta["markerSchema"].as_array().expect("schemas");
    for schema in schemas {
        assert!(schema["name"].is_string() && schema["display"].is_array() && schema["fields"].is_array(), "{schema}");
    }
    let libs = file["libs"].as_array().expect("libs");
    for lib in libs {
        for key in ["name", "path", "debugName", "debugPath", "breakpadId", "codeId"] {
            assert!(lib[key].is_string(), "{key}");
        }
    }
    let threads = file["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), 1);
    assert_thread(&threads[0], categories.len(), libs.len(), schemas);
    file
}

fn assert_thread(thread: &Value, categories: usize, libs: usize, schemas: &[Value]) {
    for key in ["name", "processName", "processType", "pid", "tid"] {
        assert!(thread[key].is_string(), "{key}");
    }
    assert!(thread["isMainThread"] == true && thread["registerTime"].is_number() && thread["pausedRanges"].is_array());
    let strings = thread["stringArray"].as_array().expect("strings");
    assert!(strings.iter().all(Value::is_string));
    let length = |table: &str| thread[table]["length"].as_u64().unwrap_or_else(|| panic!("{table}")) as usize;
    let (samples, stacks, frames) = (length("samples"), length("stackTable"), length("frameTable"));
    let (funcs, resources, markers) = (length("funcTable"), length("resourceTable"), length("markers"));

    let table = &thread["samples"];
    assert_eq!(table["weightType"], "samples");
    assert_indices(table, "stack", samples, stacks, true);
    for column in ["time", "weight", "threadCPUDelta"] {
        assert!(
            table[column].as_array().is_some_and(|list| list.len() == samples && list.iter().all(Value::is_number)),
            "{column}"
        );
    }
    let times: Vec<f64> = table["time"].as_array().expect("times").iter().filter_map(Value::as_f64).collect();
    assert!(times.is_sorted(), "{times:?}");

    let table = &thread["stackTable"];
    assert_indices(table, "frame", stacks, frames, false);
    assert_indices(table, "prefix", stacks, stacks, true);
    let prefixes = table["prefix"].as_array().expect("prefixes").iter().enumerate();
    assert!(prefixes.into_iter().all(|(i, prefix)| prefix.as_u64().is_none_or(|prefix| (prefix as usize) < i)));

    let table = &thread["frameTable"];
    assert_indices(table, "func", frames, funcs, false);
    assert_indices(table, "category", frames, categories, false);
    assert_indices(table, "subcategory", frames, 1, false);
    assert_indices(table, "nativeSymbol", frames, 0, true);
    for column in ["address", "line", "column"] {
        assert_indices(table, column, frames, u32::MAX as usize, true);
    }
    for column in ["inlineDepth", "innerWindowID"] {
        assert_indices(table, column, frames, u32::MAX as usize, false);
    }

    let table = &thread["funcTable"];
    assert_indices(table, "name", funcs, strings.len(), false);
    assert_indices(table, "resource", funcs, resources, true);
    assert_indices(table, "fileName", funcs, strings.len(), true);
    for column in ["isJS", "relevantForJS"] {
        assert!(table[column].as_array().is_some_and(|list| list.len() == funcs && list.iter().all(Value::is_boolean)));
    }

    let table = &thread["resourceTable"];
    assert_indices(table, "lib", resources, libs, false);
    assert_indices(table, "name", resources, strings.len(), false);
    assert_indices(table, "type", resources, 6, false);
    assert_eq!(length("nativeSymbols"), 0);

    let table = &thread["markers"];
    assert_indices(table, "category", markers, categories, false);
    assert_indices(table, "name", markers, strings.len(), false);
    assert_indices(table, "phase", markers, 4, false);
    for data in table["data"].as_array().expect("data") {
        assert!(schemas.iter().any(|schema| schema["name"] == data["type"]), "{data}");
    }
}

/// Checks that a page is whole and refers to nothing outside it.
fn assert_is_self_contained(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for reference in ["http:", "https:", "src=", "@import", "url(", "<link", "<iframe", "fetch(", "XMLHttpRequest", "import("] {
        // An address in a name is escaped or in a string.
        let found = page.match_indices(reference).find(|(at, _)| !page[..*at].ends_with("img "));
        assert!(found.is_none(), "{reference} at {found:?}");
    }
}

#[test]
fn a_file_for_the_firefox_profiler_is_well_formed() {
    let (module, to) = (program("regex"), output("firefox.json"));
    let run = sample("guest", &to, &["--profile-interval", "200us", "--no-cache"], &module, &["2000"]);
    assert_eq!((run.status.code(), &*stderr(&run)), (Some(0), ""));
    let file = assert_is_firefox_profile(&fs::read_to_string(&to).unwrap());
    let thread = &file["threads"][0];
    assert!(thread["samples"]["length"].as_u64() > Some(10), "{}", thread["samples"]["length"]);
    assert!(thread["markers"]["data"].to_string().contains("compiled by baseline in"), "{}", thread["markers"]["data"]);
    let names = thread["stringArray"].to_string();
    assert!(names.contains("_start"), "{names}");
}

#[test]
fn stacks_by_fuel_are_equal_in_every_tier() {
    let mut expected: Option<(String, String)> = None;
    for tier in ["interp", "baseline", "native", "cranelift", "ssa", "auto"] {
        let (folded, json) = (output("tiers.folded"), output("tiers.json"));
        for (to, module) in [(&folded, program("json")), (&json, program("json"))] {
            let options = ["--tier", tier, "--profile-interval", "1000", "--no-cache"];
            let run = sample("guest,fuel", to, &options, &module, &["3"]);
            assert_eq!((run.status.code(), &*stderr(&run)), (Some(0), ""), "{tier}");
        }
        let mut file = assert_is_firefox_profile(&fs::read_to_string(&json).unwrap());
        // All but the tiers.
        let thread = &mut file["threads"][0];
        if tier != "auto" {
            thread["frameTable"]["category"] = Value::Null;
        }
        let found = (fs::read_to_string(&folded).unwrap(), thread["samples"].to_string());
        assert!(found.0.lines().count() > 20 && found.0.contains("_start;"), "{tier}: {}", found.0);
        match &expected {
            None => expected = Some(found),
            Some(expected) if tier != "auto" => assert_eq!(found, *expected, "{tier}"),
            // A function has several frames, one for each tier, so indices differ.
            Some(expected) => assert_eq!(found.0, expected.0, "{tier}"),
        }
    }
}

#[test]
fn collapsed_stacks_have_tiers_on_request() {
    let to = output("with_tiers.folded");
    let run = sample("guest,fuel,tiers", &to, &["--tier", "baseline"], &program("json"), &["20"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let text = fs::read_to_string(to).unwrap();
    let names = text.lines().flat_map(|line| line.rsplit_once(' ').expect("a weight").0.split(';'));
    assert!(names.into_iter().all(|name| name.ends_with("_[baseline]")), "{text}");
}

#[test]
fn a_table_says_where_the_fuel_went() {
    let args = ["--profile", "guest,fuel", "--profile-interval", "1000", "--tier", "interp"];
    let run = weir(args.into_iter().map(Into::into).chain([program("json").into_os_string(), "20".into()]));
    let lines: Vec<String> = stderr(&run).lines().map(str::to_string).collect();
    assert!(lines[0].starts_with("weir: ") && lines[0].ends_with(" samples, one for each 1000 units of fuel"), "{lines:?}");
    assert_eq!((&*lines[1], &*lines[2]), ("tiers: interpreter 100.0 %", "   self   total  function"));
    let start = lines.iter().find(|line| line.contains("_start"));
    assert!(lines[3].ends_with("(interpreter)") && start.is_none_or(|line| line.contains("100.0 %")), "{lines:?}");
    let none =
        weir(["--profile", "guest,fuel", "--invoke", "f", file("short.wat", "(module (func (export \"f\")))").to_str().unwrap()]);
    let nothing = "weir: no sample was taken: the program ended before the first one\n";
    assert_eq!(stderr(&none), nothing);
    let none = sample(
        "guest,fuel",
        &output("none.folded"),
        &["--invoke", "f"],
        &file("short.wat", "(module (func (export \"f\")))"),
        &[],
    );
    assert_eq!(stderr(&none), nothing);
}

/// Waits for 0.2 s.
const WAITS: &str = r#"(module
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 24) "\00\c2\eb\0b")
    (func (export "_start") (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))))"#;

#[test]
fn time_in_host_functions_is_theirs() {
    let to = output("wait.folded");
    let run = sample("guest", &to, &[], &file("wait.wat", WAITS), &[]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let text = fs::read_to_string(to).unwrap();
    let line = text.lines().find(|line| line.starts_with("_start;wasi_snapshot_preview1.poll_oneoff "));
    let weight: u64 = line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    assert!(weight >= 190, "{text}");
}

#[test]
fn a_program_that_is_stopped_has_a_profile() {
    let spin = file("spin_profiled.wat", r#"(module (func $spin (loop (br 0))) (func (export "_start") (call $spin)))"#);
    for (kind, options) in
        [("guest", ["--timeout", "1500ms"]), ("guest,fuel", ["--timeout", "1500ms"]), ("guest,fuel", ["--fuel", "9000000"])]
    {
        let to = output("stopped.folded");
        let run = sample(kind, &to, &options, &spin, &[]);
        assert_eq!(run.status.code(), Some(134), "{run:?}");
        assert!(fs::read_to_string(&to).unwrap().starts_with("_start;spin "), "{kind} {options:?}");
    }
}

#[test]
fn names_are_only_names() {
    let module = file("hostile.wat", HOSTILE);
    let (html, json, page, folded) =
        (output("hostile.html"), output("hostile.json"), output("hostile_module.html"), output("hostile.folded"));
    let options = ["--unknown-imports", "default", "--invoke", "<!--<script>", "--profile-interval", "100"];
    for to in [&html, &json, &folded] {
        let run = sample("guest,fuel", to, &options, &module, &[]);
        assert_eq!((run.status.code(), &*stdout(&run)), (Some(0), "0\n"), "{run:?}");
    }
    let path = |path: &Path| path.to_str().expect("UTF-8").to_string();
    let run = weir(["explore".into(), path(&module), "--html".into(), path(&page), "--guest-profile".into(), path(&json)]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");

    let file = assert_is_firefox_profile(&fs::read_to_string(&json).unwrap());
    let strings = file["threads"][0]["stringArray"].as_array().unwrap();
    let expected = ["</script><img src=x onerror=alert(3)>", "\",\"\\{{data}}\\u{1b}[2J'&\\u{2028}", "<!--<script>"];
    assert!(expected.iter().all(|name| strings.iter().any(|string| string == name)), "{strings:?}");

    for page in [&html, &page] {
        let text = fs::read_to_string(page).unwrap();
        assert_is_self_contained(&text);
        // Only the scripts of the page itself.
        assert!(!text.contains("<img") && !text.contains("<script>alert") && !text.contains("<!--"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let scripts: Vec<&str> = text.match_indices("<script").map(|(at, _)| text[at..].split('>').next().unwrap()).collect();
        assert_eq!(scripts.len(), text.matches("</script>").count(), "{scripts:?}");
        assert!(
            scripts.iter().all(|tag| *tag == "<script" || tag.starts_with("<script type=\"application/json\" id=\"")),
            "{scripts:?}"
        );
        let data = text.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
        let data: Value = serde_json::from_str(data).expect("JSON");
        let names = data.to_string();
        assert!(expected.iter().all(|name| names.contains(&serde_json::to_string(name).unwrap())), "{names}");
    }
    let folded = fs::read_to_string(&folded).unwrap();
    assert!(folded.lines().all(|line| line.split(';').count() <= 3 && !line.contains('\u{1b}')), "{folded}");
    let printed = weir(["--profile", "guest,fuel"].into_iter().chain(options).chain([&*path(&module)]));
    assert!(!stderr(&printed).contains('\u{1b}'), "{}", stderr(&printed));
}

#[test]
fn the_page_of_a_module_has_calls_samples_events_and_stages() {
    let (module, json, page) = (program("json"), output("page.json"), output("page.html"));
    let run = sample("guest", &json, &["--no-cache", "--profile-interval", "100us"], &module, &["200"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let path = |path: &Path| path.to_str().expect("UTF-8").to_string();
    let run = weir(["explore".into(), path(&module), "--html".into(), path(&page), "--guest-profile".into(), path(&json)]);
    assert_eq!((run.status.code(), &*stdout(&run)), (Some(0), ""), "{run:?}");
    let text = fs::read_to_string(&page).unwrap();
    assert_is_self_contained(&text);
    let data = text.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).expect("JSON");
    let funcs = data["funcs"].as_array().unwrap();
    let start = funcs.iter().position(|func| func["n"] == "_start").expect("a start");
    let callees: Vec<u64> = funcs[start]["c"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(callees.chunks(2).all(|call| (call[0] as usize) < funcs.len() && call[1] > 0) && !callees.is_empty(), "{callees:?}");
    assert!(data["samples"]["total"].as_u64() > Some(0) && !data["samples"]["events"].as_array().unwrap().is_empty());
    let own: u64 = funcs.iter().filter_map(|func| func["s"]["o"].as_u64()).sum();
    assert_eq!(data["samples"]["total"], own);
    let [over_time, by_functions] = by_tier(&data);
    assert!(over_time == by_functions && over_time.iter().sum::<u64>() == own, "{over_time:?} {by_functions:?}");
    let hottest = data["order"][0].as_u64().unwrap();
    let stages = text.split_once(&format!("id=\"stages-{hottest}\">")).unwrap().1.split_once("</script>").unwrap().0;
    let stages: Value = serde_json::from_str(stages).expect("JSON");
    let names: Vec<&str> = stages["stages"].as_array().unwrap().iter().filter_map(|stage| stage["name"].as_str()).collect();
    assert!(["bytecode", "build", "asm", "baseline"].iter().all(|stage| names.contains(stage)), "{names:?}");
    let lines = stages["lines"].as_array().unwrap().len() as u64;
    let codes = stages["stages"].as_array().unwrap().iter().flat_map(|stage| stage["lines"].as_array().unwrap());
    assert!(codes.into_iter().all(|code| code.as_u64().is_some_and(|code| code / 3 < lines)));
}

/// Sums of the weights of each tier: over time, and over the functions' own time.
fn by_tier(data: &Value) -> [Vec<u64>; 2] {
    let sum = |rows: Vec<&Value>| -> Vec<u64> {
        let weight = |row: &&Value, tier: usize| row[tier].as_u64().unwrap();
        let tiers = data["tiers"].as_array().unwrap().len();
        (0..tiers).map(|tier| rows.iter().map(|row| weight(row, tier)).sum()).collect()
    };
    let funcs = data["funcs"].as_array().unwrap().iter();
    [
        sum(data["samples"]["parts"].as_array().unwrap().iter().collect()),
        sum(funcs.map(|func| &func["s"]["r"]).filter(|row| !row.is_null()).collect()),
    ]
}

#[test]
fn the_page_of_a_module_shows_time_in_host_functions() {
    let (module, json, page) = (file("waits.wat", WAITS), output("waits.json"), output("waits.html"));
    let run = sample("guest", &json, &[], &module, &[]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let path = |path: &Path| path.to_str().expect("UTF-8").to_string();
    let run = weir(["explore".into(), path(&module), "--html".into(), path(&page), "--guest-profile".into(), path(&json)]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let text = fs::read_to_string(&page).unwrap();
    let data = text.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).expect("JSON");
    let host = data["tiers"].as_array().unwrap().iter().position(|tier| tier == "host").expect("a tier");
    let [over_time, own] = by_tier(&data);
    assert_eq!(over_time, own);
    let total = data["samples"]["total"].as_u64().unwrap();
    assert!(own.iter().sum::<u64>() == total && own[host] * 10 >= total * 9, "{own:?} of {total}");
}

#[test]
fn pages_without_samples_and_wrong_usage() {
    let (module, page) = (program("fib"), output("plain.html"));
    let path = |path: &Path| path.to_str().expect("UTF-8").to_string();
    let run = weir(["explore", &path(&module), "--html", &path(&page)]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert_is_self_contained(&fs::read_to_string(&page).unwrap());

    let (other, json) = (program("json"), output("other.json"));
    assert_eq!(sample("guest,fuel", &json, &[], &other, &["1"]).status.code(), Some(0));
    let explore = |profile: &Path| weir(["explore", &path(&module), "--html", &path(&page), "--guest-profile", &path(profile)]);
    assert_fails(&explore(&json), 2, &["--guest-profile", "it is not a profile of this module"]);
    assert_fails(&explore(&file("no.json", "{}")), 2, &["it has no list `libs`"]);
    assert_fails(&explore(&file("bad.json", "{")), 2, &["--guest-profile", "EOF"]);
    let damaged = fs::read_to_string(&json).unwrap();
    let run = weir(["explore", &path(&other), "--html", &path(&page), "--guest-profile", &path(&json)]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let damaged = damaged.replace("\"prefix\":[null", "\"prefix\":[7");
    let run = weir(["explore", &path(&other), "--html", &path(&page), "--guest-profile", &path(&file("cyclic.json", damaged))]);
    assert_fails(&run, 2, &["its stack 0 is malformed"]);

    for (option, says) in [
        ("guest=x", "expected a file whose name ends in .json, .folded or .html"),
        ("guest,x", "guest has the options `fuel` and `tiers`"),
        ("perf", "expected counts, perfmap, jitdump, guest"),
    ] {
        let run = weir(["--profile", option, &path(&module)]);
        assert_eq!(run.status.code(), Some(2), "{run:?}");
        assert!(stderr(&run).contains(says), "{}", stderr(&run));
    }
    assert_fails(&weir(["--profile", "guest", "--profile-interval", "x", &path(&module)]), 2, &["expected a time"]);
    assert_fails(&weir(["--profile", "counts", "--profile-interval", "1", &path(&module)]), 2, &["it is for --profile guest"]);
    let nowhere = Path::new("/nonexistent/x.folded");
    assert_fails(
        &sample("guest,fuel", nowhere, &["--invoke", "f"], &file("f.wat", "(module (func (export \"f\")))"), &[]),
        1,
        &["x.folded"],
    );
}
