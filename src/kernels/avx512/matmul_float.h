// Float weights, activations as they are: sum = fma(w, x, sum) for k ascending from 0.
//
// A type says where the weights k and k + 1 of 16 rows lie: even(w), odd(w), and kPairBytes for the two.
#pragma once

#include "kernels/avx512/matmul_rows.h"

namespace stoker::kernels::avx512 {
namespace {

template <class Type>
struct FamilyFloat {
  template <int N, bool kAhead>
  static void tile(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const uint8_t* w = group_start(args, group);
    const uint8_t* ahead = w + args.group_bytes;
    const int64_t stride = args.x->f32_stride;
    const float* x = args.x->f32 + row * stride;
    Floats sums[N];
    STOKER_UNROLL for (int t = 0; t < N; ++t) sums[t] = floats(0);
    int64_t k = 0;
    for (; k + 2 <= args.k; k += 2) {
      if (kAhead) prefetch_ahead<Type::kPairBytes>(ahead);
      const Floats even = Type::even(w), odd = Type::odd(w);
      STOKER_UNROLL for (int t = 0; t < N; ++t) {
        sums[t] = fma(even, floats(x[t * stride + k]), sums[t]);
        sums[t] = fma(odd, floats(x[t * stride + k + 1]), sums[t]);
      }
      w += Type::kPairBytes;
    }
    if (k < args.k) {
      STOKER_UNROLL for (int t = 0; t < N; ++t) sums[t] = fma(Type::even(w), floats(x[t * stride + k]), sums[t]);
    }
    store_rows(args, group, row, sums);
  }

  static void one(const MatmulArgs& args) noexcept {
    for (int64_t g = args.group_begin; g < args.group_end; ++g) tile<1, false>(args, g, args.row_begin);
  }
};

}  // namespace
}  // namespace stoker::kernels::avx512
