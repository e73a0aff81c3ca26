//! Loops over the producer's own vectors of 128 bits: two of them are a vector of 256 bits, for each instruction that keeps lanes.

use bumpalo::Bump;
use std::fmt::Write;
use weir::{Config, Engine, Instance, Module, Store, Tier};
use weir_bytecode::Opcode;
use weir_bytecode::lanes::{LaneOp, Lanes};
use weir_bytecode::types::ValType;
use weir_jit::Options;
use weir_jit::analysis::verify;
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{Func, eval, parse, print};
use weir_jit::opt::vectorise;
use weir_jit::pipeline::{self, Finished, Form, Phase, Unit};
use weir_tests::engines::engine;
use weir_tests::rng::Rng;

const PAGE: usize = 1 << 16;

/// An instruction whose operands are vectors, and a count if it shifts.
#[derive(Clone, Copy)]
struct Subject {
    opcode: Opcode,
    lanes: Lanes,
    vectors: usize,
}

impl Subject {
    fn of(opcode: Opcode) -> Option<Subject> {
        let (lanes, signature) = (opcode.lanes().filter(|lanes| lanes.keeps_lanes())?, opcode.signature()?);
        let vectors = signature.operands.iter().filter(|&&ty| ty == ValType::V128).count();
        (vectors > 0 && signature.result == ValType::V128).then_some(Subject { opcode, lanes, vectors })
    }

    fn shifts(self) -> bool {
        matches!(self.lanes.op, LaneOp::Shift(_))
    }

    /// `f(to, from, from, from, rounds, count)`: each round does the same to this many vectors.
    fn ssa(self, copies: u32) -> String {
        let mut text = String::from("func 0 (i32, i32, i32, i32, i32, i32)\nb0:\n");
        (0..6).for_each(|i| writeln!(text, " v{i}: i32 = param {i}").unwrap());
        writeln!(text, " v6: i32 = const {}\n v7: i32 = const 1\n jump b1\nb1:", 16 * copies).unwrap();
        (0..5).for_each(|i| writeln!(text, " v{}: i32 = phi b0: v{i}, b1: v{}", 10 + i, 20 + i).unwrap());
        for copy in 0..copies {
            let (at, first) = (16 * copy, 30 + 10 * copy);
            let loads = (0..self.vectors as u32).map(|i| (first + i, 11 + i));
            loads.clone().for_each(|(load, from)| writeln!(text, " v{load}: v128 = load v{from} +{at}").unwrap());
            let mut args: Vec<String> = loads.map(|(load, _)| format!("v{load}")).collect();
            args.extend(self.shifts().then(|| "v5".into()));
            writeln!(text, " v{}: v128 = vector {} {}", first + 5, self.opcode.mnemonic(), args.join(", ")).unwrap();
            writeln!(text, " store v10 +{at}, v{}", first + 5).unwrap();
        }
        (0..4).for_each(|i| writeln!(text, " v{}: i32 = add v{}, v6", 20 + i, 10 + i).unwrap());
        text + " v24: i32 = sub v14, v7\n branch v24, b1, b2\nb2:\n return\n"
    }

    /// The same as a module.
    fn wat(self, copies: u32) -> String {
        let body: String = (0..copies)
            .map(|copy| {
                let at = 16 * copy;
                let loads: String = (0..self.vectors).map(|i| format!("(v128.load offset={at} (local.get {}))", i + 1)).collect();
                let count = if self.shifts() { "(local.get 5)" } else { "" };
                format!("(v128.store offset={at} (local.get 0) ({} {loads} {count}))", self.opcode.mnemonic())
            })
            .collect();
        let steps: String =
            (0..4).map(|i| format!("(local.set {i} (i32.add (local.get {i}) (i32.const {})))", 16 * copies)).collect();
        format!(
            "(module (memory (export \"memory\") 1) (func (export \"f\") (param i32 i32 i32 i32 i32 i32) (loop {body} {steps} \
             (br_if 0 (local.tee 4 (i32.sub (local.get 4) (i32.const 1)))))))"
        )
    }

    /// Bytes for a memory: numbers, if the instruction is on floats.
    fn memory(self, rng: &mut Rng) -> Vec<u8> {
        let mut word = || -> u64 {
            let small = rng.below(17) as i32 - 8;
            match self.lanes.from.is_float().then(|| self.lanes.from.lane_bits()) {
                Some(32) => u64::from((small as f32 * 0.75).to_bits()) | u64::from((rng.bits() as u32 as f32).to_bits()) << 32,
                Some(_) => (f64::from(small) * 1.25).to_bits(),
                None => rng.bits() >> (8 * rng.below(8)),
            }
        };
        (0..PAGE / 8).flat_map(|_| word().to_le_bytes()).collect()
    }

    /// Whether two memories differ at most in the bits of NaNs.
    fn same(self, a: &[u8], b: &[u8]) -> bool {
        let is_nan = |bytes: &[u8]| match bytes.len() {
            4 => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
            _ => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        };
        let len = (self.lanes.shape.lane_bits() / 8) as usize;
        let same = |(a, b): (&[u8], &[u8])| a == b || self.lanes.shape.is_float() && is_nan(a) && is_nan(b);
        match self.lanes.shape.is_float() {
            true => a.chunks(len).zip(b.chunks(len)).all(same),
            false => a == b,
        }
    }
}

/// The function after the pass, and whether the pass changed it.
fn vectorised(func: Func<'_>) -> (Func<'_>, bool) {
    let options = Options { verify: true, ..Options::default() };
    let mut unit = Unit::without_module(func, &options);
    let _ = pipeline::run(&mut unit, [Phase::of(&vectorise::PASS)], &mut ()).unwrap();
    let Finished { form: Form::Ssa(func), stats, .. } = unit.finish() else { panic!("the pass is on SSA") };
    (func, stats.changes[0].1 > 0)
}

/// The memory after a call in an engine, or before a trap.
fn called(engine: &Engine, text: &str, memory: &[u8], args: [i32; 6]) -> (bool, Vec<u8>) {
    let module = Module::new(engine, text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let at = instance.get_memory(&mut store, "memory").unwrap();
    at.write(&mut store, 0, memory).unwrap();
    let f = instance.get_typed_func::<(i32, i32, i32, i32, i32, i32), ()>(&mut store, "f").unwrap();
    let [a, b, c, d, e, g] = args;
    let end = f.call(&mut store, (a, b, c, d, e, g));
    (end.is_ok(), at.data(&store).to_vec())
}

#[test]
fn pairs_do_what_each_vector_does() {
    let [interpreter, native] = [Tier::Interpreter, Tier::Native].map(|tier| {
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(1));
        engine(&config).unwrap()
    });
    let subjects: Vec<Subject> = Opcode::ALL.iter().filter_map(|&opcode| Subject::of(opcode)).collect();
    let mut rng = Rng::new(1);
    let mut loops = 0;
    for &subject in &subjects {
        for copies in [1, 2, 3, 4] {
            let (arena, text) = (Bump::new(), subject.ssa(copies));
            let original = parse(&arena, &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            verify(&original, None).unwrap_or_else(|error| panic!("{error}\n{original}"));
            let (vector, changed) = vectorised(parse(&arena, &text).unwrap());
            assert!(changed, "{text}");
            assert!(print(&vector).contains("v256"));
            loops += 1;
            for run in 0..3 {
                let memory = subject.memory(&mut rng);
                let first = 256 + rng.below(64);
                // Apart, or at any distance from each other, or beyond the memory's end.
                let at: [u32; 4] = std::array::from_fn(|i| match run {
                    0 => 1000 + 12_000 * i as u32,
                    1 => first + rng.below(200),
                    _ => first + 16 * rng.below(9),
                });
                // The bits of a NaN are open, and would be those of two numbers.
                let at = if subject.lanes.shape.is_float() { at.map(|at| at & !7) } else { at };
                let at = if run == 2 && rng.one_in(4) { [at[0], at[1], PAGE as u32 - 600, at[3]] } else { at };
                let args = [at[0], at[1], at[2], at[3], 1 + rng.below(60), rng.below(80)];
                let values = args.map(u128::from);
                let world = Sandbox { memories: vec![memory.clone()], ..Sandbox::default() };
                let [expected, found] = [&original, &vector].map(|func| {
                    let mut world = world.clone();
                    (eval(func, &mut world, &values, 100_000), world)
                });
                let name = subject.opcode.mnemonic();
                assert!(
                    expected.0 == found.0 && subject.same(&expected.1.memories[0], &found.1.memories[0]),
                    "{name} {args:?}\n{vector}"
                );
                let text = subject.wat(copies);
                let args = args.map(|arg| arg as i32);
                let [expected, found] = [&interpreter, &native].map(|engine| called(engine, &text, &memory, args));
                assert!(expected.0 == found.0 && subject.same(&expected.1, &found.1), "{name} {args:?}\n{text}");
            }
        }
    }
    println!("{} instructions, {loops} loops", subjects.len());
    assert!(subjects.len() > 100);
}
