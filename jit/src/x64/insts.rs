//! TABLE 3: machine instructions, one row each.
//!
//! A row is `Name, "mnemonic", Shape, flags: Flags, traps: Traps, clobbers: Clobbers, Encoding`. No column has a
//! default. The shape says which fields of an [`Inst`] are its operands, how each is used and where it may be; the
//! allocator's operands, the printer and the encoder derive from it. The test `effects` emits each row with one form of
//! operands and one immediate, and compares flags, traps and clobbers with a disassembler's account of the bytes. Some
//! rows are sequences of several instructions that are one instruction for the allocator; `emit` writes them by hand.
//! They have two further columns, in the table of `define_sequences`.
//!
//! General rule for the fields: `dst` is written, `src` is the left operand, and `rm` the right one (a register or
//! memory). If `rm` (or, after a memory destination, `src`) is absent, `imm` takes its place.

use super::abi;
use crate::mir::{Control, FlagSet, RegList};
use crate::regalloc::{Constraint, Position, Reg, RegSet, Role};
use weir_bytecode::Trap;

/// Calls `$m` with every row of TABLE 3.
macro_rules! for_each_asm {
    ($m:ident) => {
        $m! {
            // Moves. `Mov` is a load if `rm` is memory; 32-bit forms clear the upper half.
            Mov, "mov", Move, flags: keeps, traps: no, clobbers: none, legacy(0, 0, 0x8B);
            Movzx8, "movzx8", Move, flags: keeps, traps: no, clobbers: none, byte_source(0xB6);
            Movzx16, "movzx16", Move, flags: keeps, traps: no, clobbers: none, legacy(0, 1, 0xB7);
            Movsx8, "movsx8", Move, flags: keeps, traps: no, clobbers: none, byte_source(0xBE);
            Movsx16, "movsx16", Move, flags: keeps, traps: no, clobbers: none, legacy(0, 1, 0xBF);
            Movsxd, "movsxd", Move, flags: keeps, traps: no, clobbers: none, legacy(0, 0, 0x63);
            // Emitted as an addition if that is shorter.
            Lea, "lea", Move, flags: keeps, traps: no, clobbers: none, legacy(0, 0, 0x8D);
            MovImm, "mov_imm", Const, flags: keeps, traps: no, clobbers: none, sequence(Constant);
            MovTo, "mov_to", Store, flags: keeps, traps: no, clobbers: none, store(0x89, 0xC7);

            // Integer arithmetic.
            Add, "add", TwoAddress, flags: result, traps: no, clobbers: none, alu(0);
            Or, "or", TwoAddress, flags: logic, traps: no, clobbers: none, alu(1);
            And, "and", TwoAddress, flags: logic, traps: no, clobbers: none, alu(4);
            Sub, "sub", TwoAddress, flags: result, traps: no, clobbers: none, alu(5);
            Xor, "xor", TwoAddress, flags: logic, traps: no, clobbers: none, alu(6);
            Imul, "imul", TwoAddress, flags: clobbers, traps: no, clobbers: none, legacy(0, 1, 0xAF);
            ImulImm, "imul_imm", MoveImm, flags: clobbers, traps: no, clobbers: none, legacy(0, 0, 0x69);
            Neg, "neg", Unary, flags: result, traps: no, clobbers: none, group(0xF7, 3);
            Not, "not", Unary, flags: keeps, traps: no, clobbers: none, group(0xF7, 2);
            Shl, "shl", UnaryImm, flags: shift, traps: no, clobbers: none, group(0xC1, 4);
            Shr, "shr", UnaryImm, flags: shift, traps: no, clobbers: none, group(0xC1, 5);
            Sar, "sar", UnaryImm, flags: shift, traps: no, clobbers: none, group(0xC1, 7);
            Rorx, "rorx", MoveImm, flags: keeps, traps: no, clobbers: none, vex(3, 3, 0xF0);
            // The count is in `src`.
            Shlx, "shlx", ThreeAddress, flags: keeps, traps: no, clobbers: none, vex(1, 2, 0xF7);
            Shrx, "shrx", ThreeAddress, flags: keeps, traps: no, clobbers: none, vex(3, 2, 0xF7);
            Sarx, "sarx", ThreeAddress, flags: keeps, traps: no, clobbers: none, vex(2, 2, 0xF7);
            RolCl, "rol", ByCl, flags: clobbers, traps: no, clobbers: none, group(0xD3, 0);
            RorCl, "ror", ByCl, flags: clobbers, traps: no, clobbers: none, group(0xD3, 1);
            // !src & rm.
            Andn, "andn", ThreeAddress, flags: logic, traps: no, clobbers: none, vex(0, 2, 0xF2);
            // Upper half of rdx * rm, unsigned; rdx is `src`.
            Mulx, "mulx", HighProduct, flags: keeps, traps: no, clobbers: none, high_product(3, 2, 0xF6);
            // Upper half of rax * rm, signed; rax is `src`.
            ImulHigh, "imul_high", Remainder, flags: clobbers, traps: no, clobbers: rax, sequence(HighProduct);
            Popcnt, "popcnt", Move, flags: clobbers, traps: no, clobbers: none, legacy(0xF3, 1, 0xB8);
            Lzcnt, "lzcnt", Move, flags: clobbers, traps: no, clobbers: none, legacy(0xF3, 1, 0xBD);
            Tzcnt, "tzcnt", Move, flags: clobbers, traps: no, clobbers: none, legacy(0xF3, 1, 0xBC);
            // Divides rax by rm. A divisor of -1 is handled; a divisor of 0 faults.
            DivS, "div_s", Quotient, flags: clobbers, traps: yes, clobbers: rdx, sequence(Division);
            DivU, "div_u", Quotient, flags: clobbers, traps: yes, clobbers: rdx, sequence(Division);
            RemS, "rem_s", Remainder, flags: clobbers, traps: yes, clobbers: rax, sequence(Division);
            RemU, "rem_u", Remainder, flags: clobbers, traps: yes, clobbers: rax, sequence(Division);

            // Arithmetic with memory as destination.
            AddTo, "add_to", Update, flags: integers, traps: no, clobbers: none, alu(0);
            OrTo, "or_to", Update, flags: integers, traps: no, clobbers: none, alu(1);
            AndTo, "and_to", Update, flags: integers, traps: no, clobbers: none, alu(4);
            SubTo, "sub_to", Update, flags: integers, traps: no, clobbers: none, alu(5);
            XorTo, "xor_to", Update, flags: integers, traps: no, clobbers: none, alu(6);

            // Flags. With an immediate, the left operand is `rm`.
            Cmp, "cmp", Compare, flags: integers, traps: no, clobbers: none, alu(7);
            Test, "test", Compare, flags: integers, traps: no, clobbers: none, test;
            Set, "set", Set, flags: reads, traps: no, clobbers: none, sequence(Set);
            Cmov, "cmov", TwoAddress, flags: reads, traps: no, clobbers: none, cond(0x40);

            // Floats, single or double by width. `X` moves 128 bits.
            Vmov, "vmov", Move, flags: keeps, traps: no, clobbers: none, scalar(1, 0x10);
            VmovTo, "vmov_to", Store, flags: keeps, traps: no, clobbers: none, scalar(1, 0x11);
            // The constant with all bits 0.
            Vzero, "vzero", Fill, flags: keeps, traps: no, clobbers: none, sequence(Zero);
            Vadd, "vadd", ThreeAddress, flags: keeps, traps: no, clobbers: none, scalar(1, 0x58);
            Vmul, "vmul", ThreeAddress, flags: keeps, traps: no, clobbers: none, scalar(1, 0x59);
            Vsub, "vsub", ThreeAddress, flags: keeps, traps: no, clobbers: none, scalar(1, 0x5C);
            Vdiv, "vdiv", ThreeAddress, flags: keeps, traps: no, clobbers: none, scalar(1, 0x5E);
            // src < rm ? src : rm, and src > rm ? src : rm.
            Vmin, "vmin", ThreeAddress, flags: keeps, traps: no, clobbers: none, scalar(1, 0x5D);
            Vmax, "vmax", ThreeAddress, flags: keeps, traps: no, clobbers: none, scalar(1, 0x5F);
            Vsqrt, "vsqrt", Move, flags: keeps, traps: no, clobbers: none, merge(1, 0x51);
            Vround, "vround", MoveImm, flags: keeps, traps: no, clobbers: none, round;
            // Converts a float of the width to the other width.
            Vconvert, "vconvert", Move, flags: keeps, traps: no, clobbers: none, merge(1, 0x5A);
            // On all 128 bits.
            Vand, "vandps", ThreeRegister, flags: keeps, traps: no, clobbers: none, vex(0, 1, 0x54);
            Vor, "vorps", ThreeRegister, flags: keeps, traps: no, clobbers: none, vex(0, 1, 0x56);
            Vxor, "vxorps", ThreeRegister, flags: keeps, traps: no, clobbers: none, vex(0, 1, 0x57);
            Vucomi, "vucomi", Compare, flags: floats, traps: no, clobbers: none, packed(0x2E);
            // WebAssembly's minimum and maximum.
            Fmin, "fmin", ThreeRegister, flags: clobbers, traps: no, clobbers: none, sequence(MinMax);
            Fmax, "fmax", ThreeRegister, flags: clobbers, traps: no, clobbers: none, sequence(MinMax);
            // `rm` if the condition is true, else `src`.
            FloatSelect, "select", TwoAddress, flags: reads, traps: no, clobbers: none, sequence(FloatSelect);
            // Copies bits between the banks.
            ToFloat, "vmov_from_int", Move, flags: keeps, traps: no, clobbers: none, vex(1, 1, 0x6E);
            FromFloat, "vmov_to_int", Move, flags: keeps, traps: no, clobbers: none, sequence(FromFloat);
            // From a signed integer of the width.
            CvtSs, "cvtss", Move, flags: keeps, traps: no, clobbers: none, from_integer(2);
            CvtSd, "cvtsd", Move, flags: keeps, traps: no, clobbers: none, from_integer(3);
            // From an unsigned 64-bit integer.
            CvtUnsignedSs, "cvtss_u64", WithScratch, flags: clobbers, traps: no, clobbers: none, sequence(FromUnsigned);
            CvtUnsignedSd, "cvtsd_u64", WithScratch, flags: clobbers, traps: no, clobbers: none, sequence(FromUnsigned);
            // To an integer of the width; `imm` is a `Trunc`.
            Trunc, "trunc", WithScratchImm, flags: clobbers, traps: unless_saturating, clobbers: none, sequence(Truncation);

            // Vectors. The width is that of the lanes (of the narrower lanes, if the instruction changes their width), or `X`
            // where it does not matter.
            Pand, "vpand", ThreeAddress, flags: keeps, traps: no, clobbers: none, vex(1, 1, 0xDB);
            // !src & rm.
            Pandn, "vpandn", ThreeAddress, flags: keeps, traps: no, clobbers: none, vex(1, 1, 0xDF);
            Por, "vpor", ThreeAddress, flags: keeps, traps: no, clobbers: none, vex(1, 1, 0xEB);
            Pxor, "vpxor", ThreeAddress, flags: keeps, traps: no, clobbers: none, vex(1, 1, 0xEF);
            // The constant with all bits 1.
            Pones, "vpones", Fill, flags: keeps, traps: no, clobbers: none, sequence(Ones);
            Padd, "vpadd", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x1FC, 0x1FD, 0x1FE, 0x1D4);
            PaddSatS, "vpadds", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x1EC, 0x1ED, 0, 0);
            PaddSatU, "vpaddus", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x1DC, 0x1DD, 0, 0);
            Psub, "vpsub", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x1F8, 0x1F9, 0x1FA, 0x1FB);
            PsubSatS, "vpsubs", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x1E8, 0x1E9, 0, 0);
            PsubSatU, "vpsubus", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x1D8, 0x1D9, 0, 0);
            PminS, "vpmins", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x238, 0x1EA, 0x239, 0);
            PminU, "vpminu", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x1DA, 0x23A, 0x23B, 0);
            PmaxS, "vpmaxs", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x23C, 0x1EE, 0x23D, 0);
            PmaxU, "vpmaxu", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x1DE, 0x23E, 0x23F, 0);
            Pavg, "vpavg", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x1E0, 0x1E3, 0, 0);
            Pabs, "vpabs", Move, flags: keeps, traps: no, clobbers: none, lanes(0x21C, 0x21D, 0x21E, 0);
            Pcmpeq, "vpcmpeq", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x174, 0x175, 0x176, 0x229);
            Pcmpgt, "vpcmpgt", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x164, 0x165, 0x166, 0x237);
            // Lower half of the products, and upper half of signed and of unsigned products.
            Pmull, "vpmull", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0x1D5, 0x240, 0);
            PmulhS, "vpmulh", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0x1E5, 0, 0);
            PmulhU, "vpmulhu", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0x1E4, 0, 0);
            // Products of the even lanes, in lanes twice as wide.
            PmulS, "vpmuldq", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0, 0x228, 0);
            PmulU, "vpmuludq", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0, 0x1F4, 0);
            // Sums of adjacent products, in lanes twice as wide: signed; and unsigned by signed with saturation.
            Pmadd, "vpmadd", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0x1F5, 0, 0);
            PmaddMixed, "vpmaddubsw", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x204, 0, 0, 0);
            // Products of fractions, rounded.
            PmulRound, "vpmulhrs", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0x20B, 0, 0);
            // Shifts. The count is the whole lower half of the right operand, and may exceed the width of the lanes.
            Psll, "vpsll", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0x1F1, 0x1F2, 0x1F3);
            Psrl, "vpsrl", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0x1D1, 0x1D2, 0x1D3);
            Psra, "vpsra", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0x1E1, 0x1E2, 0);
            PsllImm, "vpsll_imm", RegisterImm, flags: keeps, traps: no, clobbers: none, lane_shift(6);
            PsrlImm, "vpsrl_imm", RegisterImm, flags: keeps, traps: no, clobbers: none, lane_shift(2);
            PsraImm, "vpsra_imm", RegisterImm, flags: keeps, traps: no, clobbers: none, lane_shift(4);
            // Interleaves the lanes of the lower or the upper halves of both operands.
            PunpckLow, "vpunpckl", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x160, 0x161, 0x162, 0x16C);
            PunpckHigh, "vpunpckh", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x168, 0x169, 0x16A, 0x16D);
            // Signed lanes, saturated to half their width.
            PackS, "vpackss", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0x163, 0x16B, 0);
            PackU, "vpackus", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0, 0x167, 0x22B, 0);
            // Extends the lanes of the lower half, or, for 256 bits, all of them. A memory operand has half of the bytes of the result.
            PextendS, "vpmovsx", Move, flags: keeps, traps: no, clobbers: none, lanes(0x220, 0x223, 0x225, 0);
            PextendU, "vpmovzx", Move, flags: keeps, traps: no, clobbers: none, lanes(0x230, 0x233, 0x235, 0);
            // To lanes four and eight times as wide: a memory operand has a fourth or an eighth of the bytes of the result.
            PextendFourS, "vpmovsx_4", Move, flags: keeps, traps: no, clobbers: none, lanes(0x221, 0x224, 0, 0);
            PextendFourU, "vpmovzx_4", Move, flags: keeps, traps: no, clobbers: none, lanes(0x231, 0x234, 0, 0);
            PextendEightS, "vpmovsx_8", Move, flags: keeps, traps: no, clobbers: none, lanes(0x222, 0, 0, 0);
            PextendEightU, "vpmovzx_8", Move, flags: keeps, traps: no, clobbers: none, lanes(0x232, 0, 0, 0);
            // A memory operand is one lane.
            Pbroadcast, "vpbroadcast", Move, flags: keeps, traps: no, clobbers: none, lanes(0x278, 0x279, 0x258, 0x259);
            Pshufb, "vpshufb", ThreeAddress, flags: keeps, traps: no, clobbers: none, lanes(0x200, 0, 0, 0);
            Pshufd, "vpshufd", MoveImm, flags: keeps, traps: no, clobbers: none, vex(1, 1, 0x70);
            PshufLow, "vpshuflw", MoveImm, flags: keeps, traps: no, clobbers: none, vex(3, 1, 0x70);
            PshufHigh, "vpshufhw", MoveImm, flags: keeps, traps: no, clobbers: none, vex(2, 1, 0x70);
            // The bytes of `src:rm` from index `imm` on; `rm` is the lower half.
            Palignr, "vpalignr", ThreeImm, flags: keeps, traps: no, clobbers: none, vex(1, 3, 0x0F);
            // Two lanes of `src`, then two of `rm`.
            Shufps, "vshufps", ThreeImm, flags: keeps, traps: no, clobbers: none, vex(0, 1, 0xC6);
            // For each bit of `imm` that is set, the lane of `rm`, else that of `src`.
            Pblend, "vpblend", ThreeImm, flags: keeps, traps: no, clobbers: none, lanes(0, 0x30E, 0, 0);
            // Copies a lane between a vector and a general-purpose register or memory of the lane's width.
            Pinsert, "vpinsr", ThreeImm, flags: keeps, traps: no, clobbers: none, insert;
            Pextract, "vpextr", Extract, flags: keeps, traps: no, clobbers: none, extract;
            PextractTo, "vpextr_to", StoreLane, flags: keeps, traps: no, clobbers: none, extract;
            // `src` with one float replaced by the first float of `rm`.
            InsertFloat, "vinsertps", ThreeImm, flags: keeps, traps: no, clobbers: none, vex(1, 3, 0x21);
            MergeLow, "vmovsd", ThreeRegister, flags: keeps, traps: no, clobbers: none, vex(3, 1, 0x10);
            MergeHigh, "vmovlhps", ThreeRegister, flags: keeps, traps: no, clobbers: none, vex(0, 1, 0x16);
            // The sign bits of the lanes as a number.
            MaskBytes, "vpmovmskb", MoveRegister, flags: keeps, traps: no, clobbers: none, vex(1, 1, 0xD7);
            MaskFloats, "vmovmskp", MoveRegister, flags: keeps, traps: no, clobbers: none, packed(0x50);
            // Two halves of 128 bits, which `imm` chooses from the four of `src` and `rm`, or zeros; always 256 bits.
            PermuteHalves, "vperm2i128", ThreeImm, flags: keeps, traps: no, clobbers: none, vex(1, 3, 0x46);
            // Zero flag: no bit is set in both operands.
            Ptest, "vptest", Compare, flags: bits, traps: no, clobbers: none, vex(1, 2, 0x17);
            // Floats, single or double by width.
            VaddAll, "vaddp", ThreeAddress, flags: keeps, traps: no, clobbers: none, packed(0x58);
            VmulAll, "vmulp", ThreeAddress, flags: keeps, traps: no, clobbers: none, packed(0x59);
            VsubAll, "vsubp", ThreeAddress, flags: keeps, traps: no, clobbers: none, packed(0x5C);
            VdivAll, "vdivp", ThreeAddress, flags: keeps, traps: no, clobbers: none, packed(0x5E);
            // As `Vmin` and `Vmax`.
            VminAll, "vminp", ThreeAddress, flags: keeps, traps: no, clobbers: none, packed(0x5D);
            VmaxAll, "vmaxp", ThreeAddress, flags: keeps, traps: no, clobbers: none, packed(0x5F);
            VsqrtAll, "vsqrtp", Move, flags: keeps, traps: no, clobbers: none, packed(0x51);
            VroundAll, "vroundp", MoveImm, flags: keeps, traps: no, clobbers: none, lanes(0, 0, 0x308, 0x309);
            // `imm` is the predicate.
            VcmpAll, "vcmpp", ThreeImm, flags: keeps, traps: no, clobbers: none, packed(0xC2);
            // Conversions, named by source and result. If lanes get wider, a memory operand has half of the bytes.
            IntToSingle, "vcvtdq2ps", Move, flags: keeps, traps: no, clobbers: none, vex(0, 1, 0x5B);
            IntToDouble, "vcvtdq2pd", Move, flags: keeps, traps: no, clobbers: none, vex(2, 1, 0xE6);
            SingleToInt, "vcvttps2dq", Move, flags: keeps, traps: no, clobbers: none, vex(2, 1, 0x5B);
            DoubleToInt, "vcvttpd2dq", Move, flags: keeps, traps: no, clobbers: none, vex(1, 1, 0xE6);
            SingleToDouble, "vcvtps2pd", Move, flags: keeps, traps: no, clobbers: none, vex(0, 1, 0x5A);
            DoubleToSingle, "vcvtpd2ps", Move, flags: keeps, traps: no, clobbers: none, vex(1, 1, 0x5A);

            // Control. `src` of a `TrapIf` is stored in `StoreCtx::operand` if it traps.
            TrapIf, "trap_if", Trap, flags: reads, traps: yes, clobbers: none, sequence(TrapIf);
            // Traps unless the table entry at `src` has the signature `imm`.
            CheckSignature, "check_signature", OneUse, flags: clobbers, traps: yes, clobbers: none, sequence(CheckSignature);
            // Counts a miss. `imm` is the argument of `Helper::Tick`; `dst` has the store during it, and nothing after it.
            Miss, "miss", Const, flags: clobbers, traps: no, clobbers: none, sequence(Miss);
            // The address of the entry cell of function `imm`.
            EntryCell, "entry_cell", Const, flags: keeps, traps: no, clobbers: none, sequence(EntryCell);
            Args, "args", List, flags: keeps, traps: no, clobbers: list, sequence(Args);
            Call, "call", List, flags: clobbers, traps: no, clobbers: list, sequence(Call);
            // A call in a region with handlers. `Results` is the first instruction after it.
            TryCall, "try_call", List, flags: clobbers, traps: no, clobbers: list, sequence(TryCall);
            Results, "results", List, flags: keeps, traps: no, clobbers: list, sequence(Args);
            Throw, "throw", List, flags: clobbers, traps: no, clobbers: list, sequence(Throw);
            TailCall, "tail_call", List, flags: clobbers, traps: no, clobbers: list, sequence(TailCall);
            Ret, "ret", List, flags: clobbers, traps: no, clobbers: list, sequence(Return);
            Ud2, "ud2", Trap, flags: keeps, traps: yes, clobbers: none, sequence(Trap);
            Jmp, "jmp", Nullary, flags: keeps, traps: no, clobbers: none, sequence(Jump);
            Jcc, "j", Nullary, flags: reads, traps: no, clobbers: none, sequence(Branch);
            JmpTable, "jmp_table", Table, flags: clobbers, traps: no, clobbers: none, sequence(JumpTable);
            // Speculative execution after the check has failed takes the first entry.
            JmpTableMasked, "jmp_table_masked", Table, flags: clobbers, traps: no, clobbers: none, sequence(JumpTable);
        }
    };
}

/// The fields of an instruction that are operands, and their use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// dst ← rm
    Move,
    /// dst ← rm, imm
    MoveImm,
    /// dst ← rm, not in a spill slot
    MoveRegister,
    /// dst ← rm, imm, rm not in a spill slot
    RegisterImm,
    /// dst ← imm
    Const,
    /// dst ← a constant of the row
    Fill,
    /// dst ← src, rm or imm; dst is src's register
    TwoAddress,
    /// dst ← src; dst is src's register
    Unary,
    /// dst ← src, imm; dst is src's register
    UnaryImm,
    /// dst ← src, rm; dst is src's register, rm is rcx
    ByCl,
    /// dst ← src, rm
    ThreeAddress,
    /// dst ← src, rm; rm is not in a spill slot
    ThreeRegister,
    /// dst ← src, rm, imm
    ThreeImm,
    /// dst ← src, imm
    Extract,
    /// dst ← rdx = src, rm
    HighProduct,
    /// rax = dst ← rax = src, rm; rdx is clobbered
    Quotient,
    /// rdx = dst ← rax = src, rm; rax is clobbered
    Remainder,
    /// dst ← rm, with src, if any, as scratch register
    WithScratch,
    /// dst ← rm, imm, with src, if any, as scratch register
    WithScratchImm,
    /// src, rm; or rm, imm
    Compare,
    /// memory ← src or imm
    Store,
    /// memory ← src, imm
    StoreLane,
    /// memory ← memory, src or imm
    Update,
    /// dst ← flags
    Set,
    /// src
    OneUse,
    /// nothing
    Nullary,
    /// imm, a trap's code or [`STORED`]; src, or none
    Trap,
    /// a [`RegList`]
    List,
    /// rm, with dst and src as scratch registers
    Table,
}

/// The effect of an instruction on the flags. [`Flags::defined`] gives the flags that may be read after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flags {
    /// Neither reads nor changes flags.
    Keeps,
    /// Reads the flags of its condition, and changes none.
    Reads,
    /// Changes flags, none of which may be read after it.
    Clobbers,
    /// Compares integers, or its result in memory with zero.
    Integers,
    /// Compares floats.
    Floats,
    /// Zero flag: no bit is set in both operands.
    Bits,
    /// The zero and sign flags describe the result; the carry and overflow flags describe the operation.
    Result,
    /// The zero and sign flags describe the result; the carry and overflow flags are clear.
    Logic,
    /// Like [`Flags::Result`] if the count in `imm` is not 0; otherwise the flags are preserved.
    Shift,
}

impl Flags {
    /// The flags that conditions may read after an instruction of this kind, or `None` if it preserves the flags.
    pub const fn defined(self) -> Option<FlagSet> {
        match self {
            Flags::Keeps | Flags::Reads => None,
            Flags::Clobbers | Flags::Shift => Some(FlagSet::EMPTY),
            Flags::Integers | Flags::Result | Flags::Logic => {
                Some(FlagSet::ZERO.and(FlagSet::SIGN).and(FlagSet::CARRY).and(FlagSet::OVERFLOW))
            }
            Flags::Floats => Some(FlagSet::ZERO.and(FlagSet::CARRY).and(FlagSet::PARITY)),
            Flags::Bits => Some(FlagSet::ZERO),
        }
    }
}

/// Whether an instruction's operation may trap. A memory operand with a pc may trap in any row: see [`Mem::pc`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traps {
    /// It cannot.
    No,
    /// It may.
    Yes,
    /// `imm` is a [`Trunc`]: the instruction may trap unless that saturates.
    UnlessSaturating,
}

/// The registers that an instruction clobbers besides its definitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clobbers {
    /// None.
    None,
    /// `rax`
    Rax,
    /// `rdx`
    Rdx,
    /// The clobbers of its [`RegList`].
    List,
}

/// The encoding of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// One instruction of the processor.
    Opcode(Opcode),
    /// Written by hand in `emit`.
    Sequence(Sequence),
}

/// The encoding of one instruction of the processor. Legacy prefixes are given as the byte (0 for none), VEX prefixes
/// as `pp`; the map is 0 for one-byte opcodes, then 0F, 0F38, 0F3A.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opcode {
    /// prefix, map, opcode
    Legacy(u8, u8, u8),
    /// 0F opcode; the source is a byte.
    ByteSource(u8),
    /// The eight arithmetic operations of the one-byte map.
    Alu(u8),
    /// `test`
    Test,
    /// Opcode with a register source, opcode with an immediate.
    Store(u8, u8),
    /// Opcode, and extension in the reg field.
    Group(u8, u8),
    /// 0F opcode plus condition.
    Cond(u8),
    /// pp, map, opcode
    Vex(u8, u8, u8),
    /// pp, map, opcode; the destination also gets the lower half of the product before the upper half.
    HighProduct(u8, u8, u8),
    /// pp; the upper part of the result comes from the destination, which is cleared first.
    FromInteger(u8),
    /// Map, opcode; pp selects single or double.
    Scalar(u8, u8),
    /// Map, opcode; pp selects single or double. The upper part of the result comes from a register, which is the
    /// source or the destination.
    Merge(u8, u8),
    /// `vroundss`, `vroundsd`
    Round,
    /// Opcode; pp selects single or double, as for packed floats.
    Packed(u8),
    /// For lanes of 8, 16, 32 and 64 bits: map and opcode as one number, 0 if there is none; pp is 66.
    Lanes(u16, u16, u16, u16),
    /// A shift of lanes by an immediate: the extension in the reg field.
    LaneShift(u8),
    /// `vpinsr`
    Insert,
    /// `vpextr`
    Extract,
}

/// The expected number of bytes of a sequence. The actual number affects only the length of jumps over it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpectedBytes {
    /// This number.
    Fixed(u32),
    /// The first if the immediate fits into a byte, otherwise the second.
    ByImmediate(u32, u32),
    /// The first for each entry of a jump table that is compared, and the second.
    ByTable(u32, u32),
}

/// The control flow after a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SequenceControl {
    Next,
    Try,
    Throw,
    Jump,
    Branch,
    Table,
    Leave,
}

/// The sequences of TABLE 3, one row each: `Name, control: SequenceControl, bytes: ExpectedBytes`. No column has a default.
macro_rules! define_sequences {
    ($($(#[$about:meta])* $name:ident, control: $control:ident, bytes: $bytes:ident($($n:literal),*);)*) => {
        /// The sequences that `emit` writes by hand.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Sequence {
            $($(#[$about])* $name,)*
        }

        impl Sequence {
            /// The control flow after it; `index` is that of its jump table, if it has one.
            pub const fn control(self, index: u32) -> Control {
                let after = match self {
                    $(Sequence::$name => SequenceControl::$control,)*
                };
                match after {
                    SequenceControl::Next => Control::Next,
                    SequenceControl::Jump => Control::Jump,
                    SequenceControl::Branch => Control::Branch,
                    SequenceControl::Table => Control::Table(index),
                    SequenceControl::Leave => Control::Leave,
                    SequenceControl::Try => Control::Try,
                    SequenceControl::Throw => Control::Throw,
                }
            }

            /// The expected number of bytes, without memory operands.
            pub const fn expected_bytes(self) -> ExpectedBytes {
                match self {
                    $(Sequence::$name => ExpectedBytes::$bytes($($n),*),)*
                }
            }
        }
    };
}

define_sequences! {
    /// An integer constant in the shortest form.
    Constant, control: Next, bytes: ByImmediate(5, 10);
    /// The upper half of a signed product.
    HighProduct, control: Next, bytes: Fixed(24);
    /// Quotient or remainder.
    Division, control: Next, bytes: Fixed(24);
    /// A condition as 0 or 1.
    Set, control: Next, bytes: Fixed(24);
    /// A vector register of zeros.
    Zero, control: Next, bytes: Fixed(24);
    /// A vector register of ones.
    Ones, control: Next, bytes: Fixed(24);
    /// WebAssembly's minimum or maximum of floats.
    MinMax, control: Next, bytes: Fixed(24);
    /// A selection between two floats.
    FloatSelect, control: Next, bytes: Fixed(24);
    /// A copy from a vector register to a general-purpose one.
    FromFloat, control: Next, bytes: Fixed(24);
    /// A conversion of an unsigned 64-bit integer to a float.
    FromUnsigned, control: Next, bytes: Fixed(24);
    /// A truncation of a float to an integer.
    Truncation, control: Next, bytes: Fixed(24);
    /// A trap on a condition.
    TrapIf, control: Next, bytes: Fixed(7);
    /// Counting of a miss.
    Miss, control: Next, bytes: Fixed(18);
    /// The address of a function's entry cell.
    EntryCell, control: Next, bytes: Fixed(7);
    /// A trap unless a signature is the expected one.
    CheckSignature, control: Next, bytes: Fixed(24);
    /// The function's entry, or a call's results, which have no bytes.
    Args, control: Next, bytes: Fixed(0);
    /// A call.
    Call, control: Next, bytes: Fixed(20);
    /// A call that ends its block.
    TryCall, control: Try, bytes: Fixed(20);
    /// A call that does not return.
    Throw, control: Throw, bytes: Fixed(16);
    /// A tail call.
    TailCall, control: Leave, bytes: Fixed(20);
    /// A return.
    Return, control: Leave, bytes: Fixed(20);
    /// A trap.
    Trap, control: Leave, bytes: Fixed(20);
    /// A jump.
    Jump, control: Jump, bytes: Fixed(5);
    /// A conditional jump.
    Branch, control: Branch, bytes: Fixed(6);
    /// A jump through a table.
    JumpTable, control: Table, bytes: ByTable(9, 5);
}

macro_rules! encoding {
    (legacy($a:literal, $b:literal, $c:literal)) => {
        Encoding::Opcode(Opcode::Legacy($a, $b, $c))
    };
    (byte_source($a:literal)) => {
        Encoding::Opcode(Opcode::ByteSource($a))
    };
    (vex($a:literal, $b:literal, $c:literal)) => {
        Encoding::Opcode(Opcode::Vex($a, $b, $c))
    };
    (high_product($a:literal, $b:literal, $c:literal)) => {
        Encoding::Opcode(Opcode::HighProduct($a, $b, $c))
    };
    (from_integer($a:literal)) => {
        Encoding::Opcode(Opcode::FromInteger($a))
    };
    (alu($a:literal)) => {
        Encoding::Opcode(Opcode::Alu($a))
    };
    (store($a:literal, $b:literal)) => {
        Encoding::Opcode(Opcode::Store($a, $b))
    };
    (group($a:literal, $b:literal)) => {
        Encoding::Opcode(Opcode::Group($a, $b))
    };
    (cond($a:literal)) => {
        Encoding::Opcode(Opcode::Cond($a))
    };
    (scalar($a:literal, $b:literal)) => {
        Encoding::Opcode(Opcode::Scalar($a, $b))
    };
    (merge($a:literal, $b:literal)) => {
        Encoding::Opcode(Opcode::Merge($a, $b))
    };
    (packed($a:literal)) => {
        Encoding::Opcode(Opcode::Packed($a))
    };
    (lanes($a:literal, $b:literal, $c:literal, $d:literal)) => {
        Encoding::Opcode(Opcode::Lanes($a, $b, $c, $d))
    };
    (lane_shift($a:literal)) => {
        Encoding::Opcode(Opcode::LaneShift($a))
    };
    (insert) => {
        Encoding::Opcode(Opcode::Insert)
    };
    (extract) => {
        Encoding::Opcode(Opcode::Extract)
    };
    (test) => {
        Encoding::Opcode(Opcode::Test)
    };
    (round) => {
        Encoding::Opcode(Opcode::Round)
    };
    (sequence($name:ident)) => {
        Encoding::Sequence(Sequence::$name)
    };
}

macro_rules! flags {
    (keeps) => {
        Flags::Keeps
    };
    (reads) => {
        Flags::Reads
    };
    (clobbers) => {
        Flags::Clobbers
    };
    (integers) => {
        Flags::Integers
    };
    (floats) => {
        Flags::Floats
    };
    (bits) => {
        Flags::Bits
    };
    (result) => {
        Flags::Result
    };
    (logic) => {
        Flags::Logic
    };
    (shift) => {
        Flags::Shift
    };
}

macro_rules! traps {
    (no) => {
        Traps::No
    };
    (yes) => {
        Traps::Yes
    };
    (unless_saturating) => {
        Traps::UnlessSaturating
    };
}

macro_rules! clobbers {
    (none) => {
        Clobbers::None
    };
    (rax) => {
        Clobbers::Rax
    };
    (rdx) => {
        Clobbers::Rdx
    };
    (list) => {
        Clobbers::List
    };
}

macro_rules! define_asm {
    ($($name:ident, $text:literal, $shape:ident, flags: $flags:ident, traps: $traps:ident, clobbers: $clobbers:ident, $encoding:ident $(($($n:tt),*))?;)*) => {
        /// The row of a machine instruction.
        #[allow(missing_docs, reason = "TABLE 3 is the documentation")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Asm {
            $($name,)*
        }

        impl Asm {
            /// Every row.
            pub const ALL: &'static [Asm] = &[$(Asm::$name,)*];

            /// Its name in text, which is unique.
            pub const fn mnemonic(self) -> &'static str {
                match self {
                    $(Asm::$name => $text,)*
                }
            }

            /// Its operands.
            #[inline(always)]
            pub const fn shape(self) -> Shape {
                match self {
                    $(Asm::$name => Shape::$shape,)*
                }
            }

            /// Its effect on the flags.
            pub const fn flags(self) -> Flags {
                match self {
                    $(Asm::$name => flags!($flags),)*
                }
            }

            /// Whether it may trap, apart from memory operands.
            pub const fn traps(self) -> Traps {
                match self {
                    $(Asm::$name => traps!($traps),)*
                }
            }

            /// The registers that it clobbers.
            pub const fn clobbers(self) -> Clobbers {
                match self {
                    $(Asm::$name => clobbers!($clobbers),)*
                }
            }

            /// Its encoding.
            #[inline(always)]
            pub const fn encoding(self) -> Encoding {
                match self {
                    $(Asm::$name => encoding!($encoding $(($($n),*))?),)*
                }
            }
        }
    };
}

for_each_asm!(define_asm);

impl Asm {
    /// Whether it reads the flags.
    pub const fn reads_flags(self) -> bool {
        matches!(self.flags(), Flags::Reads)
    }

    /// Whether it exists for vectors of 256 bits and then works on each half as it does on a vector of 128 bits, apart from a
    /// right operand that is a count, one lane or a half.
    pub const fn is_on_halves(self) -> bool {
        use Asm::{
            IntToDouble, IntToSingle, Pabs, PackS, PackU, Padd, PaddSatS, PaddSatU, Palignr, Pand, Pandn, Pavg, Pblend,
            Pbroadcast, Pcmpeq, Pcmpgt, PermuteHalves, PextendEightS, PextendEightU, PextendFourS, PextendFourU, PextendS,
            PextendU, Pmadd, PmaddMixed, PmaxS, PmaxU, PminS, PminU, PmulRound, PmulS, PmulU, PmulhS, PmulhU, Pmull, Pones, Por,
            PshufHigh, PshufLow, Pshufb, Pshufd, Psll, PsllImm, Psra, PsraImm, Psrl, PsrlImm, Psub, PsubSatS, PsubSatU,
            PunpckHigh, PunpckLow, Pxor, Shufps, SingleToDouble, SingleToInt, VaddAll, Vand, VcmpAll, VdivAll, VmaxAll, VminAll,
            Vmov, VmovTo, VmulAll, Vor, VroundAll, VsqrtAll, VsubAll, Vxor,
        };
        matches!(
            self,
            Vmov | VmovTo
                | Vand
                | Vor
                | Vxor
                | Pand
                | Pandn
                | Por
                | Pxor
                | Pones
                | Padd
                | PaddSatS
                | PaddSatU
                | Psub
                | PsubSatS
                | PsubSatU
                | PminS
                | PminU
                | PmaxS
                | PmaxU
                | Pavg
                | Pabs
                | Pcmpeq
                | Pcmpgt
                | Pmull
                | PmulhS
                | PmulhU
                | PmulS
                | PmulU
                | Pmadd
                | PmaddMixed
                | PmulRound
                | Psll
                | Psrl
                | Psra
                | PsllImm
                | PsrlImm
                | PsraImm
                | PunpckLow
                | PunpckHigh
                | PackS
                | PackU
                | Pbroadcast
                | Pshufb
                | Pshufd
                | PshufLow
                | PshufHigh
                | Shufps
                | PextendS
                | PextendU
                | PextendFourS
                | PextendFourU
                | PextendEightS
                | PextendEightU
                | Palignr
                | Pblend
                | VaddAll
                | VmulAll
                | VsubAll
                | VdivAll
                | VminAll
                | VmaxAll
                | VsqrtAll
                | VroundAll
                | VcmpAll
                | IntToSingle
                | IntToDouble
                | SingleToDouble
                | SingleToInt
                | PermuteHalves
        )
    }

    /// Whether it preserves the flags.
    pub const fn keeps_flags(self) -> bool {
        matches!(self.flags(), Flags::Keeps | Flags::Reads)
    }
}

/// Operand width. For a float instruction, `D` is single and `Q` is double precision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    /// 8 bits.
    B,
    /// 16 bits.
    W,
    /// 32 bits.
    D,
    /// 64 bits.
    Q,
    /// 128 bits.
    X,
}

/// A condition on the flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "the processor's own names; discriminants are its encodings")]
pub enum Cond {
    O = 0,
    NO = 1,
    B = 2,
    AE = 3,
    E = 4,
    NE = 5,
    BE = 6,
    A = 7,
    S = 8,
    NS = 9,
    P = 10,
    NP = 11,
    L = 12,
    GE = 13,
    LE = 14,
    G = 15,
    /// Floats equal: E and NP.
    FloatE,
    /// Floats unequal or unordered: NE or P.
    FloatNE,
}

/// The two conditions that [`Cond::float_equality`] returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatEquality {
    /// [`Cond::FloatE`]
    Equal,
    /// [`Cond::FloatNE`]
    Unequal,
}

impl Cond {
    /// Every condition.
    pub const ALL: [Cond; 18] = {
        use Cond::{A, AE, B, BE, E, FloatE, FloatNE, G, GE, L, LE, NE, NO, NP, NS, O, P, S};
        [O, NO, B, AE, E, NE, BE, A, S, NS, P, NP, L, GE, LE, G, FloatE, FloatNE]
    };

    /// The flags on which it depends.
    pub const fn flags(self) -> FlagSet {
        match self {
            Cond::O | Cond::NO => FlagSet::OVERFLOW,
            Cond::B | Cond::AE => FlagSet::CARRY,
            Cond::E | Cond::NE => FlagSet::ZERO,
            Cond::BE | Cond::A => FlagSet::CARRY.and(FlagSet::ZERO),
            Cond::S | Cond::NS => FlagSet::SIGN,
            Cond::P | Cond::NP => FlagSet::PARITY,
            Cond::L | Cond::GE => FlagSet::SIGN.and(FlagSet::OVERFLOW),
            Cond::LE | Cond::G => FlagSet::ZERO.and(FlagSet::SIGN).and(FlagSet::OVERFLOW),
            Cond::FloatE | Cond::FloatNE => FlagSet::ZERO.and(FlagSet::PARITY),
        }
    }

    /// Which of the two conditions on two flags it is, or `None` for a condition that the processor has.
    pub const fn float_equality(self) -> Option<FloatEquality> {
        match self {
            Cond::FloatE => Some(FloatEquality::Equal),
            Cond::FloatNE => Some(FloatEquality::Unequal),
            Cond::O | Cond::NO | Cond::B | Cond::AE | Cond::E | Cond::NE | Cond::BE | Cond::A => None,
            Cond::S | Cond::NS | Cond::P | Cond::NP | Cond::L | Cond::GE | Cond::LE | Cond::G => None,
        }
    }

    /// The condition that is true exactly when this one is false.
    #[must_use]
    pub fn inverted(self) -> Cond {
        match self {
            Cond::O => Cond::NO,
            Cond::NO => Cond::O,
            Cond::B => Cond::AE,
            Cond::AE => Cond::B,
            Cond::E => Cond::NE,
            Cond::NE => Cond::E,
            Cond::BE => Cond::A,
            Cond::A => Cond::BE,
            Cond::S => Cond::NS,
            Cond::NS => Cond::S,
            Cond::P => Cond::NP,
            Cond::NP => Cond::P,
            Cond::L => Cond::GE,
            Cond::GE => Cond::L,
            Cond::LE => Cond::G,
            Cond::G => Cond::LE,
            Cond::FloatE => Cond::FloatNE,
            Cond::FloatNE => Cond::FloatE,
        }
    }

    /// The condition that is true after comparing `b` with `a` exactly when this one is true after comparing `a` with `b`.
    #[must_use]
    pub fn swapped(self) -> Cond {
        match self {
            Cond::B => Cond::A,
            Cond::A => Cond::B,
            Cond::AE => Cond::BE,
            Cond::BE => Cond::AE,
            Cond::L => Cond::G,
            Cond::G => Cond::L,
            Cond::LE => Cond::GE,
            Cond::GE => Cond::LE,
            symmetric @ (Cond::E | Cond::NE | Cond::FloatE | Cond::FloatNE) => symmetric,
            // A condition on a single flag that does not depend on the order of the operands.
            flag @ (Cond::O | Cond::NO | Cond::S | Cond::NS | Cond::P | Cond::NP) => flag,
        }
    }
}

/// An instruction's r/m operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rm {
    /// No operand.
    None,
    /// A register.
    Reg(Reg),
    /// Memory.
    Mem(Mem),
    /// A spill slot, which `emit` replaces by its address in the frame.
    Slot(u32),
}

impl From<Reg> for Rm {
    fn from(reg: Reg) -> Rm {
        Rm::Reg(reg)
    }
}

impl From<Mem> for Rm {
    fn from(mem: Mem) -> Rm {
        Rm::Mem(mem)
    }
}

/// A memory operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mem {
    /// The base register, or none.
    pub base: Reg,
    /// The index register, or none.
    pub index: Reg,
    /// The base-2 logarithm of the index's factor.
    pub shift: u8,
    /// The displacement; for [`Mem::constant`] the offset in the function's pool.
    pub disp: i32,
    /// Whether it is in the function's constant pool.
    pub pooled: bool,
    /// What the sum is relative to.
    pub segment: Segment,
    /// The pc of the Wasm instruction for which a fault is an out-of-bounds access; [`Mem::SAFE`] if it cannot fault.
    pub pc: u32,
}

/// What an address is relative to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Nothing: the sum is the address.
    Flat,
    /// The base of `gs`, which is that of memory 0: see the contract.
    Memory,
    /// The base of `gs`. The sum is one of 32 bits, which wraps around, and the upper halves of its registers do not matter.
    Memory32,
}

impl Mem {
    /// The access cannot fault.
    pub const SAFE: u32 = u32::MAX;

    /// `[base + disp]`
    pub const fn at(base: Reg, disp: i32) -> Mem {
        Mem { base, index: Reg::NONE, shift: 0, disp, pooled: false, segment: Segment::Flat, pc: Mem::SAFE }
    }

    /// `[base + index << shift + disp]`
    pub const fn indexed(base: Reg, index: Reg, shift: u8, disp: i32) -> Mem {
        Mem { base, index, shift, disp, pooled: false, segment: Segment::Flat, pc: Mem::SAFE }
    }

    /// This sum in another segment.
    pub const fn relative_to(self, segment: Segment) -> Mem {
        Mem { segment, ..self }
    }

    /// A constant at an offset in the pool.
    pub const fn constant(offset: u32) -> Mem {
        Mem {
            base: Reg::NONE,
            index: Reg::NONE,
            shift: 0,
            disp: offset as i32,
            pooled: true,
            segment: Segment::Flat,
            pc: Mem::SAFE,
        }
    }
}

/// The variant of an [`Asm::Trunc`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trunc {
    /// Whether the integer is signed.
    pub signed: bool,
    /// Whether it saturates instead of trapping.
    pub saturating: bool,
    /// The width of the float.
    pub from: Width,
}

impl Trunc {
    /// Encodes it as an immediate.
    pub fn to_imm(self) -> i64 {
        i64::from(self.signed) | i64::from(self.saturating) << 1 | i64::from(self.from == Width::Q) << 2
    }

    /// Decodes an immediate.
    pub fn from_imm(imm: i64) -> Trunc {
        let from = if imm & 4 != 0 { Width::Q } else { Width::D };
        Trunc { signed: imm & 1 != 0, saturating: imm & 2 != 0, from }
    }
}

/// The `imm` of a trap whose code a helper has stored. Otherwise `imm` is the trap's own code, which is never 0.
pub const STORED: i64 = 0;

/// A machine instruction. See the head of this file for the meaning of the fields.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Inst {
    /// Its row.
    pub op: Asm,
    /// Its width.
    pub width: Width,
    /// Whether its vectors have 256 bits.
    pub long: bool,
    /// The condition, if it reads flags.
    pub cond: Cond,
    /// The destination.
    pub dst: Reg,
    /// The left operand.
    pub src: Reg,
    /// The right operand.
    pub rm: Rm,
    /// A constant, or the index of a register list or jump table.
    pub imm: i64,
    /// The offset of its Wasm instruction.
    pub pc: u32,
}

impl Inst {
    /// An instruction without operands.
    pub fn new(op: Asm, width: Width) -> Inst {
        Inst { op, width, long: false, cond: Cond::O, dst: Reg::NONE, src: Reg::NONE, rm: Rm::None, imm: 0, pc: 0 }
    }

    /// The register in `rm`, for a row whose shape allows nothing else there.
    ///
    /// # Panics
    /// If `rm` is not a register.
    pub fn rm_reg(&self) -> Reg {
        let Rm::Reg(reg) = self.rm else { panic!("{:?} without a register as right operand", self.op) };
        reg
    }

    /// With this destination.
    #[must_use]
    pub fn dst(self, dst: Reg) -> Inst {
        Inst { dst, ..self }
    }

    /// With vectors of 256 bits.
    #[must_use]
    pub fn long(self, long: bool) -> Inst {
        Inst { long, ..self }
    }

    /// With this left operand.
    #[must_use]
    pub fn src(self, src: Reg) -> Inst {
        Inst { src, ..self }
    }

    /// With this right operand.
    #[must_use]
    pub fn rm(self, rm: Rm) -> Inst {
        Inst { rm, ..self }
    }

    /// With this register as right operand.
    #[must_use]
    pub fn reg(self, reg: Reg) -> Inst {
        Inst { rm: Rm::Reg(reg), ..self }
    }

    /// With this memory operand.
    #[must_use]
    pub fn mem(self, mem: Mem) -> Inst {
        Inst { rm: Rm::Mem(mem), ..self }
    }

    /// With this constant.
    #[must_use]
    pub fn imm(self, imm: i64) -> Inst {
        Inst { imm, ..self }
    }

    /// With this condition.
    #[must_use]
    pub fn cond(self, cond: Cond) -> Inst {
        Inst { cond, ..self }
    }

    /// The flags that it reads.
    pub fn flags_read(&self) -> FlagSet {
        if self.op.reads_flags() { self.cond.flags() } else { FlagSet::EMPTY }
    }

    /// The flags that may be read after it, or `None` if it preserves the flags.
    pub fn flags_defined(&self) -> Option<FlagSet> {
        // The helper that calls the host returns with other flags.
        let polls = self.op == Asm::TrapIf && self.imm == Trap::Interrupt as i64;
        if polls { Some(FlagSet::EMPTY) } else { self.op.flags().defined() }
    }

    /// Whether it may trap.
    pub fn may_trap(&self) -> bool {
        let by_operation = match self.op.traps() {
            Traps::No => false,
            Traps::Yes => true,
            Traps::UnlessSaturating => !Trunc::from_imm(self.imm).saturating,
        };
        by_operation || matches!(self.rm, Rm::Mem(Mem { pc, .. }) if pc != Mem::SAFE)
    }

    /// Calls `f` with every field that holds a virtual register, in the order of the allocator's operands.
    pub fn visit(&mut self, lists: &mut [RegList], mut f: impl FnMut(Field<'_>, Constraint, Role, Position)) {
        self.visit_all(lists, |field, constraint, role, position| {
            if field.get().is_virtual() {
                f(field, constraint, role, position);
            }
        });
    }

    /// Calls `f` with every field that may hold a register, whether it does or not. This is the only definition of the shapes:
    /// operands are collected, replaced and checked through it.
    pub fn visit_all(&mut self, lists: &mut [RegList], mut f: impl FnMut(Field<'_>, Constraint, Role, Position)) {
        use Constraint::{Any, Fixed, Reg as InReg, Reuse};
        use Position::{Early, Late};
        use Role::{Def, Use};
        let shape = self.op.shape();
        let (in_rm, rm_position) = match shape {
            Shape::ThreeRegister | Shape::MoveRegister | Shape::RegisterImm => (InReg, Early),
            Shape::WithScratch | Shape::WithScratchImm | Shape::Table => (InReg, Early),
            Shape::Quotient | Shape::Remainder => (InReg, Late),
            Shape::ByCl => (Fixed(abi::RCX), Early),
            Shape::Move
            | Shape::MoveImm
            | Shape::Const
            | Shape::Fill
            | Shape::TwoAddress
            | Shape::Unary
            | Shape::UnaryImm
            | Shape::ThreeAddress
            | Shape::ThreeImm
            | Shape::Extract
            | Shape::HighProduct
            | Shape::Compare
            | Shape::Store
            | Shape::StoreLane
            | Shape::Update
            | Shape::Set
            | Shape::OneUse
            | Shape::Nullary
            | Shape::Trap
            | Shape::List => (Any, Early),
        };
        match shape {
            Shape::List => {
                let list = &mut lists[self.imm as usize];
                list.uses.iter_mut().for_each(|(reg, fixed)| f(Field::Reg(reg), Fixed(*fixed), Use, Early));
                let defined = if self.op == Asm::Results { Early } else { Late };
                list.defs.iter_mut().for_each(|(reg, fixed)| f(Field::Reg(reg), Fixed(*fixed), Def, defined));
                return;
            }
            Shape::Move | Shape::MoveImm | Shape::MoveRegister | Shape::RegisterImm => {
                f(Field::Reg(&mut self.dst), InReg, Def, Late);
            }
            Shape::Const | Shape::Fill | Shape::Set => {
                f(Field::Reg(&mut self.dst), InReg, Def, Late);
            }
            Shape::TwoAddress | Shape::Unary | Shape::UnaryImm | Shape::ByCl => {
                f(Field::Reg(&mut self.src), InReg, Use, Early);
                f(Field::Reg(&mut self.dst), Reuse(0), Def, Late);
            }
            Shape::ThreeAddress | Shape::ThreeRegister | Shape::ThreeImm | Shape::Extract => {
                f(Field::Reg(&mut self.src), InReg, Use, Early);
                f(Field::Reg(&mut self.dst), InReg, Def, Late);
            }
            Shape::HighProduct => {
                f(Field::Reg(&mut self.src), Fixed(abi::RDX), Use, Early);
                f(Field::Reg(&mut self.dst), InReg, Def, Late);
            }
            Shape::Quotient | Shape::Remainder => {
                let result = if shape == Shape::Quotient { abi::RAX } else { abi::RDX };
                f(Field::Reg(&mut self.src), Fixed(abi::RAX), Use, Early);
                f(Field::Reg(&mut self.dst), Fixed(result), Def, Late);
            }
            Shape::WithScratch | Shape::WithScratchImm => {
                f(Field::Reg(&mut self.dst), InReg, Def, Late);
                f(Field::Reg(&mut self.src), InReg, Def, Early);
            }
            Shape::Table => {
                f(Field::Reg(&mut self.dst), InReg, Def, Early);
                f(Field::Reg(&mut self.src), InReg, Def, Early);
            }
            Shape::Compare | Shape::Store | Shape::StoreLane | Shape::Update | Shape::OneUse => {
                f(Field::Reg(&mut self.src), InReg, Use, Early);
            }
            Shape::Trap => {
                if !self.src.is_none() {
                    f(Field::Reg(&mut self.src), InReg, Use, Early);
                }
            }
            Shape::Nullary => {}
        }
        match &mut self.rm {
            Rm::None => {}
            rm @ Rm::Slot(_) => f(Field::Rm(rm), in_rm, Use, rm_position),
            Rm::Mem(mem) => {
                f(Field::Reg(&mut mem.base), InReg, Use, rm_position);
                f(Field::Reg(&mut mem.index), InReg, Use, rm_position);
            }
            rm @ Rm::Reg(_) => f(Field::Rm(rm), in_rm, Use, rm_position),
        }
    }

    /// The registers that it clobbers besides its definitions.
    pub fn clobbers(&self, lists: &[RegList]) -> RegSet {
        match self.op.clobbers() {
            Clobbers::None => RegSet::EMPTY,
            Clobbers::Rax => RegSet::EMPTY.with(abi::RAX),
            Clobbers::Rdx => RegSet::EMPTY.with(abi::RDX),
            Clobbers::List => lists[self.imm as usize].clobbers,
        }
    }
}

/// A field that may hold a register.
#[derive(Debug)]
pub enum Field<'a> {
    /// A field that always holds a register.
    Reg(&'a mut Reg),
    /// A field in which a spill slot may replace a register.
    Rm(&'a mut Rm),
}

impl Field<'_> {
    /// Sets the register.
    pub fn set(&mut self, new: Reg) {
        match self {
            Field::Reg(reg) => **reg = new,
            Field::Rm(rm) => **rm = Rm::Reg(new),
        }
    }

    /// The register, or none if the field holds a spill slot.
    pub fn get(&self) -> Reg {
        match self {
            Field::Reg(reg) => **reg,
            Field::Rm(Rm::Reg(reg)) => *reg,
            Field::Rm(_) => Reg::NONE,
        }
    }
}
