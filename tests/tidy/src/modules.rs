//! The modules of every crate: the file of each, and the names that it defines, imports and takes by glob.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::source::{self, Source};
use crate::workspace::{Package, Workspace};
use proc_macro2::{TokenStream, TokenTree};

/// The index of a file in [`Modules::files`].
pub type FileId = usize;
/// The index of a crate in [`Modules::crates`].
pub type CrateId = usize;
/// The index of a module in [`Modules::modules`].
pub type ModuleId = usize;

/// The namespaces of a name, as a set.
pub type Spaces = u8;
/// Modules, types, traits.
pub const TYPES: Spaces = 1;
/// Functions, constants, constructors.
pub const VALUES: Spaces = 2;
/// Macros.
pub const MACROS: Spaces = 4;
/// All of them.
pub const ANY: Spaces = TYPES | VALUES | MACROS;

/// A path as it is written, without generic arguments; `$crate` is `crate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Whether it begins with `::`.
    pub global: bool,
    /// Its segments.
    pub segments: Vec<String>,
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.global { "::" } else { "" }, self.segments.join("::"))
    }
}

/// The meaning of a name in a module.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A module.
    Module(ModuleId),
    /// An item in the module's own file.
    Item {
        /// The names of its variants if it is an enum.
        variants: Vec<String>,
    },
    /// An import of another item.
    Import(Path),
}

/// One definition of a name.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its meaning.
    pub kind: Kind,
    /// The namespaces it can be in.
    pub spaces: Spaces,
    /// Whether only the module and its descendants see it.
    pub private: bool,
    /// Whether it is a trait, whose methods can be used without naming it.
    pub is_trait: bool,
}

/// A module, or a block with items of its own.
#[derive(Default)]
pub struct Module {
    /// The crate that contains it.
    pub in_crate: CrateId,
    /// The file that contains its items.
    pub file: FileId,
    /// The enclosing module; for a block, the enclosing module or block.
    pub parent: Option<ModuleId>,
    /// Whether it is a block of statements.
    pub is_block: bool,
    /// Its path from the crate's root.
    pub path: Vec<String>,
    /// Its items, without tests.
    pub items: Vec<syn::Item>,
    /// The names it defines and imports.
    pub names: BTreeMap<String, Vec<Definition>>,
    /// Its glob imports, each with whether they are private to this module.
    pub globs: Vec<(Path, bool)>,
    /// Identifiers that macros called at the level of items may define here.
    pub generated: HashSet<String>,
}

/// A crate.
#[derive(Debug)]
pub struct Crate {
    /// The package that contains it.
    pub package: String,
    /// Its root module.
    pub root: ModuleId,
    /// Crates of this workspace, by the names that this crate uses for them.
    pub externs: HashMap<String, CrateId>,
    /// The names of crates from other workspaces.
    pub outside: HashSet<String>,
}

/// All modules of a workspace.
#[derive(Default)]
pub struct Modules {
    /// The files, each once.
    pub files: Vec<Source>,
    /// The package of each file.
    pub package_of: Vec<String>,
    /// The crates.
    pub crates: Vec<Crate>,
    /// The modules of all crates.
    pub modules: Vec<Module>,
    by_path: HashMap<String, FileId>,
    /// The identifiers in the definitions of macros, by the macros' names.
    macros: HashMap<String, BTreeSet<String>>,
}

impl Modules {
    /// Reads every crate of the workspace.
    ///
    /// # Errors
    ///
    /// A message, if a file is missing or is not Rust.
    pub fn read(workspace: &Workspace) -> Result<Modules, String> {
        let mut modules = Modules::default();
        let mut libraries: HashMap<&str, CrateId> = HashMap::new();
        let mut packages: Vec<(CrateId, &Package)> = Vec::new();
        for package in &workspace.packages {
            for target in &package.targets {
                let id = modules.crates.len();
                let name = package.name.clone();
                let (externs, outside) = (HashMap::new(), HashSet::new());
                modules.crates.push(Crate { package: name, root: modules.modules.len(), externs, outside });
                if target.library {
                    libraries.insert(&package.name, id);
                }
                packages.push((id, package));
                let file = modules.load(workspace, &target.root, &package.name)?;
                let items = modules.files[file].tree.items.clone();
                let root = Module { in_crate: id, file, ..Module::default() };
                modules.add(root, items, &mut Reader { workspace, package: &package.name })?;
            }
        }
        for (id, package) in packages {
            let own = package.targets.iter().find(|target| target.library);
            let own = own.map(|target| (target.name.as_str(), package.name.as_str()));
            let others = package.dependencies.iter().map(|(name, package)| (name.as_str(), package.as_str()));
            for (name, package) in others.chain(own) {
                let krate = &mut modules.crates[id];
                match libraries.get(package) {
                    Some(library) => drop(krate.externs.insert(name.to_owned(), *library)),
                    None => drop(krate.outside.insert(name.to_owned())),
                }
            }
        }
        modules.expand_generated();
        Ok(modules)
    }

    /// A macro that is called at the level of items may define any name in its arguments, in its definition and in the
    /// definitions of macros that are passed to it.
    fn expand_generated(&mut self) {
        for module in &mut self.modules {
            let called = module.generated.iter().filter_map(|name| self.macros.get(name));
            let more: Vec<String> = called.flatten().cloned().collect();
            module.generated.extend(more);
        }
    }

    /// The module that `module` is or, if it is a block, that contains it.
    pub fn module_of(&self, mut module: ModuleId) -> ModuleId {
        while self.modules[module].is_block {
            module = self.modules[module].parent.expect("a block is in a module");
        }
        module
    }

    /// Whether `inner` is `outer` or inside it.
    pub fn is_inside(&self, mut inner: ModuleId, outer: ModuleId) -> bool {
        loop {
            if inner == outer {
                return true;
            }
            match self.modules[inner].parent {
                Some(parent) => inner = parent,
                None => return false,
            }
        }
    }

    fn load(&mut self, workspace: &Workspace, path: &str, package: &str) -> Result<FileId, String> {
        if let Some(&file) = self.by_path.get(path) {
            return Ok(file);
        }
        let text = workspace.files.read(path).ok_or_else(|| format!("{path} is missing"))?;
        self.files.push(source::parse(path, &text)?);
        self.package_of.push(package.to_owned());
        self.by_path.insert(path.to_owned(), self.files.len() - 1);
        Ok(self.files.len() - 1)
    }

    fn add(&mut self, module: Module, items: Vec<syn::Item>, reader: &mut Reader<'_>) -> Result<ModuleId, String> {
        let id = self.modules.len();
        self.modules.push(module);
        for item in &items {
            self.collect(id, item);
        }
        for item in &items {
            if let syn::Item::Mod(item) = item {
                self.add_child(id, item, reader)?;
            }
        }
        self.modules[id].items = items;
        Ok(id)
    }

    /// Adds a block of statements that has items, inside `parent`.
    pub fn add_block<'a>(&mut self, parent: ModuleId, items: impl Iterator<Item = &'a syn::Item>) -> ModuleId {
        let id = self.modules.len();
        let Module { in_crate, file, path, .. } = &self.modules[parent];
        let (in_crate, file, path) = (*in_crate, *file, path.clone());
        self.modules.push(Module { in_crate, file, parent: Some(parent), is_block: true, path, ..Module::default() });
        for item in items {
            self.collect(id, item);
        }
        id
    }

    fn add_child(&mut self, parent: ModuleId, item: &syn::ItemMod, reader: &mut Reader<'_>) -> Result<(), String> {
        let name = item.ident.to_string();
        let Module { in_crate, path, file, .. } = &self.modules[parent];
        let (in_crate, parent_file) = (*in_crate, *file);
        let path: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
        let (file, items) = match &item.content {
            Some((_, items)) => (parent_file, items.clone()),
            None => {
                let file = self.file_of(parent, item, reader)?;
                (file, self.files[file].tree.items.clone())
            }
        };
        let child = self.add(Module { in_crate, file, parent: Some(parent), path, ..Module::default() }, items, reader)?;
        if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_use")) {
            let macros = self.modules[child].names.iter().filter(|(_, all)| all.iter().any(|one| one.spaces == MACROS));
            let macros: Vec<String> = macros.map(|(name, _)| name.clone()).collect();
            let file = self.modules[child].file;
            for name in macros {
                self.modules[parent].define(name.clone(), Kind::Import(exported(file, name)), MACROS, false);
            }
        }
        let private = is_private(&item.vis);
        self.modules[parent].define(name, Kind::Module(child), TYPES, private);
        Ok(())
    }

    /// The file of a module declared by `mod name;` in `parent`.
    fn file_of(&mut self, parent: ModuleId, item: &syn::ItemMod, reader: &Reader<'_>) -> Result<FileId, String> {
        let of_parent = &self.modules[parent];
        let here = self.files[of_parent.file].path.clone();
        let (folder, stem) = here.rsplit_once('/').map_or(("", here.as_str()), |(folder, file)| (folder, file));
        let stem = stem.trim_end_matches(".rs");
        // Modules between the file's module and this one are folders.
        let mut inline = Vec::new();
        let mut module = parent;
        while let Some(above) = self.modules[module].parent {
            if self.modules[above].file != self.modules[parent].file {
                break;
            }
            inline.push(self.modules[module].path.last().expect("it is not a root").clone());
            module = above;
        }
        inline.reverse();
        let owns_folder = stem == "mod" || self.modules[module].parent.is_none();
        let name = item.ident.to_string();
        let mut candidates = Vec::new();
        if let Some(path) = path_attribute(&item.attrs) {
            let mut base = folder.to_owned();
            if !inline.is_empty() {
                if !owns_folder {
                    base = format!("{base}/{stem}");
                }
                base = format!("{base}/{}", inline.join("/"));
            }
            candidates.push(normal(&format!("{base}/{path}")));
        } else {
            let mut base = if owns_folder { folder.to_owned() } else { format!("{folder}/{stem}") };
            for part in &inline {
                base = format!("{base}/{part}");
            }
            candidates.push(normal(&format!("{base}/{name}.rs")));
            candidates.push(normal(&format!("{base}/{name}/mod.rs")));
        }
        let found =
            candidates.iter().find(|path| self.by_path.contains_key(*path) || reader.workspace.files.read(path).is_some());
        let Some(found) = found else { return Err(format!("{here}: mod {name}: no file {}", candidates.join(" or "))) };
        self.load(reader.workspace, &found.clone(), reader.package)
    }

    /// Adds the names that an item defines to its module.
    fn collect(&mut self, id: ModuleId, item: &syn::Item) {
        let module = &mut self.modules[id];
        let mut plain = |name: &syn::Ident, vis: &syn::Visibility, spaces| {
            module.define(name.to_string(), Kind::Item { variants: Vec::new() }, spaces, is_private(vis));
        };
        match item {
            syn::Item::Const(item) => plain(&item.ident, &item.vis, VALUES),
            syn::Item::Static(item) => plain(&item.ident, &item.vis, VALUES),
            syn::Item::Fn(item) => plain(&item.sig.ident, &item.vis, VALUES),
            syn::Item::Type(item) => plain(&item.ident, &item.vis, TYPES),
            syn::Item::Union(item) => plain(&item.ident, &item.vis, TYPES),
            syn::Item::Struct(item) => {
                let constructor = !matches!(item.fields, syn::Fields::Named(_));
                plain(&item.ident, &item.vis, if constructor { TYPES | VALUES } else { TYPES });
            }
            syn::Item::Trait(item) => {
                plain(&item.ident, &item.vis, TYPES);
                if let Some(definitions) = module.names.get_mut(&item.ident.to_string()) {
                    definitions.last_mut().expect("it has just been added").is_trait = true;
                }
            }
            syn::Item::TraitAlias(item) => plain(&item.ident, &item.vis, TYPES),
            syn::Item::Enum(item) => {
                let variants = item.variants.iter().map(|variant| variant.ident.to_string()).collect();
                module.define(item.ident.to_string(), Kind::Item { variants }, TYPES, is_private(&item.vis));
            }
            syn::Item::ForeignMod(item) => {
                for item in &item.items {
                    match item {
                        syn::ForeignItem::Fn(item) => plain(&item.sig.ident, &item.vis, VALUES),
                        syn::ForeignItem::Static(item) => plain(&item.ident, &item.vis, VALUES),
                        syn::ForeignItem::Type(item) => plain(&item.ident, &item.vis, TYPES),
                        _ => {}
                    }
                }
            }
            syn::Item::ExternCrate(item) => {
                let name = item.rename.as_ref().map_or(&item.ident, |(_, name)| name).to_string();
                let path = Path { global: item.ident != "self", segments: vec![item.ident.to_string()] };
                module.define(name, Kind::Import(path), TYPES, is_private(&item.vis));
            }
            syn::Item::Use(item) => {
                let private = is_private(&item.vis);
                for (path, end) in use_paths(&item.tree, item.leading_colon.is_some()) {
                    match end {
                        UseEnd::Glob => module.globs.push((path, private)),
                        UseEnd::Name(name) => module.define(name, Kind::Import(path), ANY, private),
                        UseEnd::Hidden => {}
                    }
                }
            }
            syn::Item::Macro(item) => self.collect_macro(id, item),
            _ => {}
        }
    }

    /// A `macro_rules!` defines its name, in the crate's root if it is exported. Any other macro may define names.
    fn collect_macro(&mut self, id: ModuleId, item: &syn::ItemMacro) {
        let mut found = BTreeSet::new();
        identifiers(item.mac.tokens.clone(), &mut found);
        let Some(name) = &item.ident else {
            found.extend(item.mac.path.segments.iter().map(|segment| segment.ident.to_string()));
            self.modules[id].generated.extend(found);
            return;
        };
        self.macros.entry(name.to_string()).or_default().extend(found);
        let module = &mut self.modules[id];
        module.define(name.to_string(), Kind::Item { variants: Vec::new() }, MACROS, false);
        if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
            let (file, root) = (module.file, self.crates[module.in_crate].root);
            if root != id {
                let path = exported(file, name.to_string());
                self.modules[root].define(name.to_string(), Kind::Import(path), MACROS, false);
            }
        }
    }
}

/// The first segment of the path of a macro that is visible outside its module; the file's index and the name follow.
pub const EXPORTED: &str = "<exported>";

fn exported(file: FileId, name: String) -> Path {
    Path { global: false, segments: vec![EXPORTED.to_owned(), file.to_string(), name] }
}

struct Reader<'a> {
    workspace: &'a Workspace,
    package: &'a str,
}

impl Module {
    fn define(&mut self, name: String, kind: Kind, spaces: Spaces, private: bool) {
        self.names.entry(name).or_default().push(Definition { kind, spaces, private, is_trait: false });
    }
}

fn is_private(vis: &syn::Visibility) -> bool {
    matches!(vis, syn::Visibility::Inherited)
}

/// The value of `#[path = ".."]`, under any condition.
fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// A path without `.` and `..`.
pub(crate) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The end of a branch of a `use`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UseEnd {
    /// `*`.
    Glob,
    /// The name under which the path is imported.
    Name(String),
    /// `as _`.
    Hidden,
}

/// The paths of a `use`, one for each of its branches.
pub fn use_paths(tree: &syn::UseTree, global: bool) -> Vec<(Path, UseEnd)> {
    let mut found = Vec::new();
    add_use_paths(tree, &mut Path { global, segments: Vec::new() }, &mut found);
    found
}

fn add_use_paths(tree: &syn::UseTree, path: &mut Path, found: &mut Vec<(Path, UseEnd)>) {
    match tree {
        syn::UseTree::Path(step) => {
            path.segments.push(step.ident.to_string());
            add_use_paths(&step.tree, path, found);
            path.segments.pop();
        }
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                add_use_paths(tree, path, found);
            }
        }
        syn::UseTree::Glob(_) => found.push((path.clone(), UseEnd::Glob)),
        syn::UseTree::Name(name) => found.push(end_of_use(path, &name.ident, None)),
        syn::UseTree::Rename(name) => found.push(end_of_use(path, &name.ident, Some(&name.rename))),
    }
}

/// `self` at the end of a path denotes the path before it.
fn end_of_use(path: &Path, ident: &syn::Ident, rename: Option<&syn::Ident>) -> (Path, UseEnd) {
    let mut path = path.clone();
    if ident != "self" || path.segments.is_empty() {
        path.segments.push(ident.to_string());
    }
    let name = rename.map_or_else(|| path.segments.last().expect("it is not empty").clone(), ToString::to_string);
    let end = if name == "_" { UseEnd::Hidden } else { UseEnd::Name(name) };
    (path, end)
}

/// Every identifier among the tokens.
fn identifiers(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) => drop(found.insert(word.to_string())),
            TokenTree::Group(group) => identifiers(group.stream(), found),
            _ => {}
        }
    }
}
