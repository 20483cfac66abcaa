"""Makes the fixtures of engine/checkpoint/gguf/testdata.

    pip install -r requirements.txt
    python blocks.py ../../engine/checkpoint/gguf/testdata

llama.gguf is a tiny model of the architecture llama with tensors of five types.
blocks.gguf has a tensor of every quantised type that is read: random blocks, in which every pattern
of bits is legal, with scales that are numbers, the largest, the least and both zeros among them.
llama.json and blocks.json hold the hash of the bytes that the tensors decode to according to
gguf.quants, and the first 64 of them: of llama.gguf by the Hugging Face name, before q and k were
permuted as convert_hf_to_gguf.py does.
"""

import hashlib
import importlib.metadata
import json
import sys
from pathlib import Path

import numpy as np
import gguf
from gguf import quants, GGMLQuantizationType as T

from random_blocks import HALVES, random_blocks

assert importlib.metadata.version("gguf") == "0.19.0"
out = Path(sys.argv[1])
hidden, ffn, heads, kv, vocab = 64, 32, 4, 2, 12


def numbers(seed, *shape):
    n = int(np.prod(shape))
    return np.sin(np.arange(n, dtype=np.float64) * (0.7 + 0.01 * seed) + seed).astype(np.float32).reshape(shape)


def permute(weights, n_head):
    return weights.reshape(n_head, 2, weights.shape[0] // n_head // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


tensors = [
    ("token_embd.weight", "model.embed_tokens.weight", (vocab, hidden), T.F16),
    ("output_norm.weight", "model.norm.weight", (hidden,), T.F32),
    ("output.weight", "lm_head.weight", (vocab, hidden), T.BF16),
    ("blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight", (hidden,), T.F32),
    ("blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight", (hidden,), T.F32),
    ("blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight", (hidden, hidden), T.Q8_0),
    ("blk.0.attn_k.weight", "model.layers.0.self_attn.k_proj.weight", (hidden // heads * kv, hidden), T.Q4_0),
    ("blk.0.attn_v.weight", "model.layers.0.self_attn.v_proj.weight", (hidden // heads * kv, hidden), T.Q8_0),
    ("blk.0.attn_output.weight", "model.layers.0.self_attn.o_proj.weight", (hidden, hidden), T.Q4_0),
    ("blk.0.ffn_gate.weight", "model.layers.0.mlp.gate_proj.weight", (ffn, hidden), T.Q4_0),
    ("blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj.weight", (ffn, hidden), T.Q8_0),
    ("blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight", (hidden, ffn), T.F16),
]

w = gguf.GGUFWriter(out / "llama.gguf", "llama")
w.add_block_count(1)
w.add_context_length(128)
w.add_embedding_length(hidden)
w.add_feed_forward_length(ffn)
w.add_head_count(heads)
w.add_head_count_kv(kv)
w.add_layer_norm_rms_eps(1e-5)
w.add_rope_freq_base(10000.0)
w.add_rope_dimension_count(hidden // heads)
w.add_vocab_size(vocab)
w.add_tokenizer_model("gpt2")
w.add_tokenizer_pre("default")
w.add_token_list(["t%d" % i for i in range(vocab)])
w.add_token_types([1] * vocab)
w.add_token_merges(["a b", "c d"])
w.add_bos_token_id(1)
w.add_eos_token_id(2)
w.add_add_bos_token(True)
for key, value, kind in [("u8", 200, "uint8"), ("i8", -5, "int8"), ("u16", 60000, "uint16"), ("i16", -3, "int16"), ("u32", 4000000000, "uint32"),
                         ("i32", -7, "int32"), ("f32", 0.5, "float32"), ("u64", 1 << 63, "uint64"), ("i64", -(1 << 62), "int64"), ("f64", 0.1, "float64"),
                         ("yes", True, "bool"), ("text", "grüß", "string")]:
    getattr(w, "add_" + kind)("test." + key, value)
w.add_array("test.ints", [1, -2, 3])
w.add_array("test.floats", [0.5, 1.5])
w.add_array("test.flags", [True, False])
w.add_array("test.nested", [[1, 2], [3]])

expected = {}
for seed, (name, theirs, shape, kind) in enumerate(tensors):
    x = numbers(seed, *shape)
    stored = quants.quantize(x, kind)
    decoded = quants.dequantize(stored, kind).reshape(shape)
    raw = np.ascontiguousarray(stored if kind in (T.F16, T.BF16) else decoded.astype("<f4")).tobytes()
    dtype = {T.F16: "F16", T.BF16: "BF16"}.get(kind, "F32")
    expected[theirs] = {"gguf": name, "type": kind.name, "dtype": dtype, "shape": list(shape), "sha256": hashlib.sha256(raw).hexdigest(), "start": raw[:64].hex()}
    if ".attn_q." in name or ".attn_k." in name:
        stored = quants.quantize(permute(x, heads if ".attn_q." in name else kv), kind)
    w.add_tensor(name, stored, raw_shape=stored.shape if kind in (T.Q4_0, T.Q8_0, T.BF16) else None, raw_dtype=kind)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()

(out / "llama.json").write_text(json.dumps(expected, indent=1) + "\n")

expected = {}
w = gguf.GGUFWriter(out / "blocks.gguf", "test")
for kind in HALVES:
    shape = (16, 512)
    stored = random_blocks(kind, shape, np.random.default_rng(int(kind)))
    with np.errstate(over="ignore"):  # of MXFP4's largest exponents
        decoded = quants.dequantize(stored, kind).astype("<f4")
    assert decoded.shape == shape and not np.isnan(decoded).any()
    raw = decoded.tobytes()
    expected[kind.name] = {
        "gguf": kind.name, "type": kind.name, "dtype": "F32", "shape": list(shape),
        "sha256": hashlib.sha256(raw).hexdigest(), "start": raw[:64].hex()}
    w.add_tensor(kind.name, stored, raw_shape=stored.shape, raw_dtype=kind)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
(out / "blocks.json").write_text(json.dumps(expected, indent=1) + "\n")
