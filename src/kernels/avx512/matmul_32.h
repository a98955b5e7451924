// Types of 32-blocks, activations with one scale per 32 values:
//   sum = fma(d * da, f32(I), sum)                              for blocks in ascending order
//   sum = fma(da, fma(d, f32(I), m * f32(S)), sum)              with a minimum; S is the sum of the activations
//
// A type says how its lines become bytes:
//   kLines, kHeader    lines and header bytes per block of 16 rows
//   kOffset            decoded bytes are this much above the weights, to be unsigned
//   kHasMin
//   decode(lines, v)   v[i]: weights 4 i ... 4 i + 3 of the 16 rows
//   scale(lines, header), min(lines)
#pragma once

#include "kernels/avx512/matmul_rows.h"

namespace stoker::kernels::avx512 {
namespace {

// The activations of one block of N rows, 256 values (8 scales, 8 sums) from one row to the next.
struct Block32 {
  const int8_t* q;
  const float* scales;
  const int16_t* sums;
};

// Integer sums of kStep<N> rows from row `first` on.
template <class Type, int N>
STOKER_INLINE void dots_32(const Ints (&v)[8], const Block32& x, int first, Ints (&dots)[kStep<N>]) {
  STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) dots[t] = ints(-Type::kOffset * x.sums[(first + t) * 8]);
  STOKER_UNROLL for (int i = 0; i < 8; ++i) {
    STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) {
      dots[t] = dot4(dots[t], v[i], word_of(x.q + (first + t) * 256 + 4 * i));
    }
  }
}

template <class Type, int N>
STOKER_INLINE void add_block_32(const uint8_t* lines, const uint8_t* header, const Block32& x, Floats (&sums)[N]) {
  Ints v[8];
  Type::decode(lines, v);
  const Floats d = Type::scale(lines, header);
  STOKER_UNROLL for (int first = 0; first < N; first += kStep<N>) {
    Ints dots[kStep<N>];
    dots_32<Type, N>(v, x, first, dots);
    STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) {
      const int row = first + t;
      const Floats da = floats(x.scales[row * 8]);
      if constexpr (Type::kHasMin) {
        const Floats s = floats(static_cast<float>(x.sums[row * 8]));
        sums[row] = fma(da, fma(d, to_floats(dots[t]), mul(Type::min(lines), s)), sums[row]);
      } else {
        sums[row] = fma(mul(d, da), to_floats(dots[t]), sums[row]);
      }
    }
  }
}

template <class Type>
struct Family32 {
  template <int N>
  static void tile(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const Activations& x = *args.x;
    const int64_t n_blocks = args.k / 32;
    const uint8_t* lines = group_start(args, group);
    const uint8_t* header = lines + n_blocks * Type::kLines * kLine;
    Floats sums[N];
    STOKER_UNROLL for (int t = 0; t < N; ++t) sums[t] = floats(0);
    for (int64_t s = 0; s * 8 < n_blocks; ++s) {
      const int64_t at = s * x.n + row;
      const int here = n_blocks - 8 * s < 8 ? static_cast<int>(n_blocks - 8 * s) : 8;
      for (int j = 0; j < here; ++j) {
        STOKER_UNROLL for (int i = 0; i < Type::kLines; ++i) prefetch(lines + i * kLine + kPrefetchBytes);
        // Headers are a stream of their own: fetch those of the next group.
        if (Type::kHeader > 0 && j * Type::kHeader % kLine == 0) prefetch(header + args.group_bytes);
        const Block32 block{x.q32 + at * 256 + 32 * j, x.d32 + at * 8 + j, x.sums32 + at * 8 + j};
        add_block_32<Type, N>(lines, header, block, sums);
        lines += Type::kLines * kLine;
        header += Type::kHeader;
      }
    }
    store_rows(args, group, row, sums);
  }
};

// Four lines of nibbles: values 0 ... 15 are the low ones, 16 ... 31 the high ones.
STOKER_INLINE void split_nibbles(const uint8_t* lines, Ints (&v)[8]) {
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    const Ints x = load(lines + i * kLine);
    v[i] = both(x, bytes(15));
    v[i + 4] = both(bits_down(x, 4), bytes(15));
  }
}

// Adds 16 to weight k where bit k of the row's word `bits` is set.
STOKER_INLINE void add_fifth_bits(Ints bits, Ints (&v)[8]) {
  const Ints first_byte = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
  STOKER_UNROLL for (int i = 0; i < 8; ++i) {
    const Ints copies = _mm512_shuffle_epi8(bits, _mm512_add_epi8(first_byte, bytes(i / 2)));
    const __mmask64 set = _mm512_test_epi8_mask(copies, ints(i % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010)));
    v[i] = _mm512_mask_add_epi8(v[i], set, v[i], bytes(16));
  }
}

}  // namespace
}  // namespace stoker::kernels::avx512
