// From a tile (one group of 16 matrix rows times up to 8 activation rows) to the three kernels of a type.
//
// A tile keeps everything in registers from the first weight to the last: weights are decoded once per tile, each
// multiplied with all its activation rows, and the f32 sums are written once. Nothing is expanded in memory, so one
// row and many rows run the same code; 8 rows hide the decoding.
#pragma once

#include "kernels/avx512/vec.h"

namespace stoker::kernels::avx512 {
namespace {

using TileFn = void (*)(const MatmulArgs& args, int64_t group, int64_t row) noexcept;
constexpr int64_t kTileRows = 8;
// Packed weights that the tiles of many rows go over again: they stay in the second-level cache.
constexpr int64_t kReuseBytes = 192 << 10;

// Family<Type>::tile<N> computes rows row ... row + N - 1 of one group.
template <class Family>
void one_row(const MatmulArgs& args) noexcept {
  for (int64_t g = args.group_begin; g < args.group_end; ++g) Family::template tile<1>(args, g, args.row_begin);
}

template <class Family>
void any_rows(const MatmulArgs& args) noexcept {
  static constexpr TileFn kTiles[kTileRows] = {
      Family::template tile<1>, Family::template tile<2>, Family::template tile<3>, Family::template tile<4>,
      Family::template tile<5>, Family::template tile<6>, Family::template tile<7>, Family::template tile<8>};
  const int64_t n_rows = args.row_end - args.row_begin;
  const int64_t n_tiles = (n_rows + kTileRows - 1) / kTileRows;
  const int64_t reuse = args.group_bytes < kReuseBytes ? kReuseBytes / args.group_bytes : 1;
  for (int64_t g0 = args.group_begin; g0 < args.group_end; g0 += reuse) {
    const int64_t g1 = g0 + reuse < args.group_end ? g0 + reuse : args.group_end;
    for (int64_t i = 0; i < n_tiles; ++i) {
      // Tiles of nearly equal size: 9 rows are 4 and 5, for a tile of one row costs as much decoding as one of 8.
      const int64_t begin = n_rows * i / n_tiles, end = n_rows * (i + 1) / n_tiles;
      for (int64_t g = g0; g < g1; ++g) kTiles[end - begin - 1](args, g, args.row_begin + begin);
    }
  }
}

template <class Family>
constexpr MatmulKernels kernels_of() {
  return {one_row<Family>, any_rows<Family>, any_rows<Family>};
}

STOKER_INLINE const uint8_t* group_start(const MatmulArgs& args, int64_t group) {
  return reinterpret_cast<const uint8_t*>(args.w) + group * args.group_bytes;
}

template <int N>
STOKER_INLINE void store_rows(const MatmulArgs& args, int64_t group, int64_t row, const Floats (&sums)[N]) {
  STOKER_UNROLL for (int t = 0; t < N; ++t) store(args.y + (row + t) * args.y_stride + group * 16, sums[t]);
}

}  // namespace
}  // namespace stoker::kernels::avx512
