//! Crossings and traps, with code written by hand in place of compiled functions.

#![allow(clippy::useless_conversion, reason = "dynasm! converts register numbers")]

mod compiled;
mod rig;

use super::*;
use crate::code::hooks::{Grown, Hooks};
use crate::code::stubs::THUNK;
use crate::sys::mapping::{Access, Mapping};
use crate::sys::testing;
use dynasmrt::x64::X64Relocation;
use dynasmrt::{DynasmApi, VecAssembler, dynasm};
use rig::World;
use std::cell::RefCell;
use std::mem::offset_of;
use std::ops::ControlFlow;
use std::process::Command;
use weir_bytecode::{FuncBody, Trap, ValType};
use weir_contract::code::{Backend, FrameLayout, InlinedCall, Inlining, Reloc, RelocTarget, Roots, TrapEntry};
use weir_contract::unplaced::UnplacedCode;
use weir_contract::{
    Dispatch, EntryCell, HostCtx, INT_ARG_REGS, INT_RESULT_REGS, InstanceCtx, Outcome, Place, StackCtx, Status, param_places,
    result_places,
};
use weir_jit::Compiled;
use weir_jit::compile::CompileStats;

const STACK: i32 = offset_of!(InstanceCtx, stack) as i32;
const OVERFLOW: i32 = offset_of!(StackCtx, overflow) as i32;

/// The behaviour of the next calls of [`to_rust`], and a record of the calls. Each thread has one, because each test
/// runs on its own thread.
#[derive(Default)]
struct Script {
    #[expect(clippy::type_complexity, reason = "only here")]
    call: Option<fn(&mut Script, *mut InstanceCtx, u32, *mut u64) -> Outcome>,
    space: Option<Arc<CodeSpace>>,
    seen: Vec<Vec<u64>>,
    backtraces: Vec<Vec<Site>>,
    target: usize,
    count: u64,
}

thread_local!(static SCRIPT: RefCell<Script> = RefCell::default());

unsafe extern "sysv64" fn to_rust(instance: *mut InstanceCtx, func: u32, args: *mut u64) -> Outcome {
    // The script is taken out for the call, because a call may enter native code and come back here.
    let mut script = SCRIPT.take();
    let outcome = script.call.expect("a script")(&mut script, instance, func, args);
    SCRIPT.set(script);
    outcome
}

unsafe extern "C" fn host(instance: *mut InstanceCtx, args: *mut u64) -> Status {
    // SAFETY: the caller's promise.
    unsafe { to_rust(instance, 1, args).status }
}

unsafe extern "sysv64" fn on_unwind(_: *mut InstanceCtx, pc: usize, fp: usize, _: &mut Registers) -> u32 {
    let mut script = SCRIPT.take();
    if let Some(space) = &script.space {
        let mut frames = Vec::new();
        // SAFETY: this is the hook.
        unsafe {
            space.trap_frames(pc, |site| frames.push(site));
            space.frames(fp, |site, _| {
                frames.push(site);
                ControlFlow::Continue(())
            });
        }
        script.backtraces.push(frames);
    }
    SCRIPT.set(script);
    0
}

/// The loop at which frames resume.
const LOOP: u64 = 7;

/// Nothing here polls, grows or throws.
const HOOKS: Hooks = {
    unsafe extern "sysv64" fn poll(_: *mut InstanceCtx) -> u64 {
        unreachable!()
    }
    unsafe extern "sysv64" fn grow(_: *mut InstanceCtx, _: u32, _: u64, _: u64) -> Grown {
        unreachable!()
    }
    unsafe extern "sysv64" fn tick(_: *mut InstanceCtx, _: u64, _: *const *mut u64) -> *const u8 {
        std::ptr::null()
    }
    unsafe extern "sysv64" fn resume(instance: *mut InstanceCtx, at: u64, fp: *mut u64) -> Outcome {
        assert_eq!(at >> 32, LOOP);
        // SAFETY: the caller's promise.
        unsafe { to_rust(instance, at as u32, fp) }
    }
    unsafe extern "sysv64" fn osr_target(_: *mut InstanceCtx, _: u64, _: *const usize) -> *const u8 {
        std::ptr::null()
    }
    let (memory_grow, table_grow, throw_ref) = (grow, grow, throw);
    Hooks {
        to_rust,
        resume,
        on_unwind,
        poll,
        tick,
        osr_target,
        memory_grow,
        table_grow,
        throw,
        throw_ref,
        no_entry,
        assembly: None,
    }
};

unsafe extern "sysv64" fn no_entry(_: *mut InstanceCtx) {
    unreachable!()
}

unsafe extern "sysv64" fn throw(_: *mut InstanceCtx, _: u64, _: &mut Registers) -> u32 {
    unreachable!()
}

const RETURN: Outcome = Outcome { status: Status::Return, target: std::ptr::null() };
const TRAP: Outcome = Outcome { status: Status::Trap, target: std::ptr::null() };

fn space() -> Arc<CodeSpace> {
    let space = CodeSpace::new(HOOKS, &[std::ptr::null(); Helper::COUNT], true, usize::MAX, false).unwrap();
    SCRIPT.set(Script { space: Some(space.clone()), ..Script::default() });
    space
}

fn module(types: Vec<FuncType>, funcs: Vec<u32>, imported: u32) -> Module {
    let bodies = funcs[imported as usize..].iter().map(|_| FuncBody::default().into()).collect();
    Module { types: types.into(), funcs: funcs.into(), imported_funcs: imported, bodies, ..Module::default() }
}

fn func_type(params: &[ValType], results: &[ValType]) -> FuncType {
    FuncType { params: params.into(), results: results.into() }
}

type Asm = VecAssembler<X64Relocation>;

#[derive(Default)]
struct Code {
    relocs: Vec<Reloc>,
    traps: Vec<TrapEntry>,
    calls: Vec<(u32, u32)>,
}

impl Code {
    fn here(asm: &Asm) -> u32 {
        asm.offset().0 as u32
    }

    fn trap(&mut self, asm: &Asm, trap: Trap, pc: u32) {
        self.traps.push(TrapEntry { offset: Code::here(asm), site: TrapSite::Trap(trap), pc });
    }

    fn call(&mut self, asm: &mut Asm, func: u32, pc: u32) {
        dynasm!(asm; .arch x64; call QWORD [rip + 0]);
        self.relocs.push(Reloc { offset: Code::here(asm) - 4, target: RelocTarget::Cell, index: func, addend: -4 });
        self.calls.push((Code::here(asm), pc));
    }

    fn finish(self, asm: Asm) -> Compiled {
        let Code { relocs, traps, calls } = self;
        let stats = CompileStats::default();
        let (headers, landings, inlining, lines) = (Vec::new(), Vec::new(), Inlining::default(), Vec::new());
        let frame = FrameLayout::default();
        Compiled {
            backend: Backend::Native,
            code: asm.finalize().unwrap(),
            relocs,
            traps,
            calls,
            headers,
            landings,
            frame,
            roots: Roots::default(),
            inlining,
            lines,
            stats,
        }
    }
}

/// A function that calls function `callee`, of the same signature, with its own arguments, and returns the results of
/// the call. It changes no place of an argument or a result.
fn forward(callee: u32) -> Compiled {
    let (mut asm, mut code) = (Asm::new(0), Code::default());
    dynasm!(asm; .arch x64; push rbp; mov rbp, rsp);
    code.call(&mut asm, callee, 77);
    dynasm!(asm; .arch x64; pop rbp; ret);
    code.finish(asm)
}

/// A function without arguments that executes `what`.
fn faulting(what: fn(&mut Asm, &mut Code)) -> Compiled {
    let (mut asm, mut code) = (Asm::new(0), Code::default());
    dynasm!(asm; .arch x64; push rbp; mov rbp, rsp);
    what(&mut asm, &mut code);
    dynasm!(asm; .arch x64; pop rbp; ret);
    code.finish(asm)
}

fn unreachable() -> Compiled {
    faulting(|asm, code| {
        code.trap(asm, Trap::UnreachableCodeReached, 3);
        dynasm!(asm; .arch x64; ud2);
    })
}

const TYPES: [ValType; 5] = [ValType::I32, ValType::F64, ValType::I64, ValType::F32, ValType::FUNCREF];

/// Types of `n` values in a mixture that depends on `salt`.
fn mixture(n: usize, salt: usize) -> Vec<ValType> {
    (0..n).map(|i| TYPES[(i * (salt + 1) + i / 7 + salt) % 5]).collect()
}

/// Installs code as the tier does.
trait Put {
    /// Places code, and points the function's cell at it if it is entered by call.
    fn put(&self, func: u32, entry: Entry, compiled: &Compiled) -> Result<*const u8, CodeError>;
}

impl Put for ModuleCode {
    fn put(&self, func: u32, entry: Entry, compiled: &Compiled) -> Result<*const u8, CodeError> {
        let bytes = compiled.clone().pack(&FuncBody::default()).bytes;
        // A module with all functions and types to which these tests refer.
        let module = module(vec![func_type(&[], &[]); 100], vec![0; 100], 0);
        let code = UnplacedCode::read(&bytes, &module).expect("it is not damaged");
        let code = self.install(vec![Unplaced { func, entry, counters: None, code }], None)?[0];
        if entry == Entry::Call {
            self.cell(func).store(code.cast_mut(), Ordering::Release);
        }
        Ok(code)
    }
}

#[test]
fn values_cross_in_every_place() {
    let space = space();
    let mut world = World::new(&Module::default());
    for (salt, n_params, n_results) in
        [(0, 0, 0), (0, 1, 1), (1, 6, 8), (2, 20, 3), (4, 3, 30), (3, 17, 17), (0, 100, 100), (1, 1000, 1000)]
    {
        let ty = func_type(&mixture(n_params, salt), &mixture(n_results, salt + 2));
        let module = module(vec![ty.clone()], vec![0, 0], 0);
        let code = space.add_module(1, &module, &[]).unwrap();
        let stubs = space.stubs(&ty).unwrap();
        let native = code.put(0, Entry::Call, &forward(1)).unwrap();

        // Function 1 is interpreted: the arguments go Rust → native → Rust, the results come back the same way.
        SCRIPT.with_borrow_mut(|script| {
            script.seen.clear();
            script.target = n_params;
            script.count = n_results as u64;
            script.call = Some(|script, instance, func, args| {
                assert_eq!(func, 1);
                // SAFETY: the slots have the arguments, and room for the results.
                unsafe {
                    assert_eq!(args, (*(*instance).stack).value_sp);
                    script.seen.push(std::slice::from_raw_parts(args, script.target).to_vec());
                    for i in 0..script.count {
                        *args.add(i as usize) = 0xabcd_0000_0000 + i;
                    }
                }
                RETURN
            });
        });
        let args: Vec<u64> = (0..n_params as u64).map(|i| 0x1234_5678_0000_0000 + i * 3).collect();
        let (status, slots) = world.enter(stubs.enter, native, &args);
        assert_eq!(status, Status::Return);
        assert_eq!(SCRIPT.with_borrow(|script| script.seen.clone()), [&*args], "{ty}");
        let expected: Vec<u64> = (0..n_results as u64).map(|i| 0xabcd_0000_0000 + i).collect();
        assert_eq!(slots[..n_results], expected, "{ty}");

        // A host function is in a context of its own.
        // SAFETY: a context is plain data.
        let mut host = HostCtx { instance: unsafe { world.instance().read() }, call: host as *const u8 };
        // SAFETY: the cell lives as long as the engine.
        let host_entry = unsafe { (*stubs.host).load(Ordering::Relaxed) };
        let (status, slots) = world.enter_in((&raw mut host).cast(), stubs.enter, host_entry, &args);
        assert_eq!(status, Status::Return);
        assert_eq!(SCRIPT.with_borrow(|script| script.seen.clone()), [&*args, &*args], "{ty}");
        assert_eq!(slots[..n_results], expected, "{ty}");
    }
}

/// Native code reads its arguments from the places that the contract gives, and puts its results into the places that the
/// contract gives. The other tests only show that both directions agree.
#[test]
fn places_are_those_of_the_contract() {
    let space = space();
    let params = mixture(24, 1);
    let results = mixture(24, 3);
    let ty = func_type(&params, &results);
    let code = space.add_module(1, &module(vec![ty.clone()], vec![0], 0), &[]).unwrap();
    let mut dump = vec![0_u64; 24];
    let mut asm = Asm::new(0);
    dynasm!(asm; .arch x64; push rbp; mov rbp, rsp; mov rax, QWORD dump.as_mut_ptr() as i64);
    dynasm!(asm; .arch x64; mov r11, [r15 + STACK]; mov r11, [r11 + OVERFLOW]);
    for (i, place) in param_places(&params).enumerate() {
        let slot = 8 * i as i32;
        match place {
            Place::Int(n) => dynasm!(asm; .arch x64; mov [rax + slot], Rq(INT_ARG_REGS[n as usize])),
            Place::Float(n) => dynasm!(asm; .arch x64; movsd [rax + slot], Rx(n)),
            Place::Overflow(n) => dynasm!(asm; .arch x64; mov r10, [r11 + 8 * n as i32]; mov [rax + slot], r10),
        }
    }
    for (i, place) in result_places(&results).enumerate() {
        let value = 1000 + i as i32;
        match place {
            Place::Int(n) => dynasm!(asm; .arch x64; mov Rq(INT_RESULT_REGS[n as usize]), value),
            Place::Float(n) => dynasm!(asm; .arch x64; push value; movsd Rx(n), [rsp]; lea rsp, [rsp + 8]),
            Place::Overflow(n) => dynasm!(asm; .arch x64; mov QWORD [r11 + 8 * n as i32], value),
        }
    }
    dynasm!(asm; .arch x64; pop rbp; ret);
    let native = code.put(0, Entry::Call, &Code::default().finish(asm)).unwrap();

    let args: Vec<u64> = (0..24).map(|i| 0xdead_0000_0000 + i).collect();
    let (status, slots) = World::new(&Module::default()).enter(space.stubs(&ty).unwrap().enter, native, &args);
    assert_eq!(status, Status::Return);
    assert_eq!(dump, args);
    assert_eq!(slots[..24], (1000..1024).collect::<Vec<u64>>());
}

#[test]
fn osr_bodies_get_the_frame() {
    let space = space();
    let ty = func_type(&[ValType::F64], &[ValType::I64, ValType::I64]);
    let code = space.add_module(1, &module(vec![ty.clone()], vec![0], 0), &[]).unwrap();
    let mut asm = Asm::new(0);
    dynasm!(asm; .arch x64; mov rax, [rdi + 8]; mov rcx, rdi; ret);
    let native = code.put(0, Entry::Osr(5), &Code::default().finish(asm)).unwrap();
    let mut world = World::new(&Module::default());
    let (status, slots) = world.enter(space.stubs(&ty).unwrap().enter_osr, native, &[1, 42]);
    assert_eq!((status, slots[0], slots[1]), (Status::Return, 42, world.values.as_ptr() as u64));
    assert_eq!(code.cell(0).load(Ordering::Relaxed).cast_const(), code.thunk(0), "the function itself stays interpreted");
}

/// Code that was entered at a loop jumps to the stub. The stub calls Rust with the frame, and returns the results that Rust has
/// written there.
#[test]
fn frames_resume_in_rust() {
    let space = space();
    let mut world = World::new(&Module::default());
    for (salt, n_results) in [(0, 0), (0, 1), (1, 8), (4, 30), (3, 1000)] {
        let ty = func_type(&[ValType::I64], &mixture(n_results, salt));
        let code = space.add_module(1, &module(vec![ty.clone()], vec![0, 0], 0), &[]).unwrap();
        let stubs = space.stubs(&ty).unwrap();
        let mut asm = Asm::new(0);
        let at = 1 | LOOP << 32;
        dynasm!(asm; .arch x64; mov r11, QWORD at as i64; mov rax, QWORD stubs.resume.as_ptr() as i64; jmp rax);
        let native = code.put(0, Entry::Osr(5), &Code::default().finish(asm)).unwrap();
        SCRIPT.with_borrow_mut(|script| {
            script.count = n_results as u64;
            script.call = Some(|script, instance, func, fp| {
                assert_eq!(func, 1);
                // SAFETY: the frame has the argument, and room for the results.
                unsafe {
                    assert_eq!(*fp, 42);
                    // The results are at the frame, wherever the stack ends.
                    (*(*instance).stack).value_sp = fp.add(1);
                    (0..script.count).for_each(|i| *fp.add(i as usize) = 0xabcd_0000_0000 + i);
                }
                RETURN
            });
        });
        let (status, slots) = world.enter(stubs.enter_osr, native, &[42]);
        let expected: Vec<u64> = (0..n_results as u64).map(|i| 0xabcd_0000_0000 + i).collect();
        assert_eq!((status, &slots[..n_results]), (Status::Return, &*expected), "{ty}");

        SCRIPT.with_borrow_mut(|script| script.call = Some(|_, _, _, _| TRAP));
        assert_eq!(world.enter(stubs.enter_osr, native, &[42]).0, Status::Trap, "{ty}");

        // The loop continues in other code, which returns to the caller of the first.
        let mut asm = Asm::new(0);
        dynasm!(asm; .arch x64; mov rax, [rdi]; ret);
        let other = code.put(0, Entry::Osr(5), &Code::default().finish(asm)).unwrap();
        SCRIPT.with_borrow_mut(|script| {
            script.target = other as usize;
            script.call = Some(|script, instance, _, fp| {
                let code = script.target as *const u8;
                let target = script.space.as_ref().expect("there is one").reenter_osr();
                // SAFETY: the instance runs.
                unsafe { (*(*instance).stack).dispatch = Dispatch { code, args: fp, instance } };
                Outcome { status: Status::Dispatch, target }
            });
        });
        let (status, slots) = world.enter(stubs.enter_osr, native, &[42]);
        assert_eq!(status, Status::Return);
        if result_places(&ty.results).next() == Some(Place::Int(0)) {
            assert_eq!(slots[0], 42, "{ty}");
        }
    }
}

#[test]
fn faults_are_the_traps_of_their_sites() {
    let space = space();
    let ty = func_type(&[], &[]);
    let code = space.add_module(9, &module(vec![ty.clone()], vec![0, 0, 0, 0], 0), &[]).unwrap();
    let enter = space.stubs(&ty).unwrap().enter;
    let guard = Mapping::zeroed(4096).unwrap();
    // SAFETY: nothing points into it.
    unsafe { guard.protect(0..4096, Access::ReadExecute).unwrap() };
    thread_local!(static GUARD: RefCell<i64> = const { RefCell::new(0) });
    GUARD.set(guard.as_mut_ptr() as i64);

    type Fault = fn(&mut Asm, &mut Code);
    let cases: [(Fault, Trap); 3] = [
        (
            |asm, code| {
                code.trap(asm, Trap::UnreachableCodeReached, 5);
                dynasm!(asm; .arch x64; ud2);
            },
            Trap::UnreachableCodeReached,
        ),
        (
            |asm, code| {
                dynasm!(asm; .arch x64; xor ecx, ecx; xor edx, edx; mov eax, 1);
                code.trap(asm, Trap::IntegerDivisionByZero, 6);
                dynasm!(asm; .arch x64; idiv ecx);
            },
            Trap::IntegerDivisionByZero,
        ),
        (
            |asm, code| {
                dynasm!(asm; .arch x64; mov rax, QWORD GUARD.take());
                code.trap(asm, Trap::MemoryOutOfBounds, 7);
                dynasm!(asm; .arch x64; mov BYTE [rax + 100], 1);
            },
            Trap::MemoryOutOfBounds,
        ),
    ];
    let mut world = World::new(&Module::default());
    for (func, (what, trap)) in (0..).zip(cases) {
        let native = code.put(func, Entry::Call, &faulting(what)).unwrap();
        // Directly, and from a native caller.
        let caller = code.put(3, Entry::Call, &forward(func)).unwrap();
        for (code, depth) in [(native, 1), (caller, 2)] {
            let (status, _) = world.enter(enter, code, &[]);
            assert_eq!(status, Status::Trap);
            // SAFETY: it has just trapped, and the module is still there.
            let (site, reason) = unsafe { space.trap_at(world.store.trap_pc) }.unwrap();
            assert_eq!(reason, TrapSite::Trap(trap));
            assert_eq!((site.module, site.func, site.pc), (9, func, 5 + func));
            let backtrace = SCRIPT.with_borrow_mut(|script| script.backtraces.pop().unwrap());
            let frames: Vec<_> = backtrace.iter().map(|site| (site.func, site.pc)).collect();
            assert_eq!(frames, [(func, 5 + func), (3, 77)][..depth]);
        }
    }
}

/// Function 2 was compiled with a call of 11 inlined, and in that one of 12; the trap is in 12, and so is a call.
#[test]
fn a_chain_of_two_inlined_calls_gives_three_frames() {
    let space = space();
    let ty = func_type(&[], &[]);
    let code = space.add_module(9, &module(vec![ty.clone()], vec![0, 0, 0, 0], 0), &[]).unwrap();
    let enter = space.stubs(&ty).unwrap().enter;
    let links = vec![InlinedCall { func: 11, pc: 40, outer: None }, InlinedCall { func: 12, pc: 50, outer: Some(0) }];
    let mut trapping = unreachable();
    trapping.inlining = Inlining { traps: vec![(0, 1)], calls: Vec::new(), links: links.clone() };
    let mut calling = forward(1);
    calling.inlining = Inlining { traps: Vec::new(), calls: vec![(0, 1)], links };
    let trapping = code.put(2, Entry::Call, &trapping).unwrap();
    let calling = code.put(2, Entry::Call, &calling).unwrap();
    code.put(1, Entry::Call, &unreachable()).unwrap();
    let mut world = World::new(&Module::default());
    SCRIPT.with_borrow_mut(|script| script.space = Some(space.clone()));
    for (code, expected) in [(trapping, vec![(12, 3), (11, 50), (2, 40)]), (calling, vec![(1, 3), (12, 77), (11, 50), (2, 40)])] {
        assert_eq!(world.enter(enter, code, &[]).0, Status::Trap);
        let backtrace = SCRIPT.with_borrow_mut(|script| script.backtraces.pop().unwrap());
        assert_eq!(backtrace.iter().map(|site| (site.func, site.pc)).collect::<Vec<_>>(), expected);
    }
}

/// Rust → native 0 → Rust → native 2, which traps; Rust sees it and lets native 0 continue, or trap as well.
#[test]
fn a_trap_unwinds_to_the_innermost_boundary_only() {
    let space = space();
    let ty = func_type(&[ValType::I64], &[ValType::I64]);
    let code = space.add_module(1, &module(vec![ty.clone()], vec![0, 0, 0], 0), &[]).unwrap();
    let enter = space.stubs(&ty).unwrap().enter;
    let outer = code.put(0, Entry::Call, &forward(1)).unwrap();
    let inner = code.put(2, Entry::Call, &unreachable()).unwrap();
    SCRIPT.with_borrow_mut(|script| {
        script.target = inner as usize;
        script.call = Some(|script, instance, _, args| {
            let ty = func_type(&[ValType::I64], &[ValType::I64]);
            let space = script.space.clone().unwrap();
            let enter = space.stubs(&ty).unwrap().enter;
            SCRIPT.set(Script { space: Some(space), ..Script::default() });
            // SAFETY: there is room above the argument, and value_sp is put back.
            let status = unsafe {
                let stack = (*instance).stack;
                let boundary = (*stack).boundary;
                (*stack).value_sp = args.add(1);
                let status = enter(script.target as *const u8, args, instance, stack);
                (*stack).value_sp = args;
                assert_eq!((*stack).boundary, boundary);
                status
            };
            assert_eq!(status, Status::Trap);
            script.backtraces.append(&mut SCRIPT.take().backtraces);
            // SAFETY: the result's slot.
            if unsafe { *args } == 0 {
                return TRAP;
            }
            // SAFETY: the result's slot.
            unsafe { *args = 123 };
            RETURN
        });
    });
    let mut world = World::new(&Module::default());
    let (status, slots) = world.enter(enter, outer, &[1]);
    assert_eq!((status, slots[0]), (Status::Return, 123));
    let (status, _) = world.enter(enter, outer, &[0]);
    assert_eq!(status, Status::Trap);
    let frames: Vec<Vec<u32>> = SCRIPT
        .with_borrow(|script| script.backtraces.iter().map(|frames| frames.iter().map(|site| site.func).collect()).collect());
    assert_eq!(frames, [vec![2], vec![2], vec![0]], "each unwinding saw the frames down to its boundary");
}

/// Native 0 tail-calls function 1, which is interpreted and tail-calls 0 again, and so on: constant native stack.
#[test]
fn a_million_dispatches_need_no_stack() {
    let space = space();
    let params = mixture(20, 2);
    let ty = func_type(&params, &[ValType::I64]);
    let code = space.add_module(1, &module(vec![ty.clone()], vec![0, 0], 0), &[]).unwrap();
    let stubs = space.stubs(&ty).unwrap();
    let (mut asm, mut tail) = (Asm::new(0), Code::default());
    dynasm!(asm; .arch x64; jmp QWORD [rip + 0]);
    tail.relocs.push(Reloc { offset: Code::here(&asm) - 4, target: RelocTarget::Cell, index: 1, addend: -4 });
    let native = code.put(0, Entry::Call, &tail.finish(asm)).unwrap();
    SCRIPT.with_borrow_mut(|script| {
        script.target = stubs.reenter.as_ptr() as usize;
        script.seen = vec![vec![native as u64]];
        script.call = Some(|script, instance, _, args| {
            script.count += 1;
            // SAFETY: twenty arguments and one result.
            unsafe {
                for i in 0..20 {
                    assert_eq!(*args.add(i), 7 * i as u64 + script.count - 1);
                    *args.add(i) += 1;
                }
                if script.count == 1_000_000 {
                    *args = 99;
                    return RETURN;
                }
                (*(*instance).stack).dispatch = Dispatch { code: script.seen[0][0] as *const u8, args, instance };
            }
            Outcome { status: Status::Dispatch, target: script.target as *const u8 }
        });
    });
    let args: Vec<u64> = (0..20).map(|i| 7 * i).collect();
    let (status, slots) = World::new(&Module::default()).enter(stubs.enter, native, &args);
    assert_eq!((status, slots[0]), (Status::Return, 99));
    assert_eq!(SCRIPT.with_borrow(|script| script.count), 1_000_000);
}

/// An interpreted caller's loop has OSR code: the stub dispatches to it with the frame.
#[test]
fn dispatch_reaches_osr_bodies() {
    let space = space();
    let ty = func_type(&[ValType::I64], &[ValType::I64]);
    let code = space.add_module(1, &module(vec![ty.clone()], vec![0, 0], 0), &[]).unwrap();
    let mut asm = Asm::new(0);
    dynasm!(asm; .arch x64; mov rax, [rdi + 8]; ret);
    let body = code.put(1, Entry::Osr(3), &Code::default().finish(asm)).unwrap();
    let native = code.put(0, Entry::Call, &forward(1)).unwrap();
    SCRIPT.with_borrow_mut(|script| {
        script.target = body as usize;
        script.call = Some(|script, instance, _, args| {
            // SAFETY: there is room above the argument.
            unsafe {
                *args.add(1) = 2 * *args;
                (*(*instance).stack).dispatch = Dispatch { code: script.target as *const u8, args, instance };
            }
            Outcome { status: Status::Dispatch, target: script.space.as_ref().unwrap().reenter_osr() }
        });
    });
    let (status, slots) = World::new(&Module::default()).enter(space.stubs(&ty).unwrap().enter, native, &[21]);
    assert_eq!((status, slots[0]), (Status::Return, 42));
}

#[test]
fn cells_lead_to_thunks_or_code() {
    let space = space();
    let ty = func_type(&[], &[ValType::I64]);
    let code = space.add_module(1, &module(vec![ty.clone()], vec![0, 0, 0], 1), &[]).unwrap();
    let stubs = space.stubs(&ty).unwrap();
    SCRIPT.with_borrow_mut(|script| {
        script.call = Some(|_, _, func, args| {
            // SAFETY: the result's slot.
            unsafe { *args = 100 + u64::from(func) };
            RETURN
        });
    });
    let mut world = World::new(&Module::default());
    let entry = |func| code.cell(func).load(Ordering::Relaxed).cast_const();
    assert_eq!(world.enter(stubs.enter, entry(1), &[]).1[0], 101);
    assert_eq!(world.enter(stubs.enter, entry(2), &[]).1[0], 102);
    let mut asm = Asm::new(0);
    dynasm!(asm; .arch x64; mov eax, 7; ret);
    code.put(2, Entry::Call, &Code::default().finish(asm)).unwrap();
    assert_eq!(world.enter(stubs.enter, entry(1), &[]).1[0], 101);
    assert_eq!(world.enter(stubs.enter, entry(2), &[]).1[0], 7);
}

/// A module may have thousands of types, each with 1,000 parameters and results of its own shape.
#[test]
fn stubs_of_large_signatures_are_small() {
    const SHAPES: usize = 512;
    const BYTES: usize = 4 << 10;
    let space = CodeSpace::new(HOOKS, &[std::ptr::null(); Helper::COUNT], true, SHAPES * BYTES, false).unwrap();
    for shape in 0..SHAPES {
        let value = |i: usize| if shape >> (i % 10) & 1 == 0 { ValType::I64 } else { ValType::F64 };
        let values: Vec<ValType> = (0..1000).map(value).collect();
        space.stubs(&func_type(&values, &values)).unwrap();
    }
}

/// Any number of modules, each with signatures of other shapes, takes the memory of one.
#[test]
fn stubs_go_with_the_last_module_that_uses_them() {
    const SHAPES: usize = 100;
    let space = CodeSpace::new(HOOKS, &[std::ptr::null(); Helper::COUNT], true, 1 << 20, false).unwrap();
    let shape = |shape: usize| {
        let value = |i: usize| if shape >> i & 1 == 0 { ValType::I64 } else { ValType::F64 };
        func_type(&(0..14).map(value).collect::<Vec<_>>(), &[])
    };
    let of = |first: usize| module((first..first + SHAPES).map(shape).collect(), (0..SHAPES as u32).collect(), 0);
    let host = space.stubs(&shape(7)).unwrap().host;
    let kept = space.add_module(1, &of(0), &[]).unwrap();
    let enter = kept.stubs_of_type(50).enter;
    for i in 0..100 {
        // Half of the shapes are those of the module before.
        let other = space.add_module(2, &of(50 + i * SHAPES / 2), &[]).unwrap();
        assert!(i > 0 || std::ptr::fn_addr_eq(other.stubs_of_type(0).enter, enter), "shared");
    }
    drop(kept);
    assert_eq!(space.shapes.lock().len(), 1, "that of the host");
    assert_eq!(space.stubs(&shape(7)).unwrap().host, host);
}

#[test]
fn a_module_of_too_many_shapes_is_refused() {
    let space = CodeSpace::new(HOOKS, &[std::ptr::null(); Helper::COUNT], true, usize::MAX, false).unwrap();
    let ty = |shape: usize| {
        let value = |i: usize| if shape >> i & 1 == 0 { ValType::I64 } else { ValType::F64 };
        func_type(&(0..13).map(value).collect::<Vec<_>>(), &[])
    };
    let of = |count: usize| module((0..count).map(ty).collect(), (0..count as u32).collect(), 0);
    assert!(matches!(space.add_module(1, &of(MAX_SHAPES + 1), &[]), Err(CodeError::Shapes)));
    assert_eq!(space.shapes.lock().len(), 0);
    assert!(space.add_module(1, &of(MAX_SHAPES), &[]).is_ok());
}

#[test]
fn a_dropped_module_gives_its_memory_back() {
    let space = space();
    let ty = func_type(&[], &[]);
    let module = module(vec![ty.clone()], vec![0; 1000], 0);
    let stubs = space.stubs(&ty).unwrap();
    let first = space.add_module(1, &module, &[]).unwrap();
    let (thunk, cell) = (first.thunk(0), first.cell(0) as *const EntryCell);
    let native = first.put(0, Entry::Call, &forward(1)).unwrap();
    assert_eq!(first.space().stubs(&ty).unwrap().to_rust, stubs.to_rust, "made once");
    drop(first);
    assert!(space.arena.region_at(native as usize).is_none_or(|(_, tag)| tag == STUB));
    let second = space.add_module(2, &module, &[]).unwrap();
    assert_eq!((second.thunk(0), second.cell(0) as *const EntryCell), (thunk, cell));
    assert_eq!(second.thunk(1) as usize - second.thunk(0) as usize, THUNK);
}

#[test]
fn traps_on_several_threads_at_once() {
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                for _ in 0..20 {
                    // Engines come and go while others trap.
                    let space = space();
                    let ty = func_type(&[], &[]);
                    let code = space.add_module(1, &module(vec![ty.clone()], vec![0], 0), &[]).unwrap();
                    let native = code.put(0, Entry::Call, &unreachable()).unwrap();
                    let enter = space.stubs(&ty).unwrap().enter;
                    let mut world = World::new(&Module::default());
                    for _ in 0..50 {
                        assert_eq!(world.enter(enter, native, &[]).0, Status::Trap);
                    }
                    assert_eq!(SCRIPT.take().backtraces.len(), 50);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_thread_gets_an_alternate_stack_that_is_large_enough() {
    let threads = [false, true].map(|has_none| {
        std::thread::spawn(move || {
            if has_none {
                testing::remove_signal_stack();
            }
            assert_eq!(testing::signal_stack().is_none(), has_none);
            assert!(testing::signal_stack() < Some(64 << 10));
            signals::ensure_altstack().unwrap();
            assert!(testing::signal_stack() >= Some(64 << 10));
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Runs the test `name` in a process of its own, with the variable set that makes it crash, and returns the signal that ended the
/// process.
fn signal_of_child(name: &str) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    let exe = std::env::current_exe().unwrap();
    let name = format!("code::tests::{name}");
    Command::new(exe).args(["--exact", &name]).env(CRASH, "1").output().unwrap().status.signal()
}

const CRASH: &str = "WEIR_TEST_CRASH";

#[test]
fn a_crash_of_the_host_still_kills() {
    if std::env::var_os(CRASH).is_some() {
        let _space = space();
        // SAFETY: not sound at all: it must end the process.
        unsafe { std::ptr::dangling_mut::<u8>().write_volatile(1) };
    } else {
        assert_eq!(signal_of_child("a_crash_of_the_host_still_kills"), Some(testing::SIGSEGV));
    }
}

#[test]
fn a_fault_of_native_code_outside_its_trap_sites_kills() {
    if std::env::var_os(CRASH).is_some() {
        let space = space();
        let ty = func_type(&[], &[]);
        let code = space.add_module(1, &module(vec![ty.clone()], vec![0], 0), &[]).unwrap();
        let native = code.put(
            0,
            Entry::Call,
            &faulting(|asm, code| {
                code.trap(asm, Trap::UnreachableCodeReached, 3);
                dynasm!(asm; .arch x64; nop; ud2);
            }),
        );
        World::new(&Module::default()).enter(space.stubs(&ty).unwrap().enter, native.unwrap(), &[]);
    } else {
        assert_eq!(signal_of_child("a_fault_of_native_code_outside_its_trap_sites_kills"), Some(testing::SIGILL));
    }
}

#[test]
fn a_signal_that_was_sent_still_kills() {
    if std::env::var_os(CRASH).is_some() {
        let _space = space();
        testing::raise(testing::SIGFPE);
    } else {
        assert_eq!(signal_of_child("a_signal_that_was_sent_still_kills"), Some(testing::SIGFPE));
    }
}
