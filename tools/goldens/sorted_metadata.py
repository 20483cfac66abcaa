"""safetensors writes the metadata of a file in an order of its own, another one each time. save_sorted sorts it, so that the same
tensors make the same bytes."""
import json

from safetensors.torch import save_file


def save_sorted(tensors, path, metadata):
    save_file(tensors, path, metadata=metadata)
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header["__metadata__"] = dict(sorted(metadata.items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    path.write_bytes(data[:8] + text.ljust(size) + data[8 + size:])
