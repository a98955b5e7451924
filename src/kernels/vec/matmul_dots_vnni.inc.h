// The integer products with VNNI: unsigned weights (raised by Type::kOffset) times signed activations. The sums start
// at -kOffset * (sum of the activations), which takes the raise out again. vpdpbusd does not saturate.
//
// An instruction set says: dot4(c, u, s) and dot2(c, x, y), c + the products of the bytes (without and with a sign) and
// of the signed halves of every lane; dot4_word(c, u, p), dot4 with the 4 bytes at p in every lane; pair;
// sixteen_times(sums, x, out).

// Weights that have a sign are raised by 128.
constexpr int kRaise = 128;
STOKER_INLINE Ints raise(Ints v) { return flip(v, bytes(0x80)); }

// How a tile of N rows is cut: the dot products of so many rows run side by side, to hide their latency.
template <int N>
constexpr int kStep = N >= 8 ? 4 : N;

#include "kernels/vec/matmul_sums.inc.h"

// Adds to dots[t] the products of 4 n weights from v on and of kCount rows of activations, 256 bytes apart.
template <int kCount, int n>
STOKER_INLINE void add_dots(const Ints* v, const int8_t* q, Ints (&dots)[kCount]) {
  STOKER_UNROLL for (int i = 0; i < n; ++i) {
    STOKER_UNROLL for (int t = 0; t < kCount; ++t) { dots[t] = dot4(dots[t], v[i], word_of(q + t * 256 + 4 * i)); }
  }
}

// Adds the sums of a block of 32 for kStep<N> rows.
template <class Type, int N>
STOKER_INLINE void dots_32(const Ints (&v)[8], const int8_t* q, Ints (&dots)[kStep<N>]) {
  if constexpr (N < 8) return add_dots<kStep<N>, 8>(v, q, dots);
  // The form that broadcasts by itself gains 5 % here, but makes the compiler spill in smaller tiles and in 256-blocks.
  STOKER_UNROLL for (int i = 0; i < 8; ++i) {
    STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) dots[t] = dot4_word(dots[t], v[i], q + t * 256 + 4 * i);
  }
}

// What the dots of the sub-blocks start from, one row after the other: -kOffset * (sum of the activations).
template <class Type, int N>
struct Starts {
  static constexpr int kPerRow = Type::kOffset == 0 ? 0 : Type::kSubs;
  alignas(64) int32_t values[N][kPerRow == 0 ? 1 : kPerRow];

  STOKER_INLINE explicit Starts(const int16_t* sums) {
    if constexpr (Type::kOffset != 0) {
      STOKER_UNROLL for (int t = 0; t < N; ++t) {
        if constexpr (Type::kSubs == 16) {
          sixteen_times(sums + t * 16, -Type::kOffset, values[t]);
        } else {
          const __m256i row = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + t * 16));
          const __m256i pair_sums = _mm256_madd_epi16(row, _mm256_set1_epi16(-Type::kOffset));
          _mm256_store_si256(reinterpret_cast<__m256i*>(values[t]), pair_sums);
        }
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
    STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) totals[first + t] = add(totals[first + t], mul(dots[t], factor));
  }
}

template <class Type, int N>
STOKER_INLINE void finish_totals_256(const uint8_t*, const int16_t*, Ints (&)[N]) {}
