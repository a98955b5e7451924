// The integer products with AVX2. vpmaddubsw adds two products of unsigned and signed bytes and saturates at 16 bits:
//   Weights with a sign: |w| times the activation with the sign of w. Two products are at most 2 * 128 * 127 = 32512,
//   for w = -128 too, because activations are never -128. (Raised to 0 ... 255 they would reach 64770.) Weights 0 ...
//   kMax: so many sums of two products are added in 16 bits as fit, 8 for 4-bit weights, 2 for 6-bit ones.
// Then vpmaddwd widens: its factors are 1, or the sub-scale of a 256-block, which costs nothing more.
#pragma once

#include "kernels/avx2/matmul_simd.h"

namespace stoker::kernels::avx2 {
namespace {

// Weights that have a sign keep it.
constexpr int kRaise = 0;
STOKER_INLINE Ints raise(Ints v) { return v; }

// The rows of a tile go one after the other: their products have no chain that others would have to hide.
template <int N>
constexpr int kStep = 1;

template <class Type>
constexpr int most_sums() {
  if (Type::kMax == 0) return 1;
  const int fit = 32767 / (2 * 127 * Type::kMax);
  return fit >= 8 ? 8 : fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
}

// c + the products of the two signed halves of every lane.
STOKER_INLINE Ints dot2(Ints c, Ints x, Ints y) { return add(c, _mm256_madd_epi16(x, y)); }
// Halves for dot2.
STOKER_INLINE Ints pair(Ints low, Ints high) { return _mm256_blend_epi16(low, shift_left(high, 16), 0xaa); }

#include "kernels/vec/matmul_sums.inc.h"

template <class Type>
STOKER_INLINE Ints products(Ints v, Ints a) {
  if constexpr (Type::kMax == 0) return _mm256_maddubs_epi16(_mm256_abs_epi8(v), _mm256_sign_epi8(a, v));
  return _mm256_maddubs_epi16(v, a);
}

// total + factor * (products of 4 n weights from v on and activations from q on); factors are pairs of 16 bits.
template <class Type, int n>
STOKER_INLINE Ints add_dot(Ints total, const Ints* v, const int8_t* q, Ints factor) {
  constexpr int kRun = most_sums<Type>() < n ? most_sums<Type>() : n;
  STOKER_UNROLL for (int i = 0; i < n; i += kRun) {
    Ints sums = products<Type>(v[i], word_of(q + 4 * i));
    STOKER_UNROLL for (int j = i + 1; j < i + kRun; ++j) {
      sums = _mm256_add_epi16(sums, products<Type>(v[j], word_of(q + 4 * j)));
    }
    total = dot2(total, sums, factor);
  }
  return total;
}

// Adds the sum of a block of 32 for one row.
template <class Type, int N>
STOKER_INLINE void dots_32(const Ints (&v)[8], const int8_t* q, Ints (&dots)[kStep<N>]) {
  dots[0] = add_dot<Type, 8>(dots[0], v, q, _mm256_set1_epi16(1));
}

// The dots of the sub-blocks start from 0 here: the offset is taken out of the total.
template <class Type, int N>
struct Starts {
  STOKER_INLINE explicit Starts(const int16_t*) {}
};

// How totals_256 keeps a sub-scale.
STOKER_INLINE Ints factor_of(Ints scale) { return pair(scale, scale); }

// Adds factor * dot of a sub-block, whose weights are from v on; the offset stays in. q is that of these weights.
template <class Type, int N>
STOKER_INLINE void add_dots_256(const Ints* v, int, Ints factor, const int8_t* q, const Starts<Type, N>&,
                                Ints (&totals)[N]) {
  STOKER_UNROLL for (int t = 0; t < N; ++t) {
    totals[t] = add_dot<Type, 64 / Type::kSubs>(totals[t], v, q + t * 256, factor);
  }
}

// Takes the offset out: kOffset * scale * (sum of the activations).
template <class Type, int N>
STOKER_INLINE void finish_totals_256(const uint8_t* lines, const int16_t* sums, Ints (&totals)[N]) {
  if constexpr (Type::kOffset != 0) {
    Ints pairs[kPairs<Type>];
    pair_up<Type>([&](int j) { return Type::sub_scale(lines, j); }, pairs);
    STOKER_UNROLL for (int t = 0; t < N; ++t) {
      totals[t] = add(totals[t], mul(weigh_sums<Type>(pairs, sums + t * 16), ints(-Type::kOffset)));
    }
  }
}

}  // namespace
}  // namespace stoker::kernels::avx2
