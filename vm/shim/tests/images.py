"""Writes OCI images of one layer as archives that `ctr images import` accepts."""

import gzip
import hashlib
import io
import json
import tarfile


def layer(files):
    """A tar archive of files: {path: (bytes, mode)}, or {path: None} for a directory."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, content in sorted(files.items()):
            info = tarfile.TarInfo(path)
            if content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
            else:
                data, info.mode = content
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def archive(name, files, args, env=(), cwd="/", user="", stop_signal=None):
    """The archive of an image named `name`, which runs `args`."""
    blobs = {}

    def blob(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    content = layer(files)
    packed = blob(gzip.compress(content, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")
    config = {"Cmd": list(args), "Env": list(env), "WorkingDir": cwd}
    if user:
        config["User"] = user
    if stop_signal:
        config["StopSignal"] = stop_signal
    image = {
        "architecture": "amd64",
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(content).hexdigest()]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(json.dumps(image).encode(), "application/vnd.oci.image.config.v1+json"),
        "layers": [packed],
    }
    described = blob(json.dumps(manifest).encode(), "application/vnd.oci.image.manifest.v1+json")
    described["annotations"] = {"io.containerd.image.name": name}
    index = {"schemaVersion": 2, "manifests": [described]}
    files = {f"blobs/sha256/{digest}": (data, 0o644) for digest, data in blobs.items()}
    files["oci-layout"] = (b'{"imageLayoutVersion": "1.0.0"}', 0o644)
    files["index.json"] = (json.dumps(index).encode(), 0o644)
    return layer(files)
