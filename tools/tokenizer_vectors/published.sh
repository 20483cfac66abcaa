#!/bin/sh
# published.sh FLAGS: compares published tokenizers and chat templates with their references.
# Everything that it fetches stays in a temporary folder. FLAGS are those of `go test`, without its
# tags.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
"$work/venv/bin/python" "$here/published.py" --prompts "$here/../../examples/prompts" \
    --out "$work/tokenizers"
# the source of this package has llama.cpp's vocabularies
"$work/venv/bin/pip" download --quiet --no-binary :all: --no-deps --dest "$work" \
    llama-cpp-python==0.3.36
mkdir "$work/llama"
tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work/llama" --strip-components=2
python3 -m venv "$work/chat"
"$work/chat/bin/pip" install --quiet --requirement "$here/../chat_templates/requirements.txt"
"$work/chat/bin/python" "$here/../chat_templates/make.py" published \
    "$work/llama/llama.cpp/models/templates" "$work/chats.json"
cd "$here/../.."
# shellcheck disable=SC2086
go test $1 -tags=giouring,published -count=1 -v -run TestPublished ./engine/tokenizer \
    -published "$work/tokenizers"
# shellcheck disable=SC2086
go test $1 -tags=giouring,published -count=1 -v -run TestPublished ./engine/session \
    -vocabularies "$work/llama/llama.cpp/models"
# shellcheck disable=SC2086
go test $1 -tags=giouring,published -count=1 -v -run TestPublished ./engine/chat \
    -chats "$work/chats.json"
