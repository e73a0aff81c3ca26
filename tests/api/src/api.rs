//! The public API of a crate as facts that can be compared: for each item what it is, its signature, bounds, implementations.

use crate::docs::{Docs, ItemRef};
use crate::render::Renderer;
use rustdoc_types::{
    Attribute, Crate, Enum, GenericArg, GenericArgs, Generics, Id, Impl, Item, ItemEnum, Path, Struct, StructKind, Trait, Type,
    Use, Variant, VariantKind,
};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// A fact about an item, by which two crates are compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Aspect {
    /// What it is.
    Kind,
    /// Arguments and result of a function, the type of a field, and the like.
    Signature,
    /// The bounds of its generic parameters, and those around it.
    Bounds,
    /// `#[non_exhaustive]`.
    Exhaustiveness,
    /// Whether it is `Send` and `Sync`.
    Auto,
}

/// The facts about each item. An implementation of a trait is an item, too: `Store: Default`.
#[derive(Default, Debug)]
pub struct Api(pub BTreeMap<String, BTreeMap<Aspect, String>>);

/// Traits that are left out: the compiler implements them, or they are of no use to a user.
const NOT_COMPARED: [&str; 6] = ["Freeze", "Unpin", "UnsafeUnpin", "UnwindSafe", "RefUnwindSafe", "StructuralPartialEq"];

impl Api {
    /// Collects the public items of `root` and, through re-exports, of the other crates that are documented.
    pub fn of(docs: &Docs, root: &str) -> Api {
        let mut collector = Collector { docs, api: Api::default(), members_of: HashMap::new(), statics: HashMap::new() };
        // Nearest first, because the members of an item are given once, at its shortest path.
        let mut queue = VecDeque::from([(String::new(), docs.root(root))]);
        let mut globs = HashSet::new();
        while let Some((path, item)) = queue.pop_front() {
            collector.item(&path, item, &mut queue, &mut globs);
        }
        collector.implementations();
        collector.api
    }

    fn add(&mut self, path: &str, aspect: Aspect, text: impl Into<String>) {
        self.0.entry(path.to_string()).or_default().insert(aspect, text.into());
    }
}

struct Collector<'d> {
    docs: &'d Docs,
    api: Api,
    /// The types and traits whose members are given, with their paths.
    members_of: HashMap<ItemRef<'d>, String>,
    /// The parameters of types that are `'static`: see [`Renderer::statics`].
    statics: HashMap<String, String>,
}

type Queue<'d> = VecDeque<(String, ItemRef<'d>)>;

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}::{name}") }
}

impl<'d> Collector<'d> {
    fn crate_of(&self, item: ItemRef<'d>) -> &'d Crate {
        self.docs.of(item)
    }

    fn item(&mut self, path: &str, at: ItemRef<'d>, queue: &mut Queue<'d>, globs: &mut HashSet<(String, ItemRef<'d>)>) {
        let Some(item) = self.crate_of(at).index.get(&at.1) else { return };
        if let ItemEnum::Module(module) = &item.inner {
            for &id in &module.items {
                self.entry(path, ItemRef(at.0, id), queue, globs);
            }
            if !path.is_empty() {
                self.api.add(path, Aspect::Kind, "module");
            }
            return;
        }
        self.described(path, at, item);
    }

    /// An item of a module.
    fn entry(&mut self, path: &str, at: ItemRef<'d>, queue: &mut Queue<'d>, globs: &mut HashSet<(String, ItemRef<'d>)>) {
        let Some(item) = self.crate_of(at).index.get(&at.1) else { return };
        match &item.inner {
            ItemEnum::Use(Use { source, name, id, is_glob }) => {
                let target = id.and_then(|id| self.docs.resolve(ItemRef(at.0, id)));
                match target {
                    Some(target) if *is_glob => {
                        // A module that exports itself.
                        if globs.insert((path.to_string(), target)) {
                            queue.push_front((path.to_string(), target));
                        }
                    }
                    Some(target) => queue.push_back((join(path, name), target)),
                    None => {
                        let from = source.split("::").next().unwrap_or_default();
                        self.api.add(&join(path, name), Aspect::Kind, format!("of the crate {from}"));
                    }
                }
            }
            // An implementation has no path.
            ItemEnum::Impl(_) => {}
            _ => {
                let name = item.name.as_deref().unwrap_or_default();
                queue.push_back((join(path, name), at));
            }
        }
    }

    fn described(&mut self, path: &str, at: ItemRef<'d>, item: &'d Item) {
        let renderer = Renderer::new(self.crate_of(at));
        if item.attrs.contains(&Attribute::NonExhaustive) {
            self.api.add(path, Aspect::Exhaustiveness, "non-exhaustive");
        }
        let kind = match &item.inner {
            ItemEnum::Struct(of) => {
                self.generics(path, &renderer, &of.generics);
                if self.is_first(at, path) {
                    self.structure(path, at, &renderer.within(&of.generics), of);
                }
                "struct"
            }
            ItemEnum::Enum(of) => {
                self.generics(path, &renderer, &of.generics);
                if self.is_first(at, path) {
                    self.variants(path, at, &renderer.within(&of.generics), of);
                }
                "enum"
            }
            ItemEnum::Union(of) => {
                if self.is_first(at, path) {
                    self.members(path, at, &of.impls);
                }
                "union"
            }
            ItemEnum::Trait(of) => {
                if self.is_first(at, path) {
                    self.of_trait(path, at, &renderer, of);
                }
                if of.is_unsafe { "unsafe trait" } else { "trait" }
            }
            ItemEnum::Function(of) => {
                let inner = renderer.within(&of.generics);
                self.api.add(path, Aspect::Signature, inner.signature(of));
                self.api.add(path, Aspect::Bounds, inner.bounds(&[&of.generics], ""));
                "function"
            }
            ItemEnum::TypeAlias(of) => {
                self.api.add(path, Aspect::Signature, renderer.within(&of.generics).ty(&of.type_));
                "type alias"
            }
            ItemEnum::Constant { type_, .. } => {
                self.api.add(path, Aspect::Signature, renderer.ty(type_));
                "constant"
            }
            ItemEnum::Static(of) => {
                self.api.add(path, Aspect::Signature, renderer.ty(&of.type_));
                "static"
            }
            ItemEnum::Macro(_) | ItemEnum::ProcMacro(_) => "macro",
            _ => "item",
        };
        self.api.add(path, Aspect::Kind, kind);
    }

    /// Returns whether this is the first path of an item. Its members are listed there only.
    fn is_first(&mut self, at: ItemRef<'d>, path: &str) -> bool {
        match self.members_of.entry(at) {
            Entry::Vacant(entry) => {
                entry.insert(path.to_string());
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    fn generics(&mut self, path: &str, renderer: &Renderer<'_>, generics: &Generics) {
        let inner = renderer.within(generics);
        self.api.add(path, Aspect::Bounds, inner.bounds(&[generics], ""));
        self.statics.insert(path.to_string(), inner.statics(generics));
    }

    fn structure(&mut self, path: &str, at: ItemRef<'d>, renderer: &Renderer<'d>, of: &'d Struct) {
        match &of.kind {
            StructKind::Unit => self.api.add(path, Aspect::Signature, "unit"),
            StructKind::Tuple(fields) => {
                let field = |id: &Option<Id>| id.and_then(|id| self.field(at, renderer, id)).unwrap_or_else(|| "_".into());
                let fields: Vec<String> = fields.iter().map(field).collect();
                // Users do not see the types of private fields.
                let text =
                    if fields.iter().all(|field| field == "_") { "private".into() } else { format!("({})", fields.join(", ")) };
                self.api.add(path, Aspect::Signature, text);
            }
            StructKind::Plain { fields, has_stripped_fields } => {
                for &id in fields {
                    if let (Some(item), Some(ty)) = (self.crate_of(at).index.get(&id), self.field(at, renderer, id)) {
                        let path = format!("{path}.{}", item.name.as_deref().unwrap_or_default());
                        self.api.add(&path, Aspect::Kind, "field");
                        self.api.add(&path, Aspect::Signature, ty);
                    }
                }
                self.api.add(path, Aspect::Signature, if *has_stripped_fields { "private" } else { "fields" });
            }
        }
        self.members(path, at, &of.impls);
    }

    fn field(&self, at: ItemRef<'d>, renderer: &Renderer<'d>, id: Id) -> Option<String> {
        match &self.crate_of(at).index.get(&id)?.inner {
            ItemEnum::StructField(ty) => Some(renderer.ty(ty)),
            _ => None,
        }
    }

    fn variants(&mut self, path: &str, at: ItemRef<'d>, renderer: &Renderer<'d>, of: &'d Enum) {
        for &id in &of.variants {
            let Some(item) = self.crate_of(at).index.get(&id) else { continue };
            let ItemEnum::Variant(Variant { kind, .. }) = &item.inner else { continue };
            let path = join(path, item.name.as_deref().unwrap_or_default());
            let field = |id: Id| self.field(at, renderer, id).unwrap_or_else(|| "_".into());
            let text = match kind {
                VariantKind::Plain => String::new(),
                VariantKind::Tuple(fields) => {
                    let fields: Vec<String> = fields.iter().map(|id| id.map_or_else(|| "_".into(), field)).collect();
                    format!("({})", fields.join(", "))
                }
                VariantKind::Struct { fields, .. } => {
                    let name = |id: &Id| self.crate_of(at).index.get(id).and_then(|item| item.name.clone()).unwrap_or_default();
                    let fields: Vec<String> = fields.iter().map(|id| format!("{}: {}", name(id), field(*id))).collect();
                    format!("{{{}}}", fields.join(", "))
                }
            };
            self.api.add(&path, Aspect::Kind, "variant");
            self.api.add(&path, Aspect::Signature, text);
            if item.attrs.contains(&Attribute::NonExhaustive) {
                self.api.add(&path, Aspect::Exhaustiveness, "non-exhaustive");
            }
        }
        self.members(path, at, &of.impls);
    }

    /// The methods and constants of a type.
    fn members(&mut self, path: &str, at: ItemRef<'d>, impls: &'d [Id]) {
        for id in impls {
            let Some(ItemEnum::Impl(of)) = self.crate_of(at).index.get(id).map(|item| &item.inner) else { continue };
            if of.trait_.is_some() {
                continue;
            }
            let outer = Renderer::new(self.crate_of(at)).within(&of.generics);
            let outer = outer.of_type(&of.for_);
            for id in &of.items {
                self.member(path, at, *id, &outer, Some(&of.generics));
            }
        }
    }

    fn member(&mut self, path: &str, at: ItemRef<'d>, id: Id, outer: &Renderer<'d>, generics: Option<&'d Generics>) {
        let Some(item) = self.crate_of(at).index.get(&id) else { return };
        let owner = path;
        let path = join(path, item.name.as_deref().unwrap_or_default());
        match &item.inner {
            ItemEnum::Function(of) => {
                let inner = outer.within(&of.generics);
                self.api.add(&path, Aspect::Kind, if generics.is_none() && of.has_body { "provided method" } else { "method" });
                self.api.add(&path, Aspect::Signature, inner.signature(of));
                let all: Vec<&Generics> = generics.into_iter().chain([&of.generics]).collect();
                let bounds = inner.bounds(&all, self.statics.get(owner).map_or("", String::as_str));
                self.api.add(&path, Aspect::Bounds, bounds);
            }
            ItemEnum::AssocConst { type_, .. } => {
                self.api.add(&path, Aspect::Kind, "constant");
                self.api.add(&path, Aspect::Signature, outer.ty(type_));
            }
            ItemEnum::AssocType { bounds, .. } => {
                self.api.add(&path, Aspect::Kind, "type");
                self.api.add(&path, Aspect::Bounds, outer.joined(bounds));
            }
            _ => {}
        }
    }

    fn of_trait(&mut self, path: &str, at: ItemRef<'d>, renderer: &Renderer<'d>, of: &'d Trait) {
        let inner = renderer.within(&of.generics);
        let own = inner.bounds(&[&of.generics], "");
        let supertraits = inner.joined(&of.bounds);
        self.api.add(
            path,
            Aspect::Bounds,
            [supertraits, own].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", "),
        );
        for &id in &of.items {
            self.member(path, at, id, &inner, None);
        }
    }

    /// The implementations of traits that concern a type or a trait whose members are given.
    fn implementations(&mut self) {
        let mut found = Vec::new();
        for (name, docs) in self.docs.each() {
            for (id, item) in &docs.index {
                if let ItemEnum::Impl(of) = &item.inner
                    && of.blanket_impl.is_none()
                {
                    found.push((ItemRef(name, *id), of));
                }
            }
        }
        for (at, of) in found {
            self.implementation(at, of);
        }
    }

    fn implementation(&mut self, at: ItemRef<'d>, of: &'d Impl) {
        let Some(trait_) = &of.trait_ else { return };
        let renderer = Renderer::new(self.crate_of(at)).within(&of.generics);
        let renderer = renderer.of_type(&of.for_);
        let text = renderer.path(trait_);
        if NOT_COMPARED.contains(&text.as_str()) {
            return;
        }
        // A type or a trait has its public path, from which follows whether the other crate has it.
        let public = |id: Id| self.docs.resolve(ItemRef(at.0, id)).and_then(|item| self.members_of.get(&item));
        let (of_trait, of_type) = (public(trait_.id), named(&of.for_).and_then(|path| public(path.id)));
        let args = |path: &Path| path.args.as_deref().map_or_else(String::new, |args| renderer.args("", args));
        let mut found = Vec::new();
        path_ids(trait_, &mut found);
        let converts = text.starts_with("From<") && found.iter().any(|id| public(*id).is_some());
        if of_trait.is_none() && of_type.is_none() && !converts {
            return;
        }
        let text = of_trait.map_or(text, |name| format!("{name}{}", args(trait_)));
        let itself = match (of_type, named(&of.for_)) {
            (Some(name), Some(path)) => format!("{name}{}", args(path)),
            _ => renderer.ty(&of.for_),
        };
        let path = format!("{itself}: {text}");
        let implied = of_type.and_then(|name| self.statics.get(name)).map_or("", String::as_str);
        let bounds = renderer.bounds(&[&of.generics], implied);
        if text == "Send" || text == "Sync" {
            let not = if of.is_negative { "!" } else { "" };
            let bounds = if bounds.is_empty() { String::new() } else { format!(" where {bounds}") };
            self.api.add(&path, Aspect::Auto, format!("{not}{text}{bounds}"));
        } else {
            self.api.add(&path, Aspect::Kind, if of.is_unsafe { "unsafe implementation" } else { "implementation" });
            self.api.add(&path, Aspect::Bounds, bounds);
        }
    }
}

/// The type itself, or that to which it refers, if it has a name.
fn named(ty: &Type) -> Option<&Path> {
    match ty {
        Type::ResolvedPath(path) => Some(path),
        _ => None,
    }
}

/// The types that the arguments of a path name.
fn path_ids(path: &Path, found: &mut Vec<Id>) {
    if let Some(GenericArgs::AngleBracketed { args, .. }) = path.args.as_deref() {
        for arg in args {
            if let GenericArg::Type(Type::ResolvedPath(path)) = arg {
                found.push(path.id);
                path_ids(path, found);
            }
        }
    }
}
