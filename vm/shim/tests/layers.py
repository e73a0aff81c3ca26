"""The cases of modules that are layers of OCI artifacts, and of containers that `ctr` cannot make.

containerd 1.6 does not unpack such images, and `ctr` of that version creates no container without an unpacked image. So the containers of
most cases are created by containerd's own interface, as a newer `ctr` does it: with the image's name, and an empty root.
"""

import hashlib
import json
import os
import time

import images
from cases import COMPILED, HERE, annotated, await_entry, binary, entries, forget, long_to_compile, ran
from rig import RUNTIME, Rig, Skip, nothing_left, version

CASES = []


def case(function):
    CASES.append(function)
    return function


def artifact(name, layers, kind="application/wasm", architecture="wasm"):
    """The archive of an artifact whose layers are these bytes."""
    blobs = {}

    def blob(data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    config = {"architecture": architecture, "os": "wasip1", "config": {}, "rootfs": {"type": "layers", "diff_ids": []}}
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"),
        "layers": [blob(layer, kind) for layer in layers],
    }
    described = blob(json.dumps(manifest).encode(), "application/vnd.oci.image.manifest.v1+json")
    described["annotations"] = {"io.containerd.image.name": name}
    files = {f"blobs/sha256/{digest}": (data, 0o644) for digest, data in blobs.items()}
    files["oci-layout"] = (b'{"imageLayoutVersion": "1.0.0"}', 0o644)
    files["index.json"] = (json.dumps({"schemaVersion": 2, "manifests": [described]}).encode(), 0o644)
    return images.layer(files)


def imported(rig, name, *args, flags=("--no-unpack",), **more):
    path = rig.root / "artifact.tar"
    path.write_bytes(artifact(name, *args, **more))
    done = rig.ctr("images", "import", *flags, "--all-platforms", path)
    assert done.returncode == 0, done.stderr
    return name


def unpacked(rig, name, *args, **more):
    """Imports an artifact so that `ctr run` can make a container of it, which containerd can from version 1.7 on."""
    if version() < (1, 7):
        raise Skip("containerd before 1.7 does not unpack artifacts")
    return imported(rig, name, *args, flags=("--local", "--snapshotter", "native"), **more)


class Failed(Exception):
    """The creation failed; has the message, and what was on standard error."""


def written(stream):
    """What was written to a FIFO."""
    os.set_blocking(stream[1], False)
    try:
        return os.read(stream[1], 1 << 16).decode()
    except BlockingIOError:
        return ""


def run(rig, specification, image, args, annotations=()):
    """Runs a container with an empty root; returns the exit status, standard output and standard error."""
    import cri
    import grpc

    name = rig.name()
    root = rig.root / f"root-{name}"
    root.mkdir()
    spec = json.loads(json.dumps(specification))
    spec["process"]["args"] = list(args)
    spec["annotations"] = dict(annotations)
    spec["root"]["path"] = "rootfs"
    spec["linux"]["cgroupsPath"] = f"/default/{name}"
    call = lambda method, request: cri.containerd(rig.root / "containerd.sock", method, request)
    any_spec = {1: "types.containerd.io/opencontainers/runtime-spec/1/Spec", 2: json.dumps(spec)}
    call("containers.v1.Containers/Create", {1: {1: name, 3: image, 4: {1: RUNTIME}, 5: any_spec}})
    outputs = {}
    for stream in ("out", "err"):
        fifo = rig.root / f"{name}-{stream}"
        os.mkfifo(fifo)
        # Also open for writing, so that opening does not wait, nor the end come before the container's.
        descriptor = os.open(fifo, os.O_RDWR)
        outputs[stream] = (fifo, descriptor)
    try:
        mount = {1: "bind", 2: str(root), 4: ["rbind", "rw"]}
        request = {1: name, 3: mount, 5: str(outputs["out"][0]), 6: str(outputs["err"][0])}
        try:
            call("tasks.v1.Tasks/Create", request)
        except grpc.RpcError as error:
            raise Failed(error.details(), written(outputs["err"])) from error
        call("tasks.v1.Tasks/Start", {1: name})
        status = call("tasks.v1.Tasks/Wait", {1: name}).get(1, 0)
        call("tasks.v1.Tasks/Delete", {1: name})
        return status, written(outputs["out"]), written(outputs["err"])
    finally:
        for fifo, descriptor in outputs.values():
            os.close(descriptor)
            fifo.unlink()
        call("containers.v1.Containers/Delete", {1: name})


@case
def layers(rig, images_of_cases):
    """A module is a layer of an OCI artifact, with arguments, functions, refusals and the cache (by containerd's interface, without ctr)."""
    try:
        import grpc  # noqa: F401
    except ImportError as error:
        raise Skip(f"Python's grpc is missing (Debian: python3-grpcio): {error}") from error
    _, specification = rig.specification(images_of_cases.user, "x")
    probe = binary(rig, (HERE / "guests/probe.wat").read_bytes())
    hello = binary(rig, (HERE / "guests/hello.wat").read_bytes())
    kinds = (
        "application/wasm",
        "application/vnd.wasm.content.layer.v1+wasm",
        "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
    )
    for number, kind in enumerate(kinds):
        image = imported(rig, f"test/layer{number}:1", [hello], kind)
        assert run(rig, specification, image, ["hello"]) == (7, "hello from weir\n", "")
        assert run(rig, specification, image, ["hello#other"]) == (0, "", "hello from weir\n")
    image = imported(rig, "test/probe-layer:1", [probe])
    assert run(rig, specification, image, ["probe", "a", "b c"]) == (0, "probe\na\nb c\n", "")
    status, out, err = run(rig, specification, image, ["probe", "t"])
    assert (status, out) == (134, "") and "integer divide by zero" in err, (status, err)
    status, _, err = run(rig, specification, image, ["probe", "s"], {"dev.weir.fuel": "100000"})
    assert status == 134 and "all fuel consumed" in err, (status, err)
    compiled = imported(rig, "test/compiled-layer:1", [binary(rig, COMPILED)])
    forget(rig)
    status = run(rig, specification, compiled, ["m"])[0]
    await_entry(rig)
    rig.quiet()
    used = entries(rig)
    os.utime(used[0], (1, 1))
    assert run(rig, specification, compiled, ["m"])[0] == status
    assert len(used) == 1 and used[0].stat().st_mtime > 1, "the code of the layer was not used"
    code, precompiled = used[0].read_bytes(), "application/vnd.wasm.content.layer.v1+wasm+precompiled"
    refused = {
        "two modules": (imported(rig, "test/two:1", [hello, probe]), "one layer that is a module, found 2"),
        "no module": (imported(rig, "test/none:1", [b"{}"], "application/json"), "one layer that is a module, found 0"),
        "a component": (imported(rig, "test/component:1", [b"\0asm\x0d\0\x01\0"]), "this is a component"),
        "text": (imported(rig, "test/text:1", [b"no module"]), "neither a binary module"),
        **{f"compiled code as {kind}": (imported(rig, f"test/code{number}:1", [code], kind), "failed to parse") for number, kind in enumerate(kinds)},
        "compiled code as such": (imported(rig, "test/precompiled:1", [code], precompiled), "one layer that is a module, found 0"),
        "another architecture": (imported(rig, "test/other:1", [hello], architecture="amd64"), "the image has no such file"),
    }
    for what, (image, message) in refused.items():
        try:
            ended = run(rig, specification, image, ["m"])
            raise AssertionError(f"{what}: {ended}")
        except Failed as failed:
            error, shown = failed.args
            assert message in error and shown.startswith("weir: ") and message in shown, f"{what}: {failed.args}"
    plain = rig.run(imported(rig, "test/plain:1", [hello])).stderr.strip().splitlines()
    return f"{len(refused)} refused; code of a layer used from the cache; `ctr run` itself says: {plain[-1] if plain else 'nothing'}"


@case
def layers_with_ctr(rig, _images):
    """`ctr run` of containerd 1.7 or later runs a layer, with arguments, functions and the cache."""
    hello = unpacked(rig, "test/unpacked:1", [binary(rig, (HERE / "guests/hello.wat").read_bytes())])
    probe = unpacked(rig, "test/unpacked-probe:1", [binary(rig, (HERE / "guests/probe.wat").read_bytes())])
    compiled = unpacked(rig, "test/unpacked-compiled:1", [binary(rig, COMPILED)])
    ran(rig.run(hello, "m"), 7, "hello from weir\n")
    ran(rig.run(hello, "m#other"), 0, "", "hello from weir\n")
    ran(rig.run(probe, "m", "a", "two words"), 0, "m\na\ntwo words\n")
    ran(rig.run(probe, "m", "t"), 134, "", "weir: trap: integer divide by zero")
    forget(rig)
    status = rig.run(compiled, "m", flags=annotated(compile="first")).returncode
    [entry] = entries(rig)
    os.utime(entry, (1, 1))
    ran(rig.run(compiled, "m"), status)
    assert entry.stat().st_mtime > 1, "the code of the layer was not used"
    return f"containerd {'.'.join(map(str, version()))}"


@case
def content_elsewhere(rig, _images):
    """If containerd's content is in no files of its own, the module is copied to the bundle, and its code is cached: here it is another's (containerd 2)."""
    if version() < (2, 0):
        raise Skip("`ctr` before containerd 2 names no namespace for another's content")
    # It would not know what the other uses.
    uncollected = '[plugins."io.containerd.gc.v1.scheduler"]\n  mutation_threshold = 1000000\n'
    remote = '[proxy_plugins.remote]\n  type = "content"\n  address = "{}/containerd.sock"\n'
    with Rig(more=uncollected) as store, Rig(more=remote.format(store.root), without=["io.containerd.content.v1.content"]) as other:
        probe = unpacked(other, "test/elsewhere:1", [binary(rig, (HERE / "guests/probe.wat").read_bytes())])
        name, process = other.launch(probe, "m", "l")
        other.await_status(name)
        [copy] = other.root.glob(f"state/*/default/{name}/module")
        other.ctr("task", "kill", name)
        process.communicate(timeout=10)
        assert process.returncode == 143 and not copy.exists(), process.returncode
        await_entry(other)
        other.quiet()
        [entry] = entries(other)
        os.utime(entry, (1, 1))
        ran(other.run(probe, "m", "x", "7"), 7)
        assert entry.stat().st_mtime > 1, "the code of the copy was not used"


@case
def impatient(rig, images):
    """A creation that containerd does not wait for leaves nothing: by containerd's interface, with a deadline."""
    try:
        import cri
        import grpc
    except ImportError as error:
        raise Skip(f"Python's grpc is missing (Debian: python3-grpcio): {error}") from error
    (folder := rig.rootfs()).joinpath("m.wasm").write_bytes(binary(rig, long_to_compile(2000)))
    name, spec = rig.specification(images.probe, "/m.wasm")
    spec["root"]["path"], spec["process"]["cwd"] = "rootfs", "/"
    spec["annotations"] = {"dev.weir.compile": "first"}
    any_spec = {1: "types.containerd.io/opencontainers/runtime-spec/1/Spec", 2: json.dumps(spec)}
    call = lambda method, request, seconds=60: cri.containerd(rig.root / "containerd.sock", method, request, seconds)
    call("containers.v1.Containers/Create", {1: {1: name, 4: {1: RUNTIME}, 5: any_spec}})
    begun = time.time()
    try:
        call("tasks.v1.Tasks/Create", {1: name, 3: {1: "bind", 2: str(folder), 4: ["rbind", "rw"]}}, 1)
        raise AssertionError("it was created in time")
    except grpc.RpcError as error:
        message = error.details()
    waited = time.time() - begun
    nothing_left(60)
    call("containers.v1.Containers/Delete", {1: name})
    return f"after {waited:.1f} s: {message}"


@case
def created_containers(rig, images_of_cases):
    """Before the start, SIGTERM waits, SIGKILL ends the guest, and it can be deleted (by containerd's interface)."""
    try:
        import cri
    except ImportError as error:
        raise Skip(f"Python's grpc is missing (Debian: python3-grpcio): {error}") from error
    call = lambda method, request: cri.containerd(rig.root / "containerd.sock", method, request)
    found = []
    for signal, start in ((15, True), (9, False), (None, False)):
        root = rig.rootfs()
        name, spec = rig.specification(images_of_cases.probe, "/probe.wat", "l")
        spec["root"]["path"], spec["process"]["cwd"] = "rootfs", "/"
        any_spec = {1: "types.containerd.io/opencontainers/runtime-spec/1/Spec", 2: json.dumps(spec)}
        call("containers.v1.Containers/Create", {1: {1: name, 4: {1: RUNTIME}, 5: any_spec}})
        call("tasks.v1.Tasks/Create", {1: name, 3: {1: "bind", 2: str(root), 4: ["rbind", "rw"]}})
        assert rig.status(name) == "CREATED", rig.status(name)
        if signal:
            call("tasks.v1.Tasks/Kill", {1: name, 3: signal})
        if start:
            call("tasks.v1.Tasks/Start", {1: name})
        if signal:
            found.append(call("tasks.v1.Tasks/Wait", {1: name}).get(1, 0))
        call("tasks.v1.Tasks/Delete", {1: name})
        call("containers.v1.Containers/Delete", {1: name})
    assert found == [143, 137], found
