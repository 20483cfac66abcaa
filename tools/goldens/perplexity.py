"""Computes with transformers what `windrow eval` computes: the perplexity of texts under the shipped model.

    python perplexity.py ../../examples/models/tales ../../engine/eval/testdata/perplexity.json NAME=FILE...

The texts are prompts/scenes.txt and held-out=../../engine/eval/testdata/held-out.txt.

Every token behind the first is predicted once, by the first window that holds it.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def perplexity(model, ids, context, stride):
    last, nll, count = 1, 0.0, 0
    for begin in range(0, len(ids), stride):
        end = min(begin + context, len(ids))
        with torch.no_grad():
            logits = model(torch.tensor([ids[begin:end]])).logits[0].double()
        logp = torch.log_softmax(logits, -1)
        for target in range(last, end):
            if target > begin:
                nll -= logp[target - 1 - begin, ids[target]].item()
                count += 1
        last = end
        if end == len(ids):
            break
    return float(torch.exp(torch.tensor(nll / count, dtype=torch.float64))), count


def main():
    folder, out, texts = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    model = AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=False)
    result = []
    for item in texts:
        name, path = item.split("=", 1)
        data = Path(path).read_bytes()
        ids = tokenizer(data.decode("utf-8"))["input_ids"]
        # Windows that overlap cost four times as much: only a short text has them.
        for context, stride in ((512, 512), (256, 64)) if len(ids) <= 1024 else ((512, 512),):
            cut = ids[:4096]
            value, count = perplexity(model, cut, context, stride)
            result.append({"text": name, "sha256": hashlib.sha256(data).hexdigest(), "context": context, "stride": stride,
                           "tokens": len(cut), "predicted": count, "perplexity": value})
            print(result[-1])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"transformers": "4.46.3", "cases": result}, indent=1) + "\n")


main()
