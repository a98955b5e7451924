// What the products with SMMLA share. One instruction multiplies two rows of the matrix with two of activations, 8
// weights of each: twice the products of SDOT, if its operands lie in pairs. Weights are brought together once per 16
// rows of activations, activations once per super-block of a tile. Sums keep the order of the instruction to the end:
// (matrix row r, activations t), (r, t + 1), (r + 1, t), (r + 1, t + 1).
#pragma once

#include "kernels/neon/matmul_dots.h"

// Loops over pairs of rows: 8 vectors of weights stay in registers, and unrolled code would spill them.
#define STOKER_ROLL _Pragma("GCC unroll 1")

namespace stoker::kernels::neon_i8mm {
namespace {

using namespace neon;  // The same lanes and names; only the products differ.

constexpr int kRows = 16, kRowPairs = kRows / 2;  // Of activations in a tile.
constexpr int kParts = 16 / kWidth;

// Lanes t and t + 1 twice; lanes 0, 1 (half 0) or 2, 3 (half 1) each twice.
STOKER_INLINE Floats twice(const float* two) { return vcombine_f32(vld1_f32(two), vld1_f32(two)); }
STOKER_INLINE Ints twice(const int32_t* two) { return vcombine_s32(vld1_s32(two), vld1_s32(two)); }
STOKER_INLINE Floats spread(Floats v, int half) { return half == 0 ? vzip1q_f32(v, v) : vzip2q_f32(v, v); }
STOKER_INLINE Ints spread(Ints v, int half) { return half == 0 ? vzip1q_s32(v, v) : vzip2q_s32(v, v); }

// The bytes of a super-block of kRows rows, by 32, by pairs, by 8.
struct PairedBytes {
  alignas(64) int8_t at[8][kRowPairs][4][16];

  STOKER_INLINE void read(const int8_t* q) {
    for (int pair = 0; pair < kRowPairs; ++pair, q += 512) {
      STOKER_UNROLL for (int i = 0; i < 16; ++i) {
        const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(q + 16 * i));
        const int64x2_t b = vreinterpretq_s64_s8(vld1q_s8(q + 256 + 16 * i));
        vst1q_s8(at[i / 2][pair][i % 2 * 2], vreinterpretq_s8_s64(vzip1q_s64(a, b)));
        vst1q_s8(at[i / 2][pair][i % 2 * 2 + 1], vreinterpretq_s8_s64(vzip2q_s64(a, b)));
      }
    }
  }
};

// The pairs of `n` numbers of each row, by number.
template <int n, class Value>
struct PairedNumbers {
  Value at[n][kRowPairs][2];

  template <class From, class F>
  STOKER_INLINE void read(const From* from, F f) {
    for (int row = 0; row < kRows; ++row) {
      STOKER_UNROLL for (int i = 0; i < n; ++i) at[i][row / 2][row % 2] = f(from + row * n, i);
    }
  }
};

// 32 weights of 4 matrix rows as two pairs of rows, by 8.
struct PairedWeights {
  int8x16_t at[4][2];

  STOKER_INLINE explicit PairedWeights(const Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 4; ++i) {
      at[i][0] = vreinterpretq_s8_s32(vzip1q_s32(v[2 * i], v[2 * i + 1]));
      at[i][1] = vreinterpretq_s8_s32(vzip2q_s32(v[2 * i], v[2 * i + 1]));
    }
  }
};

// dots[half] + the products of 8 n weights from 8 begin on.
template <int n>
STOKER_INLINE void add_products(const PairedWeights& w, int begin, const int8_t (&a)[4][16], Ints (&dots)[2]) {
  STOKER_UNROLL for (int i = begin; i < begin + n; ++i) {
    const int8x16_t pair = vld1q_s8(a[i]);
    STOKER_UNROLL for (int half = 0; half < 2; ++half) dots[half] = vmmlaq_s32(dots[half], w.at[i][half], pair);
  }
}

// The sums of a tile: of every part of a group, every pair of rows, both halves.
struct Sums {
  Floats at[kParts][kRowPairs][2];

  STOKER_INLINE Sums() {
    for (auto& part : at) {
      STOKER_UNROLL for (int pair = 0; pair < kRowPairs; ++pair) part[pair][0] = part[pair][1] = floats(0);
    }
  }
  STOKER_INLINE void store_rows(const MatmulArgs& args, int64_t group, int64_t row) const {
    float* y = args.y + row * args.y_stride + group * 16;
    for (int part = 0; part < kParts; ++part) {
      STOKER_UNROLL for (int pair = 0; pair < kRowPairs; ++pair) {
        float* to = y + 2 * pair * args.y_stride + part * kWidth;
        store(to, vuzp1q_f32(at[part][pair][0], at[part][pair][1]));
        store(to + args.y_stride, vuzp2q_f32(at[part][pair][0], at[part][pair][1]));
      }
    }
  }
};

// Packed weights that the tiles go over again: they stay in the second-level cache.
constexpr int64_t kReuseBytes = 192 << 10;

// Whole tiles here, what remains with NEON.
template <class Tile, const MatmulKernels* kRest>
void many_rows(const MatmulArgs& args) noexcept {
  const int64_t reuse = args.group_bytes < kReuseBytes ? kReuseBytes / args.group_bytes : 1;
  const int64_t rest = args.row_begin + (args.row_end - args.row_begin) / kRows * kRows;
  for (int64_t begin = args.group_begin; begin < args.group_end; begin += reuse) {
    const int64_t end = begin + reuse < args.group_end ? begin + reuse : args.group_end;
    for (int64_t row = args.row_begin; row < rest; row += kRows) {
      for (int64_t g = begin; g < end; ++g) Tile::run(args, g, row);
    }
  }
  if (rest == args.row_end) return;
  MatmulArgs few = args;
  few.row_begin = rest;
  (few.row_end - rest == 1 ? kRest->one : kRest->few)(few);
}

}  // namespace
}  // namespace stoker::kernels::neon_i8mm
