//! The documentation of crates as JSON, as rustdoc makes it.

use rustdoc_types::{Crate, FORMAT_VERSION, Id};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The result of reading or making documentation; an error is a message.
pub type Result<T> = std::result::Result<T, String>;

/// An item: its crate's name, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ItemRef<'d>(pub &'d str, pub Id);

/// The documentation of a crate, and of crates of which it exports items.
#[derive(Default)]
pub struct Docs(BTreeMap<String, Crate>);

impl Docs {
    /// Adds the documentation in a file.
    pub fn add(&mut self, file: &Path) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
        let version: serde_json::Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        if version["format_version"] != FORMAT_VERSION {
            return Err(failed(&format!(
                "the format of this compiler's documentation is {}, and that of the crate rustdoc-types is {FORMAT_VERSION}",
                version["format_version"]
            )));
        }
        let docs: Crate = serde_json::from_value(version).map_err(|error| failed(&error))?;
        let name = docs.index.get(&docs.root).and_then(|root| root.name.clone()).unwrap_or_default();
        self.0.insert(name, docs);
        Ok(())
    }

    /// The root module of a crate.
    pub fn root(&self, name: &str) -> ItemRef<'_> {
        let (name, docs) = self.0.get_key_value(name).unwrap_or_else(|| panic!("no documentation of {name} was added"));
        ItemRef(name, docs.root)
    }

    /// The crate of an item.
    pub fn of(&self, item: ItemRef<'_>) -> &Crate {
        &self.0[item.0]
    }

    /// Each crate.
    pub fn each(&self) -> impl Iterator<Item = (&str, &Crate)> {
        self.0.iter().map(|(name, docs)| (name.as_str(), docs))
    }

    /// Finds the item where it is documented: in its own crate. `None` if this has not been added.
    pub fn resolve<'d>(&'d self, item: ItemRef<'d>) -> Option<ItemRef<'d>> {
        let docs = self.of(item);
        if docs.index.contains_key(&item.1) {
            return Some(item);
        }
        let summary = docs.paths.get(&item.1)?;
        let (name, other) = self.0.get_key_value(summary.path.first()?)?;
        // Not the crate in which it was looked for: that has no such item.
        let same = |(_, at): &(&Id, &rustdoc_types::ItemSummary)| at.path == summary.path && at.kind == summary.kind;
        let found = other.paths.iter().filter(same).find(|(id, _)| other.index.contains_key(id))?;
        Some(ItemRef(name, *found.0))
    }
}

/// Makes the documentation of a package of this workspace or of a dependency, in `folder`/doc, and adds it.
pub fn document(docs: &mut Docs, manifest: &Path, folder: &Path, package: &str, library: &str) -> Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["rustdoc", "--quiet", "--locked", "--lib", "--package", package, "--manifest-path"]).arg(manifest);
    cargo.arg("--target-dir").arg(folder).args(["--", "-Z", "unstable-options", "--output-format", "json"]);
    // Its format is not stable yet.
    cargo.env("RUSTC_BOOTSTRAP", "1");
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the documentation of {package} cannot be made"));
    }
    docs.add(&folder.join("doc").join(format!("{library}.json")))
}
