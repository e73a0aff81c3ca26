//! What a container runs: its first argument names a file of the image, and perhaps one of its functions.

use oci_spec::runtime::Spec;
use rustix::fs::{Access, access};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The function that runs a program.
pub(crate) const START: &str = "_start";

/// The first argument, resolved in the container's root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// The file.
    pub path: PathBuf,
    /// The exported function that is called, which takes and returns nothing.
    pub function: String,
}

impl Entry {
    /// Finds the file of a specification's process. A name without `/` is looked for in the directories of `PATH` and then in the
    /// working directory, which is the current one. What follows the last `#` is a function, unless a file has the whole name.
    ///
    /// # Errors
    /// There is no first argument, or no such file: the message names both.
    pub fn of(spec: &Spec) -> Result<Entry, String> {
        Entry::within(spec, Path::is_file)
    }

    /// The entry of a container whose module is a layer: the first argument may name a function.
    pub fn of_layer(spec: &Spec) -> Entry {
        let args = spec.process().as_ref().and_then(|process| process.args().as_ref());
        let first = args.and_then(|args| args.first()).map_or("", String::as_str);
        let (name, function) = first.rsplit_once('#').filter(|(_, function)| !function.is_empty()).unwrap_or((first, START));
        Entry { path: name.into(), function: function.into() }
    }

    /// [`Entry::of`] before the root has changed, with what says whether it has a file. The path may be relative to the container's
    /// working directory.
    ///
    /// # Errors
    /// As [`Entry::of`].
    pub fn within(spec: &Spec, exists: impl Fn(&Path) -> bool) -> Result<Entry, String> {
        let process = spec.process().as_ref().ok_or("the specification has no process")?;
        let first = process.args().iter().flatten().next().filter(|first| !first.is_empty());
        let first = first.ok_or("expected a module as the first argument of the container, found no argument")?;
        let path = process.env().iter().flatten().find_map(|variable| variable.strip_prefix("PATH="));
        Entry::find(first, path.unwrap_or_default(), exists)
    }

    /// [`Entry::of`] for a first argument, with the value of `PATH` and what says whether a file exists.
    fn find(first: &str, path: &str, exists: impl Fn(&Path) -> bool) -> Result<Entry, String> {
        let resolve = |name: &str| {
            let beside = || Some(PathBuf::from(name)).filter(|path| exists(path));
            if name.contains('/') {
                return beside();
            }
            let folders = path.split(':').filter(|folder| !folder.is_empty());
            folders.map(|folder| Path::new(folder).join(name)).find(|path| exists(path)).or_else(beside)
        };
        if let Some(path) = resolve(first) {
            return Ok(Entry { path, function: START.into() });
        }
        let (name, function) = first.rsplit_once('#').unwrap_or((first, START));
        match resolve(name).filter(|_| !function.is_empty()) {
            Some(path) => Ok(Entry { path, function: function.into() }),
            None => Err(format!("the container's first argument is `{first}`: the image has no such file")),
        }
    }

    /// Whether the file is a native program, or a script with an interpreter, that this process may execute. Pods need one: their first
    /// container, which holds their namespaces, is a native program.
    pub fn is_native(&self) -> bool {
        let mut first = [0; 4];
        let read = File::open(&self.path).and_then(|mut file| file.read_exact(&mut first));
        let known = first == *b"\x7fELF" || first.starts_with(b"#!");
        read.is_ok() && known && self.function == START && access(&self.path, Access::EXEC_OK).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolution() {
        let files = ["/app.wasm", "/bin/tool", "local", "/odd#name"];
        let exists = |path: &Path| files.iter().any(|file| Path::new(file) == path);
        let find = |first: &str| Entry::find(first, "/none:/bin", exists);
        let entry = |path: &str, function: &str| Ok(Entry { path: path.into(), function: function.into() });
        assert_eq!(find("/app.wasm"), entry("/app.wasm", START));
        assert_eq!(find("/app.wasm#run"), entry("/app.wasm", "run"));
        assert_eq!(find("tool"), entry("/bin/tool", START));
        assert_eq!(find("tool#f"), entry("/bin/tool", "f"));
        assert_eq!(find("local"), entry("local", START));
        assert_eq!(find("/odd#name"), entry("/odd#name", START));
        assert_eq!(find("/odd#name#f"), entry("/odd#name", "f"));
        for wrong in ["/app.wasm#", "/other", "other", "#f"] {
            assert!(find(wrong).unwrap_err().contains(&format!("`{wrong}`")), "{wrong}");
        }
    }
}
