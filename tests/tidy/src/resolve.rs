//! A path in a module → the file that defines the item that it names, through imports, re-exports and globs.

use crate::modules::{ANY, EXPORTED, FileId, Kind, MACROS, ModuleId, Modules, Path, Spaces, TYPES};

/// The item or module to which a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// An item of this file.
    Item(FileId),
    /// A module.
    Module(ModuleId),
    /// An item of a crate outside the workspace, by its full path.
    Outside(Vec<String>),
}

/// Crates that are known in every crate.
const STANDARD: [&str; 4] = ["std", "core", "alloc", "proc_macro"];

/// The current lookups, so that cyclic globs and imports end.
type Lookups = Vec<(ModuleId, String, Spaces)>;

impl Modules {
    /// All meanings of `path`, written in `scope`, in `spaces`; none if it is a local name or unknown.
    pub fn resolve(&self, scope: ModuleId, path: &Path, spaces: Spaces) -> Vec<Found> {
        self.resolve_path(scope, path, spaces, &mut Vec::new())
    }

    fn resolve_path(&self, scope: ModuleId, path: &Path, spaces: Spaces, lookups: &mut Lookups) -> Vec<Found> {
        let Some(first) = path.segments.first() else { return Vec::new() };
        if first == EXPORTED {
            let file = path.segments[1].parse().expect("the index of a file");
            return if spaces & MACROS != 0 { vec![Found::Item(file)] } else { Vec::new() };
        }
        let mut at = 1;
        let mut found = match first.as_str() {
            _ if path.global => self.extern_crate(scope, first),
            "crate" => vec![Found::Module(self.crates[self.modules[scope].in_crate].root)],
            "self" => vec![Found::Module(self.module_of(scope))],
            "super" => {
                let mut module = self.modules[self.module_of(scope)].parent.map(|parent| self.module_of(parent));
                while path.segments.get(at).is_some_and(|segment| segment == "super") {
                    module = module.and_then(|module| self.modules[module].parent).map(|parent| self.module_of(parent));
                    at += 1;
                }
                module.map(Found::Module).into_iter().collect()
            }
            _ => {
                let spaces = if path.segments.len() == 1 { spaces } else { TYPES };
                self.look_up_from(scope, first, spaces, lookups)
            }
        };
        for (index, segment) in path.segments.iter().enumerate().skip(at) {
            let spaces = if index + 1 == path.segments.len() { spaces } else { TYPES };
            let mut next = Vec::new();
            for found in found {
                match found {
                    Found::Module(module) => next.extend(self.look_up(module, segment, spaces, scope, lookups)),
                    Found::Item(file) => next.push(Found::Item(file)),
                    Found::Outside(mut path) => {
                        path.push(segment.clone());
                        next.push(Found::Outside(path));
                    }
                }
            }
            found = next;
        }
        found.dedup();
        found
    }

    /// Looks up a single name: in the enclosing blocks, in the module, among macros, among crates.
    fn look_up_from(&self, scope: ModuleId, name: &str, spaces: Spaces, lookups: &mut Lookups) -> Vec<Found> {
        let mut module = scope;
        loop {
            let found = self.look_up(module, name, spaces, scope, lookups);
            if !found.is_empty() {
                return found;
            }
            match self.modules[module].parent {
                Some(parent) if self.modules[module].is_block || spaces == MACROS => module = parent,
                _ => break,
            }
        }
        if spaces & TYPES != 0 { self.extern_crate(scope, name) } else { Vec::new() }
    }

    fn extern_crate(&self, scope: ModuleId, name: &str) -> Vec<Found> {
        let krate = &self.crates[self.modules[scope].in_crate];
        match krate.externs.get(name) {
            Some(&library) => vec![Found::Module(self.crates[library].root)],
            None if STANDARD.contains(&name) || krate.outside.contains(name) => {
                vec![Found::Outside(vec![name.to_owned()])]
            }
            None => Vec::new(),
        }
    }

    /// Looks up a name in a module, as seen from `from`: first the module's definitions, then its globs, then names that its
    /// macros may define.
    pub fn look_up(&self, module: ModuleId, name: &str, spaces: Spaces, from: ModuleId, lookups: &mut Lookups) -> Vec<Found> {
        let key = (module, name.to_owned(), spaces);
        if lookups.contains(&key) {
            return Vec::new();
        }
        lookups.push(key);
        let found = self.look_up_new(module, name, spaces, from, lookups);
        lookups.pop();
        found
    }

    fn look_up_new(&self, id: ModuleId, name: &str, spaces: Spaces, from: ModuleId, lookups: &mut Lookups) -> Vec<Found> {
        let module = &self.modules[id];
        let sees_private = self.is_inside(from, id);
        let mut found = Vec::new();
        for definition in module.names.get(name).into_iter().flatten() {
            if definition.spaces & spaces == 0 || definition.private && !sees_private {
                continue;
            }
            match &definition.kind {
                Kind::Module(inner) => found.push(Found::Module(*inner)),
                Kind::Item { .. } => found.push(Found::Item(module.file)),
                Kind::Import(path) => found.extend(self.resolve_path(id, path, spaces, lookups)),
            }
        }
        if !found.is_empty() {
            return found;
        }
        for (path, private) in &module.globs {
            if *private && !sees_private {
                continue;
            }
            for target in self.resolve_path(id, path, TYPES, lookups) {
                match target {
                    Found::Module(inner) => found.extend(self.look_up(inner, name, spaces, id, lookups)),
                    Found::Item(file) if self.is_variant(file, path, name) => found.push(Found::Item(file)),
                    Found::Item(_) | Found::Outside(_) => {}
                }
            }
        }
        if found.is_empty() && module.generated.contains(name) && spaces != MACROS {
            found.push(Found::Item(module.file));
        }
        found
    }

    /// Whether the enum at the end of `path`, which is defined in `file`, has this variant.
    fn is_variant(&self, file: FileId, path: &Path, name: &str) -> bool {
        let Some(of) = path.segments.last() else { return false };
        let modules = self.modules.iter().filter(|module| module.file == file);
        modules.flat_map(|module| module.names.get(of)).flatten().any(|definition| match &definition.kind {
            Kind::Item { variants } => variants.iter().any(|variant| variant == name),
            Kind::Module(_) | Kind::Import(_) => false,
        })
    }

    /// Whether this module's file defines items that a glob of the module imports to `from`.
    pub fn has_items(&self, id: ModuleId, from: ModuleId) -> bool {
        let module = &self.modules[id];
        let sees_private = self.is_inside(from, id);
        !module.generated.is_empty() && module.items.iter().any(|item| matches!(item, syn::Item::Macro(_)))
            || module.names.values().flatten().any(|definition| {
                matches!(definition.kind, Kind::Item { .. })
                    && definition.spaces != MACROS
                    && (sees_private || !definition.private)
            })
    }

    /// The files of the traits that a glob of this module re-exports, whose methods can be used without naming them.
    pub fn traits_of_glob(&self, id: ModuleId, from: ModuleId) -> Vec<FileId> {
        let module = &self.modules[id];
        let sees_private = self.is_inside(from, id);
        let imports = module.names.values().flatten().filter(|definition| sees_private || !definition.private);
        imports
            .filter_map(|definition| match &definition.kind {
                Kind::Import(path) => Some(path),
                _ => None,
            })
            .flat_map(|path| {
                let found = self.resolve(id, path, TYPES);
                found.into_iter().filter_map(|found| match found {
                    Found::Item(file) if self.is_trait(file, path) => Some(file),
                    _ => None,
                })
            })
            .collect()
    }

    fn is_trait(&self, file: FileId, path: &Path) -> bool {
        let Some(name) = path.segments.last() else { return false };
        let modules = self.modules.iter().filter(|module| module.file == file);
        modules.flat_map(|module| module.names.get(name)).flatten().any(|definition| definition.is_trait)
    }

    /// All meanings in any namespace.
    pub fn resolve_any(&self, scope: ModuleId, path: &Path) -> Vec<Found> {
        self.resolve(scope, path, ANY)
    }
}
