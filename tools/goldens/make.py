"""Makes the tiny checkpoints of engine/testdata/families and what transformers computes with them.

    pip install -r requirements.txt
    python make.py ../../engine/testdata/families [NAME...]

Without names it makes every checkpoint that the installed transformers has a class for. Those of NEWER are made with 4.57.6
(requirements-4.57.txt), the others with 4.46.3. config.json names the version.

Each folder is saved by transformers itself; golden.safetensors holds two prompts (ids_0, ids_1) and their logits in float32. The weights
are random, with biases and norms too, so that a forward pass which leaves one out is caught. Two activation functions are not part of
transformers: FATReLU (ProSparse) and dReLU (Bamboo) replace the module's, and their names are written into config.json.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers import (
    FalconConfig, FalconForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, OPTConfig, OPTForCausalLM,
    PersimmonConfig, PersimmonForCausalLM, PhiConfig, PhiForCausalLM,
)

VOCAB = 96
PROMPTS = (12, 17)


class FATReLU(torch.nn.Module):
    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, x):
        return torch.where(x > self.threshold, x, torch.zeros_like(x))


def drelu_forward(mlp):
    relu = torch.nn.functional.relu
    return lambda x: mlp.down_proj(relu(mlp.gate_proj(x)) * relu(mlp.up_proj(x)))


def opt(**more):
    return OPTForCausalLM, OPTConfig(**{**dict(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=3, ffn_dim=64, num_attention_heads=4, max_position_embeddings=40,
        word_embed_proj_dim=32, pad_token_id=1, bos_token_id=2, eos_token_id=2, dropout=0.0, attention_dropout=0.0), **more})


def llama(cls=LlamaForCausalLM, config=LlamaConfig, **more):
    return cls, config(**{**dict(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=3, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=40, rms_norm_eps=1e-5, tie_word_embeddings=False, pad_token_id=None), **more})


def falcon(**more):
    return FalconForCausalLM, FalconConfig(**{**dict(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, ffn_hidden_size=64, max_position_embeddings=40,
        hidden_dropout=0.0, attention_dropout=0.0), **more})


def persimmon(**more):
    return PersimmonForCausalLM, PersimmonConfig(**{**dict(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=3, intermediate_size=64, num_attention_heads=4, max_position_embeddings=40,
        pad_token_id=None), **more})


def phi(**more):
    return PhiForCausalLM, PhiConfig(**{**dict(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=3, intermediate_size=64, num_attention_heads=4, max_position_embeddings=40,
        tie_word_embeddings=False, pad_token_id=None), **more})


def qwen(version, **more):
    cls, config = (getattr(transformers, f"Qwen{version}{kind}") for kind in ("ForCausalLM", "Config"))
    return llama(cls, config, **{**dict(head_dim=8, sliding_window=None), **more})


def gptneox(**more):
    return transformers.GPTNeoXForCausalLM, transformers.GPTNeoXConfig(**{**dict(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=3, intermediate_size=64, num_attention_heads=4, max_position_embeddings=40,
        hidden_dropout=0.0, attention_dropout=0.0), **more})


def gemma(version, **more):
    cls, config = ("Gemma2ForCausalLM", "Gemma2Config") if version == 2 else ("Gemma3ForCausalLM", "Gemma3TextConfig")
    return llama(getattr(transformers, cls), getattr(transformers, config), **{**dict(
        head_dim=8, sliding_window=5, query_pre_attn_scalar=6, tie_word_embeddings=True, bos_token_id=2, eos_token_id=1), **more})


def phi3(long_rope=None, **more):
    if long_rope:
        size = 4 * more.get("partial_rotary_factor", 1)
        more["rope_scaling"] = {"type": "longrope", "short_factor": [1 + 0.25 * i for i in range(int(size))],
                                "long_factor": [3 + 2.5 * i for i in range(int(size))]}
        more["original_max_position_embeddings"] = long_rope
    return llama(transformers.Phi3ForCausalLM, transformers.Phi3Config, **{**dict(bos_token_id=1, eos_token_id=2), **more})


MISTRAL = dict(cls=MistralForCausalLM, config=MistralConfig)

# name -> (model, options of saving)
CASES = {
    "opt": (opt(), {}),
    "opt-f16-sharded": (opt(), dict(dtype=torch.float16, max_shard_size="40KB")),
    "opt-350m": (opt(do_layer_norm_before=False, word_embed_proj_dim=16), {}),
    "opt-no-bias": (opt(enable_bias=False), {}),
    "opt-bin": (opt(), dict(dtype=torch.float16, safe_serialization=False)),
    "opt-bin-sharded": (opt(), dict(dtype=torch.bfloat16, safe_serialization=False, max_shard_size="40KB")),
    "llama": (llama(), {}),
    "llama-relu": (llama(hidden_act="relu"), dict(dtype=torch.float16)),
    "llama-bf16": (llama(), dict(dtype=torch.bfloat16)),
    "llama-tied-bias": (llama(tie_word_embeddings=True, attention_bias=True, mlp_bias=True, hidden_act="relu"), {}),
    "llama-head-size": (llama(head_dim=14, num_attention_heads=3, num_key_value_heads=1), {}),
    "llama-no-kv-heads": (llama(num_key_value_heads=4), dict(drop=["num_key_value_heads"])),
    "llama-linear-rope": (llama(rope_scaling={"rope_type": "linear", "factor": 4.0}, rope_theta=500.0), {}),
    "llama-llama3-rope": (llama(rope_theta=50.0, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 24}), {}),
    # As Llama 3.1's GGUF files say it, one by one.
    "llama-longrope": (llama(rope_theta=50.0, rope_scaling={
        "rope_type": "longrope", "factor": 1.0, "attention_factor": 1.0, "original_max_position_embeddings": 40,
        "short_factor": [1.0, 1.5, 4.0, 8.0], "long_factor": [1.0, 1.5, 4.0, 8.0]}), dict(dtype=torch.float16)),
    "llama-fatrelu": (llama(), dict(fatrelu=0.05)),
    "mistral": (llama(**MISTRAL, head_dim=8, sliding_window=None), {}),
    "mistral-window": (llama(**MISTRAL, head_dim=8, sliding_window=5), {}),
    "mistral-drelu": (llama(**MISTRAL, head_dim=8, sliding_window=None), dict(drelu=True)),
    "falcon-7b": (falcon(), {}),
    "falcon-7b-relu": (falcon(activation="relu"), dict(dtype=torch.bfloat16)),
    "falcon-40b": (falcon(new_decoder_architecture=True, num_kv_heads=2), {}),
    "falcon-one-norm": (falcon(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1, activation="relu"), {}),
    "falcon-rw": (falcon(multi_query=False, parallel_attn=False, bias=True), {}),
    "persimmon": (persimmon(), {}),
    "persimmon-plain": (persimmon(qk_layernorm=False, partial_rotary_factor=0.25), dict(dtype=torch.float16)),
    "phi": (phi(), {}),
    "phi-relu": (phi(hidden_act="relu", num_key_value_heads=2), dict(dtype=torch.float16)),
    "qwen2": (qwen(2), {}),
    "qwen2-tied-bf16": (qwen(2, tie_word_embeddings=True), dict(dtype=torch.bfloat16, drop=["head_dim"])),
    "gptneox": (gptneox(), {}),
    "gptneox-sequential": (gptneox(use_parallel_residual=False, hidden_act="relu", rotary_pct=0.5), dict(dtype=torch.float16)),
    "phi3": (phi3(), {}),
    "phi3-window-tied": (phi3(sliding_window=5, tie_word_embeddings=True), dict(dtype=torch.bfloat16)),
    "phi3-long": (phi3(long_rope=10), {}),
    "phi3-short": (phi3(long_rope=20), dict(dtype=torch.float16)),
    # Small caps, so that scores and logits reach them.
    "gemma2": (gemma(2, attn_logit_softcapping=2.0, final_logit_softcapping=4.0), {}),
    "gemma2-no-caps": (gemma(2, attn_logit_softcapping=None, final_logit_softcapping=None, attention_bias=True), dict(dtype=torch.bfloat16)),
    "gptneox-no-bias": (gptneox(attention_bias=False, hidden_act="gelu_fast", rotary_pct=1.0, rotary_emb_base=500), {}),
}

# Made with a newer transformers: name -> what makes (model, options of saving)
NEWER = {
    "phi3-partial": lambda: (phi3(long_rope=10, partial_rotary_factor=0.75, hidden_act="relu"), {}),
    "gemma3": lambda: (gemma(3, layer_types=["sliding_attention", "sliding_attention", "full_attention"], rope_theta=500.0,
                             rope_local_base_freq=20.0, rope_scaling={"rope_type": "linear", "factor": 4.0}), {}),
    "gemma3-untied": lambda: (gemma(3, num_hidden_layers=2, tie_word_embeddings=False, hidden_activation="relu",
                                    final_logit_softcapping=4.0), dict(dtype=torch.bfloat16)),
    "gemma3-full": lambda: (gemma(3, num_hidden_layers=2, layer_types=["full_attention"] * 2), dict(dtype=torch.float16)),
    "qwen2-window": lambda: (qwen(2, use_sliding_window=True, sliding_window=5, max_window_layers=1), {}),
    "qwen3": lambda: (qwen(3, head_dim=10), {}),
    "qwen3-bias": lambda: (qwen(3, attention_bias=True, tie_word_embeddings=True, hidden_act="relu"), {}),
    "qwen3-window": lambda: (qwen(3, use_sliding_window=True, sliding_window=5, max_window_layers=0, layer_types=[
        "sliding_attention", "full_attention", "sliding_attention"]), dict(dtype=torch.float16)),
}


def randomise(model):
    for name, p in model.named_parameters():
        if p.dim() > 1:
            p.data = torch.randn_like(p) * 0.25
        elif "norm" in name or "ln_" in name:
            p.data = (torch.ones_like(p) if name.endswith("weight") else torch.zeros_like(p)) + 0.2 * torch.randn_like(p)
        else:
            p.data = 0.2 * torch.randn_like(p)


def edit(path, change):
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def make(out, name, cls, config, dtype=torch.float32, fatrelu=None, drelu=False, drop=(), **save):
    torch.manual_seed(sum(map(ord, name)))
    config._attn_implementation = "eager"
    model = cls(config).eval()
    randomise(model)
    model.to(dtype)
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, **save)
    (folder / "generation_config.json").unlink(missing_ok=True)
    # Loaded anew: a model cast to 16 bits would have lost bits of its rotary frequencies too.
    model = cls.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager").eval()
    for module in model.modules():
        if fatrelu is not None and hasattr(module, "act_fn"):
            module.act_fn = FATReLU(fatrelu)
        if drelu and hasattr(module, "gate_proj"):
            module.forward = drelu_forward(module)
    tensors = {}
    for i, length in enumerate(PROMPTS):
        ids = torch.randint(3, VOCAB, (1, length))
        with torch.no_grad():
            logits = model(ids).logits[0].float().contiguous()
        tensors[f"ids_{i}"], tensors[f"logits_{i}"] = ids[0].to(torch.int32).contiguous(), logits
    save_file(tensors, folder / "golden.safetensors")

    def change(config):
        if fatrelu is not None:
            config.update(model_type="sparsellama", architectures=["SparseLlamaForCausalLM"], hidden_act="fatrelu", hidden_act_param=fatrelu)
        if drelu:
            config.update(model_type="bamboo", architectures=["BambooForCausalLM"], hidden_act="relu")
        for key in drop:
            del config[key]
    edit(folder / "config.json", change)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {size >> 10} KiB")
    assert size <= 300 << 10, name


def main():
    out, names = Path(sys.argv[1]), sys.argv[2:]
    out.mkdir(parents=True, exist_ok=True)
    newer = tuple(map(int, transformers.__version__.split(".")[:2])) >= (4, 57)
    cases = {name: case() for name, case in NEWER.items()} if newer else CASES
    for name in names or cases:
        (cls, config), options = cases[name]
        make(out, name, cls, config, **options)


main()
