#!/usr/bin/env python3
"""Makes the test vectors of engine/tokenizer with the reference implementation.

    python make.py --prompts ../../examples/prompts --out ../../engine/tokenizer/testdata

It trains a byte-level BPE vocabulary of --vocab entries on the prompts and on the lines
of EXTRA below, saves it as transformers saves an OPT tokenizer, and writes vectors.json:
texts with their ids, ids with their text, and the code points that the reference takes
for letters, numbers and white space. The result depends on nothing but the versions
below, the prompts and this file.

The reference is the fast one, the tokenizers library behind GPT2TokenizerFast. The slow
GPT2Tokenizer is run on every text as well; where it differs, the vector says so
("slow_differs"), and the script prints the text.
"""

import argparse
import itertools
import json
import pathlib
import random

import tokenizers
import transformers
from tokenizers import ByteLevelBPETokenizer, Regex, pre_tokenizers
from transformers import GPT2Tokenizer, GPT2TokenizerFast

VERSIONS = {"transformers": "4.46.3", "tokenizers": "0.20.3"}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]  # ids 0..3, as in OPT

# Trained on besides the prompts, so that merges of white space, digits and parts of characters exist.
EXTRA = [
    "    four spaces,\tone tab,\t\ttwo tabs,        eight spaces",
    "1 12 123 1234 10 100 1000 2024 3.14 0x1F",
    "don't DON'T we'll WE'LL they're I've I'm he'd it's",
    "für die Mühle, où est l'âne, señor, žluťoučký kůň",
    "мельник и мельница, мельник и мельница",
    "水車小屋の娘、水車小屋の娘。 磨坊主的女儿",
    "الطحان وابنته الطحان وابنته",
    "👩‍👩‍👧‍👦 👩‍👧 😀😀😀 🐻 🐻",
    "\u3000\u3000wide\u3000spaces\u00a0hard\u00a0\u00a0spaces",
    "aaaa aaaa aaaaaaaa ababab !!! ... --- ===",
] * 3

WHITE = [" ", "\t", "\n", "\u00a0", "\u3000"]

PLAIN = [
    "", " ", "  ", "   ", "a", "A", "é", "水", "😀", "'", "''", "\n", "\r\n", "\r\n\r\n", "\u0000", "\u007f", "\u0085", "\ufeff", "\ufffd",
    "I like you.", "a  b", "\n\n x", "\t\tx", " \u3000x", "x \n", "x\n ", "x  ", "  x", "   x   y   ", "a\r\nb\r\n", "a \r\n b", "\u00a0x\u00a0", "\u3000\u3000x",
    "a" * 50, "ab" * 25, "a" * 200, " " * 50, "\n" * 20, "ha" * 40, "=" * 33, "wide\u3000spaces", "!?" * 20, "é" * 30, "😀" * 12, "水車" * 9, "0" * 40,
    "123", " 123", "12 345", "1,234.56", "x1y2", "1st 2nd", "٣٤٥", "²³", "Ⅻ", "½ cup", "१२३abc", "3D", "0x1F 0b10", "１２３",
    "don't", "DON'T", "don’t", "we'll", "WE'LL", "'tis", "'TIS", " 's", "'s's", "x's'", "'st", "'ll'", "'Ve", "'re're", "it's'd", "'' 's", "!'s", "\n's", "o'clock", "'v", "'r", "'l",
    "</s>", "<pad>", "<s>", "<unk>", "a</s>b", "a </s> b", "</s></s>", " </s>", "</s> ", "</s>'s", "< /s>", "</S>", "<</s>>", "</s", "<pad", "<pad></s><pad>", "x<pad>\n\ny", "\u3000</s>\u3000", "  </s>  </s>  ",
    "é", "e\u0301", "e\u0301\u0323 x", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢", "ｈｅｌｌｏ", "ﬁne", "ǅ", "ß ẞ", "İı", "ªº",
    "שלום עולם", "مرحبا بالعالم", "\u202eabc\u202c", "الطحان، وابنته؟", "हिन्दी में", "ไม่มีช่องว่าง", "한국어 텍스트", "水車小屋の娘。", "日本語テキスト", "磨坊主,女儿", "Ωμέγα", "ёлка Ёж", "ქართული",
    "👩‍👩‍👧‍👦", "👍🏽", "🏳️‍🌈", "🇩🇪🇫🇷", "a😀b", "😀 😀", " 😀", "1️⃣", "☃️!", "😀'll", "𝒳𝟜", "𐍈", "\U0010ffff", "\ue000x",
    "a\u200bb", "a\u200db", "a\u00adb", "\u2028x\u2029", "a\u1680b", "\u2003\u2003x", "\u180ex", "x\u202fy\u205fz", "\u001c\u001d\u001e\u001f", "a\u001cb", "\x0b\x0c", "tab\tend\t",
    "\u0001\u0002\u0003", "\x1b[31mred\x1b[0m", "C:\\path\\to", "https://example.org/a?b=c&d=%20", "a_b__c", "foo.bar()", "if (x<3) {\n\ty += 2;\n}\n", "{\"a\": [1, 2]}", "$5.00 & #7 @x", "~`^*+=|<>", "№ § ¶ © ® ™ € £",
    "Once upon a time", " Once upon a time", "ONCE UPON A TIME", "once  upon\ta\ntime", "the the the the", "-- \"Don't!\" --", "(a) [b] {c}", "... ", "....", ". . .", "?!", "a-b-c", "e.g., i.e.",
    "Ġ", "ĠĠthe", "Ċ", "#version: 0.2", "\\u0020", "&lt;/s&gt;",
]

CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'M", "'LL", "'D"]

ATOMS = WHITE + ["  ", "\r\n", "a", "the", " mill", "Z", "é", "ж", "水", "車", "ا", "e\u0301", "7", "42", "٣", "½", "'", "'s", "'ll", "'T", "!", "...", "-", "<", ">",
                 "</s>", "<pad>", "<s>", "😀", "👩‍👧", "\u200d", "\ufe0f", "\u0000", "\u001f", "\u0085", "\u2028", "_", "\"", "ß", "𝒳"]

# Letters and numbers since Unicode 15.0, after the tables of the reference: pinned as deviations.
NEWER = ["a\U00011F02b", "1\U0001E4F0", "!\U000323AF"]


def texts(prompts: list[str], rng: random.Random) -> list[str]:
    out = list(PLAIN)
    out += [f"{a}{c}{b}" for c in CONTRACTIONS for a, b in (("he", ""), (" ", "x"), ("1", " "))]
    runs = ["".join(r) for n in (1, 2) for r in itertools.product(WHITE, repeat=n)]
    out += [f"x{r}y" for r in runs] + [f"{r}'s" for r in runs] + [f"7{r}" for r in runs]
    out += ["".join(rng.choice(ATOMS) for _ in range(rng.randint(2, 24))) for _ in range(160)]
    out += rng.sample(prompts, 16)
    return list(dict.fromkeys(out))


def id_lists(size: int, rng: random.Random) -> list[list[int]]:
    """Random ids: most cut characters in two. Bytes alone (4..259) make every kind of invalid UTF-8."""
    out = [[rng.randrange(size) for _ in range(rng.randint(1, 12))] for _ in range(60)]
    return out + [[rng.randint(4, 259) for _ in range(rng.randint(1, 10))] for _ in range(60)]


def classes() -> dict[str, list[int]]:
    """The code points of each class of the split pattern, as first, last, first, last, ..."""
    points = [c for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF]
    out = {}
    for name, pattern in (("letter", r"\p{L}"), ("number", r"\p{N}"), ("space", r"\s")):
        keep = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
        runs = []
        for k in range(0, len(points), 4096):
            # A "!" before each, which is in none of the classes, makes every match a piece of its own.
            for piece, _ in keep.pre_tokenize_str("".join("!" + chr(c) for c in points[k:k + 4096])):
                c = ord(piece)
                if runs and runs[-1] == c - 1:
                    runs[-1] = c
                else:
                    runs += [c, c]
        out[name] = runs
    return out


def vectors(folder: pathlib.Path, samples: list[str]) -> list[dict]:
    fast, slow = GPT2TokenizerFast.from_pretrained(folder), GPT2Tokenizer.from_pretrained(folder)
    out = []
    for text in samples:
        v = {"text": text, "ids": fast(text)["input_ids"]}
        other = slow(text)["input_ids"]
        if other != v["ids"]:
            v["slow_differs"] = True
            print(f"slow differs: {text!r}: {other} instead of {v['ids']}")
        out.append(v)
    return out


def dump(doc: dict) -> str:
    """JSON in ASCII with one vector per line, for readable diffs."""
    parts = []
    for key, value in doc.items():
        if isinstance(value, list):
            body = "[\n  " + ",\n  ".join(json.dumps(v) for v in value) + "\n ]"
        else:
            body = json.dumps(value)
        parts.append(f" {json.dumps(key)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--prompts", type=pathlib.Path, required=True)
    ap.add_argument("--out", type=pathlib.Path, required=True)
    ap.add_argument("--vocab", type=int, default=1000)
    args = ap.parse_args()
    found = {"transformers": transformers.__version__, "tokenizers": tokenizers.__version__}
    if found != VERSIONS:
        raise SystemExit(f"tokenizer_vectors: found {found}, the vectors are defined by {VERSIONS}; install requirements.txt")

    prompts = [s for p in sorted(args.prompts.glob("*.txt")) for s in p.read_text(encoding="utf-8").splitlines()]
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(prompts + EXTRA, vocab_size=args.vocab, min_frequency=2, special_tokens=SPECIAL, show_progress=False)
    opt, prefix = args.out / "opt", args.out / "prefix"
    opt.mkdir(parents=True, exist_ok=True)
    bpe.save_model(str(opt))
    files = [str(opt / "vocab.json"), str(opt / "merges.txt")]
    GPT2Tokenizer(*files, bos_token="</s>", eos_token="</s>", unk_token="</s>", pad_token="<pad>",
                  add_bos_token=True, add_prefix_space=False).save_pretrained(opt)
    GPT2Tokenizer(*files, bos_token="</s>", eos_token="</s>", unk_token="</s>", additional_special_tokens=["<|cut here|>"],
                  add_bos_token=False, add_prefix_space=True).save_pretrained(prefix)

    rng = random.Random(20)
    samples = texts(prompts, rng)
    fast = GPT2TokenizerFast.from_pretrained(opt)
    doc = {
        "reference": f"GPT2TokenizerFast, transformers {VERSIONS['transformers']}, tokenizers {VERSIONS['tokenizers']}",
        "opt": vectors(opt, samples),
        "prefix": vectors(prefix, samples[:150] + ["a<|cut here|>b", "<|cut here|> b", "\n<|cut here|>\n"]),
        "decode": [{"ids": ids, "text": fast.backend_tokenizer.decode(ids, skip_special_tokens=False)}
                   for ids in id_lists(len(fast), rng)],
        "newer": [{"text": s, "words": [s.encode()[a:b].decode() for a, b in byte_spans(fast, s)]} for s in NEWER],
        "classes": classes(),
    }
    (args.out / "vectors.json").write_text(dump(doc), encoding="ascii")
    print(f"{len(doc['opt'])} + {len(doc['prefix'])} texts, {len(doc['decode'])} id lists, vocabulary of {len(fast)}")
    for name in ("vocab.json", "merges.txt"):  # the second folder shares these: the tests join the two
        (prefix / name).unlink()


def byte_spans(fast, text: str):
    """Where the pre-tokenizer cuts, in bytes of UTF-8."""
    at = [len(text[:i].encode()) for i in range(len(text) + 1)]
    return [(at[a], at[b]) for _, (a, b) in fast.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)]


if __name__ == "__main__":
    main()
