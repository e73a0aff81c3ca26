#!/usr/bin/env python3
"""Builds the programs of list.toml twice from one source, as WebAssembly and for this processor, into built/.

    programs/twins/build.py                  fetch what is missing, build what has changed, report what failed
    programs/twins/build.py NAME...          only these
    programs/twins/build.py --kind float     only this kind
    programs/twins/build.py --check          also run native code and Weir, and compare their outputs with the hashes of the list
    programs/twins/build.py --vectors        also measure native code with and without vectorisers: which kernels are vectorisable

The sources belong to their authors and are not part of this repository. Packages come from their registries through the
registries' clients, in the versions and with the SHA-256 that list.toml has. Needs Python 3.11, cargo, npm, and Zig's C compiler:
`pip install ziglang==0.17.0`. `weir-bench --list programs/twins/built/list.json` measures what was built.
"""

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from compile import without_debug_info  # noqa: E402
from fetch import download  # noqa: E402

LIST = HERE / "list.toml"
BUILT = HERE / "built"
SOURCES = HERE / "sources"
REPOSITORY = HERE.parents[1]

# The flags of both twins. Errors by longjmp end the program: include/setjmp.h says why.
BOTH = ["-O3", "-g0", "-w", "-I", str(HERE.parent), "-I", str(HERE / "include"), "-I", str(HERE / "drivers")]
FEATURES = "mvp+bulk_memory+multivalue+mutable_globals+nontrapping_fptoint+sign_ext"
NATIVE = ["-march=x86_64_v3", "-ffp-contract=off"]
UNVECTORISED = ["-fno-vectorize", "-fno-slp-vectorize"]

# The twins: the suffix of the file, and the flags.
WASI = ["-target", "wasm32-wasi", "-Wl,-z,stack-size=4194304"]
for library in ["process-clocks", "signal", "getpid"]:
    WASI += [f"-D_WASI_EMULATED_{library.upper().replace('-', '_')}", f"-lwasi-emulated-{library}"]
WASM = (".wasm", [*WASI, f"-mcpu={FEATURES}"])
SIMD = ("-simd.wasm", [*WASI, f"-mcpu={FEATURES}+simd128"])
HOST = ("", NATIVE)
SCALAR = ("-scalar", NATIVE + UNVECTORISED)

KERNELS = ["float", "integer", "indirect"]
KINDS = ["real", *KERNELS, "interpreter"]

# A kernel is vectorisable if native code takes this much longer without vectorisers.
VECTORISABLE = 1.3
RUNS = 5
TIMEOUT = 120


class Failed(Exception):
    """A program could not be built or run, or its output is wrong; the text says why."""


def package_folder(package: dict) -> Path:
    return SOURCES / f"{package['name'].replace('/', '-')}-{package['version']}"


def fetch(package: dict) -> None:
    """Puts a package's sources into sources/, unless they are there."""
    target = package_folder(package)
    if target.exists():
        return
    SOURCES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SOURCES) as scratch:
        try:
            unpacked = download(package["registry"], package["name"], package["version"], package["sha256"], Path(scratch))
        except (subprocess.CalledProcessError, SystemExit) as error:
            raise Failed(str(error)) from error
        for archive in package.get("archives", []):
            shutil.unpack_archive(unpacked / archive, unpacked, filter="data")
        os.replace(unpacked, target)


def expand(text: str, packages: dict[str, dict]) -> str:
    """`{PACKAGE}` becomes the folder of that package's sources, `{here}` the folder of the list."""
    def folder(match: re.Match) -> str:
        return str(HERE) if match[1] == "here" else str(package_folder(packages[match[1]]))
    return re.sub(r"\{([\w@/.-]+)\}", folder, text)


def source_files(program: dict, packages: dict[str, dict]) -> list[str]:
    """The files to compile: the program's own, then those that its patterns match, less those that it leaves out."""
    left_out = {expand(pattern, packages) for pattern in program.get("without", [])}
    found = [str(HERE / program["source"])]
    for pattern in (expand(pattern, packages) for pattern in program.get("files", [])):
        matches = sorted(str(path) for path in Path("/").glob(pattern.lstrip("/")))
        if not matches:
            raise Failed(f"no file is {pattern}")
        found += [path for path in matches if path not in left_out]
    return found


def ours(folder: str) -> list[Path]:
    """The headers in a folder of ours."""
    return sorted(path for path in (HERE / folder).rglob("*.h"))


def command(program: dict, packages: dict[str, dict], flags: list[str], target: Path) -> list[str]:
    files = source_files(program, packages)
    cpp = any(file.endswith((".cpp", ".cc")) for file in files)
    # Kernels in C++ need no library, which would be compiled with the first of them.
    driver = ["c++", "-fno-exceptions", "-fno-rtti"] if cpp else ["cc"]
    own = [expand(flag, packages) for flag in program.get("flags", [])]
    return [sys.executable, "-m", "ziglang", *driver, *flags, *BOTH, *own, *files, "-lm", "-o", str(target)]


def build(program: dict, packages: dict[str, dict], twin: tuple[str, list[str]]) -> Path:
    """Compiles one twin, unless it was compiled by this command from these files of ours."""
    suffix, flags = twin
    target = BUILT / f"{program['name']}{suffix}"
    line = command(program, packages, flags, target.with_name(f"{target.name}.part"))
    key = hashlib.sha256("\0".join(line).replace(str(HERE), "").encode())
    headers = ours("include") + ours("drivers") if program.get("packages") else []
    for own in [HERE / program["source"], HERE.parent / "kernel.h", *headers]:
        key.update(own.read_bytes())
    for embedded in program.get("embeds", []):
        key.update(Path(expand(embedded, packages)).read_bytes())
    keyfile = target.with_name(f"{target.name}.key")
    if target.exists() and keyfile.exists() and keyfile.read_text() == key.hexdigest():
        return target
    result = subprocess.run(line, capture_output=True, text=True)
    if result.returncode:
        errors = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()
        raise Failed(f"{target.name} does not compile: " + "; ".join(errors[:4]))
    if suffix.endswith(".wasm"):
        unfinished = Path(line[-1])
        unfinished.write_bytes(without_debug_info(unfinished.read_bytes()))
    os.replace(line[-1], target)
    keyfile.write_text(key.hexdigest())
    return target


def run(line: list[str]) -> tuple[bytes, float]:
    """Standard output of a command, and the processor time that it took, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        result = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"not done after {TIMEOUT} s") from error
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode:
        errors = result.stderr.decode(errors="replace").strip().splitlines()
        raise Failed(f"exit status {result.returncode}: {errors[0] if errors else 'no message'}")
    return result.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def digest(output: bytes) -> str:
    return hashlib.sha256(output).hexdigest()


def expect(program: dict, who: str, output: bytes) -> None:
    """Compares an output with the hash of the list; a program that is new to the list has none yet."""
    if program["output"] == "":
        program["output"] = digest(output)
        print(f"{program['name']:16} output = \"{digest(output)}\"")
    if digest(output) != program["output"]:
        raise Failed(f"{who}: the SHA-256 of the output is {digest(output)}, not {program['output']}; it begins {output[:60]!r}")


def find_weir() -> list[str]:
    """The command weir: named by WEIR_PEER_WEIR, as for weir-bench, or built in the repository."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return [os.environ.get("WEIR_PEER_WEIR", str(target / "release" / "weir"))]


def check(program: dict, tiers: list[str]) -> None:
    """Runs native code and every WebAssembly twin in Weir."""
    name, args = program["name"], program["args"]
    output, seconds = run([str(BUILT / name), *args])
    expect(program, "native", output)
    # weir-bench compares bytes, not hashes.
    (BUILT / f"{name}.out").write_bytes(output)
    taken = [f"native {seconds:.2f} s"]
    for suffix, _ in twins(program):
        if suffix.endswith(".wasm"):
            for tier in tiers:
                output, seconds = run([*find_weir(), "run", f"--tier={tier}", str(BUILT / f"{name}{suffix}"), *args])
                expect(program, f"weir --tier={tier} on {name}{suffix}", output)
                taken.append(f"{tier}{suffix.removesuffix('.wasm')} {seconds:.2f} s")
    print(f"{name:16} {', '.join(taken)}", flush=True)


def vectors(program: dict) -> None:
    """Prints native time without vectorisers over that with them: medians of processor time, the twins in turn."""
    times: dict[str, list[float]] = {"": [], "-scalar": []}
    for _ in range(RUNS):
        for suffix, taken in times.items():
            output, seconds = run([str(BUILT / f"{program['name']}{suffix}"), *program["args"]])
            expect(program, f"native{suffix}", output)
            taken.append(seconds)
    with_vectors, without = (statistics.median(taken) for taken in times.values())
    ratio = without / with_vectors
    verdict = "vectorisable" if ratio >= VECTORISABLE else "not vectorisable"
    differs = "" if program.get("vectorisable") == (ratio >= VECTORISABLE) else ", but the list says otherwise"
    print(f"{program['name']:16} {with_vectors:.3f} s, without vectorisers {without:.3f} s: {ratio:.2f}, {verdict}{differs}", flush=True)


def twins(program: dict) -> list[tuple[str, list[str]]]:
    return [HOST, WASM, SCALAR, SIMD] if program["kind"] in KERNELS else [HOST, WASM]


def write_built(programs: list[dict]) -> None:
    """What weir-bench needs of the programs that are complete: names, kinds, arguments and files."""
    rows = []
    for program in programs:
        name = program["name"]
        complete = all((BUILT / f"{name}{suffix}").exists() for suffix, _ in twins(program)) and (BUILT / f"{name}.out").exists()
        if complete:
            row = {"name": name, "kind": program["kind"], "args": program["args"], "native": name, "expected": f"{name}.out"}
            rows.append({**row, "wasm": f"{name}.wasm"})
            if program.get("vectorisable"):
                rows.append({**row, "name": f"{name}-simd", "kind": f"{program['kind']}-simd", "wasm": f"{name}-simd.wasm"})
    (BUILT / "list.json").write_text(json.dumps(rows, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Builds the programs of list.toml as WebAssembly and for this processor.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all if none are named")
    parser.add_argument("--kind", choices=KINDS, help="only programs of this kind")
    parser.add_argument("--list", action="store_true", help="print the list, without building")
    parser.add_argument("--check", action="store_true", help="run native code and Weir, and compare outputs")
    parser.add_argument("--tiers", default="native,auto", metavar="TIER,…", help="Weir's tiers for --check [native,auto]")
    parser.add_argument("--vectors", action="store_true", help="measure kernels with and without vectorisers")
    options = parser.parse_args()
    table = tomllib.loads(LIST.read_text())
    packages = {package["name"]: package for package in table.get("package", [])}
    programs = table["program"]
    if unknown := set(options.names) - {program["name"] for program in programs}:
        sys.exit(f"build.py: unknown: {', '.join(sorted(unknown))}")
    wanted = [p for p in programs if (not options.names or p["name"] in options.names) and options.kind in (None, p["kind"])]
    failures = []
    BUILT.mkdir(exist_ok=True)
    for program in wanted:
        if options.list:
            print(f"{program['name']:16} {program['kind']:12} {program['about']}")
            continue
        try:
            for name in program.get("packages", []):
                fetch(packages[name])
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(lambda twin, program=program: build(program, packages, twin), twins(program)))
            # Native code in every case: weir-bench needs its output.
            check(program, options.tiers.split(",") if options.check else [])
            if options.vectors and program["kind"] in KERNELS:
                vectors(program)
        except Failed as failure:
            failures.append(f"{program['name']}: {failure}")
            print(f"{program['name']:16} FAILED", flush=True)
    if not options.list:
        write_built(programs)
        print(f"{len(wanted) - len(failures)} of {len(wanted)} programs")
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
