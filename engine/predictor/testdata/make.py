"""Makes the fixtures beside this file. Run by hand: python make.py, with torch 2.5.1 and Python 3.11.

powerinfer/  predictors as PowerInfer publishes them: model_0.pt, …, a state of fc1 and fc2, ReLU between, and a config.json
dejavu/      predictors as Deja Vu saves them: a state of 0 and 1, nothing between
turbo.bin    tensors of a checkpoint with predictors inside for layers 0 and 2 of 3, as TurboSparse has them
expected.json  for each of them the values before the sigmoid that torch computes in float64 from the weights as rounded to float16

Weights are small multiples of 1/64, so that float16 and bfloat16 hold them exactly.
"""

import json
import os
import shutil

import torch

assert torch.__version__.startswith("2.5.1"), torch.__version__
torch.manual_seed(42)
here = os.path.dirname(os.path.abspath(__file__))
WIDTH, RANK, UNITS = 6, 3, 70
feature = (torch.arange(WIDTH, dtype=torch.float64) - 2.25) / 2
expected = {"feature": feature.tolist(), "width": WIDTH, "units": UNITS, "values": {}}


def weights(rows, cols, dtype):
    return (torch.randint(-80, 81, (rows, cols)) / 64).to(dtype)


def values(w1, w2, relu):
    mid = w1.double() @ feature
    return (w2.double() @ (mid.clamp(min=0) if relu else mid)).tolist()


def folder(name):
    path = os.path.join(here, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


path, rows = folder("powerinfer"), []
for layer, dtype in enumerate([torch.float32, torch.float16, torch.bfloat16]):
    w1, w2 = weights(RANK + layer, WIDTH, dtype), weights(UNITS, RANK + layer, dtype)
    torch.save({"fc1.weight": w1, "fc2.weight": w2}, os.path.join(path, f"model_{layer}.pt"))
    rows.append(values(w1, w2, True))
with open(os.path.join(path, "config.json"), "w") as f:
    json.dump({"sparse_threshold": 0.25}, f)
    f.write("\n")
expected["values"]["powerinfer"] = rows

path, rows = folder("dejavu"), []
for layer in range(2):
    net = torch.nn.Sequential(torch.nn.Linear(WIDTH, RANK, bias=None), torch.nn.Linear(RANK, UNITS, bias=None))
    with torch.no_grad():
        net[0].weight.copy_(weights(RANK, WIDTH, torch.float32))
        net[1].weight.copy_(weights(UNITS, RANK, torch.float32))
    torch.save(net.state_dict(), os.path.join(path, f"opt-layer{layer}-0.98-0.95.pt"))
    rows.append(values(net[0].weight.detach(), net[1].weight.detach(), False))
expected["values"]["dejavu"] = rows

state, rows = {"model.embed_tokens.weight": weights(4, WIDTH, torch.float16)}, []
for layer in (0, 2):
    w1, w2 = weights(RANK, WIDTH, torch.float16), weights(UNITS, RANK, torch.float16)
    state[f"model.layers.{layer}.mlp.predictor.fc1.weight"] = w1
    state[f"model.layers.{layer}.mlp.predictor.fc2.weight"] = w2
    rows.append(values(w1, w2, True))
torch.save(state, os.path.join(here, "turbo.bin"))
expected["values"]["turbo"] = [rows[0], None, rows[1]]

with open(os.path.join(here, "expected.json"), "w") as f:
    json.dump(expected, f)
    f.write("\n")
