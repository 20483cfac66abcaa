#!/usr/bin/env python3
"""Writes the logits of transformers for three prompts, in float32 from the shipped float16 weights, as test data.

    python golden.py --model ../../examples/models/tales --out ../../engine/testdata
"""

import argparse
import json
import pathlib

import safetensors.torch
import tokenizers
import torch
import transformers

PROMPTS = [
    "Once upon a time there was a miller",
    "\"Who is there?\" said the old woman, and she opened the door.",
    "The king's three sons rode out  into the forest;\nnobody knew why.",
]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", type=pathlib.Path, required=True)
    p.add_argument("--out", type=pathlib.Path, required=True)
    a = p.parse_args()
    torch.set_num_threads(1)
    tok = transformers.GPT2Tokenizer.from_pretrained(a.model)
    model = transformers.OPTForCausalLM.from_pretrained(a.model, torch_dtype=torch.float32).eval()
    tensors, cases = {}, []
    for i, text in enumerate(PROMPTS):
        ids = tok(text).input_ids
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].contiguous()
        tensors[f"logits_{i}"] = logits
        cases.append({"text": text, "ids": ids, "argmax": logits.argmax(-1).tolist()})
    a.out.mkdir(parents=True, exist_ok=True)
    safetensors.torch.save_file(tensors, a.out / "tales_golden.safetensors")
    doc = {"made_by": "tools/train_tales/golden.py", "torch": torch.__version__, "transformers": transformers.__version__,
           "tokenizers": tokenizers.__version__, "cases": cases}
    (a.out / "tales_golden.json").write_text(json.dumps(doc, indent=1) + "\n")


if __name__ == "__main__":
    main()
