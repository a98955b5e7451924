// The matrix products of this instruction set: many rows of the types of integers. All else is that of AVX-512.
#pragma once

#include "kernels/args.h"

namespace stoker::kernels::amx {

extern const MatmulFn kManyQ4_0, kManyQ4_1, kManyQ5_0, kManyQ5_1, kManyQ8_0, kManyIq4Nl, kManyMxfp4;
extern const MatmulFn kManyQ2K, kManyQ3K, kManyQ4K, kManyQ5K, kManyQ6K, kManyIq4Xs;

}  // namespace stoker::kernels::amx
