/* A feed-forward layer of experts once more, serial, obvious and in double. */
#ifndef KERNELS_MOE_FFN_REFERENCE_H
#define KERNELS_MOE_FFN_REFERENCE_H

#include "core/kernel.h"

/* Row t of the result: the sum, over the choices of token t that there is room for, of their weight times their
 * expert's row.  Rows of TENSOR_GATE_UP stand expert behind expert, 2 * inter each in the order that the SwiGLU
 * epilogue wants (core/program.h); of TENSOR_DOWN, hidden each.  docs/ffn-bound.md derives the tolerance. */
extern const struct bounded_check reference_moe_ffn;

#endif
