// Float weights, activations as they are: sum = fma(w, x, sum) for k ascending from 0.
//
// A type says where the weights k and k + 1 of 16 rows lie: even(w), odd(w), and kPairBytes for the two.
#pragma once

#include "kernels/avx512/matmul_rows.h"

namespace stoker::kernels::avx512 {
namespace {

template <class Type>
struct FamilyFloat {
  template <int N>
  static void tile(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const uint8_t* w = group_start(args, group);
    const int64_t stride = args.x->f32_stride;
    const float* x = args.x->f32 + row * stride;
    Floats sums[N];
    STOKER_UNROLL for (int t = 0; t < N; ++t) sums[t] = floats(0);
    int64_t k = 0;
    for (; k + 2 <= args.k; k += 2) {
      STOKER_UNROLL for (int i = 0; i < Type::kPairBytes; i += kLine) prefetch(w + i + kPrefetchBytes);
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
};

}  // namespace
}  // namespace stoker::kernels::avx512
