#!/usr/bin/env python3
"""Makes tiny tokenizers of every family that engine/tokenizer reads, and their test vectors.

    python families.py --prompts ../../examples/prompts --out ../../engine/tokenizer/testdata/families

Each family is a folder as a model of it has one (tokenizer.json or tokenizer.model, and
tokenizer_config.json), with a vocabulary of a few hundred tokens trained on the prompts
and on make.py's lines, and vectors.json: the ids of every text of texts.json, and random
ids with their text. The components and their settings are those of the published files
of the family; the vocabularies are our own.

The reference for tokenizer.json is the fast implementation (tokenizers, loaded through
transformers with the class that tokenizer_config.json names); for tokenizer.model it is
SentencePiece behind the slow LlamaTokenizer. The result depends on nothing but the
versions, the prompts and these two scripts.

The families of MIXED also have the ids of the texts of mixed.json. published.py makes the
same vectors of published tokenizers.
"""

import argparse
import collections
import io
import json
import os
import pathlib
import random
import shutil
import tempfile
import unicodedata

import sentencepiece
import tokenizers
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, LlamaTokenizer

import make

VERSIONS = {**make.VERSIONS, "sentencepiece": "0.2.3"}
BYTES = [f"<0x{b:02X}>" for b in range(256)]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LETTERS = "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+"
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
CASED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+END|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*END"
CASED_TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = CASED.replace("END", ENDING) + r"|\p{N}{1,3}" + CASED_TAIL
TEKKEN = CASED.replace("END", "") + r"|\p{N}" + CASED_TAIL
DEEPSEEK = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]

# Besides make.py's: what only these families can get wrong.
PLAIN = [
    "▁", "▁▁a", "a▁b", " ▁ ", "▁ a ▁", "<0x41>", "<0x0A>", "a<0xE2><0x82>", "<unk>", "a<unk>b", "<s>a", "<s> a", "</s>▁a", "a <s> b", "<s></s>", "<s>  </s>",
    "a!\n\nb", "\t!a", "\n \n  x", " \r\n\r\n  x", "x \n\n", "'ſa", "'SX 'Re'VE", "!\r\n\r\n!", "(abc", "\u00a0abc", " (abc)", "1234567", "12 3456 78", "a1234b", "²³¹²³¹", "१२३४५", "½¼", "#1!2?3",
    "«a» — “b”…", "a.b,c;d", "$+<=>^`|~", "é…!", "word<mask>", "word <mask> next", "  <mask>  ", "<mask><mask>", " <mask> <mask> ", "<left>", "a  <left>b", "<right>  b", "<left>  <right>  <left>",
    "cat", "cat cats", "a cat, cat.", "catcat", "_cat", "cat_", "écat", "cat\u0301", "cat!", "1cat", "a\u200dcat", "New Word", "new word", " Neuwort  Neuwort", "<|user|>hello<|end|>\n", "\n<|user|>\n", "<|user|> <|end|>",
    "    x", "     ", "\t\t\tx", "        def f():\n            return 1\n", " " * 33 + "x", "\u2581\u2581", "水水水水<s>水", "ab\u0000cd", "\ud7ff\ue000",
]
ATOMS = make.ATOMS + ["▁", "<unk>", "<mask>", "<left>", "<right>", "cat", "<|user|>", "<0x41>", "   ", "\n\n", "(", "12345"]
ADDED = [
    AddedToken("<mask>", lstrip=True, rstrip=False, normalized=False, special=True),
    AddedToken("<left>", lstrip=True, normalized=False),
    AddedToken("<right>", rstrip=True, normalized=False),
    AddedToken("cat", single_word=True, normalized=True),
    AddedToken("New Word", normalized=True),
    AddedToken(" Neuwort ", lstrip=True, rstrip=True, normalized=True),
    AddedToken("<|user|>", normalized=False, special=True, rstrip=True),
    AddedToken("<|end|>", normalized=True, special=True),
]


def texts(prompts: list[str], rng: random.Random) -> list[str]:
    out = make.PLAIN + PLAIN
    out += [f"he{c} {c}" for c in make.CONTRACTIONS]
    out += ["".join(rng.choice(ATOMS) for _ in range(rng.randint(2, 20))) for _ in range(120)]
    out += rng.sample(prompts, 6)
    return list(dict.fromkeys(out))


# Parts of the mixed texts: scripts with and without case, with marks that join and marks that do not, composed and
# decomposed characters, code, numbers, chat tokens.
MIXED_PARTS = [
    "HTTPSession don't 12345", "camelCase XMLHttpRequest2", "a/b/\n", "//\n/", " 4", "(abc", "नमस्ते दुनिया", "ที่นี่", "עִבְרִית", "العَرَبِيَّة", "ǅungla ǅ", "ⅣⅫ", "ſtreet 'ſ", "É", "E\u0301", "o\u0302\u0323",
    "ệ ế", "\u1100\u1161\u11a8", "각각", "ﬁre ﬀ", "①②③", "½ ¾", "ʰʲˠ", "ªº", "漢字かなカナ", "カﾞ", "か\u3099", "中文,标点。", "한국어 텍스트", "Ωμέγα\u0301", "ΑΣ", "İstanbul ı", "naïve Ünïcödé", "Да́нные", "ქართული ᲥᲐᲠᲗ",
    "\u0301x", "x\u0301\u0301\u0301", "😀👩‍👧🏽", "🇩🇪", "\u200d\u200b", "\ufeff", "\u00ad", "\u0000\u0001", "\ue000\uf8ff", "\u00a0\u00a0", "\u2028", "\u3000", "  ", "\t", "\n\n", "\r\n", " \n ", "...", "!!\n", "—“”", "$€£ ¥", "+=<>",
    "def f(x):\n    return x ** 2\n", "<|im_start|>user\nHi<|im_end|>", "<tool_call>", "</think>", "<｜User｜>", "<start_of_turn>", "<|start|>", "▁", "３４５", "1234567890", "3.14e-10", "0xDEADBEEF", "A1b2C3", "snake_case_name", "don’t", "WE'LL",
    "\u0d4e\u0d15", "क्ष", "กำ", "\u0e33a", "a\u0903", "\u0600\u0661", "\u1e9b\u0323", "Å", "K", "™", "㍿", "ﷺ",
]


def mixed(prompts: list[str], rng: random.Random) -> list[str]:
    words = sorted({w for line in prompts for w in line.split()})
    out = []
    while len(out) < 600:
        parts = [rng.choice(MIXED_PARTS) if rng.random() < 0.7 else rng.choice(words) for _ in range(rng.randint(1, 9))]
        out.append("".join(p + rng.choice(["", "", " ", " ", "\n", "  ", "'s", "1"]) for p in parts))
        out = list(dict.fromkeys(out))
    return out


def common(lines: list[str], limit: int) -> list[str]:
    """The lines without their rarer characters: a tokenizer must not know all of them. BpeTrainer's own limit_alphabet
    breaks ties in no fixed order."""
    counts = collections.Counter("".join(lines))
    keep = set(sorted(counts, key=lambda c: (-counts[c], c))[:limit])
    return ["".join(c for c in line if c in keep) for line in lines]


def train(lines: list[str], pre, size: int, alphabet: list[str] | None = None):
    """Trains BPE; returns the tokens in the order of their ids, and the merges."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre
    tok.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(alphabet or []), show_progress=False))
    doc = json.loads(tok.to_str())["model"]
    return sorted(doc["vocab"], key=doc["vocab"].get), [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in doc["merges"]]


def numbered(*lists: list[str]) -> dict[str, int]:
    return {t: i for i, t in enumerate(dict.fromkeys(t for part in lists for t in part))}


def llama_decoder():
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def template(before: list[tuple[str, int]], after: list[tuple[str, int]]):
    single = [f"{t}:0" for t, _ in before] + ["$A:0"] + [f"{t}:0" for t, _ in after]
    return processors.TemplateProcessing(single=single, pair=single + ["$B:1"], special_tokens=before + after)


def special(*names: str) -> list[AddedToken]:
    return [AddedToken(n, special=True, normalized=False) for n in names]


def by_characters(lines: list[str], size: int = 460, **settings) -> Tokenizer:
    vocab, merges = train(common(lines, 110), pre_tokenizers.Metaspace(), size - 259)
    tok = Tokenizer(models.BPE(numbered(["<unk>", "<s>", "</s>"], BYTES, vocab), merges, unk_token="<unk>", **settings))
    tok.add_special_tokens(special("<unk>", "<s>", "</s>"))
    tok.decoder = llama_decoder()
    return tok


def by_bytes(lines: list[str], pre, size: int, extra: list[str] = [], **settings) -> Tokenizer:
    vocab, merges = train(lines, pre, size, alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok = Tokenizer(models.BPE(numbered(vocab, extra), merges, **settings))
    tok.pre_tokenizer = pre
    tok.decoder = decoders.ByteLevel()
    return tok


def llama2(lines):
    tok = by_characters(lines, byte_fallback=True, fuse_unk=True)
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.post_processor = template([("<s>", 1)], [])
    return tok, {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True, "add_eos_token": False, "legacy": True, "sp_model_kwargs": {}}


def llama2_eos(lines):
    tok, config = llama2(lines)
    tok.add_tokens(ADDED)
    return tok, {**config, "add_bos_token": False, "add_eos_token": True}


def llama_first(lines):
    tok = by_characters(lines, byte_fallback=True, fuse_unk=True)
    tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    tok.post_processor = template([("<s>", 1)], [])
    return tok, {"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "legacy": False}


def metaspace(lines):
    tok = by_characters(lines, fuse_unk=False)
    tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tok.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tok.post_processor = template([], [("</s>", 2)])
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "unk_token": "<unk>"}


def llama3(lines, regex=LLAMA3):
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated", invert=False), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    whole = ["Ġreservoir", "xylophone", "ĠDon", "Ċĉ", "æ°´è»Ĭ", "777"]  # tokens that no merge makes
    tok = by_bytes(lines, pre, 400, whole, ignore_merges=True)
    tok.add_special_tokens(special("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|user|>"))
    begin = tok.token_to_id("<|begin_of_text|>")
    tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template([("<|begin_of_text|>", begin)], [])])
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>", "chat_template": "{{ bos_token }}", "model_input_names": ["input_ids", "attention_mask"], "model_max_length": 131072}


def qwen2(lines):
    tok, _ = llama3(lines, QWEN2)
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|eot_id|>", "add_bos_token": False, "bos_token": None}


def qwen2_5(lines):
    """Qwen2.5 and Qwen3: NFC, added tokens that are no special tokens."""
    tok, _ = llama3(lines, QWEN2)
    tok.model = models.BPE(*by_model(tok), continuing_subword_prefix="", end_of_word_suffix="")
    tok.normalizer = normalizers.NFC()
    tok.add_special_tokens(special("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    tok.add_tokens([AddedToken(n, normalized=False) for n in ("<tool_call>", "</tool_call>", "<think>", "</think>")])
    tok.post_processor = processors.ByteLevel(trim_offsets=False, add_prefix_space=False, use_regex=False)
    return tok, {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "bos_token": None, "unk_token": None, "add_bos_token": False,
                 "add_prefix_space": False, "errors": "replace", "split_special_tokens": False, "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}


def by_model(tok):
    doc = json.loads(tok.to_str())["model"]
    return doc["vocab"], [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in doc["merges"]]


def qwen35(lines):
    tok, config = qwen2_5(lines)
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN35), "isolated", invert=False), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return tok, {**config, "tokenizer_class": "PreTrainedTokenizerFast"}


def o200k(lines):
    """gpt-oss."""
    tok, _ = llama3(lines, O200K)
    tok.add_special_tokens(special("<|start|>", "<|message|>", "<|end|>", "<|return|>"))
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin_of_text|>", "eos_token": "<|return|>", "extra_special_tokens": {}}


def tekken(lines):
    return llama3(lines, TEKKEN)


def deepseek(lines):
    """DeepSeek-V3: three splits, a fourth text between their matches, LlamaTokenizerFast over bytes."""
    splits = [pre_tokenizers.Split(Regex(p), "isolated", invert=False) for p in DEEPSEEK]
    tok = by_bytes(lines, pre_tokenizers.Sequence(splits + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), 400)
    tok.normalizer = normalizers.Sequence([])
    tok.add_special_tokens(special("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"))
    tok.add_tokens([AddedToken(n, normalized=True) for n in ("<｜User｜>", "<｜Assistant｜>", "<think>")])
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    token = {"__type": "AddedToken", "lstrip": False, "normalized": True, "rstrip": False, "single_word": False}
    return tok, {"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": True, "add_eos_token": False, "bos_token": {**token, "content": "<｜begin▁of▁sentence｜>"},
                 "eos_token": {**token, "content": "<｜end▁of▁sentence｜>"}, "unk_token": None, "legacy": True, "sp_model_kwargs": {}}


def gemma(lines):
    """Gemma 2 and 3: no blank in front, runs of line ends and of blanks as added tokens."""
    tok = by_characters(lines, byte_fallback=True, fuse_unk=True)
    tok.normalizer = normalizers.Replace(" ", "▁")
    tok.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous", invert=False)
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tok.add_special_tokens(special("<pad>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"))
    tok.add_tokens([AddedToken(n, normalized=False) for n in ["<unused0>", "\n\n", "\n\n\n", "▁▁", "▁▁▁▁"]])
    tok.post_processor = template([("<bos>", tok.token_to_id("<bos>"))], [])
    return tok, {"tokenizer_class": "GemmaTokenizer", "bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>", "add_bos_token": True, "add_eos_token": False, "sp_model_kwargs": None,
                 "extra_special_tokens": {"image_token": "<start_of_turn>"}, "image_token": "<start_of_turn>", "spaces_between_special_tokens": False}


def rules() -> str:
    """A file of SentencePiece's rules: some of nmt_nfkc, which has 200 kB. The characters of the texts, in NFKC; blanks
    that are spaces, control characters that are nothing."""
    texts = "".join(MIXED_PARTS + PLAIN + make.PLAIN)
    table = {c: unicodedata.normalize("NFKC", c) for c in sorted(set(texts)) if unicodedata.normalize("NFKC", c) != c}
    table |= {unicodedata.normalize("NFD", c): c for c in sorted(set("éèêëôöüñçÅÉ" + texts)) if len(unicodedata.normalize("NFD", c)) == 2}
    table |= {c: " " for c in "\t\n\r\u00a0\u2028\u200b\ufeff"} | {c: "" for c in "\u0001\u0002\u0003\u007f\u00ad"}
    path = pathlib.Path(tempfile.mkdtemp()) / "rules.tsv"
    path.write_text("".join(" ".join(f"{ord(c):X}" for c in k) + "\t" + " ".join(f"{ord(c):X}" for c in v) + "\n" for k, v in sorted(table.items())))
    return str(path)


def pythia(lines):
    """GPT-NeoX: NFC, added tokens of blanks."""
    tok = by_bytes(lines, pre_tokenizers.ByteLevel(add_prefix_space=False), 400)
    tok.normalizer = normalizers.NFC()
    tok.add_special_tokens(special("<|endoftext|>"))
    tok.add_tokens([AddedToken(" " * n, normalized=True) for n in range(8, 1, -1)])
    return tok, {"tokenizer_class": "GPTNeoXTokenizer", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>", "add_prefix_space": False}


def precompiled(lines):
    """A Unigram model behind SentencePiece's table of characters, as the library's converter makes it."""
    from sentencepiece import sentencepiece_model_pb2
    settings = dict(model_type="unigram", max_sentencepiece_length=12, normalization_rule_tsv=rules(), byte_fallback=True)
    proto = sentencepiece_model_pb2.ModelProto.FromString(pieces(common(lines, 80), settings, 520))
    tok = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], 0, True))
    tok.add_special_tokens(special("<unk>", "<s>", "</s>"))
    tok.normalizer = normalizers.Sequence([normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")])
    tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tok.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tok.post_processor = template([], [("</s>", 2)])
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "unk_token": "<unk>"}


def falcon(lines):
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated", invert=False),
    ])
    tok = by_bytes(lines, pre, 400)
    tok.add_special_tokens(special("<|endoftext|>", "<|user|>"))
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>", "add_prefix_space": False, "special_tokens_map_file": None}


def phi(lines):
    tok = by_bytes(lines, pre_tokenizers.ByteLevel(add_prefix_space=False), 400)
    tok.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
    tok.add_tokens([AddedToken(" " * n, normalized=True) for n in range(31, 1, -1)] + [AddedToken("\t" * n, normalized=True) for n in range(9, 1, -1)])
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    return tok, {"tokenizer_class": "CodeGenTokenizer", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>", "add_prefix_space": False, "add_bos_token": False, "return_token_type_ids": False}


def flags(lines):
    tok = by_bytes(lines, pre_tokenizers.ByteLevel(add_prefix_space=True), 380)
    tok.add_tokens(ADDED)
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": True}


def digits(lines):
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok = by_bytes(lines, pre, 380)
    tok.add_special_tokens(special("<|endoftext|>"))
    return tok, {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}


def unigram(lines, fallback: bool, size: int) -> Tokenizer:
    """Trained by SentencePiece: the library's own trainer sums in no fixed order."""
    settings = dict(model_type="unigram", remove_extra_whitespaces=False, max_sentencepiece_length=12)
    sp = sentencepiece.SentencePieceProcessor(model_proto=pieces(common(lines, 80 if fallback else 150), settings, size))
    head = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)] + ([(b, 0.0) for b in BYTES] if fallback else [])
    tok = Tokenizer(models.Unigram(head + [(sp.id_to_piece(i), sp.get_score(i)) for i in range(3, sp.get_piece_size())], 0, fallback))
    tok.add_special_tokens(special("<unk>", "<s>", "</s>"))
    return tok


def persimmon(lines):
    tok = unigram(lines, True, 260)
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.decoder = llama_decoder()
    return tok, {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True, "add_eos_token": False, "legacy": None}


def unigram_words(lines):
    tok = unigram(lines, False, 500)
    tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=True)
    tok.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="first", split=True)
    tok.post_processor = template([("<s>", 1)], [("</s>", 2)])
    tok.add_tokens(ADDED)
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


FAST = {f.__name__: f for f in (llama2, llama2_eos, llama_first, metaspace, llama3, qwen2, falcon, phi, flags, digits, persimmon, unigram_words,
                                qwen2_5, qwen35, o200k, tekken, deepseek, gemma, pythia, precompiled)}
MIXED = ["qwen2_5", "qwen35", "o200k", "tekken", "deepseek", "gemma", "pythia", "precompiled"]

LLAMA = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True, "add_eos_token": False}
PIECES = {
    "sp_llama": (dict(model_type="bpe", byte_fallback=True, remove_extra_whitespaces=False, character_coverage=0.98), {**LLAMA, "legacy": True}),
    "sp_llama_new": (dict(model_type="bpe", byte_fallback=True, remove_extra_whitespaces=False, character_coverage=0.98), {**LLAMA, "legacy": False, "add_eos_token": True}),
    "sp_bpe": (dict(model_type="bpe", user_defined_symbols=["<mask>", "cat", "\t\t"], control_symbols=["<left>"]), LLAMA),
    "sp_unigram": (dict(model_type="unigram", byte_fallback=True, remove_extra_whitespaces=False, character_coverage=0.98, user_defined_symbols=["<mask>", "cat"], control_symbols=["<left>"]), LLAMA),
    "sp_rules": (dict(model_type="bpe", byte_fallback=True, normalization_rule_tsv=rules(), character_coverage=0.98, user_defined_symbols=["<mask>"]), {**LLAMA, "legacy": True}),
    "sp_unigram_trim": (dict(model_type="unigram", add_dummy_prefix=False), {**LLAMA, "add_bos_token": False}),
}


def pieces(lines: list[str], settings: dict, size: int = 560) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=size, hard_vocab_limit=False,
        num_threads=1, minloglevel=2, **({} if "normalization_rule_tsv" in settings else {"normalization_rule_name": "identity"}), **settings)
    return model.getvalue()


def decode_lists(size: int, count: int, rng: random.Random, low: int = 0) -> list[list[int]]:
    return [[rng.randrange(low, size) for _ in range(rng.randint(1, 10))] for _ in range(count)]


def fast_vectors(folder: pathlib.Path, samples: list[str], mix: list[str] = []) -> dict:
    tok = AutoTokenizer.from_pretrained(folder)
    back = tok._tokenizer
    out = {"class": type(tok).__name__, "ids": [], "plain": [], "decode": []}
    if mix:
        out["mixed"] = [tok(t)["input_ids"] for t in mix]
    lists = []
    for text in samples:
        ids, plain = tok(text)["input_ids"], tok(text, add_special_tokens=False)["input_ids"]
        out["ids"].append(ids)
        out["plain"].append(back.decode(plain, skip_special_tokens=False))
        lists.append(ids)
    rng = random.Random(5)
    size = back.get_vocab_size(with_added_tokens=True)
    for ids in lists[::9] + decode_lists(size, 60, rng) + decode_lists(min(size, 259), 60, rng):
        out["decode"].append({"ids": ids, "text": back.decode(ids, skip_special_tokens=False), "shown": back.decode(ids, skip_special_tokens=True)})
    return out


def slow_vectors(folder: pathlib.Path, samples: list[str]) -> dict:
    tok = LlamaTokenizer.from_pretrained(folder)
    sp = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    raw = [i for i in range(sp.get_piece_size()) if not (sp.is_control(i) or sp.is_unknown(i))]
    out = {"class": type(tok).__name__, "ids": [tok(t)["input_ids"] for t in samples], "plain": [], "decode": []}
    rng = random.Random(5)
    lists = [[i for i in sp.encode(t) if not sp.is_unknown(i)] for t in samples[::5]]
    lists += [[rng.choice(raw) for _ in range(rng.randint(1, 10))] for _ in range(60)]
    lists += [[rng.choice(raw[:256]) for _ in range(rng.randint(1, 10))] for _ in range(60)]
    out["decode"] = [{"ids": ids, "text": sp.decode(ids), "shown": sp.decode(ids)} for ids in lists]
    return out


def runs(points: list[int]) -> list[int]:
    """First, last, first, last, ..."""
    out = []
    for c in points:
        if out and out[-1] == c - 1:
            out[-1] = c
        else:
            out += [c, c]
    return out


def classes() -> dict[str, list[int]]:
    """The code points that Digits and Punctuation cut out, and those that hide a token with single_word."""
    points = [c for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF]
    out = {}
    for name, pre in (("digit", pre_tokenizers.Digits(True)), ("punctuation", pre_tokenizers.Punctuation("isolated"))):
        hit = []
        for k in range(0, len(points), 4096):
            cut = pre.pre_tokenize_str("".join("a" + chr(c) for c in points[k:k + 4096]) + "a")
            hit += [ord(piece) for piece, _ in cut if len(piece) == 1 and piece != "a"]
        out[name] = runs(hit)
    for name, pattern in (("mark", r"\p{M}"), ("punct", r"\p{P}"), ("symbol", r"\p{S}"), ("capital", r"[\p{Lu}\p{Lt}]"), ("small", r"\p{Ll}"), ("caseless", r"[\p{Lm}\p{Lo}]")):
        keep = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
        hit = []
        for k in range(0, len(points), 4096):
            # between others, so that no pair is one piece: "\0" is in none of the classes
            cut = keep.pre_tokenize_str("".join("\0" + chr(c) for c in points[k:k + 4096]))
            hit += [ord(piece) for piece, _ in cut]
        out[name] = runs(hit)
    tok = Tokenizer(models.WordLevel({"cat": 0, "?": 1}, unk_token="?"))
    tok.add_tokens([AddedToken("cat", single_word=True)])
    out["word"] = runs([c for c, e in zip(points, tok.encode_batch([chr(c) + "cat" for c in points])) if 0 not in e.ids])
    return out


# The texts of reports about tokenizers that knew a pattern by a part of it.
REPORTED = ["camelCase HTTPSession", "don't 12345", "DON'T 'ſ", "a/b/\n", "//\n/x", " 4", "(abc", "नमस्ते", "ที่", "עִבְרִית", "'s 's", "ABCdefGHI'LL", "ǅab ǅA", "a\u0301B\u0301c", "\u0301", " \u0301a", "x \n \n", "x  ", "\r\n\r\n ab", "漢字ABC", "ABC漢DEF", " ʰAB's", "\u0301AB"]
PATTERNS = [LLAMA3, QWEN2, QWEN35, O200K, TEKKEN, *DEEPSEEK, "[\r\n]", r"\s+$", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\s?\p{L}+", r"\s?\p{P}+", "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", LETTERS]


def words() -> dict[str, list[list[str]]]:
    """How each pattern of a Split cuts the reported texts and the parts of the mixed ones."""
    out = {}
    for p in PATTERNS:
        pre = pre_tokenizers.Split(Regex(p), "isolated", invert=False)
        out[p] = [[w for w, _ in pre.pre_tokenize_str(t)] for t in REPORTED + MIXED_PARTS]
    return out


def dump(path: pathlib.Path, doc) -> None:
    path.write_text(json.dumps(doc, ensure_ascii=True, separators=(",", ":")) + "\n")


def main() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # sums of floating-point numbers, always in one order
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--prompts", type=pathlib.Path, required=True)
    args.add_argument("--out", type=pathlib.Path, required=True)
    args = args.parse_args()
    found = {"transformers": transformers.__version__, "tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__}
    if found != VERSIONS:
        raise SystemExit(f"versions {found}, the vectors are made with {VERSIONS}")
    prompts = [l for p in sorted(args.prompts.glob("*.txt")) for l in p.read_text().splitlines() if l.strip()]
    lines = prompts + make.EXTRA
    samples = texts(prompts, random.Random(3))
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    mix = mixed(prompts, random.Random(4))
    dump(args.out / "texts.json", samples)
    dump(args.out / "mixed.json", mix)
    dump(args.out / "classes.json", classes())
    dump(args.out / "words.json", words())
    for name, build in FAST.items():
        folder = args.out / name
        folder.mkdir()
        tok, config = build(lines)
        dump(folder / "tokenizer.json", json.loads(tok.to_str()))
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
        dump(folder / "vectors.json", {"reference": VERSIONS, **fast_vectors(folder, samples, mix if name in MIXED else [])})
    for name, (settings, config) in PIECES.items():
        folder = args.out / name
        folder.mkdir()
        (folder / "tokenizer.model").write_bytes(pieces(lines, settings))
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
        dump(folder / "vectors.json", {"reference": VERSIONS, **slow_vectors(folder, samples)})


if __name__ == "__main__":
    main()
