#!/bin/sh
# published.sh FLAGS: compares published tokenizers with their references. Everything that it fetches stays in a
# temporary folder. FLAGS are those of `go test`, with the build tags last.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
"$work/venv/bin/python" "$here/published.py" --prompts "$here/../../examples/prompts" --out "$work/tokenizers"
# the source of this package has llama.cpp's vocabularies
"$work/venv/bin/pip" download --quiet --no-binary :all: --no-deps --dest "$work" llama-cpp-python==0.3.36
mkdir "$work/llama"
tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work/llama" --strip-components=3
cd "$here/../.."
# shellcheck disable=SC2086
go test $1 -tags=giouring,published -count=1 -v -run TestPublished ./engine/tokenizer -published "$work/tokenizers"
# shellcheck disable=SC2086
go test $1 -tags=giouring,published -count=1 -v -run TestPublished ./engine/session \
    -vocabularies "$work/llama/llama.cpp/models"
