"""Random blocks of every quantised type: gguf has no quantiser for most of them."""

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

# Where the float16 scales and offsets lie in a block.
HALVES = {
    T.Q4_0: (0,), T.Q4_1: (0, 2), T.Q5_0: (0,), T.Q5_1: (0, 2), T.Q8_0: (0,), T.IQ4_NL: (0,),
    T.MXFP4: (), T.Q2_K: (80, 82), T.Q3_K: (108,), T.Q4_K: (0, 2), T.Q5_K: (0, 2), T.Q6_K: (208,),
    T.IQ4_XS: (0,),
}
SCALES = [1.5, -0.25, 0.001, 65504, -65504, 6e-8, 6.1e-5, 0.0, -0.0]


def random_blocks(kind, shape, rng):
    """Returns the stored bytes of a tensor: (rows, bytes)."""
    rows, columns = shape
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (rows * columns // elements, size), dtype=np.uint8)
    for i, at in enumerate(HALVES[kind]):
        finite = rng.integers(0, 1 << 16, len(blocks)).astype("<u2")
        finite = np.where(finite & 0x7C00 == 0x7C00, finite ^ 0x4000, finite).view("<f2")
        known = np.roll(np.array(SCALES, dtype="<f2"), i)[:len(blocks)]
        finite[:len(known)] = known
        blocks[:, at:at + 2] = finite.reshape(-1, 1).view(np.uint8)
    if kind == T.MXFP4:  # every exponent
        blocks[:, 0] = np.arange(len(blocks), dtype=np.uint8)
    return blocks.reshape(rows, -1)
