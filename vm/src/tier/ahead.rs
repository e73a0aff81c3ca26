//! Compilation of whole modules ahead of time.

use super::entry::Key;
use super::install::attempt;
use super::policy;
use super::stored::grade;
use crate::records::module::ModuleRecord;
use crate::records::precompiled::format::Grade;
use crate::records::precompiled::shelf::CodeMap;
use crate::records::stats::Fallback;
use crate::sys::thread;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use weir_contract::Entry;
use weir_jit::Backend;

/// Compiles every function of a module to code of this tier, on all cores, or of the other tier if its compiler refuses the function. Also
/// returns the refusals.
pub(crate) fn compile_all(module: &ModuleRecord, preferred: Grade) -> (CodeMap, Vec<Fallback>) {
    let funcs = module.bytecode.imported_funcs..module.bytecode.funcs.len() as u32;
    let next = AtomicU32::new(funcs.start);
    let done = Mutex::new((CodeMap::new(), Vec::new()));
    let work = || {
        loop {
            let func = next.fetch_add(1, Ordering::Relaxed);
            if !funcs.contains(&func) {
                return;
            }
            let (code, mut refusals) = compile_one(module, func, preferred);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.0.extend(code.map(|(grade, bytes)| ((func, grade), bytes)));
            done.1.append(&mut refusals);
        }
    };
    thread::run_on_all(policy::all_threads(), &work);
    let (code, mut refusals) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    refusals.sort_by_key(|refusal| refusal.func);
    (code, refusals)
}

/// Code as bytes.
type Code = (Grade, Box<[u8]>);

/// Compiles one function; also returns the refusals.
fn compile_one(module: &ModuleRecord, func: u32, preferred: Grade) -> (Option<Code>, Vec<Fallback>) {
    let mut refused = Vec::new();
    let top = Some((Key::top(func, Entry::Call), Backend::Native));
    let baseline = module.engine.config().has_baseline().then(|| (Key::baseline(func), Backend::Baseline));
    let Some(body) = module.body(func) else { return (None, refused) };
    let tried = match preferred {
        Grade::Optimised => [top, baseline],
        Grade::Baseline => [baseline, top],
    };
    for (key, backend) in tried.into_iter().flatten() {
        let (compiled, mut refusals) = attempt(module, key, &[backend]);
        refused.append(&mut refusals);
        if let Some(compiled) = compiled {
            return (Some((grade(key.level), compiled.pack(body).bytes.into())), refused);
        }
    }
    (None, refused)
}
