//! The module whose stored form `vm/tests/api/precompiled.rs` damages at every byte has an entry in every table of code.

use std::collections::BTreeSet;
use weir_bytecode::validate;
use weir_contract::Entry;
use weir_contract::code::{Backend, Inlining, RelocTarget, Stripe};
use weir_jit::compile::{Context, compile};
use weir_jit::{Options, Request};

const TEXT: &str = include_str!("../../vm/tests/every_table.wat");

#[test]
fn stored_code_has_an_entry_in_every_table() {
    let module = validate::parse(wat::parse_str(TEXT).expect("it is well formed").into()).expect("it is valid");
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    let mut found = BTreeSet::new();
    for backend in [Backend::Native, Backend::Baseline] {
        for striped in [false, true] {
            let options = Options { ticks: true, counts: true, striped, ..Options::default() };
            for func in module.imported_funcs..module.funcs.len() as u32 {
                let (entry, profile, callees) = (Entry::Call, None, None);
                let request =
                    Request { module: &module, func, entry, sig_ids: &sig_ids, backend, profile, callees, options: &options };
                let compiled = compile(&mut Context::default(), &request).expect("there is code for it");
                found.extend(compiled.relocs.iter().map(|reloc| match reloc.target {
                    RelocTarget::Cell => "cells",
                    RelocTarget::Ticks(Stripe::First) => "ticks of the first stripe",
                    RelocTarget::Ticks(Stripe::Any) => "ticks of any stripe",
                    RelocTarget::Counters(Stripe::First) => "counters of the first stripe",
                    RelocTarget::Counters(Stripe::Any) => "counters of any stripe",
                    RelocTarget::Signature => "signatures",
                }));
                let tables = [
                    ("traps", compiled.traps.is_empty()),
                    ("calls", compiled.calls.is_empty()),
                    ("headers", compiled.headers.is_empty()),
                    ("landings", compiled.landings.is_empty()),
                    ("roots", compiled.roots == Default::default()),
                    ("inlining", compiled.inlining == Inlining::default()),
                ];
                found.extend(tables.into_iter().filter(|table| !table.1).map(|table| table.0));
            }
        }
    }
    let all = [
        "cells",
        "signatures",
        "ticks of the first stripe",
        "ticks of any stripe",
        "counters of the first stripe",
        "counters of any stripe",
        "traps",
        "calls",
        "headers",
        "landings",
        "roots",
        "inlining",
    ];
    assert_eq!(found, BTreeSet::from(all));
}
