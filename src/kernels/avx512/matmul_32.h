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
  static constexpr int kBlockBytes = Type::kLines * kLine;

  template <int N, bool kAhead>
  static void tile(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const Activations& x = *args.x;
    const int64_t n_blocks = args.k / 32;
    const uint8_t* lines = group_start(args, group);
    const uint8_t* header = lines + n_blocks * kBlockBytes;
    const uint8_t* ahead = lines + args.group_bytes;
    Floats sums[N];
    STOKER_UNROLL for (int t = 0; t < N; ++t) sums[t] = floats(0);
    for (int64_t s = 0; s * 8 < n_blocks; ++s) {
      const Block32 block = super_block(x, s, row);
      const int here = n_blocks - 8 * s < 8 ? static_cast<int>(n_blocks - 8 * s) : 8;
      for (int j = 0; j < here; ++j) {
        if (kAhead) prefetch_ahead<kBlockBytes + Type::kHeader>(ahead);
        add_block_32<Type, N>(lines, header, {block.q + 32 * j, block.scales + j, block.sums + j}, sums);
        lines += kBlockBytes;
        header += Type::kHeader;
      }
    }
    store_rows(args, group, row, sums);
  }

  // One row is a question of memory speed, and that of reading in one ascending stream (see docs/kernels.md): the
  // headers behind the lines wait for their turn, the integer sums meanwhile for the headers.
  static void one(const MatmulArgs& args) noexcept {
    const int64_t n_blocks = args.k / 32;
    const bool sums_fit = n_blocks * kLine <= kMatmulScratchBytes;
    for (int64_t g = args.group_begin; g < args.group_end; ++g) {
      if (Type::kHeader == 0 || !sums_fit) {
        tile<1, false>(args, g, args.row_begin);
      } else {
        const uint8_t* header = dots_of_group(args, g);
        scale_dots(args, g, header);
      }
    }
  }

 private:
  static STOKER_INLINE Block32 super_block(const Activations& x, int64_t s, int64_t row) {
    const int64_t at = s * x.n + row;
    return {x.q32 + at * 256, x.d32 + at * 8, x.sums32 + at * 8};
  }

  // f32(I) of all blocks of one row and one group to scratch; returns the end of the lines.
  static STOKER_INLINE const uint8_t* dots_of_group(const MatmulArgs& args, int64_t group) {
    const int64_t n_blocks = args.k / 32;
    const uint8_t* lines = group_start(args, group);
    auto* out = reinterpret_cast<float*>(args.scratch);
    for (int64_t s = 0; s * 8 < n_blocks; ++s) {
      const Block32 block = super_block(*args.x, s, args.row_begin);
      const int here = n_blocks - 8 * s < 8 ? static_cast<int>(n_blocks - 8 * s) : 8;
      for (int j = 0; j < here; ++j) {
        Ints v[8], dot[1];
        Type::decode(lines, v);
        dots_32<Type, 1>(v, {block.q + 32 * j, block.scales + j, block.sums + j}, 0, dot);
        store(out, to_floats(dot[0]));
        out += 16;
        lines += kBlockBytes;
      }
    }
    return lines;
  }

  static STOKER_INLINE void scale_dots(const MatmulArgs& args, int64_t group, const uint8_t* header) {
    const int64_t n_blocks = args.k / 32;
    const auto* dots = reinterpret_cast<const float*>(args.scratch);
    Floats sums[1] = {floats(0)};
    for (int64_t s = 0; s * 8 < n_blocks; ++s) {
      const float* scales = super_block(*args.x, s, args.row_begin).scales;
      const int here = n_blocks - 8 * s < 8 ? static_cast<int>(n_blocks - 8 * s) : 8;
      for (int j = 0; j < here; ++j) {
        sums[0] = fma(mul(Type::scale(nullptr, header), floats(scales[j])), _mm512_load_ps(dots), sums[0]);
        dots += 16;
        header += Type::kHeader;
      }
    }
    store_rows(args, group, args.row_begin, sums);
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
