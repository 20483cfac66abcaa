// kernels.cc is the device's code, compiled for the host.
#define WINDROW_STANDIN
#include "kernels.cu"
