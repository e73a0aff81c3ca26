#!/usr/bin/env python3
"""Measures what containers cost with the shim, beside runc with the same programs native and static, and beside a shim on wasmtime.

    vm/shim/measure.py [--rounds N] [--first N] [--idle N…] [--peer SHIM] [--native NAME=FOLDER…]

- The time from `ctr run` to the first byte of output, in ms: median and quartiles of ROUNDS (21), all variants within a round, in
  another order each time, and each a while after the one before, of which containerd still removes something.
  QuickJS and CPython are run if `programs/fetch.py qjs-wasi python-wasi` has fetched them.
- The same for the first container of a module, which has no code yet: each round (5) has a module that differs in a custom section.
- The memory of IDLE containers (100) that sleep: the fall of MemAvailable for each, and the proportional set sizes of shims, zygotes and
  guests, in KiB. What was compiled for the cache ends first.
- The proportional set sizes of a pod of ten such containers, which have one shim, if Python's grpc is there.

With `--native`, QuickJS or CPython is also run as a native program, with runc: the files of the FOLDER are its image, and `program` in it is
a static one. QuickJS-ng is compiled from the sources of which `programs/fetch.py` makes its module, CPython is linked with Debian's
`libpython3.11.a` and has the modules of its library without which it does not start:

    zig cc -target x86_64-linux-musl -static -O2 -D_GNU_SOURCE -o quickjs/program qjs.c quickjs.c quickjs-libc.c libregexp.c libunicode.c dtoa.c \
        gen/repl.c gen/standalone.c
    gcc -static -O2 -I/usr/include/python3.11 -o cpython/program main.c -L/usr/lib/python3.11/config-3.11-x86_64-linux-gnu -lpython3.11 -lexpat \
        -lz -lm        # main calls Py_BytesMain
    mkdir -p cpython/usr/lib/python3.11 && cp -r /usr/lib/python3.11/encodings cpython/usr/lib/python3.11

With a PEER, modules are layers of artifacts, because runwasi's library keeps code of layers only. This needs containerd 1.7 or later.
The peer is runwasi's library with wasmtime:

    cargo build --release --locked --manifest-path vm/shim/peer/Cargo.toml

It needs root, containerd, ctr, runc and gcc, installs nothing, and removes what it has made.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Nothing is left beside the sources.
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "tests"))

import cases  # noqa: E402
import layers  # noqa: E402
import pods  # noqa: E402
from rig import RUNTIME, SHIM, Rig, Skip, leftovers, output, version  # noqa: E402

REAL = HERE.parent.parent / "programs/real"
RUNC = "io.containerd.runc.v2"
HELLO = '#include <unistd.h>\nint main(void) { return write(1, "hello from weir\\n", 16) != 16; }\n'
IDLE = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"
PROGRAMS = {"QuickJS": ("qjs-wasi", ["-e", "console.log(1)"]), "CPython": ("python-wasi", ["-c", "print(1)"])}
# CPython has few modules of its library then.
NATIVE_ARGS = {"QuickJS": PROGRAMS["QuickJS"][1], "CPython": ["-I", "-S", "-c", "print(1)"]}
# Seconds between two containers.
PAUSE = 0.15


def native(rig, name, text):
    """Compiles a static program and returns its bytes."""
    source, program = rig.root / f"{name}.c", rig.root / name
    source.write_text(text)
    subprocess.run(["gcc", "-static", "-O2", "-o", program, source], check=True)
    return program.read_bytes()


def unsigned(number):
    """The format's encoding of a number."""
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def changed(module, number):
    """The module with a custom section more."""
    content = b"\x05round" + str(number).encode()
    return module + b"\0" + unsigned(len(content)) + content


def runtime_of(shim):
    """The name under which containerd finds a shim: `io.containerd.weir.v1` of `containerd-shim-weir-v1`."""
    name, number = shim.name.removeprefix("containerd-shim-").rsplit("-", 1)
    return f"io.containerd.{name}.{number}"


class Variants:
    """Programs in engines."""

    def __init__(self, rig, peer, native_folders):
        self.rig, self.serial, self.native_folders = rig, 0, native_folders
        self.engines = {"Weir": RUNTIME, **({"wasmtime": runtime_of(peer)} if peer else {})}
        self.as_layers = peer is not None
        hello = (HERE / "tests/guests/hello.wat").read_bytes()
        self.modules = {"hello": (cases.binary(rig, hello), [])}
        for name, (file, args) in PROGRAMS.items():
            path = REAL / f"{file}.wasm"
            if path.exists():
                self.modules[name] = (path.read_bytes(), args)

    def image(self, module, args):
        """An image of a module, and the arguments of its containers."""
        self.serial += 1
        name = f"m/{self.serial}:1"
        if self.as_layers:
            return layers.unpacked(self.rig, name, [module]), ["/m.wasm", *args]
        return self.rig.image(name, {"m.wasm": (module, 0o644)}, ["/m.wasm", *args]), ["/m.wasm", *args]

    def first_output(self, image, args, runtime):
        """The time to the first byte, in ms."""
        begun = time.monotonic()
        _, process = self.rig.launch(image, *args, runtime=runtime)
        byte = process.stdout.read(1)
        took = 1000 * (time.monotonic() - begun)
        _, errors = process.communicate()
        assert byte, errors
        return took

    def native_images(self):
        """The images of native programs, with the arguments of their containers."""
        hello = {"program": (native(self.rig, "hello", HELLO), 0o755)}
        yield "hello", self.rig.image("m/native-hello:1", hello, ["/program"]), []
        for name, folder in self.native_folders.items():
            paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
            files = {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777) for path in paths}
            yield name, self.rig.image(f"m/native-{name.lower()}:1", files, ["/program"]), ["/program", *NATIVE_ARGS[name]]

    def first_times(self, rounds):
        for name, (module, args) in self.modules.items():
            found = {engine: [] for engine in self.engines}
            for number in range(rounds):
                image = self.image(changed(module, number), args)
                # Each engine is first in every other round.
                for engine, runtime in sorted(self.engines.items(), reverse=number % 2 == 1):
                    found[engine].append(self.first_output(*image, runtime))
                    self.rig.quiet()
            for engine, values in found.items():
                report(f"{name}, {engine}, the first time", values)

    def later_times(self, rounds):
        variants = {f"{name}, native with runc": (image, args, RUNC) for name, image, args in self.native_images()}
        for name, (module, args) in self.modules.items():
            image = self.image(module, args)
            for engine, runtime in self.engines.items():
                self.first_output(*image, runtime)
                self.rig.quiet()
                variants[f"{name}, {engine}, from the second time on"] = (*image, runtime)
        found = {name: [] for name in variants}
        order = random.Random(0)
        for _ in range(rounds):
            for name in order.sample(sorted(variants), len(variants)):
                time.sleep(PAUSE)
                found[name].append(self.first_output(*variants[name]))
        for name, values in found.items():
            report(name, values)

    def memory(self, counts):
        probe = cases.binary(self.rig, (HERE / "tests/guests/probe.wat").read_bytes())
        image, args = self.image(probe, ["l"])
        program = self.rig.image("m/idle-native:1", {"idle": (native(self.rig, "idle", IDLE), 0o755)}, ["/idle"])
        for runtime in self.engines.values():
            self.rig.run(image, "/m.wasm", "x", "0", runtime=runtime)
        self.rig.quiet()
        # Not shown: memory of what ran before is still given back.
        idle(self.rig, image, args, RUNTIME, 3)
        for count in counts:
            for engine, runtime in self.engines.items():
                print(f"{count} idle, {engine}: {idle(self.rig, image, args, runtime, count)}", flush=True)
            print(f"{count} idle, native with runc: {idle(self.rig, program, [], RUNC, count)}", flush=True)


def report(name, values):
    low, middle, high = statistics.quantiles(values, n=4)
    print(f"{name}: {middle:.0f} ms to the first output (quartiles {low:.0f} and {high:.0f}, {len(values)} rounds)", flush=True)


def available():
    """MemAvailable, in KiB."""
    return next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))


def proportional(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def role_of(parent, command):
    """The role of a shim's process that is no guest: the zygote is forked from the shim."""
    return "zygote" if Path(f"/proc/{parent}/comm").read_text().strip()[:15] == command[:15] else "shim"


def idle(rig, image, args, runtime, count):
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
    sizes = sizes_of(rig, names)
    for name in names:
        rig.remove(name)
    return f"{fall:.0f} KiB of MemAvailable each; PSS in KiB for each: {sizes}; started in {1000 * took / count:.0f} ms each"


def sizes_of(rig, names):
    """The proportional set sizes in KiB for each of these containers, which are all of the namespace, by role."""
    tasks = dict(line.split()[:2] for line in rig.ctr("task", "ls").stdout.splitlines()[1:])
    roles = {"guest": [proportional(tasks[name]) for name in names]}
    others = [pid for name, pid in tasks.items() if name not in names]
    if others:
        roles["pause"] = [proportional(pid) for pid in others]
    for line in output("ps -eo pid,ppid,comm,args").splitlines():
        pid, parent, command, arguments = line.split(None, 3)
        if "containerd-shim-" in arguments and str(rig.root) in arguments and pid not in tasks.values():
            roles.setdefault(role_of(parent, command), []).append(proportional(pid))
    sizes = ", ".join(f"{role} {sum(values) / len(names):.0f}" for role, values in sorted(roles.items()))
    return f"{sizes}, together {sum(map(sum, roles.values())) / len(names):.0f}"


def pods_of_ten(peer):
    """Pods of ten containers that sleep, through the CRI plugin: one on each engine, and a native one."""
    variants = [("Weir", "weir", "probe", "/m.wasm", "l")]
    variants += [("wasmtime", "peer", "probe", "/m.wasm", "l")] if peer else []
    variants += [("native with runc", "runc", "native", "/native")]
    try:
        with pods.Pods(peer and runtime_of(peer), shims=shims(peer)) as cluster:
            probe = cases.binary(cluster.rig, (HERE / "tests/guests/probe.wat").read_bytes())
            cluster.rig.image("docker.io/test/probe:1", {"m.wasm": (probe, 0o644)}, ["/m.wasm", "l"])
            for engine, handler, image, *args in variants:
                print(f"pod of ten, {engine}: {pod(cluster, handler, image, args)}", flush=True)
    except Skip as reason:
        print(f"pods of ten: not measured: {reason}")


def pod(cluster, handler, image, args):
    """Starts a pod of ten containers; returns what they take."""
    config = cluster.cri_module.pod_config(f"ten-{handler}", cluster.logs)
    sandbox = cluster.cri.run_pod(config, handler)
    begun = time.monotonic()
    names = []
    for number in range(10):
        container = cluster.cri_module.container_config(f"c{number}", f"docker.io/test/{image}:1", args)
        names.append(cluster.cri.create(sandbox, container, config))
        cluster.cri.start(names[-1])
    took = time.monotonic() - begun
    time.sleep(2)
    sizes = sizes_of(cluster.rig, names)
    cluster.cri.remove_pod(sandbox)
    return f"PSS in KiB for each: {sizes}; started in {100 * took:.0f} ms each"


def shims(peer):
    """The programs that containerd finds."""
    return [SHIM, *([peer.resolve()] if peer else [])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--first", type=int, default=5)
    parser.add_argument("--idle", type=int, nargs="*", default=[100])
    parser.add_argument("--peer", type=Path, help="a shim on another engine, e.g. vm/shim/peer/target/release/containerd-shim-wasmtime-v1")
    parser.add_argument("--native", nargs="*", default=[], metavar="NAME=FOLDER", help="QuickJS or CPython as a native program")
    options = parser.parse_args()
    folders = {name: Path(folder) for name, _, folder in (text.partition("=") for text in options.native)}
    for name, folder in folders.items():
        if name not in NATIVE_ARGS or not (folder / "program").is_file():
            sys.exit(f"measure.py: expected {' or '.join(NATIVE_ARGS)}, and a folder with the file `program`, found {name}={folder}")
    if os.geteuid() != 0:
        sys.exit("measure.py: containerd needs root")
    if options.peer and version() < (1, 7):
        sys.exit("measure.py: containerd before 1.7 does not run layers, which a comparison with a peer needs")
    print(f"containerd {'.'.join(map(str, version()))}, {os.cpu_count()} processors")
    with Rig(shims=shims(options.peer)) as rig:
        variants = Variants(rig, options.peer, folders)
        if options.first > 1:
            variants.first_times(options.first)
        if options.rounds > 1:
            variants.later_times(options.rounds)
        variants.memory(options.idle)
    pods_of_ten(options.peer)
    if left := leftovers():
        sys.exit(f"measure.py: left behind: {left}")


if __name__ == "__main__":
    main()
