//! What is charged to the account of a module, and what happens when there is no room.

use std::sync::Arc;
use weir_bytecode::account::Account;
use weir_bytecode::module::Results;
use weir_bytecode::validate::{InvalidModule, Options, Proposals, parse_within};
use weir_bytecode::{FuncBody, Module};

fn options() -> Options {
    Options { proposals: Proposals::all(), lazy: true, ..Options::default() }
}

/// An engine's account, and in it a module whose functions are not validated.
fn load(text: &str, max: usize) -> (Arc<Account>, Result<Module, InvalidModule>) {
    let engine = Arc::new(Account::new(usize::MAX, "all modules take", "of the engine"));
    let account = Account::new(max, "the module takes", "of the module").within(engine.clone());
    let bytes = wat::parse_str(text).expect("well formed");
    (engine, parse_within(bytes.into(), options(), account))
}

/// A function with a table of 20,000 labels, and one that calls it.
fn labels() -> String {
    format!("(module (func (param i32) (br_table {} (local.get 0))) (func (call 0 (i32.const 1))))", "0 ".repeat(20_000))
}

fn sizes(text: &str) -> [usize; 2] {
    let module = load(text, usize::MAX).1.expect("it is valid");
    let before = module.account.used();
    module.validated_body(0).expect("it is defined").expect("it is valid");
    [before, module.account.used() - before]
}

#[test]
fn a_function_needs_room_for_its_tables_once() {
    let [before, tables] = sizes(&labels());
    assert!(tables > 20_000 * 16, "{tables}");
    let module = load(&labels(), before + tables).1.expect("nothing is validated yet");
    assert!(module.validated_body(0).expect("it is defined").is_ok());
    assert_eq!(module.account.used(), before + tables);
    let module = load(&labels(), before + tables - 1).1.expect("nothing is validated yet");
    let error = module.validated_body(0).expect("it is defined").expect_err("a byte is missing");
    assert_eq!(error.exceeded().expect("that is the reason").setting(), "of the module");
    assert_eq!((module.account.used(), error.func_index()), (before, Some(0)));
}

/// Other modules of the engine take the room for a while.
#[test]
fn a_refusal_lasts_as_long_as_its_reason() {
    let engine = Arc::new(Account::new(8 << 20, "all modules take", "of the engine"));
    let account = Account::new(usize::MAX, "the module takes", "of the module").within(engine.clone());
    let bytes = wat::parse_str(labels()).expect("well formed");
    let module = parse_within(bytes.into(), options(), account).expect("nothing is validated yet");
    let others = engine.room();
    engine.charge(others).expect("there is room");
    for _ in 0..2 {
        let error = module.validated_body(0).expect("it is defined").expect_err("there is no room");
        assert_eq!(error.exceeded().expect("that is the reason").setting(), "of the engine");
    }
    engine.give_back(others);
    assert!(module.validated_body(0).expect("it is defined").is_ok());
}

#[test]
fn a_compiler_does_not_take_the_room_of_functions_that_are_called() {
    let function = format!("(func (param i32) (br_table {} (local.get 0)))", "0 ".repeat(1000));
    let text = format!("(module {})", function.repeat(100));
    let [before, tables] = sizes(&text);
    // Room for half of them.
    let max = before + 50 * tables;
    let module = load(&text, max).1.expect("nothing is validated yet");
    let copied = (50..100).filter(|&func| module.body_to_copy(func).is_some()).count();
    assert!(copied > 4 && copied * tables <= max / 8, "{copied} of {tables} bytes, {max}");
    assert_eq!((module.account.used(), module.host_memory()), (before, before + copied * tables));
    let is_valid = |func: &u32| module.validated_body(*func).expect("it is defined").is_ok();
    assert_eq!((0..50).filter(is_valid).count(), 50);
    // Those that are there take no more.
    assert_eq!((50..100).filter(is_valid).count(), copied);
    assert_eq!((0..100).filter(|&func| module.body_to_copy(func).is_some()).count(), 50 + copied);
}

/// Compilers ask for the same function at each of its calls.
#[test]
fn no_function_is_validated_twice_for_a_compiler() {
    let module =
        load("(module (func (drop (i32.const 1)) (i32.add) (drop)) (func))", 1 << 20).1.expect("nothing is validated yet");
    assert!(module.body_to_copy(0).is_none());
    let charged = module.host_memory();
    assert!(module.body_to_copy(0).is_none() && module.validated_body(0).expect("it is defined").is_err());
    assert_eq!(module.host_memory(), charged, "its error is kept");
    // The tables of the first do not fit into an eighth.
    let module = load(&format!("{} (func))", labels().strip_suffix(')').expect("it ends with one")), 1 << 20).1;
    let module = module.expect("nothing is validated yet");
    assert!(module.body_to_copy(0).is_none() && !module.aside.is_open());
    assert!(module.body_to_copy(2).is_none());
    assert!(module.validated_body(2).expect("it is defined").is_ok() && module.body_to_copy(2).is_some());
}

/// The results of a validation, of which all are damaged, with code of function 0.
#[derive(Debug)]
struct Damaged;

impl Results for Damaged {
    fn body(&self, _: u32) -> Option<FuncBody> {
        None
    }

    fn may_run(&self, func: u32) -> bool {
        func == 0
    }
}

#[test]
fn only_functions_with_code_are_validated_without_room() {
    let text = labels().replace("(func (call 0", "(func (drop (i32.const 1)) (call 0");
    let [before, tables] = sizes(&text);
    let mut module = load(&text, 1 << 20).1.expect("nothing is validated yet");
    module.results = Some(Arc::new(Damaged));
    let others = module.account.room() - 10;
    module.account.charge(others).expect("there is room");
    assert!(module.validated_body(1).expect("it is defined").expect_err("there is no room").exceeded().is_some());
    assert!(module.validated_body(0).expect("it is defined").is_ok());
    assert_eq!(module.account.used() - others, before + tables);
}

/// Each call pushes a thousand operands of eight bytes. A function with stored code has room for its stacks as it had when it was stored.
#[test]
fn stacks_are_bounded_for_functions_without_code() {
    let results = "externref ".repeat(1000);
    let text = format!("(module (func {} unreachable) (func (result {results}) unreachable))", "call 1 ".repeat(1000));
    let mut module = load(&text, 4 << 20).1.expect("nothing is validated yet");
    let before = module.account.used();
    assert!(module.validated_body(0).expect("it is defined").expect_err("8 MB").exceeded().is_some());
    assert_eq!(module.account.used(), before);
    module.results = Some(Arc::new(Damaged));
    assert!(module.validated_body(0).expect("it is defined").is_ok());
    assert!(module.account.used() < before + (1 << 20), "the stacks are given back");
}

/// Other functions may have taken the steps in this run.
#[test]
fn functions_with_code_are_validated_without_steps() {
    let text = format!("(module (func {0}) (func {0}))", "nop ".repeat(10_000));
    let bytes = wat::parse_str(text).expect("well formed");
    let options = Options { max_steps: 5_000, ..options() };
    let mut module = parse_within(bytes.into(), options, Account::default()).expect("nothing is validated yet");
    module.results = Some(Arc::new(Damaged));
    let error = module.validated_body(1).expect("it is defined").expect_err("it takes 10,000");
    assert!(error.to_string().contains("more than the 5000 steps that are allowed"), "{error}");
    assert!(module.validated_body(0).expect("it is defined").is_ok());
}

fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7F {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[test]
fn sections_with_fewer_bytes_than_items_are_malformed() {
    for (id, count) in [(1, 900_000), (2, 900_000), (3, 900_000), (6, 900_000), (7, 900_000), (9, 90_000)] {
        let contents = leb(count);
        let bytes = [b"\0asm\x01\0\0\0".to_vec(), vec![id], leb(contents.len()), contents].concat();
        let error = parse_within(bytes.into(), options(), Account::default()).expect_err("there are no items");
        assert_eq!((error.original(), error.exceeded()), ("unexpected end-of-file", None), "section {id}");
    }
}

/// What is cached of an invalid function is charged, too.
#[test]
fn refusals_are_charged() {
    let module = load("(module (func (result i32)))", usize::MAX).1.expect("nothing is validated yet");
    let before = module.account.used();
    for _ in 0..2 {
        assert!(module.validated_body(0).expect("it is defined").is_err());
        assert!((before + 100..before + 1000).contains(&module.account.used()));
    }
}

#[test]
fn names_take_what_there_is_of_them() {
    let functions = (0..100).map(|i| format!("(func $name{i})")).collect::<String>();
    let (engine, module) = load(&format!("(module {functions})"), usize::MAX);
    let module = module.expect("it is valid");
    let before = engine.used();
    assert_eq!(module.func_name(7), Some("name7"));
    assert_eq!(engine.used() - before, 100 * size_of::<(u32, std::ops::Range<usize>)>());
    drop(module);
    assert_eq!(engine.used(), 0);
}
