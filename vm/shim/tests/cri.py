"""A client of Kubernetes' interface of container runtimes, version 1, with the few messages that the cases need."""

import grpc


def varint(value):
    value &= (1 << 64) - 1
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def message(fields):
    """Encodes {number: value}: numbers, texts, dictionaries as messages, and lists of these."""
    data = b""
    for number, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, int):
                data += varint(number << 3) + varint(value)
            else:
                content = message(value) if isinstance(value, dict) else value.encode()
                data += varint(number << 3 | 2) + varint(len(content)) + content
    return data


def entries(mapping):
    """A map of texts."""
    return [{1: key, 2: value} for key, value in mapping.items()]


def fields(data):
    """Decodes a message: {number: last value}, with nested messages as bytes."""
    found, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            found[key >> 3] = number()
        else:
            size = number()
            found[key >> 3] = data[at : at + size]
            at += size
    return found


def containerd(socket, method, request, seconds=60):
    """Calls containerd's own interface, in the namespace `default`."""
    with grpc.insecure_channel(f"unix://{socket}") as channel:
        call = channel.unary_unary(f"/containerd.services.{method}", lambda data: data, lambda data: data)
        return fields(call(message(request), timeout=seconds, metadata=[("containerd-namespace", "default")]))


class Cri:
    """A connection to containerd."""

    def __init__(self, socket):
        self.channel = grpc.insecure_channel(f"unix://{socket}")

    def call(self, method, request):
        call = self.channel.unary_unary(f"/runtime.v1.RuntimeService/{method}", lambda data: data, lambda data: data)
        return fields(call(message(request), timeout=60))

    def run_pod(self, config, handler):
        return self.call("RunPodSandbox", {1: config, 2: handler})[1].decode()

    def create(self, pod, container, config):
        return self.call("CreateContainer", {1: pod, 2: container, 3: config})[1].decode()

    def start(self, container):
        self.call("StartContainer", {1: container})

    def status(self, container):
        """State (0 created, 1 running, 2 exited), exit code, message."""
        status = fields(self.call("ContainerStatus", {1: container})[1])
        return status.get(3, 0), status.get(7, 0), status.get(11, b"").decode()

    def stop(self, container, seconds=5):
        self.call("StopContainer", {1: container, 2: seconds})

    def remove_pod(self, pod):
        self.call("StopPodSandbox", {1: pod})
        self.call("RemovePodSandbox", {1: pod})


# As the kubelet sets it: the network of the host, and a PID namespace for each container.
NAMESPACES = {1: 2, 2: 1}


def pod_config(name, logs):
    """A pod in the network of the host, whose name it has."""
    metadata = {1: name, 2: f"uid-{name}", 3: "default", 4: 0}
    return {1: metadata, 3: str(logs), 8: {2: {1: NAMESPACES}}}


def container_config(name, image, args, annotations=(), memory=0):
    config = {1: {1: name}, 2: {1: image}, 4: list(args), 10: entries(dict(annotations)), 11: f"{name}.log"}
    config[15] = {1: {4: memory}, 2: {3: NAMESPACES}}
    return config
