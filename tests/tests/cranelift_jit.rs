//! Runs the fallback's code in another loader, cranelift-jit's `JITModule`. Pure functions need nothing of Weir's
//! runtime.
//!
//! cranelift-jit is used only here. It is not the product's loader: it drops the trap tables, calls by symbol instead
//! of through cells, and frees either everything or nothing.

use bumpalo::Bump;
use cranelift_codegen::ir::{AbiParam, InstBuilder, MemFlagsData, Signature, types};
use cranelift_codegen::isa::{CallConv, lookup_by_name};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, ir};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module as _, default_libcall_names};
use weir_bytecode::Module;
use weir_jit::compile::Options;
use weir_jit::ir::eval::{Outcome, eval};
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{Func, Type, parse};
use weir_jit::{Backend, Request, cranelift};

/// Reads arguments from slots and writes results to the same slots.
type Entry = unsafe extern "sysv64" fn(slots: *mut u64);

fn loader() -> JITModule {
    let mut flags = settings::builder();
    flags.set("enable_pinned_reg", "true").unwrap();
    flags.set("preserve_frame_pointers", "true").unwrap();
    let isa = lookup_by_name("x86_64").unwrap().finish(settings::Flags::new(flags)).unwrap();
    JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()))
}

fn clif_type(ty: Type) -> ir::Type {
    match ty {
        Type::I32 => types::I32,
        Type::F32 => types::F32,
        Type::F64 => types::F64,
        _ => types::I64,
    }
}

fn signature(func: &Func<'_>) -> Signature {
    let mut signature = Signature::new(CallConv::Tail);
    signature.params.extend(func.params.iter().map(|&ty| AbiParam::new(clif_type(ty))));
    signature.returns.extend(func.results.iter().map(|&ty| AbiParam::new(clif_type(ty))));
    signature
}

/// Compiles `func` as Weir does and passes the bytes to the loader.
fn define(loader: &mut JITModule, module: &Module, func: &Func<'_>) -> FuncId {
    let options = Options { verify: true, ..Options::default() };
    let request = Request {
        module,
        func: func.index,
        entry: func.entry,
        sig_ids: &[0],
        backend: Backend::Cranelift,
        profile: None,
        callees: None,
        options: &options,
    };
    let compiled = cranelift::compile(func, &request).unwrap();
    assert!(compiled.relocs.is_empty(), "a pure function refers to nothing");
    let id = loader.declare_anonymous_function(&signature(func)).unwrap();
    loader.define_function_bytes(id, 16, &compiled.code, &[]).unwrap();
    id
}

/// Defines a function that Rust can call. It preserves the pinned register for its caller.
fn define_entry(loader: &mut JITModule, callee: FuncId, func: &Func<'_>) -> FuncId {
    let mut cx = Context::new();
    cx.func.signature = Signature::new(CallConv::SystemV);
    cx.func.signature.params.push(AbiParam::new(types::I64));
    let mut frontend = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut cx.func, &mut frontend);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    b.seal_block(block);
    let slots = b.block_params(block)[0];
    let flags = MemFlagsData::trusted();
    let saved = b.ins().get_pinned_reg(types::I64);
    let args: Vec<_> = (0..).zip(&func.params).map(|(i, &ty)| b.ins().load(clif_type(ty), flags, slots, 8 * i)).collect();
    let callee = loader.declare_func_in_func(callee, b.func);
    let call = b.ins().call(callee, &args);
    let results = b.inst_results(call).to_vec();
    b.ins().set_pinned_reg(saved);
    for (i, result) in (0..).zip(results) {
        b.ins().store(flags, result, slots, 8 * i);
    }
    b.ins().return_(&[]);
    b.finalize(loader.target_config());
    let id = loader.declare_anonymous_function(&cx.func.signature).unwrap();
    loader.define_function(id, &mut cx).unwrap();
    id
}

/// Runs a function, given as text, in the loader and in the evaluator.
fn agree(text: &str, cases: &[&[u64]]) {
    let arena = Bump::new();
    let func = parse::parse(&arena, text).unwrap();
    let types: Vec<&str> = func.params.iter().map(|ty| ty.name()).collect();
    let results: Vec<&str> = func.results.iter().map(|ty| ty.name()).collect();
    let wat = format!("(module (func (param {}) (result {}) unreachable))", types.join(" "), results.join(" "));
    let module = weir_bytecode::validate::parse(wat::parse_str(wat).unwrap().into()).unwrap();

    let mut loader = loader();
    let body = define(&mut loader, &module, &func);
    let entry = define_entry(&mut loader, body, &func);
    loader.finalize_definitions().unwrap();
    // SAFETY: the function was generated with this signature.
    let entry = unsafe { std::mem::transmute::<*const u8, Entry>(loader.get_finalized_function(entry)) };
    for &args in cases {
        let wide: Vec<u128> = args.iter().map(|&arg| arg.into()).collect();
        let Ok(Outcome::Return(expected)) = eval(&func, &mut Sandbox::default(), &wide, 1_000_000) else {
            panic!("only functions that return can run here")
        };
        let mut slots = [0; 16];
        slots[..args.len()].copy_from_slice(args);
        // SAFETY: the function is pure, and has fewer than 16 parameters and results.
        unsafe { entry(slots.as_mut_ptr()) };
        for ((&actual, &expected), ty) in slots.iter().zip(&expected).zip(&func.results) {
            let actual = if matches!(ty, Type::I32 | Type::F32) { actual & 0xffff_ffff } else { actual };
            assert_eq!(u128::from(actual), expected, "{args:?} in\n{text}");
        }
    }
    // SAFETY: nothing of it is used any more.
    unsafe { loader.free_memory() };
}

#[test]
fn pure_functions_run_in_another_loader() {
    agree(
        "func 0 (i32, i64, f64) -> (i64, f64, i32)
         b0:
           v0: i32 = param 0
           v1: i64 = param 1
           v2: f64 = param 2
           v3: i64 = extend_s v0
           v4: i64 = mul v3, v1
           v5: f64 = convert_s v1
           v6: f64 = fmin v5, v2
           v7: i32 = clz v0
           return v4, v6, v7",
        &[&[5, 7, 4.5_f64.to_bits()], &[0xffff_fffe, 1 << 40, (-1.0_f64).to_bits()]],
    );
    agree(
        "func 0 (i32) -> i64
         b0:
           v0: i32 = param 0
           v1: i64 = const 0
           v2: i64 = const 1
           v3: i32 = const 1
           jump b1
         b1: preds b0, b2
           v4: i64 = phi b0: v1, b2: v5
           v5: i64 = phi b0: v2, b2: v8
           v6: i32 = phi b0: v0, b2: v7
           branch v6, b2, b3
         b2:
           v7: i32 = sub v6, v3
           v8: i64 = add v4, v5
           jump b1
         b3:
           return v4",
        &[&[0], &[1], &[10], &[90]],
    );
}
