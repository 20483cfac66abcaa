// kernels.metal: everything that runs on the device. All but port.h is in kernels/source.
#include "port.h"
#include "attention.h"
#include "ffn.h"
#include "masks.h"
#include "matvec.h"
#include "move.h"
#include "vectors.h"
