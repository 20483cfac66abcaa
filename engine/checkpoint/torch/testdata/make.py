"""Makes the fixtures beside this file. Run by hand: python make.py, with torch 2.5.1 and Python 3.11.

expected.json holds, for every tensor of every readable file, the type, the shape and the bytes (hexadecimal, little-endian,
row-major) that torch itself reads, so that the Go reader is compared with the program that wrote the files.
"""

import collections
import json
import os

import torch

assert torch.__version__.startswith("2.5.1"), torch.__version__
here = os.path.dirname(os.path.abspath(__file__))
dtypes = {
    torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}
expected = {}


def numbers(*shape):
    """Numbers that fp16 and bf16 round, signs included."""
    count = 1
    for dim in shape:
        count *= dim
    return torch.sin(torch.arange(count, dtype=torch.float32) * 1.7 + 0.3).reshape(shape)


def describe(state):
    out = {}
    for name, value in state.items():
        flat = value.detach().contiguous()
        raw = flat.reshape(-1).view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        out[name] = {"dtype": dtypes[value.dtype], "shape": list(value.shape), "hex": raw.hex()}
    return out


def save(name, state, **options):
    path = os.path.join(here, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(state, path, **options)
    expected[name] = describe(state)


save("dtypes.bin", collections.OrderedDict(
    f32=numbers(2, 3), f16=numbers(3, 2).half(), bf16=numbers(4).bfloat16(), f64=numbers(2).double(),
    i64=torch.tensor(-7), i32=torch.tensor([1, -2], dtype=torch.int32), i16=torch.tensor([3], dtype=torch.int16),
    i8=torch.tensor([-4], dtype=torch.int8), u8=torch.tensor([200], dtype=torch.uint8), flags=torch.tensor([True, False]),
    empty=torch.zeros(0), empty2=torch.zeros(3, 0),
))

base = numbers(6, 5)
save("views.bin", {
    "whole": base, "tied": base, "rows": base[2:4], "columns": base[:, 1:4], "transposed": base.t(), "part": base[1:5, 1:4].t(),
    "batch": numbers(2, 3, 4)[:, 1:, :3], "vector": base[3], "one": base[:, 2:3], "parameter": torch.nn.Parameter(numbers(3)),
    "half": numbers(5, 3).half().t(),
})

torch.manual_seed(1)
save("module.bin", torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3), torch.nn.Linear(3, 2, bias=False)).half().state_dict())

shards = {
    "sharded/pytorch_model-00001-of-00002.bin": {"a.weight": numbers(2, 2).half(), "a.bias": numbers(2).half()},
    "sharded/pytorch_model-00002-of-00002.bin": {"b.weight": numbers(3, 2).half()},
}
index = {"metadata": {"total_size": 24}, "weight_map": {}}
for name, state in shards.items():
    save(name, collections.OrderedDict(state))
    index["weight_map"].update({tensor: os.path.basename(name) for tensor in state})
with open(os.path.join(here, "sharded/pytorch_model.bin.index.json"), "w") as f:
    json.dump(index, f, indent=1)
with open(os.path.join(here, "sharded/config.json"), "w") as f:
    f.write('{"model_type": "test"}\n')

# Files that are refused, for reasons that the tests name.
torch.save({"a": numbers(2)}, os.path.join(here, "legacy.bin"), _use_new_zipfile_serialization=False)
torch.save({"a": numbers(2)}, os.path.join(here, "protocol4.bin"), pickle_protocol=4)
torch.save({"a": numbers(2, 3, 4).permute(2, 0, 1)}, os.path.join(here, "permuted.bin"))
torch.save({"a": numbers(1).expand(1000)}, os.path.join(here, "expanded.bin"))
torch.save({"state_dict": {"a": numbers(2)}, "epoch": 3}, os.path.join(here, "nested.bin"))
torch.save({"a": numbers(2), "epoch": 3, "note": "text", "none": None, "list": [1, 2.5, True]}, os.path.join(here, "extras.bin"))
torch.save({"a": numbers(4).to(torch.float8_e4m3fn)}, os.path.join(here, "float8.bin"))
torch.save([numbers(2)], os.path.join(here, "list.bin"))
torch.save(torch.nn.Linear(2, 2), os.path.join(here, "whole_module.bin"))
torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), os.path.join(here, "script.bin"))

with open(os.path.join(here, "expected.json"), "w") as f:
    json.dump({"torch": torch.__version__.split("+")[0], "files": expected}, f, indent=1)
    f.write("\n")
