// The matrix products of this instruction set: several rows of the types of integers. All else is that of AVX-512.
#pragma once

#include "kernels/args.h"

namespace stoker::kernels::amx {

struct TileKernels {
  MatmulFn few, many;
};
extern const TileKernels kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kIq4Nl, kMxfp4;
extern const TileKernels kQ2K, kQ3K, kQ4K, kQ5K, kQ6K, kIq4Xs;

}  // namespace stoker::kernels::amx
