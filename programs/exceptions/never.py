#!/usr/bin/env python3
"""What handlers cost where nothing is thrown: the time and the instructions of a program with them, and without.

    programs/exceptions/never.py WEIR [ROUNDS]    e.g. target/release/weir 11

WEIR runs never.cpp, compiled here, in these variants, in turn within each round:

    handlers     as compiled
    removed      the same module, in which each `try_table` is a `block` followed by `nop`s in place of its clauses
    compiled     compiled with -fno-exceptions

The output is the median of the user times in seconds, and the instructions by callgrind, each with the ratio of `handlers` to it. Half of
the work is subtracted, so that neither start nor compilation counts.
"""

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import cxx  # noqa: E402

def leb_end(data, at):
    while data[at] & 0x80:
        at += 1
    return at + 1


def without_handlers(weir, module, target):
    """Writes the module with blocks in place of each `try_table`; `weir dump` has the offsets. Returns the number."""
    dump = subprocess.run([weir, "dump", module], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^0x([0-9a-f]+) +(\S+)", dump, re.M)
    data = bytearray(Path(module).read_bytes())
    count = 0
    for (offset, name), (end, _) in zip(found, found[1:]):
        if name == "try_table":
            at, end = int(offset, 16), int(end, 16)
            assert data[at] == 0x1F, hex(at)
            clauses = leb_end(data, at + 1)
            data[at] = 0x02
            data[clauses:end] = b"\x01" * (end - clauses)
            count += 1
    Path(target).write_bytes(data)
    return count


def user_time(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, output


def instructions(command):
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    run = subprocess.run(valgrind, check=True, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", run.stderr)[1]), run.stdout


def difference(measure, command, work):
    """The measure of half of the work, and the output."""
    half, _ = measure([*command, str(work // 2)])
    whole, output = measure([*command, str(work)])
    return whole - half, output


def build(weir, scratch):
    """The variants, by name."""
    path = {name: os.path.join(scratch, name) for name in ("handlers", "removed", "compiled", "object.o")}
    source = HERE / "never.cpp"
    cxx.build_cxx("exnref", [source], ["-std=c++20"], path["handlers"], scratch)
    count = without_handlers(weir, path["handlers"], path["removed"])
    features = cxx.FEATURES.replace("+exception_handling", "+reference_types")
    own = ["-target", "wasm32-wasi", f"-mcpu={features}", "-O2", "-g0", "-fno-exceptions", "-std=c++20"]
    subprocess.run(cxx.zig("c++", *own, "-c", str(source), "-o", path["object.o"]), check=True)
    library = cxx.library("exnref")
    subprocess.run(cxx.zig("cc", *cxx.cxx_flags("exnref"), path.pop("object.o"), *library, "-o", path["compiled"]), check=True)
    return path, count


def main():
    weir, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 11
    with tempfile.TemporaryDirectory() as scratch:
        variants, count = build(weir, scratch)
        print(f"{count} try_table")
        for unit, measure, work, rounds in (("s", user_time, 16000, rounds), ("instructions", instructions, 400, 1)):
            found = {name: [] for name in variants}
            for _ in range(rounds):
                outputs = set()
                for name, module in variants.items():
                    value, output = difference(measure, [weir, "--no-cache", "--tier", "native", module], work)
                    found[name].append(value)
                    outputs.add(output)
                assert len(outputs) == 1, outputs
            medians = {name: statistics.median(values) for name, values in found.items()}
            for name, median in medians.items():
                print(f"{name:10} {median:14,.3f} {unit:14} {medians['handlers'] / median:.3f}")


if __name__ == "__main__":
    main()
