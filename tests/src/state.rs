//! What a host can observe of a program's instances between calls: the values of exported globals, the bytes of memories, and the elements of
//! tables of functions.

use crate::generate::Value;
use crate::host::on_wasmi::from_wasmi;
use crate::host::{Instances, from_val};
use weir::{Extern, Func, Ref, Store};

/// The exports of all instances of a program, with their names, sorted by these: wasmi does not keep the order of the module.
#[derive(Clone, Debug, Default)]
pub struct State(Vec<(String, Item)>);

/// The state of an export.
#[derive(Clone, Debug)]
enum Item {
    Global(Value),
    Memory(Vec<u8>),
    /// The name of each element; `None` for null.
    Table(Vec<Option<String>>),
}

impl State {
    /// The state of instances on Weir.
    pub fn of_weir(store: &mut Store<()>, Instances { first, other }: Instances) -> State {
        let (mut exports, mut funcs) = (Vec::new(), Vec::new());
        for (instance, of) in [(first, "")].into_iter().chain(other.map(|other| (other, "other "))) {
            let module = instance.module(&*store).clone();
            let mut sorted: Vec<_> = module.exports().collect();
            sorted.sort_by_key(|export| export.name());
            for export in sorted {
                let item = instance.get_export(&mut *store, export.name()).expect("it is exported");
                match item.into_func() {
                    Some(func) => funcs.push((format!("{of}{}", export.name()), func)),
                    None => exports.push((format!("{of}{}", export.name()), instance, export.name().to_owned())),
                }
            }
        }
        let name = |func: &Func| {
            let known = funcs.iter().find(|(_, known)| Func::same(*known, *func));
            known.map_or("a function that is not exported".into(), |(name, _)| name.clone())
        };
        let items = exports.into_iter().filter_map(|(full, instance, export)| {
            let item = match instance.get_export(&mut *store, &export)? {
                Extern::Global(global) => Item::Global(from_val(&global.get(&mut *store))),
                Extern::Memory(memory) => Item::Memory(memory.data(&*store).to_vec()),
                Extern::Table(table) => {
                    let elements = (0..table.size(&*store)).map(|i| match table.get(&mut *store, i) {
                        Some(Ref::Func(func)) => func.as_ref().map(name),
                        other => unreachable!("a table of functions has {other:?}"),
                    });
                    Item::Table(elements.collect())
                }
                _ => return None,
            };
            Some((full, item))
        });
        State(items.collect())
    }

    /// The state of instances of a module on wasmi.
    pub fn of_wasmi(
        store: &wasmi::Store<()>,
        module: &wasmi::Module,
        (first, other): (wasmi::Instance, Option<wasmi::Instance>),
    ) -> State {
        let instances: Vec<_> = [(first, "")].into_iter().chain(other.map(|other| (other, "other "))).collect();
        let exports = instances.iter().flat_map(|&(instance, of)| {
            let mut names: Vec<&str> = module.exports().map(|export| export.name()).collect();
            names.sort();
            let item = move |name: &str| Some((format!("{of}{name}"), instance.get_export(store, name)?));
            names.into_iter().filter_map(item)
        });
        let (funcs, exports): (Vec<_>, Vec<_>) = exports.partition(|(_, item)| item.into_func().is_some());
        // wasmi does not compare functions, but prints the index of each in its store.
        let identity = |func: &wasmi::Func| format!("{func:?}");
        let funcs: Vec<(String, String)> =
            funcs.into_iter().filter_map(|(name, item)| Some((name, identity(&item.into_func()?)))).collect();
        let name = |func: &wasmi::Func| {
            let known = funcs.iter().find(|(_, known)| *known == identity(func));
            known.map_or("a function that is not exported".into(), |(name, _)| name.clone())
        };
        let items = exports.into_iter().filter_map(|(full, item)| {
            let item = match item {
                wasmi::Extern::Global(global) => Item::Global(from_wasmi(&global.get(store))),
                wasmi::Extern::Memory(memory) => Item::Memory(memory.data(store).to_vec()),
                wasmi::Extern::Table(table) => {
                    let elements = (0..table.size(store)).map(|i| match table.get(store, i) {
                        Some(wasmi::Val::FuncRef(func)) => func.val().map(name),
                        other => unreachable!("a table of functions has {other:?}"),
                    });
                    Item::Table(elements.collect())
                }
                wasmi::Extern::Func(_) => return None,
            };
            Some((full, item))
        });
        State(items.collect())
    }

    /// Describes the first difference: what differs, and how it is on both sides.
    pub fn difference(&self, other: &State) -> Option<(String, [String; 2])> {
        if self.0.len() != other.0.len() {
            return Some(("number of exports".into(), [self, other].map(|state| state.0.len().to_string())));
        }
        self.0.iter().zip(&other.0).find_map(|((name, a), (also, b))| match (a, b) {
            _ if name != also => Some(("export".into(), [name.clone(), also.clone()])),
            (Item::Global(x), Item::Global(y)) => {
                (!x.same(*y)).then(|| (format!("global {name}"), [x, y].map(|value| format!("{value:x?}"))))
            }
            (Item::Memory(x), Item::Memory(y)) if x.len() != y.len() => {
                Some((format!("size of memory {name}"), [x, y].map(|bytes| bytes.len().to_string())))
            }
            // Comparing slices is much faster than comparing bytes one by one.
            (Item::Memory(x), Item::Memory(y)) if x == y => None,
            (Item::Memory(x), Item::Memory(y)) => {
                let at = x.iter().zip(y).position(|(x, y)| x != y)?;
                Some((format!("memory {name} at {at:#x}"), [x, y].map(|bytes| format!("{:#x}", bytes[at]))))
            }
            (Item::Table(x), Item::Table(y)) => {
                (x != y).then(|| (format!("table {name}"), [x, y].map(|elements| format!("{elements:?}"))))
            }
            _ => Some((format!("kind of {name}"), [a, b].map(|item| format!("{item:?}")))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_export_is_compared() {
        let state = |item: Item| State(vec![("x".into(), item)]);
        let elements = |name: &str| Item::Table(vec![None, Some(name.into())]);
        for [a, b] in [
            [Item::Global(Value::I32(1)), Item::Global(Value::I32(2))],
            [Item::Memory(vec![0; 3]), Item::Memory(vec![0, 1, 0])],
            [Item::Memory(vec![0; 3]), Item::Memory(vec![0; 4])],
            [elements("f0"), elements("f1")],
            [Item::Global(Value::I32(1)), elements("f0")],
        ] {
            let [a, b] = [a, b].map(state);
            assert!(
                a.difference(&a).is_none() && a.difference(&b).is_some() && a.difference(&State::default()).is_some(),
                "{a:?}"
            );
        }
    }
}
