//! Tests that compare the bytes of every row of TABLE 3 that is one instruction, and of the encoder's other methods, with what a
//! disassembler says of them: mnemonics, registers, addresses, sizes of memory operands and immediates.
//!
//! The expected text is a pattern, written here by hand after the processor's manual. Nothing in it comes from the encoder: the names of
//! registers have a table of their own.

use super::encode::Bytes;
use super::insts::{Asm, Cond, Encoding, Inst, Mem, Opcode, Segment, Shape, Width};
use crate::regalloc::Reg;
use Width::{B, D, Q, W, X};
use iced_x86::{Decoder, DecoderOptions, Formatter, MemorySizeOptions, NasmFormatter};
use std::collections::BTreeSet;

/// The text of a row at some widths. In braces, it has operands:
///
/// - `d`, `s`: the destination and the left operand; `r`, `m`, `e`: a right operand that is a register, memory, or either.
/// - After this the kind of register: a general-purpose one of the width, or of the given number of bits; `x`, `y`: a vector of 128 or 256
///   bits; `v`: one of each.
/// - After a slash the size of memory, if it is not that of the register: bits; `w`, the width; `h`, `q`, `o`, a half, a fourth and an eighth
///   of the vector; `-`, none.
/// - `i`: an immediate of the width, extended from 32 bits; `ib`: a byte; `ic`: a count; `it`: 7 bits; `iu`: one with more than 7 bits.
///
/// and parts of mnemonics: `f`, `g`, the letters of the float of the width and of the other one; `l`, `t`, `n`, those of a lane of the width, of
/// one twice as wide and of one half as wide; `c`, the condition.
type Row = (Asm, &'static [Width], &'static str);

const ALL: &[Width] = &[B, W, D, Q];
const INT: &[Width] = &[D, Q];
const FLOAT: &[Width] = &[D, Q];
const ANY: &[Width] = &[X];

/// Every form of every row that is one instruction, apart from those of [`ALIKE`].
const ROWS: &[Row] = &[
    (Asm::Mov, INT, "mov {d},{e}"),
    (Asm::Movzx8, INT, "movzx {d},{e8}"),
    (Asm::Movzx16, INT, "movzx {d},{e16}"),
    (Asm::Movsx8, INT, "movsx {d},{e8}"),
    (Asm::Movsx16, INT, "movsx {d},{e16}"),
    (Asm::Movsxd, &[Q], "movsxd {d},{e32}"),
    (Asm::Lea, INT, "lea {d},{m/-}"),
    (Asm::MovTo, ALL, "mov {m},{s}"),
    (Asm::MovTo, ALL, "mov {m},{i}"),
    (Asm::Imul, INT, "imul {d},{e}"),
    (Asm::ImulImm, INT, "imul {d},{e},{i}"),
    (Asm::Neg, INT, "neg {d}"),
    (Asm::Not, INT, "not {d}"),
    (Asm::Shl, INT, "shl {d},{ic}"),
    (Asm::Shr, INT, "shr {d},{ic}"),
    (Asm::Sar, INT, "sar {d},{ic}"),
    (Asm::Rorx, INT, "rorx {d},{e},{ic}"),
    (Asm::Shlx, INT, "shlx {d},{e},{s}"),
    (Asm::Shrx, INT, "shrx {d},{e},{s}"),
    (Asm::Sarx, INT, "sarx {d},{e},{s}"),
    (Asm::RolCl, INT, "rol {d},cl"),
    (Asm::RorCl, INT, "ror {d},cl"),
    (Asm::Andn, INT, "andn {d},{s},{e}"),
    (Asm::Mulx, INT, "mulx {d},{d},{e}"),
    (Asm::Popcnt, INT, "popcnt {d},{e}"),
    (Asm::Lzcnt, INT, "lzcnt {d},{e}"),
    (Asm::Tzcnt, INT, "tzcnt {d},{e}"),
    (Asm::Cmp, ALL, "cmp {s},{e}"),
    (Asm::Cmp, ALL, "cmp {e},{i}"),
    (Asm::Test, INT, "test {e},{s}"),
    // The flags of a byte are the same.
    (Asm::Test, INT, "test {r8},{it}"),
    (Asm::Test, INT, "test {r},{iu}"),
    (Asm::Test, INT, "test {m},{i}"),
    (Asm::Cmov, INT, "cmov{c} {d},{e}"),
    (Asm::Vmov, FLOAT, "vmovaps {dx},{rx}"),
    (Asm::Vmov, FLOAT, "vmovs{f} {dx},{mx/w}"),
    (Asm::Vmov, ANY, "vmovaps {dv},{rv}"),
    (Asm::Vmov, ANY, "vmovups {dv},{mv}"),
    (Asm::VmovTo, FLOAT, "vmovs{f} {mx/w},{sx}"),
    (Asm::VmovTo, ANY, "vmovups {mv},{sv}"),
    // The bits that the instruction would leave come from a register that is ready.
    (Asm::Vsqrt, FLOAT, "vsqrts{f} {dx},{rx},{rx}"),
    (Asm::Vsqrt, FLOAT, "vxorps {dx},{dx},{dx}; vsqrts{f} {dx},{dx},{mx/w}"),
    (Asm::Vround, FLOAT, "vrounds{f} {dx},{rx},{rx},{ib}"),
    (Asm::Vround, FLOAT, "vxorps {dx},{dx},{dx}; vrounds{f} {dx},{dx},{mx/w},{ib}"),
    (Asm::Vconvert, FLOAT, "vcvts{f}2s{g} {dx},{rx},{rx}"),
    (Asm::Vconvert, FLOAT, "vxorps {dx},{dx},{dx}; vcvts{f}2s{g} {dx},{dx},{mx/w}"),
    (Asm::CvtSs, INT, "vxorps {dx},{dx},{dx}; vcvtsi2ss {dx},{dx},{e}"),
    (Asm::CvtSd, INT, "vxorps {dx},{dx},{dx}; vcvtsi2sd {dx},{dx},{e}"),
    (Asm::Vand, ANY, "vandps {dv},{sv},{rv}"),
    (Asm::Vor, ANY, "vorps {dv},{sv},{rv}"),
    (Asm::Vxor, ANY, "vxorps {dv},{sv},{rv}"),
    (Asm::Vucomi, FLOAT, "vucomis{f} {sx},{ex/w}"),
    (Asm::ToFloat, INT, "vmov{l} {dx},{e}"),
    (Asm::Pabs, &[B, W, D], "vpabs{l} {dv},{ev}"),
    (Asm::Psll, &[W, D, Q], "vpsll{l} {dv},{sv},{ex}"),
    (Asm::Psrl, &[W, D, Q], "vpsrl{l} {dv},{sv},{ex}"),
    (Asm::Psra, &[W, D], "vpsra{l} {dv},{sv},{ex}"),
    (Asm::PsllImm, &[W, D, Q], "vpsll{l} {dv},{rv},{ib}"),
    (Asm::PsrlImm, &[W, D, Q], "vpsrl{l} {dv},{rv},{ib}"),
    (Asm::PsraImm, &[W, D], "vpsra{l} {dv},{rv},{ib}"),
    (Asm::PextendS, &[B, W, D], "vpmovsx{l}{t} {dv},{ex/h}"),
    (Asm::PextendU, &[B, W, D], "vpmovzx{l}{t} {dv},{ex/h}"),
    (Asm::PextendFourS, &[B], "vpmovsxbd {dv},{ex/q}"),
    (Asm::PextendFourS, &[W], "vpmovsxwq {dv},{ex/q}"),
    (Asm::PextendFourU, &[B], "vpmovzxbd {dv},{ex/q}"),
    (Asm::PextendFourU, &[W], "vpmovzxwq {dv},{ex/q}"),
    (Asm::PextendEightS, &[B], "vpmovsxbq {dv},{ex/o}"),
    (Asm::PextendEightU, &[B], "vpmovzxbq {dv},{ex/o}"),
    (Asm::Pbroadcast, ALL, "vpbroadcast{l} {dv},{ex/w}"),
    (Asm::Pshufd, ANY, "vpshufd {dv},{ev},{ib}"),
    (Asm::PshufLow, ANY, "vpshuflw {dv},{ev},{ib}"),
    (Asm::PshufHigh, ANY, "vpshufhw {dv},{ev},{ib}"),
    (Asm::Palignr, ANY, "vpalignr {dv},{sv},{ev},{ib}"),
    (Asm::Shufps, ANY, "vshufps {dv},{sv},{ev},{ib}"),
    (Asm::Pblend, &[W], "vpblendw {dv},{sv},{ev},{ib}"),
    (Asm::Pinsert, &[B, W, D], "vpinsr{l} {dx},{sx},{e32/w},{ib}"),
    (Asm::Pinsert, &[Q], "vpinsrq {dx},{sx},{e64},{ib}"),
    (Asm::Pextract, &[B, W, D], "vpextr{l} {d32},{sx},{ib}"),
    (Asm::Pextract, &[Q], "vpextrq {d64},{sx},{ib}"),
    (Asm::PextractTo, ALL, "vpextr{l} {m},{sx},{ib}"),
    (Asm::InsertFloat, ANY, "vinsertps {dx},{sx},{ex/32},{ib}"),
    (Asm::MergeLow, ANY, "vmovsd {dx},{sx},{rx}"),
    (Asm::MergeHigh, ANY, "vmovlhps {dx},{sx},{rx}"),
    (Asm::MaskBytes, ANY, "vpmovmskb {d32},{rx}"),
    (Asm::MaskFloats, FLOAT, "vmovmskp{f} {d32},{rx}"),
    (Asm::PermuteHalves, ANY, "vperm2i128 {dy},{sy},{ey},{ib}"),
    (Asm::Ptest, ANY, "vptest {sx},{ex}"),
    (Asm::VsqrtAll, FLOAT, "vsqrtp{f} {dv},{ev}"),
    (Asm::VroundAll, FLOAT, "vroundp{f} {dv},{ev},{ib}"),
    (Asm::VcmpAll, FLOAT, "vcmpp{f} {dv},{sv},{ev},{ib}"),
    (Asm::IntToSingle, ANY, "vcvtdq2ps {dv},{ev}"),
    (Asm::IntToDouble, ANY, "vcvtdq2pd {dv},{ex/h}"),
    (Asm::SingleToInt, ANY, "vcvttps2dq {dv},{ev}"),
    (Asm::DoubleToInt, ANY, "vcvttpd2dq {dx},{ex}"),
    (Asm::SingleToDouble, ANY, "vcvtps2pd {dv},{ex/h}"),
    (Asm::DoubleToSingle, ANY, "vcvtpd2ps {dx},{ex}"),
];

/// Rows with the operands of others: the operands of their forms, and for each row its mnemonic.
const ALIKE: &[(&[&str], &[Row])] = &[
    (
        &["{d},{e}", "{d},{i}"],
        &[(Asm::Add, ALL, "add"), (Asm::Or, ALL, "or"), (Asm::And, ALL, "and"), (Asm::Sub, ALL, "sub"), (Asm::Xor, ALL, "xor")],
    ),
    (
        &["{m},{s}", "{m},{i}"],
        &[
            (Asm::AddTo, ALL, "add"),
            (Asm::OrTo, ALL, "or"),
            (Asm::AndTo, ALL, "and"),
            (Asm::SubTo, ALL, "sub"),
            (Asm::XorTo, ALL, "xor"),
        ],
    ),
    (
        &["{dx},{sx},{ex/w}"],
        &[
            (Asm::Vadd, FLOAT, "vadds{f}"),
            (Asm::Vmul, FLOAT, "vmuls{f}"),
            (Asm::Vsub, FLOAT, "vsubs{f}"),
            (Asm::Vdiv, FLOAT, "vdivs{f}"),
            (Asm::Vmin, FLOAT, "vmins{f}"),
            (Asm::Vmax, FLOAT, "vmaxs{f}"),
        ],
    ),
    (
        &["{dv},{sv},{ev}"],
        &[
            (Asm::Pand, ANY, "vpand"),
            (Asm::Pandn, ANY, "vpandn"),
            (Asm::Por, ANY, "vpor"),
            (Asm::Pxor, ANY, "vpxor"),
            (Asm::Padd, ALL, "vpadd{l}"),
            (Asm::PaddSatS, &[B, W], "vpadds{l}"),
            (Asm::PaddSatU, &[B, W], "vpaddus{l}"),
            (Asm::Psub, ALL, "vpsub{l}"),
            (Asm::PsubSatS, &[B, W], "vpsubs{l}"),
            (Asm::PsubSatU, &[B, W], "vpsubus{l}"),
            (Asm::PminS, &[B, W, D], "vpmins{l}"),
            (Asm::PminU, &[B, W, D], "vpminu{l}"),
            (Asm::PmaxS, &[B, W, D], "vpmaxs{l}"),
            (Asm::PmaxU, &[B, W, D], "vpmaxu{l}"),
            (Asm::Pavg, &[B, W], "vpavg{l}"),
            (Asm::Pcmpeq, ALL, "vpcmpeq{l}"),
            (Asm::Pcmpgt, ALL, "vpcmpgt{l}"),
            (Asm::Pmull, &[W, D], "vpmull{l}"),
            (Asm::PmulhS, &[W], "vpmulhw"),
            (Asm::PmulhU, &[W], "vpmulhuw"),
            (Asm::PmulS, &[D], "vpmuldq"),
            (Asm::PmulU, &[D], "vpmuludq"),
            (Asm::Pmadd, &[W], "vpmaddwd"),
            (Asm::PmaddMixed, &[B], "vpmaddubsw"),
            (Asm::PmulRound, &[W], "vpmulhrsw"),
            (Asm::PunpckLow, ALL, "vpunpckl{l}{t}"),
            (Asm::PunpckHigh, ALL, "vpunpckh{l}{t}"),
            (Asm::PackS, &[W, D], "vpackss{l}{n}"),
            (Asm::PackU, &[W, D], "vpackus{l}{n}"),
            (Asm::Pshufb, &[B], "vpshufb"),
            (Asm::VaddAll, FLOAT, "vaddp{f}"),
            (Asm::VmulAll, FLOAT, "vmulp{f}"),
            (Asm::VsubAll, FLOAT, "vsubp{f}"),
            (Asm::VdivAll, FLOAT, "vdivp{f}"),
            (Asm::VminAll, FLOAT, "vminp{f}"),
            (Asm::VmaxAll, FLOAT, "vmaxp{f}"),
        ],
    ),
];

/// Rows that are sequences of instructions, which `emit` writes. Their single instructions are those of the rows above, those of `forms.rs`,
/// whose test compares each, and the encoder's other methods, which [`other_methods_are_read_as_they_were_written`] compares. The rest is
/// `dynasm!`, which checks its text. `effects.rs` emits each whole sequence and compares flags, registers, control flow and length. The
/// filetests and the specification suite execute them.
const SEQUENCES: &[Asm] = &[
    Asm::MovImm,
    Asm::ImulHigh,
    Asm::DivS,
    Asm::DivU,
    Asm::RemS,
    Asm::RemU,
    Asm::Set,
    Asm::Vzero,
    Asm::Fmin,
    Asm::Fmax,
    Asm::FloatSelect,
    Asm::FromFloat,
    Asm::CvtUnsignedSs,
    Asm::CvtUnsignedSd,
    Asm::Trunc,
    Asm::Pones,
    Asm::TrapIf,
    Asm::CheckSignature,
    Asm::Miss,
    Asm::EntryCell,
    Asm::Args,
    Asm::Call,
    Asm::TryCall,
    Asm::Results,
    Asm::Throw,
    Asm::TailCall,
    Asm::Ret,
    Asm::Ud2,
    Asm::Jmp,
    Asm::Jcc,
    Asm::JmpTable,
    Asm::JmpTableMasked,
];

/// The names of a general-purpose register with 8, 16, 32 and 64 bits.
const NAMES: [[&str; 4]; 16] = [
    ["al", "ax", "eax", "rax"],
    ["cl", "cx", "ecx", "rcx"],
    ["dl", "dx", "edx", "rdx"],
    ["bl", "bx", "ebx", "rbx"],
    ["spl", "sp", "esp", "rsp"],
    ["bpl", "bp", "ebp", "rbp"],
    ["sil", "si", "esi", "rsi"],
    ["dil", "di", "edi", "rdi"],
    ["r8b", "r8w", "r8d", "r8"],
    ["r9b", "r9w", "r9d", "r9"],
    ["r10b", "r10w", "r10d", "r10"],
    ["r11b", "r11w", "r11d", "r11"],
    ["r12b", "r12w", "r12d", "r12"],
    ["r13b", "r13w", "r13d", "r13"],
    ["r14b", "r14w", "r14d", "r14"],
    ["r15b", "r15w", "r15d", "r15"],
];

/// An address: base, index with the logarithm of its factor, displacement, segment.
type Address = (Option<usize>, Option<(usize, u8)>, i32, Segment);

/// What one instruction is made of, and expected to be.
#[derive(Clone, Copy, Debug)]
struct Case {
    width: Width,
    long: bool,
    cond: Cond,
    dst: usize,
    src: usize,
    /// The right operand, if it is a register.
    rm: usize,
    /// The right operand, if it is memory.
    address: Option<Address>,
    imm: i64,
}

fn bits(width: Width) -> u32 {
    8 << width as u32
}

fn name(number: usize, bits: u32) -> String {
    match bits {
        128 => format!("xmm{number}"),
        256 => format!("ymm{number}"),
        _ => NAMES[number][bits.trailing_zeros() as usize - 3].to_owned(),
    }
}

fn address((base, index, disp, segment): Address) -> String {
    let (prefix, bits) = match segment {
        Segment::Flat => ("", 64),
        Segment::Memory => ("gs:", 64),
        Segment::Memory32 => ("gs:", 32),
    };
    let mut text = base.map_or(String::new(), |base| name(base, bits));
    if let Some((index, shift)) = index {
        let plus = if text.is_empty() { "" } else { "+" };
        text += &format!("{plus}{}*{}", name(index, bits), 1 << shift);
    }
    match disp {
        0 => {}
        1.. if text.is_empty() => text = format!("{disp:#X}"),
        1.. => text += &format!("+{disp:#X}"),
        _ => text += &format!("-{:#X}", disp.unsigned_abs()),
    }
    format!("[{prefix}{text}]")
}

/// The operands of a pattern: the text between braces.
fn operands(pattern: &str) -> impl Iterator<Item = &str> {
    pattern.split('{').skip(1).map(|rest| rest.split_once('}').expect("a brace is closed").0)
}

impl Case {
    /// The bits of a register of this kind.
    fn register_bits(&self, kind: &str) -> u32 {
        match kind {
            "" => bits(self.width),
            "x" => 128,
            "y" => 256,
            "v" => 128 << u32::from(self.long),
            number => number.parse().expect("a number of bits"),
        }
    }

    /// The text of an operand or of a part of a mnemonic.
    fn operand(&self, text: &str) -> String {
        let (field, kind) = text.split_at(1);
        let (kind, size) = kind.split_once('/').unwrap_or((kind, ""));
        let lane = |width: u32| ["b", "w", "d", "q", "dq"][width as usize].to_owned();
        let float = |double: bool| if double { "d" } else { "s" }.to_owned();
        match field {
            "f" => float(self.width == Q),
            "g" => float(self.width != Q),
            "l" => lane(self.width as u32),
            "t" => lane(self.width as u32 + 1),
            "n" => lane(self.width as u32 - 1),
            "c" => format!("{:?}", self.cond).to_lowercase(),
            "i" if matches!(kind, "" | "u") => format!("{:#X}", self.imm as u64 & u64::MAX >> (64 - bits(self.width))),
            "i" => format!("{:#X}", self.imm),
            "d" => name(self.dst, self.register_bits(kind)),
            "s" => name(self.src, self.register_bits(kind)),
            _ => match self.address {
                None => name(self.rm, self.register_bits(kind)),
                Some(at) => {
                    let vector = 128 << u32::from(self.long);
                    let bits = match size {
                        "" => self.register_bits(kind),
                        "w" => bits(self.width),
                        "h" => vector / 2,
                        "q" => vector / 4,
                        "o" => vector / 8,
                        "-" => return address(at),
                        number => number.parse().expect("a number of bits"),
                    };
                    let size = ["byte", "word", "dword", "qword", "oword", "yword"][bits.trailing_zeros() as usize - 3];
                    format!("{size} {}", address(at))
                }
            },
        }
    }

    /// The text that is expected for this pattern.
    fn expected(&self, pattern: &str) -> String {
        let parts = pattern.split('{').map(|part| match part.split_once('}') {
            Some((operand, rest)) => self.operand(operand) + rest,
            None => part.to_owned(),
        });
        parts.collect()
    }

    /// The instruction with the operands of this pattern.
    fn inst(&self, op: Asm, pattern: &str) -> Inst {
        let mut inst = Inst::new(op, self.width).long(self.long).cond(self.cond);
        let reg = |kind: &str, number| match kind.split('/').next() {
            Some("x" | "y" | "v") => Reg::float(number as u8),
            _ => Reg::int(number as u8),
        };
        for (field, kind) in operands(pattern).map(|operand| operand.split_at(1)) {
            inst = match (field, self.address) {
                ("d", _) => inst.dst(reg(kind, self.dst)),
                ("s", _) => inst.src(reg(kind, self.src)),
                ("i", _) => inst.imm(self.imm),
                ("r" | "m" | "e", None) => inst.reg(reg(kind, self.rm)),
                ("r" | "m" | "e", Some((base, index, disp, segment))) => {
                    let of = |number: Option<usize>| number.map_or(Reg::NONE, |number| Reg::int(number as u8));
                    let shift = index.map_or(0, |(_, shift)| shift);
                    inst.mem(Mem::indexed(of(base), of(index.map(|(index, _)| index)), shift, disp).relative_to(segment))
                }
                _ => inst,
            };
        }
        // What the shape fixes: the register of the left operand, and of the count.
        let shape = op.shape();
        if matches!(shape, Shape::TwoAddress | Shape::Unary | Shape::UnaryImm) {
            inst.src(inst.dst)
        } else if shape == Shape::ByCl {
            inst.src(inst.dst).reg(Reg::int(1))
        } else if shape == Shape::HighProduct {
            inst.src(Reg::int(2))
        } else {
            inst
        }
    }
}

/// The instructions in these bytes, as text.
fn read(code: &[u8]) -> String {
    let mut formatter = NasmFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_small_hex_numbers_in_decimal(false);
    options.set_add_leading_zero_to_hex_numbers(false);
    options.set_memory_size_options(MemorySizeOptions::Always);
    options.set_show_useless_prefixes(true);
    options.set_use_pseudo_ops(false);
    options.set_rip_relative_addresses(true);
    options.set_always_show_scale(true);
    options.set_scale_before_index(false);
    let texts = Decoder::new(64, code, DecoderOptions::NONE).into_iter().map(|inst| {
        let mut text = String::new();
        formatter.format(&inst, &mut text);
        text
    });
    texts.collect::<Vec<_>>().join("; ")
}

fn encoded(write: impl FnOnce(&mut Bytes)) -> Vec<u8> {
    let mut bytes = Bytes::with_capacity(32, 0);
    write(&mut bytes);
    assert_eq!(bytes.refused, None);
    bytes.take_code().expect("no labels")
}

/// The immediates with which a pattern is tried.
fn immediates(pattern: &str, width: Width) -> Vec<i64> {
    let sizes = [0, 1, -1, 9, 0x7F, -0x80, 0x80, -0x81, 0xFF, 0x1000, -0x1000, 0x7FFF, -0x8000, i32::MAX.into(), i32::MIN.into()];
    let fits = |value: &i64| width >= D || (-1 << (bits(width) - 1)..1 << (bits(width) - 1)).contains(value);
    match operands(pattern).find(|operand| operand.starts_with('i')) {
        None => vec![0],
        Some("i") => sizes.into_iter().filter(fits).collect(),
        Some("ib") => vec![0, 1, 5, 0x7F, 0x80, 0xFF],
        Some("ic") => vec![1, 2, 7, i64::from(bits(width)) - 1],
        Some("it") => vec![0, 1, 0x40, 0x7F],
        Some("iu") => sizes.into_iter().filter(|value| !(0..0x80).contains(value)).collect(),
        Some(other) => panic!("{other}"),
    }
}

/// Addresses with each base and index that needs bytes of its own, and each size of displacement.
fn addresses() -> Vec<Address> {
    const DISPLACEMENTS: [i32; 9] = [0, 0x40, -0x40, 0x7F, 0x80, -0x80, -0x81, 0x1000, -0x1000];
    let mut addresses = Vec::new();
    // rax, rsp, rbp, rsi, r8, r12, r13, r15; an index is not rsp.
    for (i, base) in [Some(0), Some(4), Some(5), Some(6), Some(8), Some(12), Some(13), Some(15), None].into_iter().enumerate() {
        for (j, index) in [None, Some(0), Some(3), Some(5), Some(9), Some(12), Some(13)].into_iter().enumerate() {
            if base.is_some() || index.is_some() {
                let index = index.map(|index| (index, ((i + j) % 4) as u8));
                addresses.extend(DISPLACEMENTS.map(|disp| (base, index, disp, Segment::Flat)));
            }
        }
    }
    let relative = addresses.iter().zip([Segment::Memory, Segment::Memory32].into_iter().cycle()).step_by(7);
    let relative: Vec<Address> = relative.map(|(&(base, index, disp, _), segment)| (base, index, disp, segment)).collect();
    addresses.extend(relative);
    addresses.extend([0x40, 0x1000].map(|disp| (None, None, disp, Segment::Memory)));
    addresses
}

/// Every form of every row: the row, the widths, and the whole pattern.
fn forms() -> Vec<(Asm, &'static [Width], String)> {
    let rows = ROWS.iter().map(|&(op, widths, pattern)| (op, widths, pattern.to_owned()));
    let mut forms: Vec<(Asm, &[Width], String)> = rows.collect();
    for (patterns, rows) in ALIKE {
        for pattern in *patterns {
            forms.extend(rows.iter().map(|&(op, widths, name)| (op, widths, format!("{name} {pattern}"))));
        }
    }
    forms
}

/// Compares one instruction.
fn check(wrong: &mut Vec<String>, op: Asm, pattern: &str, case: &Case) {
    let inst = case.inst(op, pattern);
    let (expected, found) = (case.expected(pattern), read(&encoded(|bytes| bytes.encode(&inst))));
    if expected != found {
        wrong.push(format!("{inst:?}: {found}, and not {expected}"));
    }
}

#[test]
fn single_instructions_are_read_as_they_were_written() {
    let (addresses, mut wrong, mut count) = (addresses(), Vec::new(), 0);
    for (op, widths, pattern) in forms() {
        let has = |field: &str| operands(&pattern).any(|operand| operand.starts_with(field));
        let lengths: &[bool] = if operands(&pattern).any(|operand| operand.contains('v')) { &[false, true] } else { &[false] };
        let conds = if has("c") { &Cond::ALL[..16] } else { &Cond::ALL[..1] };
        let registers = (0..16).map(|n| (n, None)).filter(|_| !has("m"));
        let memory = addresses.iter().enumerate().map(|(n, &at)| (n, Some(at))).filter(|_| has("m") || has("e"));
        let places: Vec<(usize, Option<Address>)> = registers.chain(memory).collect();
        for (&width, &long) in widths.iter().flat_map(|width| lengths.iter().map(move |long| (width, long))) {
            for (imm, &cond) in immediates(&pattern, width).into_iter().flat_map(|imm| conds.iter().map(move |cond| (imm, cond)))
            {
                for &(n, address) in &places {
                    let case = Case { width, long, cond, dst: n % 16, src: (n + 5) % 16, rm: (n + 11) % 16, address, imm };
                    check(&mut wrong, op, &pattern, &case);
                    count += 1;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(count > 100_000, "{count}");
}

/// The test above has each row that is one instruction, with each width that its lanes have, and with 256 bits if the row has them.
#[test]
fn no_row_is_left_out() {
    let forms = forms();
    for &op in Asm::ALL {
        let of_row: Vec<_> = forms.iter().filter(|form| form.0 == op).collect();
        let is_sequence = matches!(op.encoding(), Encoding::Sequence(_));
        assert_eq!(SEQUENCES.contains(&op), is_sequence, "{op:?}");
        assert_eq!(of_row.is_empty(), is_sequence, "{op:?}");
        let long = of_row.iter().any(|form| operands(&form.2).any(|operand| operand.contains(['v', 'y'])));
        assert!(is_sequence || long == op.is_on_halves(), "{op:?}");
        if let Encoding::Opcode(Opcode::Lanes(b, w, d, q)) = op.encoding() {
            let lanes: BTreeSet<Width> = ALL.iter().zip([b, w, d, q]).filter(|lane| lane.1 != 0).map(|lane| *lane.0).collect();
            assert_eq!(of_row.iter().flat_map(|form| form.1).copied().collect::<BTreeSet<_>>(), lanes, "{op:?}");
        }
    }
}

/// The instructions of the encoder that have no row.
#[test]
fn other_methods_are_read_as_they_were_written() {
    let mut wrong = Vec::new();
    let mut check = |expected: String, write: &dyn Fn(&mut Bytes)| {
        let found = read(&encoded(write));
        if found != expected {
            wrong.push(format!("{found}, and not {expected}"));
        }
    };
    let int = |n: usize| Reg::int(n as u8);
    let float = |n: usize| Reg::float(n as u8);
    for n in 0..16 {
        let other = (n + 5) % 16;
        let (low, whole) = (name(n, 32), name(n, 64));
        check(format!("jmp {whole}"), &|out| out.jump_register(int(n)));
        check(format!("xor {low},{low}"), &|out| out.clear(int(n)));
        check(format!("vxorps xmm{n},xmm{n},xmm{n}"), &|out| out.clear(float(n)));
        check(format!("mov {whole},{}", name(other, 64)), &|out| out.copy(int(n), int(other)));
        check(format!("vmovaps xmm{n},xmm{other}"), &|out| out.copy(float(n), float(other)));
        check(format!("vmovaps ymm{n},ymm{other}"), &|out| out.copy_of_length(float(n), float(other), true));
        check(format!("vmovd {low},xmm{other}"), &|out| out.float_bits(int(n), float(other), D));
        check(format!("vmovq {whole},xmm{other}"), &|out| out.float_bits(int(n), float(other), Q));
        for imm in [0, 1, 0x7F, 0x80, 0xFFFF, i64::from(i32::MAX), 0x8000_0000, u32::MAX.into()] {
            check(format!("mov {low},{imm:#X}"), &|out| out.constant(int(n), imm));
        }
        for imm in [-1, i64::from(i32::MIN), i64::from(i32::MIN) - 1, 1 << 32, i64::MAX, i64::MIN] {
            check(format!("mov {whole},{imm:#X}"), &|out| out.constant(int(n), imm));
        }
    }
    for at in addresses().into_iter().filter(|at| at.3 == Segment::Flat) {
        let (base, index, disp, _) = at;
        let reg = |number: Option<usize>| number.map_or(Reg::NONE, int);
        let mem = Mem::indexed(reg(base), reg(index.map(|index| index.0)), index.map_or(0, |index| index.1), disp);
        check(format!("call qword {}", address(at)), &|out| out.indirect(2, mem));
        check(format!("jmp qword {}", address(at)), &|out| out.indirect(4, mem));
        check(format!("cmp dword {},0x12345678", address(at)), &|out| {
            let field = out.compare_with_field(mem);
            out.patch(field, 0x1234_5678);
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The field of a constant is the displacement, and the instruction ends where the reference says.
#[test]
fn constants_are_relative_to_the_end_of_the_instruction() {
    let constant = Mem::constant(0x20);
    let cases = [
        (Inst::new(Asm::Mov, D).dst(Reg::int(9)).mem(constant), "mov r9d,dword [rip+0x100]"),
        (Inst::new(Asm::Movzx8, D).dst(Reg::int(1)).mem(constant), "movzx ecx,byte [rip+0x100]"),
        (Inst::new(Asm::Cmp, Q).mem(constant).imm(5), "cmp qword [rip+0x100],0x5"),
        (Inst::new(Asm::Cmp, Q).mem(constant).imm(0x1000), "cmp qword [rip+0x100],0x1000"),
        (Inst::new(Asm::Cmp, W).mem(constant).imm(0x1000), "cmp word [rip+0x100],0x1000"),
        (Inst::new(Asm::Test, D).mem(constant).imm(5), "test dword [rip+0x100],0x5"),
        (Inst::new(Asm::ImulImm, D).dst(Reg::int(0)).mem(constant).imm(-1), "imul eax,dword [rip+0x100],0xFFFFFFFF"),
        (Inst::new(Asm::Pand, X).dst(Reg::float(1)).src(Reg::float(9)).mem(constant), "vpand xmm1,xmm9,oword [rip+0x100]"),
        (
            Inst::new(Asm::Palignr, X).dst(Reg::float(8)).src(Reg::float(2)).mem(constant).imm(3),
            "vpalignr xmm8,xmm2,oword [rip+0x100],0x3",
        ),
    ];
    for (inst, expected) in cases {
        let code = encoded(|out| {
            out.encode(&inst);
            let [field] = out.fields[..] else { panic!("{inst:?}: {:?}", out.fields) };
            assert_eq!((field.constant, field.end), (0x20, out.offset()), "{inst:?}");
            out.patch(field.field, 0x100);
        });
        assert_eq!(read(&code), expected);
    }
}
