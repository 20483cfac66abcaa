#!/bin/sh
# Runs the tests of kernels/cuda with the driver over gorgonia.org/cu (build tag cuda), linked to the stand-in in place of NVIDIA's library. CUDA's
# headers come from a pinned wheel of PyPI. The stand-in has only the symbols that are called, so the others stay open.
set -eu
HEADERS=nvidia-cuda-runtime-cu12==12.6.77

cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "$HEADERS"
library=$("${GO:-go}" test -count=1 -run '^TestFacts$' -v ./kernels/cuda | sed -n 's/.*emulated device: //p')
ln -s "$library" "$folder/libcuda.so"
ln -s "$library" "$folder/libcuda.so.1"
CGO_ENABLED=1 CGO_CFLAGS=-I$(echo "$folder"/venv/lib/python3*/site-packages/nvidia/cuda_runtime/include) \
	CGO_LDFLAGS="-L$folder -Wl,--unresolved-symbols=ignore-all" LD_LIBRARY_PATH=$folder \
	"${GO:-go}" test -count=1 -tags cuda "$@" ./kernels/cuda
