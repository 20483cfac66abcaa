"""Makes the tiny checkpoints of engine/testdata/families and what transformers computes with them.

    pip install -r requirements-4.46.txt
    python make.py ../../engine/testdata/families [NAME...]

The installed version of transformers decides what is made, all of it without names:

    4.46 (requirements-4.46.txt)  the checkpoints of CASES
    4.57 (requirements-4.57.txt)  those of NEWER, which 4.46 has no class for, or computes wrongly
    5    (requirements-5.txt)     all of them again, as NAME-t5, with the generation_config.json that it saves

`make goldens-fixtures` does all three. config.json and the metadata of golden.safetensors name the versions.

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
from transformers import (
    FalconConfig, FalconForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, OPTConfig, OPTForCausalLM,
    PersimmonConfig, PersimmonForCausalLM, PhiConfig, PhiForCausalLM,
)

from sorted_metadata import save_sorted

VERSION = tuple(map(int, transformers.__version__.split(".")[:2]))
SINCE_5 = VERSION >= (5, 0)
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
    return cls, lambda: config(**{**dict(
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

# The names of Falcon's fields before transformers had the family.
REFINED_WEB = {"num_attention_heads": "n_head", "num_hidden_layers": "n_layer", "num_kv_heads": "n_head_kv"}

# name -> (model, options of saving). before_5: transformers 5 cannot make it, or nothing new would come of it. keys are written into
# config.json before transformers computes the logits, renamed and drop change it afterwards.
CASES = {
    "opt": (opt(), {}),
    "opt-f16-sharded": (opt(), dict(dtype=torch.float16, max_shard_size="40KB")),
    "opt-350m": (opt(do_layer_norm_before=False, word_embed_proj_dim=16), {}),
    "opt-no-bias": (opt(enable_bias=False), {}),
    "opt-bin": (opt(), dict(dtype=torch.float16, safe_serialization=False)),
    "opt-bin-sharded": (opt(), dict(dtype=torch.bfloat16, safe_serialization=False, max_shard_size="40KB")),
    "opt-galactica": (opt(num_hidden_layers=1, enable_bias=False, activation_function="gelu"), dict(
        before_5=True, keys={"learned_embeddings": True, "scale_embeddings": False})),
    "llama": (llama(), {}),
    "llama-unused-window": (llama(num_hidden_layers=1), dict(before_5=True, keys={"sliding_window": 5})),
    "llama-relu": (llama(hidden_act="relu"), dict(dtype=torch.float16)),
    "llama-bf16": (llama(), dict(dtype=torch.bfloat16)),
    "llama-tied-bias": (llama(tie_word_embeddings=True, attention_bias=True, mlp_bias=True, hidden_act="relu"), {}),
    "llama-head-size": (llama(head_dim=14, num_attention_heads=3, num_key_value_heads=1), dict(before_5=True)),
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
    "mistral-unused-bias": (llama(**MISTRAL, head_dim=8, num_hidden_layers=1), dict(
        before_5=True, keys={"attention_bias": True, "mlp_bias": True}, drop=["sliding_window"])),
    "mistral-drelu": (llama(**MISTRAL, head_dim=8, sliding_window=None), dict(drelu=True)),
    "falcon-7b": (falcon(), {}),
    "falcon-7b-relu": (falcon(activation="relu"), dict(dtype=torch.bfloat16)),
    "falcon-40b": (falcon(new_decoder_architecture=True, num_kv_heads=2), {}),
    "falcon-one-norm": (falcon(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1, activation="relu"), {}),
    "falcon-rw": (falcon(multi_query=False, parallel_attn=False, bias=True), {}),
    "falcon-published": (falcon(num_hidden_layers=1), dict(before_5=True, keys={"apply_residual_connection_post_layernorm": False})),
    "falcon-refinedweb": (falcon(num_hidden_layers=1, new_decoder_architecture=True, num_kv_heads=2), dict(
        before_5=True, renamed=REFINED_WEB, drop=["new_decoder_architecture", "num_ln_in_parallel_attn"])),
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
    "phi-qk-norm": lambda: (phi(qk_layernorm=True, hidden_act="relu"), {}),
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


def make(out, name, cls, config, dtype=torch.float32, fatrelu=None, drelu=False, drop=(), before_5=False,
         keys=None, renamed=None, **save):
    if callable(config):
        config = config()
    torch.manual_seed(sum(map(ord, name)))
    name += "-t5" if SINCE_5 else ""
    config._attn_implementation = "eager"
    model = cls(config).eval()
    randomise(model)
    model.to(dtype)
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, **save)
    if not SINCE_5:
        (folder / "generation_config.json").unlink(missing_ok=True)
    edit(folder / "config.json", lambda config: config.update(keys or {}))
    # Loaded anew: a model cast to 16 bits would have lost bits of its rotary frequencies too.
    model = cls.from_pretrained(folder, attn_implementation="eager", **{"dtype" if SINCE_5 else "torch_dtype": torch.float32}).eval()
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
    save_sorted(tensors, folder / "golden.safetensors", {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]})

    def change(config):
        if fatrelu is not None:
            config.update(model_type="sparsellama", architectures=["SparseLlamaForCausalLM"], hidden_act="fatrelu", hidden_act_param=fatrelu)
        if drelu:
            config.update(model_type="bamboo", architectures=["BambooForCausalLM"], hidden_act="relu")
        if renamed:
            config.update(model_type="RefinedWeb", architectures=["RWForCausalLM"])
            for key, old in renamed.items():
                config[old] = config.pop(key)
        for key in drop:
            config.pop(key, None)
    edit(folder / "config.json", change)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {size >> 10} KiB")
    assert size <= 300 << 10, name


def main():
    out, names = Path(sys.argv[1]), sys.argv[2:]
    out.mkdir(parents=True, exist_ok=True)
    transformers.utils.logging.disable_progress_bar()
    cases = dict(CASES)
    if VERSION >= (4, 57):
        newer = {name: case() for name, case in NEWER.items()}
        cases = {**cases, **newer} if SINCE_5 else newer
    if SINCE_5:  # which saves safetensors alone
        cases = {name: case for name, case in cases.items() if not {"before_5", "safe_serialization"} & set(case[1])}
    for name in names or cases:
        (cls, config), options = cases[name]
        make(out, name, cls, config, **options)


main()
