// The products of many rows that this instruction set has of its own; all others are those of neon/.
#pragma once

#include "kernels/args.h"

namespace stoker::kernels::neon_i8mm {

extern const MatmulFn kManyQ4_0, kManyQ4_1, kManyQ5_0, kManyQ5_1, kManyQ8_0, kManyIq4Nl, kManyMxfp4;
extern const MatmulFn kManyQ2K, kManyQ3K, kManyQ4K, kManyQ5K, kManyQ6K, kManyIq4Xs;

}  // namespace stoker::kernels::neon_i8mm
