// The matrix products of this instruction set; floats and packing are those of AVX2.
#pragma once

#include "kernels/args.h"

namespace stoker::kernels::avxvnni {

extern const MatmulKernels kMatmulQ4_0, kMatmulQ4_1, kMatmulQ5_0, kMatmulQ5_1, kMatmulQ8_0, kMatmulIq4Nl, kMatmulMxfp4;
extern const MatmulKernels kMatmulQ2K, kMatmulQ3K, kMatmulQ4K, kMatmulQ5K, kMatmulQ6K, kMatmulIq4Xs;

}  // namespace stoker::kernels::avxvnni
