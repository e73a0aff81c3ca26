#!/usr/bin/env python3
"""Counts the instructions that twins execute, by kind: native code beside Weir's, whose native back end compiles with a profile.

    programs/twins/instructions.py                       the real programs and interpreters
    programs/twins/instructions.py brotli lua            these programs
    programs/twins/instructions.py --weir PATH brotli    with this command; default: as for build.py --check
    programs/twins/instructions.py --functions brotli    also the functions that differ most

The profile is that of a run in `auto` with the list's arguments. What is counted has smaller ones, because valgrind takes 20 to 50 times
as long: the last argument is divided by --divide. Valgrind does not know the instructions that read and write the base of gs, so Weir's
code is that of --no-segment. Counts are of the guest's code alone, in per cent of all of the native twin's: a kind is listed with the difference. They do not depend on what else the machine does. Needs valgrind and objdump.
"""

import argparse
import collections
import math
import re
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import build

KINDS = ["copy", "reload", "spill", "address", "load", "store", "jump"]

# Where valgrind loads position-independent executables.
BIAS = 0x108000

# The kind of a record of a jitdump file that has code, and the lengths of the headers before name and code.
CODE_LOAD, RECORD_HEADER, CODE_LOAD_HEADER = 0, 16, 56


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise build.Failed(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def executed(counts: Path) -> collections.Counter:
    """Executions of the instruction at each address, from callgrind's file."""
    found: collections.Counter = collections.Counter()
    address, is_call = 0, False
    with counts.open(errors="replace") as lines:
        for line in lines:
            if line.startswith("calls="):
                is_call = True
                continue
            position, *rest = line.split() or [""]
            if re.fullmatch(r"0x[0-9a-f]+", position):
                address = int(position, 16)
            elif re.fullmatch(r"[+-](0x[0-9a-f]+|\d+)", position):
                address += int(position, 0)
            elif position != "*":
                continue
            # The line after `calls=` has the cost of the callee.
            if not is_call and len(rest) >= 2:
                found[address] += int(rest[1])
            is_call = False
    return found


def disassembled(text: str) -> dict[int, tuple[str, str]]:
    """The function and the text of each instruction in objdump's output."""
    found, function = {}, ""
    for line in text.splitlines():
        if symbol := re.match(r"[0-9a-f]+ <(.*)>:", line):
            function = symbol[1]
        elif instruction := re.match(r"\s*([0-9a-f]+):\s+(.*)", line):
            found[int(instruction[1], 16)] = (function, instruction[2])
    return found


OBJDUMP = ["objdump", "-M", "intel", "--no-show-raw-insn"]


def of_executable(path: Path) -> dict[int, tuple[str, str]]:
    found = disassembled(run([*OBJDUMP, "-d", str(path)], path.parent))
    is_fixed = min(found, default=0) >= 0x200000
    return found if is_fixed else {address + BIAS: line for address, line in found.items()}


def of_jitdump(path: Path, counts: collections.Counter) -> dict[int, tuple[str, str]]:
    """The instructions of the functions in a jitdump file that were executed."""
    dump, found = path.read_bytes(), {}
    executed_lines = {address >> 6 for address in counts}
    (position,) = struct.unpack_from("<I", dump, 8)
    while position + RECORD_HEADER <= len(dump):
        kind, length = struct.unpack_from("<II", dump, position)
        if kind == CODE_LOAD:
            # After the header: process, thread, address, the same again, size, number.
            address, size = struct.unpack_from("<2I8xQQ", dump, position + RECORD_HEADER)[2:]
            name_end = dump.index(b"\0", position + CODE_LOAD_HEADER)
            code = dump[name_end + 1:name_end + 1 + size]
            if any(line in executed_lines for line in range(address >> 6, (address + size >> 6) + 1)):
                with tempfile.NamedTemporaryFile() as blob:
                    blob.write(code)
                    blob.flush()
                    raw = ["-D", "-b", "binary", "-m", "i386:x86-64", f"--adjust-vma={address:#x}", blob.name]
                    text = run([*OBJDUMP, *raw], path.parent)
                name = dump[position + CODE_LOAD_HEADER:name_end].decode()
                found |= {at: (name, line) for at, (_, line) in disassembled(text).items()}
        if length == 0:
            break
        position += length
    return found


def kind_of(text: str) -> str:
    """The kind of an instruction; frames are reached by rsp or rbp."""
    text = re.sub(r"<.*>|#.*", "", text).strip()
    op, _, operands = text.partition(" ")
    while op in ("notrack", "rep", "repz", "repnz", "lock", "data16", "cs", "bnd", "rex"):
        op, _, operands = operands.strip().partition(" ")
    target, _, source = operands.strip().partition(",")
    in_frame = re.search(r"\[r[sb]p\b", operands) is not None
    if op == "lea":
        return "address"
    if op.startswith("j"):
        return "jump"
    if op.startswith(("mov", "vmov")):
        if "[" in target:
            return "spill" if in_frame else "store"
        if "[" in source:
            return "reload" if in_frame else "load"
        is_register = re.fullmatch(r"[a-z][a-z0-9]+", source) is not None
        return "copy" if is_register and not op.startswith(("movz", "movs", "vmovq", "vmovd")) else "other"
    return "other"


def by_kind(counts: collections.Counter, code: dict[int, tuple[str, str]]) -> dict[str, collections.Counter]:
    """Executed instructions by function and kind."""
    found: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for address, count in counts.items():
        if address in code:
            function, text = code[address]
            found[function][kind_of(text)] += count
    return found


def total(functions: dict[str, collections.Counter]) -> collections.Counter:
    return sum(functions.values(), collections.Counter())


def measure(program: dict, weir: str, divide: int) -> tuple[dict, dict]:
    """The instructions of both twins, by function and kind."""
    name, arguments = program["name"], program["args"]
    fewer = [*arguments[:-1], str(max(1, int(arguments[-1]) // divide))]
    native, module = build.BUILT / name, str(build.BUILT / f"{name}.wasm")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        callgrind = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--callgrind-out-file=counts"]
        run([*callgrind, str(native), *fewer], folder)
        of_native = by_kind(executed(folder / "counts"), of_executable(native))
        run([weir, "run", "--no-cache", "--profile-save", "profile", module, *arguments], folder)
        compiled = [weir, "run", "--no-cache", "--tier=native", "--profile-use", "profile", "--profile", "jitdump", module, *fewer]
        # Code is not changed while it runs; looking for that would take most of the time.
        run([*callgrind, "--smc-check=none", *compiled], folder)
        counts = executed(folder / "counts")
        (dump,) = folder.glob("jit-*.dump")
        return of_native, by_kind(counts, of_jitdump(dump, counts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--weir", default=build.find_weir()[0])
    parser.add_argument("--divide", type=int, default=12)
    parser.add_argument("--functions", action="store_true")
    args = parser.parse_args()
    programs = build.tomllib.loads(build.LIST.read_text())["program"]
    chosen = [p for p in programs if (p["name"] in args.names if args.names else p["kind"] in ("real", "interpreter"))]
    unknown = set(args.names) - {program["name"] for program in programs}
    if unknown:
        sys.exit(f"instructions.py: {build.LIST} has no program {', '.join(sorted(unknown))}")
    logarithms = []
    print(f"{'':14} {'of native':>9} " + " ".join(f"{kind:>8}" for kind in KINDS))
    with ThreadPoolExecutor(2) as pool:
        jobs = [(program["name"], pool.submit(measure, program, args.weir, args.divide)) for program in chosen]
        for name, job in jobs:
            try:
                native, weir = job.result()
            except (build.Failed, OSError) as error:
                print(f"{name:14} {error}")
                continue
            before, after = total(native), total(weir)
            all_native = before.total()
            more = " ".join(f"{100 * (after[kind] - before[kind]) / all_native:+8.1f}" for kind in KINDS)
            ratio = after.total() / all_native
            logarithms.append(math.log(ratio))
            print(f"{name:14} {ratio:9.3f} {more}", flush=True)
            if args.functions:
                def share(functions: dict[str, collections.Counter], function: str) -> float:
                    return 100 * functions.get(function, collections.Counter()).total() / all_native
                worst = sorted(weir, key=lambda function: share(native, function) - share(weir, function))
                for function in worst[:6]:
                    print(f"    {function[:40]:40} native {share(native, function):5.1f} weir {share(weir, function):5.1f}")
    if logarithms:
        print(f"{'geometric mean':14} {math.exp(sum(logarithms) / len(logarithms)):9.3f}")


if __name__ == "__main__":
    main()
