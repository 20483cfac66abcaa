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
"""

import argparse
import collections
import io
import json
import os
import pathlib
import random
import shutil

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


FAST = {f.__name__: f for f in (llama2, llama2_eos, llama_first, metaspace, llama3, qwen2, falcon, phi, flags, digits, persimmon, unigram_words)}

LLAMA = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True, "add_eos_token": False}
PIECES = {
    "sp_llama": (dict(model_type="bpe", byte_fallback=True, remove_extra_whitespaces=False, character_coverage=0.98), {**LLAMA, "legacy": True}),
    "sp_llama_new": (dict(model_type="bpe", byte_fallback=True, remove_extra_whitespaces=False, character_coverage=0.98), {**LLAMA, "legacy": False, "add_eos_token": True}),
    "sp_bpe": (dict(model_type="bpe", user_defined_symbols=["<mask>", "cat", "\t\t"], control_symbols=["<left>"]), LLAMA),
    "sp_unigram": (dict(model_type="unigram", byte_fallback=True, remove_extra_whitespaces=False, character_coverage=0.98, user_defined_symbols=["<mask>", "cat"], control_symbols=["<left>"]), LLAMA),
    "sp_unigram_trim": (dict(model_type="unigram", add_dummy_prefix=False), {**LLAMA, "add_bos_token": False}),
}


def pieces(lines: list[str], settings: dict, size: int = 560) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=size, hard_vocab_limit=False, normalization_rule_name="identity",
        num_threads=1, minloglevel=2, **settings)
    return model.getvalue()


def decode_lists(size: int, count: int, rng: random.Random, low: int = 0) -> list[list[int]]:
    return [[rng.randrange(low, size) for _ in range(rng.randint(1, 10))] for _ in range(count)]


def fast_vectors(folder: pathlib.Path, samples: list[str]) -> dict:
    tok = AutoTokenizer.from_pretrained(folder)
    back = tok._tokenizer
    out = {"class": type(tok).__name__, "ids": [], "plain": [], "decode": []}
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
    tok = Tokenizer(models.WordLevel({"cat": 0, "?": 1}, unk_token="?"))
    tok.add_tokens([AddedToken("cat", single_word=True)])
    out["word"] = runs([c for c, e in zip(points, tok.encode_batch([chr(c) + "cat" for c in points])) if 0 not in e.ids])
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
    dump(args.out / "texts.json", samples)
    dump(args.out / "classes.json", classes())
    for name, build in FAST.items():
        folder = args.out / name
        folder.mkdir()
        tok, config = build(lines)
        dump(folder / "tokenizer.json", json.loads(tok.to_str()))
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
        dump(folder / "vectors.json", {"reference": VERSIONS, **fast_vectors(folder, samples)})
    for name, (settings, config) in PIECES.items():
        folder = args.out / name
        folder.mkdir()
        (folder / "tokenizer.model").write_bytes(pieces(lines, settings))
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
        dump(folder / "vectors.json", {"reference": VERSIONS, **slow_vectors(folder, samples)})


if __name__ == "__main__":
    main()
