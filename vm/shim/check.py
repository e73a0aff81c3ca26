#!/usr/bin/env python3
"""Runs each promise of the shim as a case, under a containerd of its own.

    vm/shim/check.py [NAME…] [--measure [OPTION…]]

All cases, or those whose names contain a NAME. With --measure, measure.py runs after them, with its options.

It needs root, and the commands `containerd` (1.6 or later), `ctr` and `runc`; some cases also wabt's `wat2wasm` or `wasm-tools`, `gcc`,
`script`, Python's grpc (Debian: python3-grpcio, for /usr/bin/python3), and in TEST_MODULES the path of src/modules of the package
containerd-shim-wasm-test-modules 0.4.1 (crates.io), with rustc's target wasm32-wasip1. A case that lacks something is skipped and says what. It installs
nothing. What it makes is in a temporary directory and in control groups, and is removed at the end. The shim is the release build:

    cargo build --release --locked --manifest-path vm/shim/Cargo.toml

Each case prints a line: whether it passed, its name, what it is about, and in brackets what was observed. The status is 1 if one
failed.
"""

import os
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

# Nothing is left beside the sources.
sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "tests"))

import cases  # noqa: E402
import layers  # noqa: E402
import pods  # noqa: E402
import rig  # noqa: E402
import stress  # noqa: E402


def main():
    if os.geteuid() != 0:
        sys.exit("check.py: containerd needs root")
    missing = [command for command in ("containerd", "ctr", "runc") if not shutil.which(command)]
    if missing:
        sys.exit(f"check.py: these commands are missing: {', '.join(missing)}")
    if not rig.SHIM.exists():
        sys.exit(f"check.py: build the shim first: {rig.SHIM} does not exist")
    wanted, measured = sys.argv[1:], None
    if "--measure" in wanted:
        at = wanted.index("--measure")
        wanted, measured = wanted[:at], wanted[at + 1 :]
    chosen = [case for module in (cases, layers, stress, pods) for case in module.CASES if not wanted or any(w in case.__name__ for w in wanted)]
    failed = skipped = 0
    version = "2" if rig.is_unified() else "1"
    print(f"containerd {'.'.join(map(str, rig.version()))}, version {version} of control groups", flush=True)
    with rig.Rig() as shared:
        images = cases.Images(shared)
        for case in chosen:
            begun = time.time()
            about = case.__doc__.strip().splitlines()[0]
            try:
                observed = case(shared, images) or ""
                verdict = "pass"
            except rig.Skip as reason:
                verdict, observed, skipped = "skip", str(reason), skipped + 1
            except Exception as error:  # A case may fail in any way.
                verdict, failed = "FAIL", failed + 1
                frame = traceback.extract_tb(error.__traceback__)[-1]
                observed = f"{Path(frame.filename).name}:{frame.lineno}: {frame.line}: {error}"
            if verdict == "FAIL":
                shared.clear()
            print(f"{verdict} {case.__name__:24} {about} [{observed}] {time.time() - begun:.1f} s", flush=True)
    # Code is still compiled for the cache, which has been removed.
    for _ in range(600):
        left = rig.leftovers()
        if not left:
            break
        time.sleep(0.1)
    print(f"{len(chosen)} cases: {failed} failed, {skipped} skipped; left behind: {left or 'nothing'}")
    if measured is not None:
        failed += subprocess.run([sys.executable, HERE / "measure.py", *measured], check=False).returncode != 0
    sys.exit(1 if failed or left else 0)


if __name__ == "__main__":
    main()
