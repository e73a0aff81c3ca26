//! Loops over the producer's own vectors of 128 bits: two of them are a vector of 256 bits, for each instruction that there is of that length.

use bumpalo::Bump;
use std::fmt::Write;
use weir::{Config, Engine, Instance, Module, Store, Tier};
use weir_bytecode::Opcode;
use weir_bytecode::lanes::{Integer, LaneOp, Lanes, Permute, Whole};
use weir_bytecode::types::ValType;
use weir_bytecode::validate;
use weir_contract::Entry;
use weir_contract::code::Backend;
use weir_jit::analysis::verify;
use weir_jit::explore::explore_ssa;
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{Block, Func, eval, parse, print};
use weir_jit::{Options, Request};
use weir_tests::engines::engine;
use weir_tests::rng::Rng;
use weir_tests::vector_loops::vectorised;

const PAGE: usize = 1 << 16;

/// Where the operands of the instruction come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Arrays of their own.
    Apart,
    /// One array, at distances of half a vector.
    Stencil,
    /// The first operand is what the copy before has loaded.
    Recurrence,
    /// The first operand is the result of the copy before.
    Reduction,
    /// The last operand, or the count of a shift, is a constant.
    Constant,
    /// As `Apart`, in a loop whose addresses descend.
    Descending,
    /// As `Recurrence`, in a loop whose addresses descend.
    DescendingRecurrence,
}

const FORMS: [Form; 7] =
    [Form::Apart, Form::Stencil, Form::Recurrence, Form::Reduction, Form::Constant, Form::Descending, Form::DescendingRecurrence];

/// An instruction whose operands are vectors, besides a count if it shifts, or the lanes that it chooses.
#[derive(Clone, Copy)]
struct Subject {
    opcode: Opcode,
    lanes: Lanes,
    vectors: u32,
    form: Form,
    /// The lanes that a shuffle chooses.
    chosen: u128,
}

impl Subject {
    fn of(opcode: Opcode, form: Form, rng: &mut Rng) -> Option<Subject> {
        let (lanes, signature) = (opcode.lanes().filter(|lanes| lanes.op.works_on_halves())?, opcode.signature()?);
        let vectors = signature.operands.iter().filter(|&&ty| ty == ValType::V128).count() as u32;
        let vectors = if opcode == Opcode::I8x16Shuffle { 2 } else { vectors };
        let reduces = match lanes.op {
            LaneOp::Whole(op) => matches!(op, Whole::And | Whole::Or | Whole::Xor),
            LaneOp::Integer(op) => {
                matches!(op, Integer::Add | Integer::MinS | Integer::MinU | Integer::MaxS | Integer::MaxU)
            }
            _ => false,
        };
        let shifts = matches!(lanes.op, LaneOp::Shift(_));
        let has_form = match form {
            Form::Reduction => reduces,
            Form::Constant => vectors > 1 || shifts,
            _ => true,
        };
        let is_subject = vectors > 0 && signature.result == ValType::V128 && has_form;
        is_subject.then(|| Subject { opcode, lanes, vectors, form, chosen: chosen_lanes(rng) })
    }

    fn shifts(self) -> bool {
        matches!(self.lanes.op, LaneOp::Shift(_))
    }

    fn shuffles(self) -> bool {
        self.lanes.op == LaneOp::Permute(Permute::Shuffle)
    }

    fn recurs(self) -> bool {
        matches!(self.form, Form::Recurrence | Form::DescendingRecurrence)
    }

    /// Whether a vector is passed from round to round.
    fn carries(self) -> bool {
        self.recurs() || self.form == Form::Reduction
    }

    fn descends(self) -> bool {
        matches!(self.form, Form::Descending | Form::DescendingRecurrence)
    }

    /// The most copies in a round. Those of a round ascend.
    fn most_copies(self) -> u32 {
        match self.form {
            Form::Apart => 3,
            Form::Stencil | Form::Recurrence | Form::Reduction => 2,
            Form::Constant | Form::Descending | Form::DescendingRecurrence => 1,
        }
    }

    /// The array, by its parameter, and the distance of the load of an operand.
    fn place(self, copy: u32, operand: u32) -> (u32, u32) {
        match self.form {
            Form::Stencil => (1, 16 * copy + 8 * operand),
            _ => (1 + operand, 16 * copy),
        }
    }

    /// `f(to, from, from, from, rounds, count)`: each round does the same to this many vectors. It may poll, and costs fuel then.
    fn ssa(self, copies: u32, polls: bool) -> String {
        let mut text = String::from("func 0 (i32, i32, i32, i32, i32, i32)\nb0:\n");
        (0..6).for_each(|i| writeln!(text, " v{i}: i32 = param {i}").unwrap());
        writeln!(text, " v6: i32 = const {}\n v7: i32 = const 1", 16 * copies).unwrap();
        let [low, high] = [self.chosen as u64, (self.chosen >> 64) as u64].map(|half| half as i64);
        writeln!(text, " v8: i64 = const {low}\n v9: i64 = const {high}\n v15: v128 = vector v128.const v8, v9").unwrap();
        writeln!(text, " v16: v128 = load v1\n v17: i32 = const 16\n v19: i32 = const {}\n jump b1\nb1:", low & 63).unwrap();
        (0..5).for_each(|i| writeln!(text, " v{}: i32 = phi b0: v{i}, b1: v{}", 10 + i, 20 + i).unwrap());
        let last = 30 + 10 * (copies - 1) + if self.form == Form::Reduction { 5 } else { 0 };
        if self.carries() {
            writeln!(text, " v18: v128 = phi b0: v16, b1: v{last}").unwrap();
        }
        if polls {
            text += " poll\n fuel 3\n";
        }
        let mut carried = 18;
        for copy in 0..copies {
            let (first, result) = (30 + 10 * copy, 35 + 10 * copy);
            for i in 0..self.vectors {
                let (from, at) = self.place(copy, i);
                writeln!(text, " v{}: v128 = load v{} +{at}", first + i, 10 + from).unwrap();
            }
            let mut args: Vec<u32> = (first..first + self.vectors).collect();
            match self.form {
                Form::Recurrence | Form::DescendingRecurrence => args[0] = carried,
                // All operands but the first one.
                Form::Reduction => args = vec![carried, first],
                Form::Constant if !self.shifts() => *args.last_mut().expect("it has operands") = 15,
                Form::Constant | Form::Apart | Form::Stencil | Form::Descending => {}
            }
            args.extend(self.shifts().then_some(if self.form == Form::Constant { 19 } else { 5 }));
            args.extend(self.shuffles().then_some(15));
            let args: Vec<String> = args.into_iter().map(|arg| format!("v{arg}")).collect();
            writeln!(text, " v{result}: v128 = vector {} {}", self.opcode.mnemonic(), args.join(", ")).unwrap();
            if self.form != Form::Reduction {
                writeln!(text, " store v10 +{}, v{result}", 16 * copy).unwrap();
            }
            carried = if self.form == Form::Reduction { result } else { first };
        }
        let step = if self.descends() { "sub" } else { "add" };
        (0..4).for_each(|i| writeln!(text, " v{}: i32 = {step} v{}, v6", 20 + i, 10 + i).unwrap());
        text += " v24: i32 = sub v14, v7\n branch v24, b1, b2\nb2:\n";
        if self.carries() {
            writeln!(text, " store v17, v{last}").unwrap();
        }
        text + " return\n"
    }

    /// The same as a module.
    fn wat(self, copies: u32) -> String {
        let mut body = String::new();
        for copy in 0..copies {
            let load = |i: u32| {
                let (from, at) = self.place(copy, i);
                format!("(v128.load offset={at} (local.get {from}))")
            };
            let mut operands: Vec<String> = (0..self.vectors).map(load).collect();
            let chosen: String = self.chosen.to_le_bytes().iter().map(|lane| format!(" {lane}")).collect();
            match self.form {
                Form::Recurrence | Form::DescendingRecurrence => {
                    write!(body, "(local.set 7 {})", operands[0]).unwrap();
                    operands[0] = "(local.get 6)".into();
                }
                Form::Reduction => operands = vec!["(local.get 6)".into(), operands.swap_remove(0)],
                Form::Constant if !self.shifts() => {
                    *operands.last_mut().expect("it has operands") = format!("(v128.const i8x16{chosen})");
                }
                Form::Constant | Form::Apart | Form::Stencil | Form::Descending => {}
            }
            let count = match self.form {
                Form::Constant => format!("(i32.const {})", self.chosen as u32 & 63),
                _ => "(local.get 5)".into(),
            };
            operands.extend(self.shifts().then_some(count));
            let chosen = if self.shuffles() { chosen } else { String::new() };
            let result = format!("({}{chosen} {})", self.opcode.mnemonic(), operands.join(" "));
            match self.form {
                Form::Reduction => write!(body, "(local.set 6 {result})").unwrap(),
                _ => write!(body, "(v128.store offset={} (local.get 0) {result})", 16 * copy).unwrap(),
            }
            if self.recurs() {
                body += "(local.set 6 (local.get 7))";
            }
        }
        let step = if self.descends() { "sub" } else { "add" };
        let steps: String =
            (0..4).map(|i| format!("(local.set {i} (i32.{step} (local.get {i}) (i32.const {})))", 16 * copies)).collect();
        let end = if self.carries() { "(v128.store (i32.const 16) (local.get 6))" } else { "" };
        format!(
            "(module (memory (export \"memory\") 1) (func (export \"f\") (param i32 i32 i32 i32 i32 i32) (local v128 v128) \
             (local.set 6 (v128.load (local.get 1))) (loop {body} {steps} \
             (br_if 0 (local.tee 4 (i32.sub (local.get 4) (i32.const 1))))) {end}))"
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

    /// Whether two memories differ at most in the bits of NaNs in lanes of the result, if these are numbers.
    fn same(self, a: &[u8], b: &[u8]) -> bool {
        let is_nan = |bytes: &[u8]| match bytes.len() {
            4 => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
            _ => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        };
        let len = (self.lanes.shape.lane_bits() / 8) as usize;
        let is_number = self.lanes.shape.is_float() && !matches!(self.lanes.op, LaneOp::FloatCompare(_));
        let same = |(a, b): (&[u8], &[u8])| a == b || is_number && is_nan(a) && is_nan(b);
        a.len() == b.len() && a.chunks(len).zip(b.chunks(len)).all(same)
    }
}

/// Lanes of a shuffle: those for which there is an instruction, and others.
fn chosen_lanes(rng: &mut Rng) -> u128 {
    let any = |rng: &mut Rng| rng.below(32) as u8;
    let (first, width) = (any(rng) & 15, 1 << rng.below(4));
    let half = 8 * (any(rng) & 1);
    let lanes: [u8; 16] = std::array::from_fn(|i| {
        let i = i as u8;
        match first % 6 {
            // Consecutive bytes of both.
            0 => first + i,
            // Interleaved lanes.
            1 => half + i / width / 2 * width + i % width + i / width % 2 * 16,
            // One lane.
            2 => half + i % width,
            // Words of the first vector, some in place.
            3 => ((i / 2) ^ (half / 8 * ((i / 8) & 1))) * 2 + i % 2,
            // Lanes in place, of either.
            4 => i + 16 * (half >> (i / 2 % 4) & 1),
            _ => 0,
        }
    });
    let lanes = if first % 6 == 5 { lanes.map(|_| any(rng)) } else { lanes };
    u128::from_le_bytes(lanes)
}

/// Whether a call returns, and the memory after it.
fn called(module: &Module, memory: &[u8], args: [i32; 6]) -> (bool, Vec<u8>) {
    let mut store = Store::new(module.engine(), ());
    let instance = Instance::new(&mut store, module, &[]).unwrap();
    let at = instance.get_memory(&mut store, "memory").unwrap();
    at.write(&mut store, 0, memory).unwrap();
    let f = instance.get_typed_func::<(i32, i32, i32, i32, i32, i32), ()>(&mut store, "f").unwrap();
    let [a, b, c, d, e, g] = args;
    let end = f.call(&mut store, (a, b, c, d, e, g));
    (end.is_ok(), at.data(&store).to_vec())
}

/// Whether the function of a module is vectorised.
fn has_long_vectors(text: &str) -> bool {
    let module = validate::parse(wat::parse_str(text).expect("it is well formed").into()).expect("it is valid");
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    let (options, entry, backend) = (Options { opt_all: true, ..Options::default() }, Entry::Call, Backend::Native);
    let request =
        Request { module: &module, func: 0, entry, sig_ids: &sig_ids, backend, profile: None, callees: None, options: &options };
    explore_ssa(&request).iter().any(|section| section.text.contains("v256"))
}

/// A loop over vectors of 128 bits in all its forms: SSA before and after it is vectorised, and modules in the interpreter and in machine code.
struct Compared<'a> {
    original: Func<'a>,
    vector: Func<'a>,
    modules: [Module; 2],
    text: String,
}

/// The engines that interpret, and that compile at once.
fn engines() -> [Engine; 2] {
    [Tier::Interpreter, Tier::Native].map(|tier| {
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(1)).opt_all(true);
        engine(&config).unwrap()
    })
}

impl<'a> Compared<'a> {
    /// # Panics
    /// The loop is not vectorised, in SSA or in the module.
    fn new(arena: &'a Bump, ssa: &str, text: String, engines: &[Engine; 2]) -> Compared<'a> {
        let original = parse(arena, ssa).unwrap_or_else(|error| panic!("{error}\n{ssa}"));
        verify(&original, None).unwrap_or_else(|error| panic!("{error}\n{original}"));
        let (vector, changed) = vectorised(parse(arena, ssa).unwrap());
        assert!(changed && print(&vector).contains("v256"), "{ssa}");
        assert!(has_long_vectors(&text), "{text}");
        let modules =
            engines.each_ref().map(|engine| Module::new(engine, &text).unwrap_or_else(|error| panic!("{error:?}\n{text}")));
        Compared { original, vector, modules, text }
    }

    /// Runs all forms. The two in SSA may take `most` instructions each. Memories are equal if `same` says so.
    ///
    /// # Panics
    /// Two forms differ.
    fn run(&self, world: &Sandbox, args: [u32; 6], most: [usize; 2], same: impl Fn(&[u8], &[u8]) -> bool) {
        let [expected, found] = [(&self.original, most[0]), (&self.vector, most[1])].map(|(func, most)| {
            let mut world = world.clone();
            (eval(func, &mut world, &args.map(u128::from), most as u64), world)
        });
        assert!(
            expected.0 == found.0
                && (expected.1.fuel, &expected.1.called_at) == (found.1.fuel, &found.1.called_at)
                && same(&expected.1.memories[0], &found.1.memories[0]),
            "{args:?}\n{}",
            self.vector
        );
        let [expected, found] =
            self.modules.each_ref().map(|module| called(module, &world.memories[0], args.map(|arg| arg as i32)));
        assert!(expected.0 == found.0 && same(&expected.1, &found.1), "{args:?}\n{}", self.text);
    }
}

#[test]
fn pairs_do_what_each_vector_does() {
    let engines = engines();
    let mut rng = Rng::new(1);
    let mut subjects = Vec::new();
    for form in FORMS {
        subjects.extend(Opcode::ALL.iter().filter_map(|&opcode| Subject::of(opcode, form, &mut rng)));
    }
    let shuffle = |_| Subject::of(Opcode::I8x16Shuffle, Form::Apart, &mut rng).expect("it has two vectors");
    subjects.extend((0..60).map(shuffle).collect::<Vec<_>>());
    let mut loops = 0;
    for &subject in &subjects {
        for copies in 1..=subject.most_copies() {
            let arena = Bump::new();
            let compared = Compared::new(&arena, &subject.ssa(copies, loops % 2 == 0), subject.wat(copies), &engines);
            loops += 1;
            for run in 0..3 {
                let memory = subject.memory(&mut rng);
                let (rounds, first) = (1 + rng.below(60), 256 + rng.below(64));
                let rounds = if run == 0 { 150 + rounds } else { rounds };
                // Apart, or at any distance from each other, or beyond the memory's end.
                let mut at: [u32; 4] = std::array::from_fn(|i| match run {
                    0 => 1000 + 12_000 * i as u32,
                    1 => first + rng.below(200),
                    _ => first + 16 * rng.below(9),
                });
                if subject.lanes.shape.is_float() {
                    // The bits of a NaN are open, and would be those of two numbers.
                    at = at.map(|at| at & !7);
                }
                if subject.descends() {
                    at = at.map(|at| at + 16 * copies * rounds);
                }
                if run == 2 && rng.one_in(4) {
                    let beyond = if subject.descends() { 600 } else { PAGE as u32 - 600 };
                    at[if subject.form == Form::Apart { rng.below(subject.vectors + 1) as usize } else { 1 }] = beyond;
                }
                let args = [at[0], at[1], at[2], at[3], rounds, rng.below(80)];
                // The host is called by some polls.
                let due_at = if run == 1 { vec![3 * 900, 3 * 970] } else { Vec::new() };
                let world = Sandbox { memories: vec![memory], fuel: Some(3000), due_at, ..Sandbox::default() };
                let written = rounds as usize * compared.original.block(Block(1)).insts.len();
                // A round of the vector loop is two of the loop, if that has one copy.
                let most = if run == 0 && copies == 1 { 7 * written / 8 } else { 2 * written + 1000 };
                compared.run(&world, args, [2 * written + 1000, most], |a, b| subject.same(a, b));
            }
        }
    }
    let forms = |form| subjects.iter().filter(|subject| subject.form == form).count();
    println!("{} loops; {} instructions, {} that reduce", loops, forms(Form::Recurrence), forms(Form::Reduction));
    assert!(forms(Form::Recurrence) > 190 && forms(Form::Reduction) == 19);
}

/// A loop over vectors that are loaded and stored in part: `f(to, from, -, -, rounds, -)`.
#[derive(Clone, Copy)]
struct Partial {
    /// The bytes that are loaded, and stored.
    loads: u32,
    stores: u32,
    /// The lane that is stored.
    lane: u32,
    opcode: Opcode,
    descends: bool,
    /// An instruction on the result of the first one.
    then: Option<Opcode>,
    /// Whether every second load is of twice the bytes, of which the second half is not used.
    wider: bool,
}

impl Partial {
    /// The instruction that loads the vector of a copy.
    fn load(self, copy: u32) -> (&'static str, &'static str) {
        match if self.wider && copy.is_multiple_of(2) { 2 * self.loads } else { self.loads } {
            4 => ("load32_u", "v128.load32_zero"),
            8 => ("load64_u", "v128.load64_zero"),
            _ => ("load", "v128.load"),
        }
    }

    /// The instruction that stores a lane.
    fn store(self) -> (&'static str, &'static str) {
        match self.stores {
            4 => ("i32 = vector i32x4.extract_lane", "v128.store32_lane"),
            _ => ("i64 = vector i64x2.extract_lane", "v128.store64_lane"),
        }
    }

    /// The steps of the pointers.
    fn steps(self, copies: u32) -> [i32; 2] {
        [self.stores, self.loads].map(|width| (width * copies) as i32 * if self.descends { -1 } else { 1 })
    }

    fn ssa(self, copies: u32) -> String {
        let [to, from] = self.steps(copies);
        let mut text = String::from("func 0 (i32, i32, i32, i32, i32, i32)\nb0:\n");
        (0..6).for_each(|i| writeln!(text, " v{i}: i32 = param {i}").unwrap());
        writeln!(text, " v6: i32 = const {to}\n v7: i32 = const {from}\n v8: i32 = const 1\n jump b1\nb1:").unwrap();
        (0..2).for_each(|i| writeln!(text, " v{}: i32 = phi b0: v{i}, b1: v{}", 10 + i, 20 + i).unwrap());
        writeln!(text, " v14: i32 = phi b0: v4, b1: v24").unwrap();
        for copy in 0..copies {
            let first = 30 + 10 * copy;
            let (load, extract) = (self.load(copy).0, self.store().0);
            let [loaded, once, lane, twice] = [0, 1, 2, 3].map(|i| first + i);
            let result = if self.then.is_some() { twice } else { once };
            let args = if self.is_unary() { format!("v{loaded}") } else { format!("v{loaded}, v{loaded}") };
            writeln!(text, " v{loaded}: v128 = {load} v11 +{}", self.loads * copy).unwrap();
            writeln!(text, " v{once}: v128 = vector {} {args}", self.opcode.mnemonic()).unwrap();
            if let Some(then) = self.then {
                writeln!(text, " v{twice}: v128 = vector {} v{once}", then.mnemonic()).unwrap();
            }
            let stored = if self.stores == 16 { result } else { lane };
            if self.stores < 16 {
                writeln!(text, " v{lane}: {extract} lane{} v{result}", self.lane).unwrap();
            }
            writeln!(text, " store v10 +{}, v{stored}", self.stores * copy).unwrap();
        }
        writeln!(text, " v20: i32 = add v10, v6\n v21: i32 = add v11, v7").unwrap();
        text + " v24: i32 = sub v14, v8\n branch v24, b1, b2\nb2:\n return\n"
    }

    fn wat(self, copies: u32) -> String {
        let [to, from] = self.steps(copies);
        let mut body = String::new();
        for copy in 0..copies {
            let (load, store) = (self.load(copy).1, self.store().1);
            let loaded = format!("({load} offset={} (local.get 1))", self.loads * copy);
            let args = if self.is_unary() { loaded } else { format!("{loaded} {loaded}") };
            let mut result = format!("({} {args})", self.opcode.mnemonic());
            if let Some(then) = self.then {
                result = format!("({} {result})", then.mnemonic());
            }
            let at = self.stores * copy;
            match self.stores {
                16 => write!(body, "(v128.store offset={at} (local.get 0) {result})"),
                _ => write!(body, "({store} offset={at} {} (local.get 0) {result})", self.lane),
            }
            .unwrap();
        }
        format!(
            "(module (memory (export \"memory\") 1) (func (export \"f\") (param i32 i32 i32 i32 i32 i32) (loop {body}
             (local.set 0 (i32.add (local.get 0) (i32.const {to}))) (local.set 1 (i32.add (local.get 1) (i32.const {from})))
             (br_if 0 (local.tee 4 (i32.sub (local.get 4) (i32.const 1)))))))"
        )
    }

    fn is_unary(self) -> bool {
        self.opcode.signature().expect("it accesses no memory").operands.len() == 1
    }
}

#[test]
fn vectors_that_are_loaded_or_stored_in_part_are_paired() {
    let engines = engines();
    let opcodes = [
        Opcode::I16x8ExtendLowI8x16U,
        Opcode::I32x4ExtendLowI16x8S,
        Opcode::I8x16NarrowI16x8U,
        Opcode::I16x8Add,
        Opcode::I32x4Neg,
        Opcode::I16x8ExtmulLowI8x16S,
        Opcode::F64x2ConvertLowI32x4S,
        Opcode::F64x2ConvertLowI32x4U,
    ];
    let mut rng = Rng::new(2);
    let mut all = Vec::new();
    for (&opcode, descends) in opcodes.iter().flat_map(|opcode| [false, true].map(|descends| (opcode, descends))) {
        for (loads, stores) in [(4, 16), (8, 16), (16, 4), (16, 8), (8, 8), (4, 4), (4, 8), (8, 4)] {
            // The processor has no such instruction on the halves of a vector.
            if opcode == Opcode::F64x2ConvertLowI32x4S && loads != 8 {
                continue;
            }
            let lane = rng.below(16 / stores);
            let then = None;
            all.push(Partial { loads, stores, lane, opcode, descends, then, wider: false });
        }
    }
    // Chains of two that widen, whether or not one widens what the other has widened.
    let widening = [
        Opcode::I16x8ExtendLowI8x16S,
        Opcode::I16x8ExtendLowI8x16U,
        Opcode::I32x4ExtendLowI16x8S,
        Opcode::I32x4ExtendLowI16x8U,
        Opcode::I64x2ExtendLowI32x4S,
        Opcode::I64x2ExtendLowI32x4U,
        Opcode::F64x2ConvertLowI32x4S,
    ];
    for (&opcode, wider) in widening.iter().flat_map(|opcode| [false, true].map(|wider| (opcode, wider))) {
        let (stores, lane, descends) = (16, 0, false);
        all.push(Partial { loads: 8, stores, lane, opcode, descends, then: None, wider });
        for then in widening {
            all.push(Partial { loads: 4, stores, lane, opcode, descends, then: Some(then), wider });
        }
    }
    let mut loops = 0;
    for partial in all {
        // The copies of a round ascend.
        for copies in [1, 2, 4] {
            let arena = Bump::new();
            let compared = Compared::new(&arena, &partial.ssa(copies), partial.wat(copies), &engines);
            loops += 1;
            for run in 0..4 {
                let memory: Vec<u8> = (0..PAGE).map(|_| rng.bits() as u8).collect();
                let rounds = if run == 0 { 150 + rng.below(50) } else { 1 + rng.below(60) };
                let lower = if partial.descends { 16 * copies * rounds } else { 0 };
                // Apart, near each other, or beyond the memory's end.
                let [to, from] = match run {
                    0 => [1000, 30_000],
                    1 => [300 + rng.below(100), 300 + rng.below(100)],
                    2 => [300 + 4 * rng.below(20), 300 + 4 * rng.below(20)],
                    _ => [if rng.one_in(2) { 500 } else { 60_000 }, PAGE as u32 - rng.below(600)],
                };
                let [to, from] = [to, from].map(|at| at + if run < 3 { lower } else { 0 });
                let world = Sandbox { memories: vec![memory], ..Sandbox::default() };
                compared.run(&world, [to, from, 0, 0, rounds, 0], [100_000; 2], |a, b| a == b);
            }
        }
    }
    println!("{loops} loops");
}
