// The matrix products of the scalar set; they define the bits that every other set must give.
#pragma once

#include "kernels/args.h"

namespace stoker::kernels::scalar {

/// 32-blocks with a float scale and A32: for blocks j ascending acc = fma(d * da, I, acc), with minimum
/// acc = fma(da, fma(d, I, m * S), acc). I = sum of q * a, exact; S = sum of a.
template <class Type>
void matmul_b(const MatmulArgs& args) noexcept;

/// 256-blocks with integer sub-scales and A256: for blocks s ascending acc = fma(da, t, acc), where t = d * I, with
/// minimum t = fma(d, I, -(dmin * M)). I = sum of scale * q * a, M = sum of min * a, both exact.
template <class Type>
void matmul_k(const MatmulArgs& args) noexcept;

/// F32, F16 and BF16 with f32 activations: for k ascending acc = fma(w, x, acc).
template <class Type>
void matmul_f(const MatmulArgs& args) noexcept;

}  // namespace stoker::kernels::scalar
