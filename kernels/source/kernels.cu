// kernels.cu: everything that runs on the device, as one module.
#include "attention.h"
#include "ffn.h"
#include "masks.h"
#include "matvec.h"
#include "move.h"
#include "vectors.h"
