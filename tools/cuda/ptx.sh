#!/bin/sh
# Makes kernels/cuda/kernels.ptx again, with NVIDIA's compiler from pinned wheels of PyPI (no toolkit, no GPU), and assembles it for some
# architectures as a check. The wheel of nvcc has its assembler but not nvcc itself; NVRTC is the same compiler as a library. Its version decides the PTX's:
# 12.0 makes PTX 8.0, which drivers from 525 on take.
#
#     tools/cuda/ptx.sh            compare only
#     tools/cuda/ptx.sh -update    write the file
set -eu
NVRTC=nvidia-cuda-nvrtc-cu12==12.0.140
PTXAS=nvidia-cuda-nvcc-cu12==12.6.85

cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "$NVRTC" "$PTXAS"
wheels=$(echo "$folder"/venv/lib/python3*/site-packages/nvidia)
WINDROW_NVRTC=$wheels/cuda_nvrtc/lib/libnvrtc.so.12 WINDROW_PTXAS=$wheels/cuda_nvcc/bin/ptxas \
	"${GO:-go}" test -count=1 -run '^TestPTX' -v ./kernels/cuda -args "$@"
