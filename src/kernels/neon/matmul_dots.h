// The integer products with SDOT: signed weights (or 0 ... 63, above them by Type::kOffset) times signed activations.
// The sums start at -kOffset * (sum of the activations), which takes the offset out again. SDOT does not saturate; one
// of its operands is 4 bytes of a vector of activations, so that one load serves four products.
#pragma once

#include "kernels/neon/matmul_simd.h"

namespace stoker::kernels::neon {
namespace {

// Weights that have a sign keep it.
constexpr int kRaise = 0;
STOKER_INLINE Ints raise(Ints v) { return v; }

// How a tile of N rows is cut: the dot products of so many rows run side by side, to hide their latency.
template <int N>
constexpr int kStep = N >= 8 ? 8 : N;

// Factors of two sub-blocks as halves of a lane, and c + the products of these halves.
STOKER_INLINE Ints pair(Ints low, Ints high) {
  return vreinterpretq_s32_s16(vtrn1q_s16(vreinterpretq_s16_s32(low), vreinterpretq_s16_s32(high)));
}
STOKER_INLINE Ints dot2(Ints c, Ints x, Ints y) {
  // The halves of y are the same in all lanes.
  const int16x8_t factors = vreinterpretq_s16_s32(x), sums = vreinterpretq_s16_s32(y);
  const int16x8_t even = vuzp1q_s16(factors, factors), odd = vuzp2q_s16(factors, factors);
  c = vmlal_laneq_s16(c, vget_low_s16(even), sums, 0);
  return vmlal_laneq_s16(c, vget_low_s16(odd), sums, 1);
}

#include "kernels/vec/matmul_sums.inc.h"

// Adds to dots[t] the products of 16 weights from v on and the activations in a[t].
template <int kCount, int kLane = 0>
STOKER_INLINE void add_words(const Ints* v, const int8x16_t (&a)[kCount], Ints (&dots)[kCount]) {
  if constexpr (kLane < 4) {
    STOKER_UNROLL for (int t = 0; t < kCount; ++t) {
      dots[t] = vdotq_laneq_s32(dots[t], vreinterpretq_s8_s32(v[kLane]), a[t], kLane);
    }
    add_words<kCount, kLane + 1>(v, a, dots);
  }
}

// Adds to dots[t] the products of 4 n weights from v on and of kCount rows of activations, 256 bytes apart.
template <int kCount, int n>
STOKER_INLINE void add_dots(const Ints* v, const int8_t* q, Ints (&dots)[kCount]) {
  STOKER_UNROLL for (int i = 0; i < n; i += 4) {
    int8x16_t a[kCount];
    STOKER_UNROLL for (int t = 0; t < kCount; ++t) a[t] = vld1q_s8(q + t * 256 + 4 * i);
    add_words(v + i, a, dots);
  }
}

// Adds the sums of a block of 32 for kStep<N> rows.
template <class Type, int N>
STOKER_INLINE void dots_32(const Ints (&v)[8], const int8_t* q, Ints (&dots)[kStep<N>]) {
  add_dots<kStep<N>, 8>(v, q, dots);
}

// What the dots of the sub-blocks start from, one row after the other: -kOffset * (sum of the activations).
template <class Type, int N>
struct Starts {
  static constexpr int kPerRow = Type::kOffset == 0 ? 1 : 16;
  int32_t values[N][kPerRow];

  STOKER_INLINE explicit Starts(const int16_t* sums) {
    static_assert(Type::kOffset == 0 || Type::kSubs == 16);
    if constexpr (Type::kOffset != 0) {
      STOKER_UNROLL for (int t = 0; t < N; ++t) {
        eight_times(sums + t * 16, -Type::kOffset, values[t]);
        eight_times(sums + t * 16 + 8, -Type::kOffset, values[t] + 8);
      }
    }
  }

  STOKER_INLINE Ints of(int row, int sub) const { return Type::kOffset == 0 ? ints(0) : word_of(&values[row][sub]); }
};

// How totals_256 keeps a sub-scale.
STOKER_INLINE Ints factor_of(Ints scale) { return scale; }

// Adds factor * dot of sub-block `sub` of the block, whose weights are from v on; q is that of these weights.
template <class Type, int N>
STOKER_INLINE void add_dots_256(const Ints* v, int sub, Ints factor, const int8_t* q, const Starts<Type, N>& starts,
                                Ints (&totals)[N]) {
  STOKER_UNROLL for (int first = 0; first < N; first += kStep<N>) {
    Ints dots[kStep<N>];
    STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) dots[t] = starts.of(first + t, sub);
    add_dots<kStep<N>, 64 / Type::kSubs>(v, q + first * 256, dots);
    STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) totals[first + t] = vmlaq_s32(totals[first + t], dots[t], factor);
  }
}

template <class Type, int N>
STOKER_INLINE void finish_totals_256(const uint8_t*, const int16_t*, Ints (&)[N]) {}

}  // namespace
}  // namespace stoker::kernels::neon
