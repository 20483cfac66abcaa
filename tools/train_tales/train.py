#!/usr/bin/env python3
"""Trains examples/models/tales: a small OPT (ReLU) language model on public-domain tales.

    python train.py --corpus DIR --out ../../examples/models/tales

The model is saved by transformers itself, so any Hugging Face tool opens it. A run
is resumable: state goes to --work every --save-every steps, and a second call goes
on from there. Seeds are fixed; the number of threads changes the last bits only.
"""

import argparse
import json
import math
import pathlib
import re
import time

import numpy as np
import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Tokenizer, OPTConfig, OPTForCausalLM

BOS = 2  # "</s>": OPT starts every sequence with it
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]  # ids 0..3, as in OPT


def clean(text: str) -> str:
    """One paragraph per line; plain quotes, so that a small vocabulary is not spent on variants."""
    for a, b in (("\u2018", "'"), ("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u2014", "--"), ("_", "")):
        text = text.replace(a, b)
    text = text.replace("\r\n", "\n")
    paras = [re.sub(r"\s+", " ", p).strip() for p in re.split(r"\n\s*\n", text)]
    return "\n".join(p for p in paras if p) + "\n"


def load_corpus(folder: pathlib.Path, held_out: str):
    """Returns (train text, validation text, held-out text). Validation is the last 2 % of each training book."""
    train, val, held = [], [], ""
    for path in sorted(folder.glob("*.txt")):
        text = clean(path.read_text(encoding="utf-8"))
        if path.stem == held_out:
            held = text
            continue
        cut = text.rfind("\n", 0, int(len(text) * 0.98)) + 1
        train.append(text[:cut])
        val.append(text[cut:])
    if not held:
        raise SystemExit(f"train_tales: {folder} has no book {held_out}.txt to hold out")
    return "".join(train), "".join(val), held


def make_tokenizer(text: str, vocab: int, out: pathlib.Path) -> GPT2Tokenizer:
    bpe = ByteLevelBPETokenizer(add_prefix_space=False)
    bpe.train_from_iterator(text.splitlines(keepends=True), vocab_size=vocab, min_frequency=2,
                            special_tokens=SPECIAL, show_progress=False)
    out.mkdir(parents=True, exist_ok=True)
    bpe.save_model(str(out))
    tok = GPT2Tokenizer(str(out / "vocab.json"), str(out / "merges.txt"), bos_token="</s>", eos_token="</s>",
                        unk_token="</s>", pad_token="<pad>", add_bos_token=True, add_prefix_space=False)
    tok.save_pretrained(out)
    return tok


def encode(out: pathlib.Path, text: str) -> np.ndarray:
    bpe = ByteLevelBPETokenizer(str(out / "vocab.json"), str(out / "merges.txt"))
    ids = []
    for enc in bpe.encode_batch(text.splitlines(keepends=True)):
        ids.extend(enc.ids)
    return np.array(ids, dtype=np.int64)


def starts_of(ids: np.ndarray, newline: int) -> np.ndarray:
    """Positions where a paragraph begins: training windows start there, after </s>."""
    return np.concatenate([[0], np.flatnonzero(ids[:-1] == newline) + 1])


class Active:
    """Collects the post-ReLU activations of every layer during one forward pass."""

    def __init__(self, model):
        self.values = []
        for layer in model.model.decoder.layers:
            layer.activation_fn.register_forward_hook(lambda _m, _i, out: self.values.append(out))

    def take(self):
        values, self.values = self.values, []
        return values


@torch.no_grad()
def evaluate(model, active, ids, length=512, limit=64):
    """Mean loss in nats per token, active share per layer and share of neurons that never fire."""
    model.eval()
    total, count, shares, fired = 0.0, 0, None, None
    step = length - 1
    for n, at in enumerate(range(0, len(ids) - 1, step)):
        if n == limit:
            break
        window = torch.tensor(np.concatenate([[BOS], ids[at:at + step]]))[None]
        out = model(window, labels=window)
        tokens = window.shape[1] - 1
        total += out.loss.item() * tokens
        count += tokens
        on = [(v > 0).reshape(-1, v.shape[-1]) for v in active.take()]
        s = torch.stack([o.float().sum() for o in on]) / on[0].shape[-1]
        f = torch.stack([o.any(0) for o in on])
        shares = s if shares is None else shares + s
        fired = f if fired is None else fired | f
    model.train()
    tokens_seen = count + (n if n < limit else limit)
    return total / count, (shares / tokens_seen).tolist(), 1 - fired.float().mean().item()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--corpus", type=pathlib.Path, required=True)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--work", type=pathlib.Path, default=pathlib.Path("work"))
    p.add_argument("--held-out", default="the_wonderful_wizard_of_oz")
    p.add_argument("--vocab", type=int, default=4096)
    p.add_argument("--d-model", type=int, default=256)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--ffn", type=int, default=1024)
    p.add_argument("--context", type=int, default=512)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--steps", type=int, default=4000)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--target-active", type=float, default=0.10, help="mean active share the L1 penalty steers to")
    p.add_argument("--l1-from", type=float, default=0.15, help="share of the steps after which the penalty may act")
    p.add_argument("--save-every", type=int, default=200)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()

    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    rng = np.random.default_rng(a.seed)
    a.work.mkdir(parents=True, exist_ok=True)

    train_text, val_text, held_text = load_corpus(a.corpus, a.held_out)
    if not (a.out / "vocab.json").exists():
        make_tokenizer(train_text, a.vocab, a.out)
    train, val, held = (encode(a.out, t) for t in (train_text, val_text, held_text))
    newline = int(encode(a.out, "\n")[0])
    starts = starts_of(train, newline)
    starts = starts[starts < len(train) - a.context]

    config = OPTConfig(vocab_size=a.vocab, hidden_size=a.d_model, num_hidden_layers=a.layers, ffn_dim=a.ffn,
                       max_position_embeddings=a.context, num_attention_heads=a.heads, word_embed_proj_dim=a.d_model,
                       dropout=0.1, attention_dropout=0.0, activation_function="relu", do_layer_norm_before=True,
                       bos_token_id=BOS, eos_token_id=BOS, pad_token_id=1, tie_word_embeddings=True)
    model = OPTForCausalLM(config)
    active = Active(model)
    decay = [q for q in model.parameters() if q.ndim >= 2]
    rest = [q for q in model.parameters() if q.ndim < 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                            lr=a.lr, betas=(0.9, 0.95))
    step, l1, share = 0, 0.0, 1.0
    state = a.work / "state.pt"
    if state.exists():
        s = torch.load(state, weights_only=False)
        model.load_state_dict(s["model"]); opt.load_state_dict(s["opt"])
        step, l1, share = s["step"], s["l1"], s["share"]
        rng.bit_generator.state = s["rng"]; torch.set_rng_state(s["torch_rng"])
    params = sum(q.numel() for q in model.parameters())
    print(f"params {params}  train {len(train)}  val {len(val)}  held out {len(held)} tokens  from step {step}", flush=True)

    t0, first, warm = time.time(), step, 100
    while step < a.steps:
        frac = step / a.steps
        lr = a.lr * min((step + 1) / warm, 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * frac)))
        for g in opt.param_groups:
            g["lr"] = lr
        # Half of the windows start at a paragraph, as prompts do; the others anywhere.
        at = np.where(rng.random(a.batch) < 0.5, rng.choice(starts, a.batch),
                      rng.integers(0, len(train) - a.context, a.batch))
        batch = torch.from_numpy(np.stack([np.concatenate([[BOS], train[i:i + a.context - 1]]) for i in at]))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(batch, labels=batch)
            acts = active.take()
        penalty = sum(v.float().mean() for v in acts) / len(acts)
        with torch.no_grad():
            share = 0.95 * share + 0.05 * (sum((v > 0).float().mean() for v in acts) / len(acts)).item()
        # The coefficient follows the measured share, so that sparsity is reached without a search by hand.
        if frac >= a.l1_from:
            l1 = min(max(max(l1, 1e-3) * (1.01 if share > a.target_active else 0.99), 1e-3), 3.0)
        loss = out.loss + l1 * penalty
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        step += 1
        if step % 20 == 0:
            rate = (time.time() - t0) / (step - first)
            print(f"step {step}/{a.steps} loss {out.loss.item():.3f} l1 {l1:.4f} active {share:.3f} lr {lr:.2e} "
                  f"{rate:.2f} s/step eta {(a.steps - step) * rate / 60:.1f} min", flush=True)
        if step % a.save_every == 0 or step == a.steps:
            tmp = state.with_suffix(".tmp")
            torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step, "l1": l1, "share": share,
                        "rng": rng.bit_generator.state, "torch_rng": torch.get_rng_state()}, tmp)
            tmp.replace(state)
            v, per_layer, dead = evaluate(model, active, val, limit=16)
            print(f"  val {v:.4f} active {['%.3f' % x for x in per_layer]} never {dead:.3f}", flush=True)

    model = model.half().float()  # what is saved is what is measured
    v, per_layer, dead = evaluate(model, active, val)
    h, _, _ = evaluate(model, active, held)
    model.half().save_pretrained(a.out, safe_serialization=True)
    facts = {"params": params, "steps": a.steps, "tokens_seen": a.steps * a.batch * a.context,
             "train_tokens": len(train), "validation_loss": v, "held_out": a.held_out, "held_out_loss": h,
             "active_share_per_layer": per_layer, "active_share_mean": sum(per_layer) / len(per_layer),
             "never_active_share": dead, "final_l1": l1, "seed": a.seed,
             "versions": {"torch": torch.__version__, "transformers": __import__("transformers").__version__,
                          "tokenizers": __import__("tokenizers").__version__}}
    (a.work / "facts.json").write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
