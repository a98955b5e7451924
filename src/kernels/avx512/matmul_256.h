// Types of 256-blocks with integer sub-scales, activations with one scale per 256 values:
//   I = sum over sub-blocks of scale * dot,  M = sum of minimum * (sum of the activations)    exact integers
//   sum = fma(da, fma(d, f32(I), -(dmin * f32(M))), sum)        without minimum: fma(da, d * f32(I), sum)
//
// A type says how its lines become bytes:
//   kLines, kHeader   lines and header bytes per block of 16 rows
//   kSubs             8 sub-blocks of 32 or 16 of 16
//   kOffset           decoded bytes are this much above the weights, to be unsigned
//   kHasMin
//   kJumps            decode does not go through the lines in ascending order
//   kPeriod           decode is called with part = 0 ... 8 / kPeriod - 1 and, unrolled, c = 0 ... kPeriod - 1
//   decode(lines, part, c, v)   weights 32 (part * kPeriod + c) + 4 i ... of the 16 rows in v[i]
//   sub_scale(lines, j), sub_min(lines, j)    as integers
//   scale(lines, header), min(lines)          d and dmin
#pragma once

#include "kernels/avx512/matmul_rows.h"

namespace stoker::kernels::avx512 {
namespace {

// The activations of one block of N rows, 256 values (16 sums, 1 scale) from one row to the next.
struct Block256 {
  const int8_t* q;
  const float* scales;
  const int16_t* sums;
};

// Adds scale * dot of the sub-blocks in the 32 weights v, which are chunk `chunk` of the block.
template <class Type, int N>
STOKER_INLINE void add_chunk_256(const Ints (&v)[8], int chunk, const int32_t (*scales)[16], const Block256& x,
                                 Ints (&totals)[N]) {
  constexpr int kSubsHere = Type::kSubs / 8, kWords = 8 / kSubsHere;
  STOKER_UNROLL for (int first = 0; first < N; first += kStep<N>) {
    STOKER_UNROLL for (int sub = 0; sub < kSubsHere; ++sub) {
      const Ints scale = load(scales[chunk * kSubsHere + sub]);
      Ints dots[kStep<N>];
      STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) {
        const int16_t* sums = x.sums + (first + t) * 16 + 2 * chunk;
        const int sum = kSubsHere == 2 ? sums[sub] : sums[0] + sums[1];
        dots[t] = ints(-Type::kOffset * sum);
      }
      STOKER_UNROLL for (int i = sub * kWords; i < (sub + 1) * kWords; ++i) {
        STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) {
          dots[t] = dot4(dots[t], v[i], word_of(x.q + (first + t) * 256 + 32 * chunk + 4 * i));
        }
      }
      STOKER_UNROLL for (int t = 0; t < kStep<N>; ++t) totals[first + t] = add(totals[first + t], mul(dots[t], scale));
    }
  }
}

// The minimums that go with sums 2 p and 2 p + 1 of 16 activations, in the low and the high half of every lane.
template <class Type>
STOKER_INLINE void min_pairs(const uint8_t* lines, Ints (&pairs)[8]) {
  STOKER_UNROLL for (int p = 0; p < 8; ++p) {
    const Ints low = Type::sub_min(lines, Type::kSubs == 8 ? p : 2 * p);
    const Ints high = Type::kSubs == 8 ? low : Type::sub_min(lines, 2 * p + 1);
    pairs[p] = either(low, shift_left(high, 16));
  }
}

// Sum over the sub-blocks of scale * dot. `ahead` moves on by a block.
template <class Type, int N, bool kAhead>
STOKER_INLINE void totals_256(const uint8_t* lines, const Block256& x, const uint8_t*& ahead, Ints (&totals)[N]) {
  if (Type::kJumps) {
    STOKER_UNROLL for (int i = 0; i < Type::kLines; ++i) touch(lines + i * kLine);
  }
  alignas(64) int32_t scales[Type::kSubs][16];
  STOKER_UNROLL for (int j = 0; j < Type::kSubs; ++j) store(scales[j], Type::sub_scale(lines, j));
  STOKER_UNROLL for (int t = 0; t < N; ++t) totals[t] = ints(0);
  for (int part = 0; part < 8 / Type::kPeriod; ++part) {
    STOKER_UNROLL for (int c = 0; c < Type::kPeriod; ++c) {
      if (kAhead) prefetch_ahead<(Type::kLines * kLine + Type::kHeader) / 8>(ahead);
      Ints v[8];
      Type::decode(lines, part, c, v);
      add_chunk_256<Type, N>(v, part * Type::kPeriod + c, scales, x, totals);
    }
  }
}

// d * f32(I) or fma(d, f32(I), -(dmin * f32(M))), times da, added to the sums.
template <class Type, int N>
STOKER_INLINE void scale_totals_256(const uint8_t* lines, const uint8_t* header, const Block256& x,
                                    const Ints (&totals)[N], Floats (&sums)[N]) {
  const Floats d = Type::scale(lines, header);
  if constexpr (Type::kHasMin) {
    Ints pairs[8];
    min_pairs<Type>(lines, pairs);
    STOKER_UNROLL for (int t = 0; t < N; ++t) {
      Ints m = ints(0);
      STOKER_UNROLL for (int p = 0; p < 8; ++p) m = dot2(m, pairs[p], word_of(x.sums + t * 16 + 2 * p));
      const Floats value = fma_minus(d, to_floats(totals[t]), mul(Type::min(lines), to_floats(m)));
      sums[t] = fma(floats(x.scales[t]), value, sums[t]);
    }
  } else {
    STOKER_UNROLL for (int t = 0; t < N; ++t) {
      sums[t] = fma(floats(x.scales[t]), mul(d, to_floats(totals[t])), sums[t]);
    }
  }
}

template <class Type>
struct Family256 {
  static constexpr int kBlockBytes = Type::kLines * kLine;

  template <int N, bool kAhead>
  static void tile(const MatmulArgs& args, int64_t group, int64_t row) noexcept {
    const int64_t n_blocks = args.k / 256;
    const uint8_t* lines = group_start(args, group);
    const uint8_t* header = lines + n_blocks * kBlockBytes;
    const uint8_t* ahead = lines + args.group_bytes;
    Floats sums[N];
    STOKER_UNROLL for (int t = 0; t < N; ++t) sums[t] = floats(0);
    for (int64_t s = 0; s < n_blocks; ++s) {
      const Block256 block = activations(args, s, row);
      Ints totals[N];
      totals_256<Type, N, kAhead>(lines, block, ahead, totals);
      scale_totals_256<Type, N>(lines, header, block, totals, sums);
      lines += kBlockBytes;
      header += Type::kHeader;
    }
    store_rows(args, group, row, sums);
  }

  // One row is a question of memory speed, and that of reading in one ascending stream (see docs/kernels.md): the
  // headers behind the lines wait for their turn, the integer sums meanwhile for the headers.
  static void one(const MatmulArgs& args) noexcept {
    const int64_t n_blocks = args.k / 256;
    const bool totals_fit = n_blocks * kLine <= kMatmulScratchBytes;
    for (int64_t g = args.group_begin; g < args.group_end; ++g) {
      if (Type::kHeader == 0 || !totals_fit) {
        tile<1, false>(args, g, args.row_begin);
      } else {
        one_group(args, g);
      }
    }
  }

 private:
  static STOKER_INLINE Block256 activations(const MatmulArgs& args, int64_t s, int64_t row) {
    const int64_t at = s * args.x->n + row;
    return {args.x->q256 + at * 256, args.x->d256 + at, args.x->sums256 + at * 16};
  }

  static STOKER_INLINE void one_group(const MatmulArgs& args, int64_t group) {
    const int64_t n_blocks = args.k / 256;
    const uint8_t* lines = group_start(args, group);
    const uint8_t* ahead = nullptr;
    auto* waiting = reinterpret_cast<int32_t*>(args.scratch);
    for (int64_t s = 0; s < n_blocks; ++s) {
      Ints totals[1];
      totals_256<Type, 1, false>(lines, activations(args, s, args.row_begin), ahead, totals);
      store(waiting + 16 * s, totals[0]);
      lines += kBlockBytes;
    }
    Floats sums[1] = {floats(0)};
    for (int64_t s = 0; s < n_blocks; ++s) {
      const Ints totals[1] = {load(waiting + 16 * s)};
      scale_totals_256<Type, 1>(nullptr, lines + s * Type::kHeader, activations(args, s, args.row_begin), totals, sums);
    }
    store_rows(args, group, args.row_begin, sums);
  }
};

// Byte b of every lane as a number; its low and high nibble.
STOKER_INLINE Ints byte_of(Ints v, int b) { return both(shift_right(v, 8 * b), ints(255)); }
STOKER_INLINE Ints nibble_of(Ints v, int n) { return both(shift_right(v, 4 * n), ints(15)); }

// The 6-bit scales and minimums that Q4_K and Q5_K share, in lines 1 to 3; the lower four of each lie whole in line 1
// (scales) and 2 (minimums), the upper four have their low nibbles in line 3 and their two high bits in the other.
STOKER_INLINE Ints six_bits(Ints whole, Ints nibbles, int j, bool is_min) {
  if (j < 4) return both(byte_of(whole, j), ints(63));
  return either(nibble_of(nibbles, 2 * (j - 4) + is_min), both(shift_right(byte_of(whole, j - 4), 2), ints(0x30)));
}
STOKER_INLINE Ints six_bit_scale(const uint8_t* lines, int j) {
  return six_bits(load(lines + kLine), load(lines + 3 * kLine), j, false);
}
STOKER_INLINE Ints six_bit_min(const uint8_t* lines, int j) {
  return six_bits(load(lines + 2 * kLine), load(lines + 3 * kLine), j, true);
}

}  // namespace
}  // namespace stoker::kernels::avx512
