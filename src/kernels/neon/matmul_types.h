// The matrix products and packers of this instruction set.
#pragma once

#include "kernels/args.h"

namespace stoker::kernels::neon {

extern const MatmulKernels kMatmulF32, kMatmulF16, kMatmulBf16;
extern const MatmulKernels kMatmulQ4_0, kMatmulQ4_1, kMatmulQ5_0, kMatmulQ5_1, kMatmulQ8_0, kMatmulIq4Nl, kMatmulMxfp4;
extern const MatmulKernels kMatmulQ2K, kMatmulQ3K, kMatmulQ4K, kMatmulQ5K, kMatmulQ6K, kMatmulIq4Xs;

extern const PackFn kPackF32, kPackF16, kPackBf16;
extern const PackFn kPackQ4_0, kPackQ4_1, kPackQ5_0, kPackQ5_1, kPackQ8_0, kPackIq4Nl, kPackMxfp4;
extern const PackFn kPackQ2K, kPackQ3K, kPackQ4K, kPackQ5K, kPackQ6K, kPackIq4Xs;

}  // namespace stoker::kernels::neon
