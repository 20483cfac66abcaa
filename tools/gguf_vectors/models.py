"""Makes the tiny GGUF models of engine/testdata/gguf.

    pip install -r requirements.txt
    python models.py ../../engine/testdata

The files NAME.gguf are the checkpoints families/NAME as llama.cpp's converter writes them: tensor
names by gguf's own table, rows permuted or regrouped, metadata of the architecture. They must give
the logits of the checkpoint. NAME-0000i-of-0000n.gguf are one model in several files.

mixture.gguf is a Llama with biases and a matrix of every type that is read; most of them gguf cannot
quantise, so their blocks are random. mixture.safetensors holds two prompts and the logits of
transformers with the weights that the blocks decode to. Its metadata names the versions.
"""

import importlib.metadata
import json
import math
import struct
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as T, quants
from safetensors import safe_open

from random_blocks import HALVES, random_blocks

sys.path.append(str(Path(__file__).resolve().parent.parent / "goldens"))
from sorted_metadata import save_sorted

assert importlib.metadata.version("gguf") == "0.19.0"
data = Path(sys.argv[1])
ARCHITECTURES = {"llama": "llama", "falcon": "falcon", "phi": "phi2", "qwen2": "qwen2", "qwen3": "qwen3"}


def permute(rows, heads):
    """LlamaModel.permute: llama.cpp rotates neighbours."""
    return rows.reshape(heads, 2, len(rows) // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def regroup(rows, heads, kv):
    """FalconModel.modify_tensors: all queries, then all keys, then all values."""
    size = rows.shape[1] // heads
    groups = rows.reshape(kv, heads // kv + 2, size, rows.shape[1])
    parts = groups[:, :-2], groups[:, -2:-1], groups[:, -1:]
    return np.concatenate([p.reshape(-1, rows.shape[1]) for p in parts])


def rope_factors(config):
    """LlamaModel.generate_extra_tensors: the divisors of Llama 3.1's frequencies."""
    scaling, dim = config["rope_scaling"], config["head_dim"]
    low = scaling["original_max_position_embeddings"] / scaling["low_freq_factor"]
    high = scaling["original_max_position_embeddings"] / scaling["high_freq_factor"]
    factors = []
    for i in range(0, dim, 2):
        wave = 2 * math.pi * config["rope_theta"] ** (i / dim)
        if wave < high:
            factors.append(1)
        elif wave > low:
            factors.append(scaling["factor"])
        else:
            smooth = scaling["original_max_position_embeddings"] / wave - scaling["low_freq_factor"]
            smooth /= scaling["high_freq_factor"] - scaling["low_freq_factor"]
            factors.append(1 / ((1 - smooth) / scaling["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


def keys(w, config, arch):
    """The metadata of the converter's set_gguf_parameters."""
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    kv = config.get("num_key_value_heads", config.get("num_kv_heads", heads))
    if config.get("multi_query") and not config["new_decoder_architecture"]:
        kv = 1
    w.add_block_count(config["num_hidden_layers"])
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(hidden)
    w.add_feed_forward_length(config.get("intermediate_size", config.get("ffn_hidden_size")))
    w.add_head_count(heads)
    w.add_head_count_kv(kv)
    if "rms_norm_eps" in config:
        w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    else:
        w.add_layer_norm_eps(config.get("layer_norm_eps", config.get("layer_norm_epsilon")))
    if arch == "falcon":
        w.add_tensor_data_layout("jploski")
    if arch == "phi2":
        w.add_rope_dimension_count(int(config["partial_rotary_factor"] * hidden) // heads)
    if arch == "llama":
        w.add_vocab_size(config["vocab_size"])
        w.add_rope_dimension_count(config["head_dim"])
    if arch in ("llama", "qwen2", "qwen3"):
        w.add_rope_freq_base(config["rope_theta"])
        if "head_dim" in config:
            w.add_key_length(config["head_dim"])
            w.add_value_length(config["head_dim"])
    w.add_tokenizer_model("no_vocab")
    return heads, kv


def convert(name, **split):
    folder = data / "families" / name
    config = json.loads((folder / "config.json").read_text())
    arch = ARCHITECTURES[config["model_type"]]
    w = gguf.GGUFWriter(data / "gguf" / f"{name}.gguf", arch, **split)
    heads, kv = keys(w, config, arch)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], config["num_hidden_layers"])
    with safe_open(folder / "model.safetensors", "pt") as f:
        for theirs in f.keys():
            t = f.get_tensor(theirs)
            ours = names.get_name(theirs, try_suffixes=(".weight", ".bias"))
            assert ours, theirs
            bf16 = t.dtype == torch.bfloat16 and t.dim() > 1
            x = t.float().numpy()
            if arch == "llama" and ("q_proj" in theirs or "k_proj" in theirs):
                x = permute(x, heads if "q_proj" in theirs else kv)
            if "query_key_value" in theirs:
                x = regroup(x, heads, kv)
            if bf16:
                x = quants.quantize(x, T.BF16)
                w.add_tensor(ours, x, raw_shape=x.shape, raw_dtype=T.BF16)
            else:
                w.add_tensor(ours, np.ascontiguousarray(x))
    if (config.get("rope_scaling") or {}).get("rope_type") == "llama3":
        w.add_tensor("rope_freqs.weight", rope_factors(config))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


# The types of the mixture's matrices: two layers, then embedding and head. Rows of o_proj and
# down_proj have 64 elements, the others 256.
MIXTURE = [
    dict(q_proj=T.Q4_K, k_proj=T.Q5_K, v_proj=T.Q6_K, o_proj=T.Q4_0, gate_proj=T.Q2_K, up_proj=T.Q3_K, down_proj=T.Q8_0),
    dict(q_proj=T.IQ4_XS, k_proj=T.IQ4_NL, v_proj=T.Q4_1, o_proj=T.Q5_0, gate_proj=T.MXFP4, up_proj=T.Q4_K, down_proj=T.Q5_1),
]


# The scale and the offset that make weights of about the size of a model's.
SIZES = dict(
    Q2_K=(0.02, 0.01), Q3_K=(0.002,), Q4_K=(0.0008, 0.006), Q5_K=(0.0004, 0.006), Q6_K=(0.0001,),
    IQ4_XS=(0.0001,), IQ4_NL=(0.002,), Q4_0=(0.03,), Q4_1=(0.03, -0.2), Q5_0=(0.015,),
    Q5_1=(0.015, -0.2), Q8_0=(0.002,))


def tame(kind, stored):
    """Gives random blocks scales for which the weights are of about the size of a model's."""
    blocks = stored.reshape(-1, gguf.GGML_QUANT_SIZES[kind][1])
    if kind == T.MXFP4:
        blocks[:, 0] = 122 + blocks[:, 0] % 3
    for at, value in zip(HALVES[kind], SIZES.get(kind.name, ())):
        blocks[:, at:at + 2] = np.frombuffer(struct.pack("<e", value), dtype=np.uint8)


def mixture():
    torch.manual_seed(15)
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=256, num_hidden_layers=len(MIXTURE), intermediate_size=64, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=40, rms_norm_eps=1e-5, tie_word_embeddings=False,
        attention_bias=True, mlp_bias=True, rope_theta=500.0, pad_token_id=None)
    config._attn_implementation = "eager"
    model = transformers.LlamaForCausalLM(config).eval()
    fields = {**config.to_dict(), "rope_theta": 500.0}
    w = gguf.GGUFWriter(data / "gguf" / "mixture.gguf", "llama")
    heads, kv = keys(w, fields, "llama")
    w.add_quantization_version(gguf.GGML_QUANT_VERSION)
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_K_M)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, len(MIXTURE))
    for i, (theirs, p) in enumerate(model.named_parameters()):
        ours = names.get_name(theirs, try_suffixes=(".weight", ".bias"))
        n = heads if "q_proj" in theirs else kv if "k_proj" in theirs else 0
        if p.dim() == 1:
            p.data = (torch.ones_like(p) if "norm" in theirs else torch.zeros_like(p)) + 0.2 * torch.randn_like(p)
            x = p.data.numpy()
            w.add_tensor(ours, np.ascontiguousarray(permute(x, n) if n else x))
            continue
        if theirs.startswith("model.layers"):
            kind = MIXTURE[int(theirs.split(".")[2])][theirs.split(".")[-2]]
            stored = random_blocks(kind, p.shape, np.random.default_rng(i))
            tame(kind, stored)
        else:
            kind = T.F16 if "embed" in theirs else T.Q8_0
            stored = quants.quantize((0.25 * torch.randn_like(p)).numpy(), kind)
        p.data = torch.from_numpy(np.array(quants.dequantize(stored, kind)).reshape(p.shape))
        # Whole rows are permuted, so blocks stay whole.
        stored = np.ascontiguousarray(permute(stored, n) if n else stored)
        if kind == T.F16:
            w.add_tensor(ours, stored)
        else:
            w.add_tensor(ours, stored, raw_shape=stored.shape, raw_dtype=kind)
        print(ours, kind.name, f"{p.data.std():.3f}")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    tensors = {}
    for i, length in enumerate((12, 17)):
        ids = torch.randint(3, 96, (1, length))
        with torch.no_grad():
            logits = model(ids).logits[0].float().contiguous()
        tensors[f"ids_{i}"], tensors[f"logits_{i}"] = ids[0].to(torch.int32).contiguous(), logits
        print("logits", logits.std())
    save_sorted(tensors, data / "gguf" / "mixture.safetensors", {
        "transformers": transformers.__version__, "torch": torch.__version__, "gguf": "0.19.0"})


(data / "gguf").mkdir(exist_ok=True)
for name in ("llama-llama3-rope", "phi", "falcon-7b", "falcon-40b", "qwen3"):
    convert(name)
convert("qwen2-tied-bf16", split_max_tensors=13, small_first_shard=True)
mixture()
