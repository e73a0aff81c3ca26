#!/usr/bin/env python3
"""Measures what each pass of the optimiser is worth: the twins with all passes, and with each of them off.

    programs/twins/ablation.py                       all programs and passes
    programs/twins/ablation.py --passes gvn,phis     these passes
    programs/twins/ablation.py brotli lua            these programs
    programs/twins/ablation.py --weir PATH           with this command; default: as for build.py --check

For each pass it prints three ratios, the pass off over all passes, as geometric means: wall time of `weir run --no-cache` with the list's
arguments, the least of --rounds; bytes of the file that `weir compile --tier native` writes; processor time of that, the least of --rounds.
The orders are random. The machine must have nothing else to do. A module's own bytes are in the file, so that code differs more than it says.
"""

import argparse
import json
import math
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import build

ALL = "none"


def passes(weir: list[str]) -> list[str]:
    """The passes that the command knows."""
    text = subprocess.run([*weir, "run", "--help"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"--pass-off <PASS>.*?\[possible values: (.*?)\]", text, re.DOTALL)
    if found is None:
        raise build.Failed("weir run --help names no passes")
    return found[1].split(", ")


def processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(command: list[str]) -> tuple[bytes, float, float]:
    """The output of a command, and its wall and processor time."""
    began, used = time.monotonic(), processor_time()
    done = subprocess.run(command, cwd=build.BUILT, stdin=subprocess.DEVNULL, capture_output=True)
    wall, used = time.monotonic() - began, processor_time() - used
    if done.returncode != 0:
        raise build.Failed(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout, wall, used


def of_program(weir: list[str], row: dict, configs: list[str], rounds: int, folder: Path) -> dict[str, list[float]]:
    """Wall time, file size and compile time by configuration."""
    found = {config: [math.inf] * 3 for config in configs}
    expected = (build.BUILT / row["expected"]).read_bytes()
    for _ in range(rounds):
        for config in random.sample(configs, len(configs)):
            off = [] if config == ALL else ["--pass-off", config]
            output, wall, _ = measured([*weir, "run", "--no-cache", "--dir=.", *off, row["wasm"], *row["args"]])
            if output != expected:
                raise build.Failed(f"{row['name']} without {config}: another output than native code's")
            file = folder / "compiled"
            _, _, used = measured([*weir, "compile", "--tier=native", *off, "-o", str(file), row["wasm"]])
            new = [wall, file.stat().st_size, used]
            found[config] = [min(pair) for pair in zip(found[config], new)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures what each pass is worth.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--passes", help="separated by commas")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--weir")
    args = parser.parse_args()
    weir = [str(Path(args.weir or build.find_weir()[0]).resolve())]
    rows = [row for row in json.loads((build.BUILT / "list.json").read_text()) if not row["kind"].endswith("-simd")]
    rows = [row for row in rows if not args.names or row["name"] in args.names]
    if not rows or set(args.names) - {row["name"] for row in rows}:
        raise build.Failed(f"{' '.join(args.names)}: not all of these are programs in {build.BUILT / 'list.json'}")
    configs = [ALL, *(args.passes.split(",") if args.passes else passes(weir))]
    logs: dict[str, list[list[float]]] = {config: [] for config in configs}
    by_name: dict[str, list[tuple[float, str]]] = {config: [] for config in configs}
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            found = of_program(weir, row, configs, args.rounds, Path(folder))
            for config, values in found.items():
                ratios = [value / all_ for value, all_ in zip(values, found[ALL])]
                logs[config].append([math.log(ratio) for ratio in ratios])
                by_name[config].append((ratios[0], row["name"]))
            print(f"{row['name']:16} {found[ALL][0]:.2f} s", file=sys.stderr, flush=True)
    print(f"{'without':16} {'time':>6} {'size':>6} {'compile':>8}   programs whose time differs most")
    for config in configs[1:]:
        means = [math.exp(sum(column) / len(rows)) for column in zip(*logs[config])]
        most = sorted(by_name[config], key=lambda one: -abs(math.log(one[0])))[:4]
        named = ", ".join(f"{name} {ratio:.2f}" for ratio, name in most)
        print(f"{config:16} {means[0]:6.3f} {means[1]:6.3f} {means[2]:8.3f}   {named}")


if __name__ == "__main__":
    try:
        main()
    except build.Failed as error:
        sys.exit(f"ablation.py: {error}")
