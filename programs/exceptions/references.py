#!/usr/bin/env python3
"""The cost of references to host values in two builds of the command: user time, and instructions by callgrind.

    programs/exceptions/references.py BEFORE AFTER [ROUNDS]

Each kernel of references.wat runs with both in turn, and with twice the work, the time of which less that of once is reported: neither start
nor compilation counts. The references are null, because a command makes no others: compiled code treats them as any.
"""

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# Builds from before the cache have no option for it.
NO_CACHE = os.environ | {"XDG_CACHE_HOME": "/dev/null"}
NULL = "(ref.null extern)"
# The work whose time is measured, and the work under callgrind.
KERNELS = {
    "calls": f"call $calls (i32.const N) {NULL} {NULL} {NULL}",
    "indirect": "call $indirect (i32.const N)",
    "table": "call $table (i32.const N)",
    "globals": "call $globals (i32.const N)",
}
WORK = {"calls": (38, 24), "indirect": (2_000_000, 20_000), "table": (300_000, 1_000), "globals": (150_000_000, 500_000)}


def user_time(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, env=NO_CACHE)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def instructions(command):
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    run = subprocess.run(valgrind, check=True, capture_output=True, text=True, env=NO_CACHE)
    return int(re.search(r"Collected : (\d+)", run.stderr)[1])


def module(name, n, scratch):
    text = (Path(__file__).resolve().parent / "references.wat").read_text()
    path = os.path.join(scratch, f"{name}-{n}.wat")
    Path(path).write_text(text.replace("KERNEL", KERNELS[name].replace("N)", f"{n})")))
    return path


def main():
    builds = [os.path.abspath(build) for build in sys.argv[1:3]]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    print(f"{'':10} {'before, s':>12} {'after':>12} {'ratio':>6} {'instructions':>14} {'after':>14} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as scratch:
        for name, work in WORK.items():
            columns = []
            for measure, n, count in ((user_time, work[0], rounds), (instructions, work[1], 1)):
                found = [[], []]
                path = module(name, n, scratch)
                for _ in range(count):
                    for build, values in zip(builds, found):
                        run = [build, "--tier", "native", path]
                        values.append(-measure(run) + measure([*run, "again"]))
                columns += [statistics.median(values) for values in found]
            before, after, fewer, more = columns
            print(f"{name:10} {before:12.3f} {after:12.3f} {after / before:6.3f} {fewer:14,} {more:14,} {more / fewer:6.3f}")


if __name__ == "__main__":
    main()
