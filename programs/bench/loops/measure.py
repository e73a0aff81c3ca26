"""Measures loops.c or kernels.c: Weir beside code that wasmtime compiled before, and beside native code with and without vectors.

    python3 programs/bench/loops/measure.py loops|kernels [--rounds N] [--scale S] [--weir PATH] [NAME...]

Needs Zig's clang (`pip install ziglang`), and wasmtime on the PATH unless it is to be left out. Each time is the median of whole
processes, which take turns; the processor must have nothing else to do. All four print the same sum, which is compared.
"""

import argparse
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WASM = "-target wasm32-wasi -mcpu=generic+bulk_memory+sign_ext+nontrapping_fptoint+mutable_globals+multivalue".split()
NATIVE = "-target x86_64-linux-gnu -mcpu=x86_64_v3 -ffp-contract=off -lm".split()
NO_VECTORS = ["-fno-vectorize", "-fno-slp-vectorize"]


def compile_c(source, target, out):
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-O3", "-w", str(source), *target, "-o", str(out)], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", choices=["loops", "kernels"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", default="1")
    parser.add_argument("--weir", default=str(HERE.parents[2] / "target" / "release" / "weir"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        wasm, native, scalar = folder / "it.wasm", folder / "native", folder / "scalar"
        compile_c(HERE / f"{options.source}.c", WASM, wasm)
        compile_c(HERE / f"{options.source}.c", NATIVE, native)
        compile_c(HERE / f"{options.source}.c", NATIVE + NO_VECTORS, scalar)
        commands = {"weir": [options.weir, "run", "--no-cache", wasm], "native": [native], "scalar": [scalar]}
        if shutil.which("wasmtime"):
            subprocess.run(["wasmtime", "compile", wasm, "-o", folder / "it.cwasm"], check=True)
            commands["wasmtime"] = ["wasmtime", "run", "--allow-precompiled", folder / "it.cwasm"]
        measure(commands, options, options.names or subprocess.check_output([native], text=True).split())


def measure(commands, options, names):
    print(f"{'ms':22}" + "".join(f"{peer:>10}" for peer in commands) + "  weir over each")
    logarithms = {peer: [] for peer in commands}
    for name in names:
        times, outputs = {peer: [] for peer in commands}, {}
        for _ in range(options.rounds):
            for peer, command in commands.items():
                start = time.perf_counter()
                run = subprocess.run([*command, name, options.scale], capture_output=True, text=True, check=True)
                times[peer].append((time.perf_counter() - start) * 1e3)
                outputs[peer] = run.stdout
        median = {peer: statistics.median(all_times) for peer, all_times in times.items()}
        ratios = {peer: median["weir"] / median[peer] for peer in commands}
        for peer, ratio in ratios.items():
            logarithms[peer].append(math.log(ratio))
        differs = "" if len(set(outputs.values())) == 1 else f"  DIFFERENT OUTPUT: {outputs}"
        print(f"{name:22}" + "".join(f"{median[peer]:10.1f}" for peer in commands)
              + "".join(f"{ratios[peer]:8.2f}" for peer in commands if peer != "weir") + differs, flush=True)
    means = {peer: math.exp(sum(all_ratios) / len(all_ratios)) for peer, all_ratios in logarithms.items()}
    print("geometric means: " + ", ".join(f"{mean:.3f} of {peer}" for peer, mean in means.items() if peer != "weir"))


if __name__ == "__main__":
    main()
