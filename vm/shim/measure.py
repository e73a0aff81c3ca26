#!/usr/bin/env python3
"""Measures what containers cost with the shim, beside runc with the same programs native and static.

    vm/shim/measure.py [ROUNDS] [IDLE…]    e.g. 21 1 10 100

- The time from `ctr run` to the first byte of output, in ms: median and quartiles of ROUNDS (21 without it), all variants in turn within a round.
  QuickJS and CPython are run if `programs/fetch.py qjs-wasi python-wasi` has fetched them.
- The memory of IDLE containers (100 without it) that sleep: the fall of MemAvailable for each, and the proportional set sizes of shims,
  zygotes and guests, in KiB.

- The proportional set sizes of a pod of ten such containers, which have one shim, if Python's grpc is there.

It needs root, containerd, ctr, runc and gcc, installs nothing, and removes what it has made.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "tests"))

import pods  # noqa: E402
from rig import RUNTIME, Rig, Skip  # noqa: E402

REAL = HERE.parent.parent / "programs/real"
RUNC = "io.containerd.runc.v2"
HELLO = '#include <unistd.h>\nint main(void) { return write(1, "hello from weir\\n", 16) != 16; }\n'
IDLE = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"


def native(rig, name, text):
    """Compiles a static program and returns its bytes."""
    source, program = rig.root / f"{name}.c", rig.root / name
    source.write_text(text)
    subprocess.run(["gcc", "-static", "-O2", "-o", program, source], check=True)
    return program.read_bytes()


def first_output(rig, image, runtime):
    """The time to the first byte, in ms."""
    begun = time.monotonic()
    _, process = rig.launch(image, runtime=runtime)
    byte = process.stdout.read(1)
    took = 1000 * (time.monotonic() - begun)
    _, errors = process.communicate()
    assert byte, errors
    return took


def times(rig, rounds):
    guest = (HERE / "tests/guests/hello.wat").read_bytes()
    variants = {
        "hello, Weir": (rig.image("m/hello:1", {"hello.wat": (guest, 0o644)}, ["/hello.wat"]), RUNTIME),
        "hello, native with runc": (rig.image("m/native:1", {"hello": (native(rig, "hello", HELLO), 0o755)}, ["/hello"]), RUNC),
    }
    for name, args in (("qjs-wasi", ["-e", "console.log(1)"]), ("python-wasi", ["-c", "print(1)"])):
        module = REAL / f"{name}.wasm"
        if module.exists():
            image = rig.image(f"m/{name}:1", {"m.wasm": (module.read_bytes(), 0o644)}, ["/m.wasm", *args])
            print(f"{name}, Weir, first time: {first_output(rig, image, RUNTIME):.0f} ms")
            variants[f"{name}, Weir"] = (image, RUNTIME)
    found = {name: [] for name in variants}
    for _ in range(rounds):
        for name, (image, runtime) in variants.items():
            found[name].append(first_output(rig, image, runtime))
    for name, values in found.items():
        low, middle, high = statistics.quantiles(values, n=4)
        print(f"{name}: {middle:.0f} ms to the first output (quartiles {low:.0f} and {high:.0f}, {rounds} rounds)")


def available():
    """MemAvailable, in KiB."""
    return next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))


def proportional(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def idle(rig, image, runtime, count, args=()):
    """Starts containers that sleep; returns the fall of MemAvailable for each and the mean sizes by role."""
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3")
    time.sleep(1)
    before = available()
    begun = time.monotonic()
    names = [rig.name() for _ in range(count)]
    for name in names:
        done = rig.ctr("run", "-d", "--null-io", "--snapshotter", "native", "--runtime", runtime, image, name, *args)
        assert done.returncode == 0, done.stderr
    took = time.monotonic() - begun
    time.sleep(2)
    fall = (before - available()) / count
    tasks = dict(line.split()[:2] for line in rig.ctr("task", "ls").stdout.splitlines()[1:])
    roles = {"guest": [proportional(tasks[name]) for name in names]}
    for line in subprocess.run(["ps", "-eo", "pid,ppid,comm,args"], capture_output=True, text=True, check=True).stdout.splitlines():
        pid, parent, command, arguments = line.split(None, 3)
        if "containerd-shim-" in arguments and str(rig.root) in arguments and pid not in tasks.values():
            role = "shim" if Path(f"/proc/{parent}/comm").read_text().strip()[:15] != command[:15] else "zygote"
            roles.setdefault(role, []).append(proportional(pid))
    for name in names:
        rig.ctr("task", "kill", "-s", "KILL", name)
    for name in names:
        for _ in range(50):
            if rig.ctr("task", "rm", name).returncode == 0:
                break
        rig.ctr("c", "rm", name)
    sizes = ", ".join(f"{role} {statistics.mean(values):.0f}" for role, values in sorted(roles.items()))
    return f"{fall:.0f} KiB of MemAvailable each; PSS in KiB: {sizes}; started at {1000 * took / count:.0f} ms each"


def memory(rig, counts):
    probe = (HERE / "tests/guests/probe.wat").read_bytes()
    guest = rig.image("m/idle:1", {"probe.wat": (probe, 0o644)}, ["/probe.wat", "l"])
    program = rig.image("m/idle-native:1", {"idle": (native(rig, "idle", IDLE), 0o755)}, ["/idle"])
    for count in counts:
        print(f"{count} idle, Weir: {idle(rig, guest, RUNTIME, count)}", flush=True)
        print(f"{count} idle, native with runc: {idle(rig, program, RUNC, count)}", flush=True)


def pod():
    """A pod of ten containers that sleep, through the CRI plugin."""
    try:
        with pods.Pods() as cluster:
            config = cluster.cri_module.pod_config("ten", cluster.logs)
            before = available()
            sandbox = cluster.cri.run_pod(config, "weir")
            begun = time.monotonic()
            for number in range(10):
                container = cluster.cri_module.container_config(f"c{number}", "docker.io/test/probe:1", ["/probe.wat", "l"])
                cluster.cri.start(cluster.cri.create(sandbox, container, config))
            took = time.monotonic() - begun
            time.sleep(2)
            fall = before - available()
            sizes = {}
            lines = subprocess.run(["ps", "-eo", "pid,comm,args"], capture_output=True, text=True, check=True).stdout.splitlines()
            for line in lines:
                pid, command, arguments = line.split(None, 2)
                if "weir-v1 -namespace k8s.io" in arguments:
                    sizes.setdefault("guests" if command == "weir" else "shim and zygote", []).append(proportional(pid))
            cluster.cri.remove_pod(sandbox)
            totals = ", ".join(f"{len(values)} {role} {sum(values)}" for role, values in sorted(sizes.items()))
            print(f"pod of ten, Weir: {fall} KiB of MemAvailable; PSS in KiB: {totals}; {100 * took:.0f} ms for each container")
    except Skip as reason:
        print(f"pod of ten: not measured: {reason}")


def main():
    if os.geteuid() != 0:
        sys.exit("measure.py: containerd needs root")
    rounds, *counts = map(int, sys.argv[1:] or [21])
    with Rig() as rig:
        times(rig, rounds)
        memory(rig, counts or [100])
    pod()


if __name__ == "__main__":
    main()
