#!/usr/bin/env python3
"""Makes the expected texts of chat templates with transformers.

    python make.py own ../../engine/chat/testdata          # our own templates, committed
    python make.py published TEMPLATES OUT.json            # a folder of *.jinja that is not ours

Each template is rendered for every conversation of testdata/conversations.json, as apply_chat_template does it. What
Python refuses is recorded with its message.
"""

import datetime
import json
import pathlib
import sys

import jinja2
import transformers
from transformers.utils import chat_template_utils as utils

VERSIONS = {"transformers": "4.57.6", "jinja2": "3.1.6"}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
NOW = datetime.datetime(2026, 1, 5, 7, 8, 9)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def render(source: str, conversation: dict) -> dict:
    kwargs = conversation.get("chat_template_kwargs", {})
    try:
        template = utils._compile_jinja_template(source)
        return {"text": template.render(messages=conversation["messages"], tools=conversation.get("tools") or None, documents=None,
                                        add_generation_prompt=conversation.get("add_generation_prompt", True), **TOKENS, **kwargs)}
    except jinja2.exceptions.TemplateError as e:
        return {"error": str(e)}
    except Exception as e:  # None iterated and the like
        return {"error": f"{type(e).__name__}: {e}"}


def main() -> None:
    found = {"transformers": transformers.__version__, "jinja2": jinja2.__version__}
    if found != VERSIONS:
        raise SystemExit(f"versions {found}, the texts are made with {VERSIONS}")
    utils.datetime = Clock
    own = pathlib.Path(__file__).resolve().parents[2] / "engine/chat/testdata"
    conversations = json.loads((own / "conversations.json").read_text())
    folder = own if sys.argv[1] == "own" else pathlib.Path(sys.argv[2])
    out = {"reference": VERSIONS, "templates": {}}
    templates = sorted(folder.glob("*.jinja"))
    if not templates:
        raise SystemExit(f"no templates in {folder}")
    for path in templates:
        source = path.read_text()
        rendered = {name: render(source, c) for name, c in conversations.items()}
        out["templates"][path.name] = rendered if sys.argv[1] == "own" else {"source": source, "rendered": rendered}
    target = own / "expected.json" if sys.argv[1] == "own" else pathlib.Path(sys.argv[3])
    target.write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")
    texts = [r for t in out["templates"].values() for r in (t if sys.argv[1] == "own" else t["rendered"]).values()]
    print(f"{len(out['templates'])} templates, {len(texts)} renders, {sum('error' in r for r in texts)} refused by Python")


if __name__ == "__main__":
    main()
