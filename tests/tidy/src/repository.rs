//! The rules of this repository: its layers, and every rule with its list of exceptions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::exceptions::{self, Group};
use crate::finding::Finding;
use crate::graph::Graph;
use crate::rules::arrows::{self, Layer};
use crate::rules::{clients, commands, cycles, documents, engines, packages, places, size, system, words};
use crate::workspace::{self, Files, Package, Workspace};

/// The layers, from the bottom to the top.
pub const LAYERS: &[Layer] = &[
    // From bytes to modules, without execution.
    Layer { name: "bytecode", places: &["bytecode/src/"], uses: &[] },
    // The interface between interpreter, compiled code and runtime.
    Layer { name: "contract", places: &["jit/contract/src/"], uses: &["bytecode"] },
    // The compiler, which does not depend on the virtual machine.
    Layer { name: "jit::base", places: &["jit/src/slow_growth.rs", "jit/src/hash_table.rs", "jit/src/meter.rs"], uses: &[] },
    // Faults for tests.
    Layer { name: "jit::seeded", places: &["jit/src/seeded.rs"], uses: &[] },
    // Independent of SSA and of machine code.
    Layer { name: "jit::graph", places: &["jit/src/graph/"], uses: &[] },
    Layer { name: "jit::ir", places: &["jit/src/ir/"], uses: &["bytecode", "contract", "jit::base"] },
    Layer {
        name: "jit::analysis",
        places: &["jit/src/analysis/"],
        uses: &["bytecode", "contract", "jit::base", "jit::graph", "jit::ir"],
    },
    Layer {
        name: "jit::request",
        places: &["jit/src/request.rs", "jit/src/settings.rs", "jit/src/profile.rs"],
        uses: &["bytecode", "contract", "jit::base", "jit::ir"],
    },
    Layer {
        name: "jit::construct",
        places: &["jit/src/construct/"],
        uses: &["bytecode", "contract", "jit::base", "jit::ir", "jit::analysis", "jit::request"],
    },
    Layer {
        name: "jit::opt",
        places: &["jit/src/opt/"],
        uses: &["bytecode", "contract", "jit::base", "jit::ir", "jit::analysis", "jit::request"],
    },
    // Independent of opcodes.
    Layer { name: "jit::regalloc", places: &["jit/src/regalloc/"], uses: &["jit::base", "jit::graph"] },
    // Independent of the processor.
    Layer {
        name: "jit::mir",
        places: &["jit/src/mir/"],
        uses: &["bytecode", "contract", "jit::base", "jit::graph", "jit::ir", "jit::analysis", "jit::request", "jit::regalloc"],
    },
    Layer {
        name: "jit::x64",
        places: &["jit/src/x64/"],
        uses: &[
            "bytecode",
            "contract",
            "jit::base",
            "jit::ir",
            "jit::analysis",
            "jit::request",
            "jit::regalloc",
            "jit::mir",
            "jit::seeded",
        ],
    },
    Layer {
        name: "jit::cranelift",
        places: &["jit/src/cranelift/"],
        uses: &["bytecode", "contract", "jit::base", "jit::ir", "jit::analysis", "jit::request"],
    },
    // The forms of a function between phases.
    Layer { name: "jit::form", places: &["jit/src/form.rs"], uses: &["jit::ir", "jit::request", "jit::mir", "jit::x64"] },
    // Bytecode to machine code in one pass. The pipeline compiles the code of stencils for it.
    Layer {
        name: "jit::baseline",
        places: &["jit/src/baseline/"],
        uses: &[
            "bytecode",
            "contract",
            "jit::ir",
            "jit::base",
            "jit::request",
            "jit::construct",
            "jit::regalloc",
            "jit::mir",
            "jit::x64",
            "jit::form",
            "jit::seeded",
        ],
    },
    Layer {
        name: "jit::pipeline",
        places: &["jit/src/"],
        uses: &[
            "bytecode",
            "contract",
            "jit::base",
            "jit::graph",
            "jit::ir",
            "jit::analysis",
            "jit::request",
            "jit::construct",
            "jit::opt",
            "jit::regalloc",
            "jit::mir",
            "jit::x64",
            "jit::form",
            "jit::cranelift",
            "jit::baseline",
        ],
    },
    // The checker of machine code, which shares nothing with the compiler.
    Layer { name: "check", places: &["tests/check/src/"], uses: &["bytecode", "contract"] },
    // The virtual machine.
    Layer { name: "vm::sys", places: &["vm/src/sys/", "vm/src/sys.rs"], uses: &["vm::fork"] },
    // Which process it is; all layers that keep something of a process ask.
    Layer { name: "vm::fork", places: &["vm/src/sys/fork.rs"], uses: &["vm::sys"] },
    Layer { name: "vm::records", places: &["vm/src/records/"], uses: &["bytecode", "contract", "vm::sys", "vm::fork"] },
    Layer { name: "vm::code", places: &["vm/src/code/"], uses: &["bytecode", "contract", "vm::sys", "vm::fork"] },
    Layer {
        name: "vm::interp",
        places: &["vm/src/interp/"],
        uses: &["bytecode", "contract", "vm::sys", "vm::records", "vm::code"],
    },
    // The compiler's options and statistics, which the tiers and the evaluator of SSA share.
    Layer {
        name: "vm::compilation",
        places: &["vm/src/compilation/"],
        uses: &["bytecode", "contract", "jit", "vm::sys", "vm::records"],
    },
    Layer {
        name: "vm::tier",
        places: &["vm/src/tier/"],
        uses: &["bytecode", "contract", "jit", "vm::sys", "vm::records", "vm::code", "vm::compilation"],
    },
    // The evaluator of SSA is a separate engine.
    Layer {
        name: "vm::ssa",
        places: &["vm/src/exec/ssa/"],
        uses: &["bytecode", "contract", "jit", "vm::sys", "vm::records", "vm::interp", "vm::compilation", "vm::exec"],
    },
    Layer {
        name: "vm::exec",
        places: &["vm/src/exec/"],
        uses: &["bytecode", "contract", "vm::sys", "vm::records", "vm::code", "vm::interp", "vm::tier", "vm::ssa"],
    },
    Layer {
        name: "vm::api",
        places: &["vm/src/api/", "vm/src/lib.rs"],
        uses: &[
            "bytecode",
            "contract",
            "jit",
            "vm::sys",
            "vm::fork",
            "vm::records",
            "vm::code",
            "vm::interp",
            "vm::compilation",
            "vm::tier",
            "vm::exec",
        ],
    },
    // Clients, which see only the public interfaces. In the layer of records these are the handles, settings and errors that
    // the crate's root exports; all modules of weir-vm are private.
    Layer { name: "wasi", places: &["vm/wasi/src/"], uses: &["bytecode", "vm::fork", "vm::records", "vm::api"] },
    Layer { name: "runtime layer", places: &["vm/runtime_layer/src/"], uses: &["bytecode", "vm::records", "vm::api"] },
    Layer { name: "wast", places: &["vm/wast/src/"], uses: &["bytecode", "vm::records", "vm::api"] },
    Layer {
        name: "cli",
        places: &["vm/cli/src/"],
        uses: &["bytecode", "contract", "jit", "vm::records", "vm::api", "wasi", "wast"],
    },
    Layer {
        name: "bench",
        places: &["programs/bench/src/"],
        uses: &["bytecode", "contract", "jit", "vm::records", "vm::api", "wasi", "cli"],
    },
    // The specification suite, which builds without a compiler also run.
    Layer { name: "spec", places: &["tests/spec/src/"], uses: &["vm::records", "vm::api", "wast"] },
    Layer {
        name: "tests",
        places: &["tests/src/"],
        // Of the examples the shapes of functions, which the compiler's own tests use too; of the benchmarks the counts of instructions.
        uses: &["bytecode", "contract", "jit", "check", "vm::records", "vm::api", "wasi", "cli", "spec", "examples", "bench"],
    },
    Layer { name: "tidy", places: &["tests/tidy/src/"], uses: &[] },
    Layer { name: "build script", places: &["vm/build.rs", "vm/cli/build.rs"], uses: &[] },
    Layer {
        name: "examples",
        places: &["bytecode/examples/", "jit/examples/", "vm/examples/", "vm/wasi/examples/", "vm/cli/examples/"],
        uses: &["bytecode", "contract", "jit", "vm::records", "vm::api", "wasi"],
    },
];

/// The folders of analyses, each of which must have a client in a compilation.
const ANALYSES: &[&str] = &["jit/src/graph/", "jit/src/analysis/"];

/// The clients of analyses.
const PHASES: &[&str] =
    &["jit/src/pipeline.rs", "jit/src/construct/", "jit/src/opt/", "jit/src/mir/", "jit/src/regalloc/", "jit/src/x64/"];

/// The files in these folders that are not clients, because the code of a default run does not depend on them.
const CHECKERS: &[&str] = &[
    // They check the output of phases, if the options say so.
    "jit/src/analysis/verify.rs",
    "jit/src/regalloc/checker.rs",
    "jit/src/mir/verify.rs",
    "jit/src/mir/verify/",
    // The text form.
    "jit/src/mir/print.rs",
    "jit/src/mir/parse.rs",
    "jit/src/mir/text.rs",
    // Another allocator, for comparison.
    "jit/src/regalloc/regalloc2.rs",
];

/// The map of the code, which must stay short.
const MAP: &str = "ARCHITECTURE.md";

/// The tests of the packages that call the operating system, or whose library or program makes engines itself.
const PACKAGE_TESTS: &[&str] = &["vm/tests/", "vm/cli/tests/", "vm/wasi/tests/", "vm/wast/tests/", "vm/runtime_layer/tests/"];

/// This repository.
pub struct Repository {
    root: PathBuf,
    packages: Vec<Package>,
    graph: Graph,
    /// The Rust files and the documents, by path.
    texts: BTreeMap<String, String>,
}

/// The findings of a rule, with the file in `exceptions/` that lists those that are allowed.
type Found = (&'static str, Vec<Finding>);

impl Repository {
    /// Reads the repository.
    ///
    /// # Errors
    ///
    /// A message, if the workspace is not on disk or a file cannot be read or parsed.
    pub fn open(workspace: Workspace) -> Result<Repository, String> {
        let Files::Disk(root) = &workspace.files else { return Err("the repository is not on a disk".to_owned()) };
        let (root, graph) = (root.clone(), Graph::read(&workspace)?);
        let texts = read_texts(&root)?;
        Ok(Repository { root, packages: workspace.packages, graph, texts })
    }

    /// All problems: everything that breaks a rule.
    ///
    /// # Errors
    ///
    /// A message, if a list of exceptions cannot be read, or `cargo metadata` fails.
    pub fn problems(&self) -> Result<Vec<String>, String> {
        let mut wrong = cycles::problems(&self.graph, &self.names(), &self.list("cycles")?);
        for (list, found) in self.found()? {
            wrong.extend(exceptions::problems(&found, &self.list(list)?).into_iter().map(|problem| format!("{list}: {problem}")));
        }
        let allowed: Vec<String> = self.list("licences")?.into_iter().flat_map(|group| group.entries).collect();
        wrong.extend(packages::licences(&self.external_packages()?, &allowed));
        let unresolved = &self.graph.unresolved;
        wrong.extend(
            unresolved
                .iter()
                .map(|(file, reason)| format!("{}:{}: weir-tidy finds no {}", self.graph.path(*file), reason.line, reason.path)),
        );
        Ok(wrong)
    }

    /// Removes exceptions that are no longer needed from their lists. Returns the names of the lists that were written.
    ///
    /// # Errors
    ///
    /// A message, if a list cannot be read or written, or `cargo metadata` fails.
    pub fn shrink(&self) -> Result<String, String> {
        let mut written = String::new();
        let old = self.list("cycles")?;
        written += &self.write("cycles", &old, cycles::needed(&self.graph, &self.names(), &old))?;
        for (list, found) in self.found()? {
            let old = self.list(list)?;
            written += &self.write(list, &old, exceptions::needed(&found, &old))?;
        }
        Ok(written)
    }

    fn names(&self) -> Vec<String> {
        self.packages.iter().map(|package| package.name.clone()).collect()
    }

    fn found(&self) -> Result<Vec<Found>, String> {
        let sources =
            || self.texts.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(path, text)| (path.as_str(), text.as_str()));
        let mut calls = system::check(&self.graph, "vm/src/", &["vm/src/sys/", "vm/src/sys.rs"]);
        calls.extend(system::check(&self.graph, "vm/wasi/src/", &["vm/wasi/src/sys/", "vm/wasi/src/sys.rs"]));
        for folder in ["bytecode/src/", "jit/contract/src/", "jit/src/"] {
            calls.extend(system::check(&self.graph, folder, &[]));
        }
        calls.extend(system::check_crates(sources(), "vm/src/", &["vm/src/sys/", "vm/src/sys.rs"])?);
        calls.extend(system::check_crates(sources(), "vm/wasi/src/", &["vm/wasi/src/sys/", "vm/wasi/src/sys.rs"])?);
        for folder in PACKAGE_TESTS {
            calls.extend(system::check_crates(sources(), folder, &[])?);
        }
        let documents = self.texts.iter().filter(|(path, _)| path.ends_with(".md"));
        let exists = |path: &str| self.root.join(path).exists();
        let commands = documents.clone().flat_map(|(path, text)| commands::check(path, text, &self.packages, exists)).collect();
        let mut links: Vec<Finding> = documents.flat_map(|(path, text)| documents::check(path, text, exists)).collect();
        links.extend(self.conflicts()?);
        let map = self.texts.get(MAP).ok_or_else(|| format!("there is no {MAP}"))?;
        links.extend(documents::size(MAP, map, 250, 120));
        Ok(vec![
            ("arrows", arrows::check(&self.graph, LAYERS)),
            ("clients", clients::check(&self.graph, ANALYSES, PHASES, CHECKERS)),
            ("size", size::check(sources())),
            ("words", words::check(sources())),
            ("unsafe", places::unsafe_code(&self.graph)),
            ("machine_code", places::machine_code(&self.graph)),
            ("system", calls),
            ("engines", engines::check(sources(), PACKAGE_TESTS)?),
            ("documents", links),
            ("commands", commands),
            ("duplicates", packages::duplicates(&self.external_packages()?)),
        ])
    }

    /// The markers of merge conflicts in the text files that git tracks.
    fn conflicts(&self) -> Result<Vec<Finding>, String> {
        let mut found = Vec::new();
        for path in workspace::tracked(&self.root)? {
            let bytes = match std::fs::read(self.root.join(&path)) {
                Ok(bytes) => bytes,
                // The file is deleted in the working tree.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("{path}: {error}")),
            };
            // A file that is not UTF-8 is not text.
            if let Ok(text) = String::from_utf8(bytes) {
                found.extend(documents::conflicts(&path, &text));
            }
        }
        Ok(found)
    }

    fn external_packages(&self) -> Result<Vec<packages::ExternalPackage>, String> {
        let metadata = workspace::metadata(&self.root, &["--filter-platform", "x86_64-unknown-linux-gnu"])?;
        Ok(packages::read(&metadata))
    }

    fn path_of(&self, list: &str) -> PathBuf {
        self.root.join(format!("tests/tidy/exceptions/{list}.txt"))
    }

    /// A list of exceptions; a list without a file is empty.
    fn list(&self, name: &str) -> Result<Vec<Group>, String> {
        let path = self.path_of(name);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        exceptions::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn write(&self, name: &str, old: &[Group], new: Vec<Group>) -> Result<String, String> {
        if old == new {
            return Ok(String::new());
        }
        let path = self.path_of(name);
        let result = if new.is_empty() { std::fs::remove_file(&path) } else { std::fs::write(&path, exceptions::print(&new)) };
        result.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(format!("{}\n", path.display()))
    }
}

/// Reads the Rust files and the documents, except those that git ignores, as it does fetched files and build output.
fn read_texts(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut texts = BTreeMap::new();
    for path in workspace::not_ignored(root)? {
        if path.ends_with(".rs") || path.ends_with(".md") {
            match std::fs::read_to_string(root.join(&path)) {
                Ok(text) => texts.insert(path, text),
                // The file is deleted in the working tree.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("{path}: {error}")),
            };
        }
    }
    Ok(texts)
}
