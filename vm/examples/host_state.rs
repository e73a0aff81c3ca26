//! Host functions that use the embedder's data and the guest's memory: `cargo run -p weir-vm --example host_state`.

use std::collections::BTreeMap;
use weir::error::Context;
use weir::{Caller, Engine, Extern, Linker, Module, Result, Store, bail};

/// Counts of the words in the guest's text.
#[derive(Default)]
struct Words {
    counts: BTreeMap<String, u32>,
}

/// Counts the word at `offset` of the guest's memory.
fn count(mut caller: Caller<'_, Words>, offset: u32, len: u32) -> Result<u32> {
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else { bail!("the guest exports no memory") };
    // The guest's numbers are untrusted: `get` checks them.
    let (data, words) = memory.data_and_store_mut(&mut caller);
    let bytes = data.get(offset as usize..).and_then(|rest| rest.get(..len as usize)).context("a word outside of the memory")?;
    let word = std::str::from_utf8(bytes)?.to_lowercase();
    let count = words.counts.entry(word).or_default();
    *count += 1;
    Ok(*count)
}

/// Splits the text in its memory at spaces.
const GUEST: &str = r#"(module
    (import "words" "count" (func $count (param i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "the cat sat on the mat and the dog sat too ")
    (func (export "run") (param $len i32) (local $at i32) (local $word i32)
        (loop $next
            (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 32)) (then
                (drop (call $count (local.get $word) (i32.sub (local.get $at) (local.get $word))))
                (local.set $word (i32.add (local.get $at) (i32.const 1)))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $at) (local.get $len)))))
    (func (export "lie") (drop (call $count (i32.const 65535) (i32.const 2)))))"#;

fn main() -> Result<()> {
    let engine = Engine::default();
    let mut linker = Linker::new(&engine);
    linker.func_wrap("words", "count", count)?;
    let module = Module::new(&engine, GUEST)?;

    let mut store = Store::new(&engine, Words::default());
    let instance = linker.instantiate(&mut store, &module)?;
    instance.get_typed_func::<u32, ()>(&mut store, "run")?.call(&mut store, 43)?;
    println!("{:?}", store.data().counts);
    assert_eq!((store.data().counts["the"], store.data().counts["sat"], store.data().counts.len()), (3, 2, 8));

    // An error of a host function ends the guest and is returned by the call into the guest.
    let error = instance.get_typed_func::<(), ()>(&mut store, "lie")?.call(&mut store, ()).unwrap_err();
    println!("{error}");
    assert_eq!(error.root_cause().to_string(), "a word outside of the memory");
    Ok(())
}

#[test]
fn runs() -> Result<()> {
    main()
}
