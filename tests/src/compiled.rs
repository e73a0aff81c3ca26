//! Checks what the compiler returns for a request. The tests of the checker include this file too.

use weir_check::{Fault, Function, Options, Statistics, check};
use weir_jit::{Compiled, Request};

/// Checks the code of a function that was compiled for this request.
///
/// # Errors
/// The first fault.
pub fn check_compiled(request: &Request<'_>, compiled: &Compiled) -> Result<Statistics, Box<Fault>> {
    let &Request { module, func, entry, sig_ids, options, .. } = request;
    check(&Function {
        module,
        func,
        entry,
        backend: compiled.backend,
        code: &compiled.code,
        relocs: &compiled.relocs,
        traps: &compiled.traps,
        calls: &compiled.calls,
        inlining: &compiled.inlining,
        headers: &compiled.headers,
        landings: &compiled.landings,
        options: Options {
            guard_regions: options.guard_regions,
            signals: options.signals,
            reserves_guards: options.reserves_guards,
            segment: options.segment,
            masks: options.spectre_mitigation,
            sig_ids,
        },
    })
}
