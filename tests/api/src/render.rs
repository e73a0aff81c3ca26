//! Types, bounds and signatures as text, in a form that is the same for two crates that mean the same: types by their last name, generic
//! parameters by their position, bounds in alphabetic order, no names of arguments, and no lifetimes but `'static`.

use rustdoc_types::{
    AssocItemConstraint, AssocItemConstraintKind, Crate, Function, FunctionHeader, FunctionSignature, GenericArg, GenericArgs,
    GenericBound, GenericParamDefKind, Generics, Path, Term, TraitBoundModifier, Type, WherePredicate,
};
use std::collections::BTreeMap;

/// Renders types and bounds of one crate. They may refer to the generic parameters of an item.
#[derive(Clone)]
pub struct Renderer<'d> {
    docs: &'d Crate,
    /// The parameters by their names, and what `Self` is.
    names: BTreeMap<String, String>,
}

impl<'d> Renderer<'d> {
    /// For items without generic parameters around them.
    pub fn new(docs: &'d Crate) -> Renderer<'d> {
        Renderer { docs, names: BTreeMap::new() }
    }

    /// Adds the parameters of an item that is inside.
    pub fn within(&self, generics: &Generics) -> Renderer<'d> {
        let mut inner = self.clone();
        let named = generics.params.iter().filter(|param| match &param.kind {
            GenericParamDefKind::Type { is_synthetic, .. } => !is_synthetic,
            GenericParamDefKind::Const { .. } => true,
            GenericParamDefKind::Lifetime { .. } => false,
        });
        for param in named {
            let position = inner.names.keys().filter(|name| *name != "Self").count();
            let letter = char::from(b'A' + (position % 26) as u8);
            inner.names.insert(param.name.clone(), letter.to_string());
        }
        inner
    }

    /// Sets what `Self` is.
    pub fn of_type(&self, itself: &Type) -> Renderer<'d> {
        let mut inner = self.clone();
        inner.names.insert("Self".into(), self.ty(itself));
        inner
    }

    /// The signature of a function, without the bounds of its parameters.
    pub fn signature(&self, function: &Function) -> String {
        format!("{}{}", header(&function.header), self.arguments(&function.sig))
    }

    fn arguments(&self, sig: &FunctionSignature) -> String {
        let inputs: Vec<String> = sig.inputs.iter().map(|(name, ty)| self.argument(name, ty)).collect();
        let output = sig.output.as_ref().map_or_else(String::new, |output| format!(" -> {}", self.ty(output)));
        format!("fn({}){output}", inputs.join(", "))
    }

    fn argument(&self, name: &str, ty: &Type) -> String {
        match ty {
            _ if name != "self" => self.ty(ty),
            Type::Generic(_) => "self".into(),
            Type::BorrowedRef { is_mutable: false, type_, .. } if matches!(**type_, Type::Generic(_)) => "&self".into(),
            Type::BorrowedRef { is_mutable: true, type_, .. } if matches!(**type_, Type::Generic(_)) => "&mut self".into(),
            other => format!("self: {}", self.ty(other)),
        }
    }

    /// The bounds of all of these parameters, sorted. Leaves out `'static` of the parameters in `implied`.
    pub fn bounds(&self, all: &[&Generics], implied: &str) -> String {
        let mut bounds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for generics in all {
            for param in &generics.params {
                if let GenericParamDefKind::Type { bounds: of, is_synthetic: false, .. } = &param.kind {
                    let name = self.names.get(&param.name).unwrap_or(&param.name);
                    bounds.entry(name.clone()).or_default().extend(self.each_bound(of));
                }
            }
            for predicate in &generics.where_predicates {
                match predicate {
                    WherePredicate::BoundPredicate { type_, bounds: of, .. } => {
                        bounds.entry(self.ty(type_)).or_default().extend(self.each_bound(of));
                    }
                    WherePredicate::EqPredicate { lhs, rhs } => {
                        bounds.entry(self.ty(lhs)).or_default().push(format!("= {}", self.term(rhs)));
                    }
                    WherePredicate::LifetimePredicate { .. } => {}
                }
            }
        }
        let lines = bounds.into_iter().filter_map(|(name, mut of)| {
            of.retain(|bound| bound != "'static" || !implied.contains(&name));
            of.sort();
            of.dedup();
            (!of.is_empty()).then(|| format!("{name}: {}", of.join(" + ")))
        });
        lines.collect::<Vec<_>>().join(", ")
    }

    /// The parameters of a type's declaration that are `'static`, which is implied wherever the type is named.
    pub fn statics(&self, generics: &Generics) -> String {
        let is_static = |name: &&String| {
            let declared = generics.params.iter().filter(|param| self.names.get(&param.name) == Some(name));
            let declared = declared.flat_map(|param| match &param.kind {
                GenericParamDefKind::Type { bounds, .. } => self.each_bound(bounds),
                GenericParamDefKind::Lifetime { .. } | GenericParamDefKind::Const { .. } => Vec::new(),
            });
            let wanted = generics.where_predicates.iter().flat_map(|predicate| match predicate {
                WherePredicate::BoundPredicate { type_, bounds, .. } if self.ty(type_) == **name => self.each_bound(bounds),
                _ => Vec::new(),
            });
            declared.chain(wanted).any(|bound| bound == "'static")
        };
        self.names.values().filter(is_static).cloned().collect()
    }

    /// Bounds, joined.
    pub fn joined(&self, bounds: &[GenericBound]) -> String {
        let mut each = self.each_bound(bounds);
        each.sort();
        each.join(" + ")
    }

    fn each_bound(&self, bounds: &[GenericBound]) -> Vec<String> {
        let bound = |bound: &GenericBound| match bound {
            GenericBound::TraitBound { trait_, modifier, .. } => {
                let mark = if *modifier == TraitBoundModifier::Maybe { "?" } else { "" };
                Some(format!("{mark}{}", self.path(trait_)))
            }
            GenericBound::Outlives(lifetime) => (lifetime == "'static").then(|| lifetime.clone()),
            GenericBound::Use(_) => None,
        };
        bounds.iter().filter_map(bound).collect()
    }

    /// A type or trait, with its arguments.
    pub fn path(&self, path: &Path) -> String {
        let name = match self.docs.paths.get(&path.id) {
            Some(summary) => summary.path.last().map_or("", String::as_str),
            None => path.path.rsplit("::").next().unwrap_or_default(),
        };
        format!("{name}{}", path.args.as_deref().map_or_else(String::new, |args| self.args(name, args)))
    }

    /// The arguments of `name`.
    pub fn args(&self, name: &str, args: &GenericArgs) -> String {
        match args {
            GenericArgs::AngleBracketed { args, constraints } => {
                let arg = |arg: &GenericArg| match arg {
                    GenericArg::Lifetime(lifetime) => (lifetime == "'static").then(|| lifetime.clone()),
                    GenericArg::Type(ty) => Some(self.ty(ty)),
                    GenericArg::Const(constant) => Some(self.names.get(&constant.expr).unwrap_or(&constant.expr).clone()),
                    GenericArg::Infer => Some("_".into()),
                };
                let args = args.iter().filter_map(arg).chain(constraints.iter().map(|constraint| self.constraint(constraint)));
                let mut args: Vec<String> = args.collect();
                // The alias of both crates.
                if name == "Result" && args.len() == 1 {
                    args.push("Error".into());
                }
                if args.is_empty() { String::new() } else { format!("<{}>", args.join(", ")) }
            }
            GenericArgs::Parenthesized { inputs, output } => {
                let inputs: Vec<String> = inputs.iter().map(|ty| self.ty(ty)).collect();
                let output = output.as_ref().map_or_else(String::new, |ty| format!(" -> {}", self.ty(ty)));
                format!("({}){output}", inputs.join(", "))
            }
            GenericArgs::ReturnTypeNotation => "(..)".into(),
        }
    }

    fn constraint(&self, constraint: &AssocItemConstraint) -> String {
        match &constraint.binding {
            AssocItemConstraintKind::Equality(term) => format!("{} = {}", constraint.name, self.term(term)),
            AssocItemConstraintKind::Constraint(bounds) => format!("{}: {}", constraint.name, self.joined(bounds)),
        }
    }

    fn term(&self, term: &Term) -> String {
        match term {
            Term::Type(ty) => self.ty(ty),
            Term::Constant(constant) => constant.expr.clone(),
        }
    }

    /// A type.
    pub fn ty(&self, ty: &Type) -> String {
        match ty {
            Type::ResolvedPath(path) => self.path(path),
            Type::DynTrait(of) => {
                // Where no lifetime is written, it is usually `'static`, too.
                let mut traits: Vec<String> = of.traits.iter().map(|of| self.path(&of.trait_)).collect();
                traits.sort();
                format!("dyn {}", traits.join(" + "))
            }
            Type::Generic(name) => self.names.get(name).unwrap_or(name).clone(),
            Type::Primitive(name) => {
                if name == "never" {
                    "!".into()
                } else {
                    name.clone()
                }
            }
            Type::FunctionPointer(pointer) => format!("{}{}", header(&pointer.header), self.arguments(&pointer.sig)),
            Type::Tuple(types) => {
                let types: Vec<String> = types.iter().map(|ty| self.ty(ty)).collect();
                if types.len() == 1 { format!("({},)", types[0]) } else { format!("({})", types.join(", ")) }
            }
            Type::Slice(of) => format!("[{}]", self.ty(of)),
            Type::Array { type_, len } => format!("[{}; {}]", self.ty(type_), self.names.get(len).unwrap_or(len)),
            Type::Pat { type_, .. } => self.ty(type_),
            Type::ImplTrait(bounds) => format!("impl {}", self.joined(bounds)),
            Type::Infer => "_".into(),
            Type::RawPointer { is_mutable, type_ } => {
                format!("*{} {}", if *is_mutable { "mut" } else { "const" }, self.ty(type_))
            }
            Type::BorrowedRef { is_mutable, type_, lifetime } => {
                let lifetime = lifetime.as_deref().filter(|lifetime| *lifetime == "'static").map_or("", |_| "'static ");
                format!("&{lifetime}{}{}", if *is_mutable { "mut " } else { "" }, self.ty(type_))
            }
            Type::QualifiedPath { name, self_type, .. } => format!("{}::{name}", self.ty(self_type)),
        }
    }
}

fn header(header: &FunctionHeader) -> String {
    let words = [(header.is_const, "const "), (header.is_async, "async "), (header.is_unsafe, "unsafe ")];
    words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect()
}
