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

// Family::tile<N, kAhead> computes rows row ... row + N - 1 of one group, and with kAhead fetches the next group
// meanwhile; Family::one is the kernel for a single row.
template <class Family>
constexpr TileFn kTiles[kTileRows] = {Family::template tile<1, true>, Family::template tile<2, true>,
                                      Family::template tile<3, true>, Family::template tile<4, true>,
                                      Family::template tile<5, true>, Family::template tile<6, true>,
                                      Family::template tile<7, true>, Family::template tile<8, true>};

template <class Family>
void rows_of_groups(const MatmulArgs& args, int64_t group_begin, int64_t group_end) {
  int64_t row = args.row_begin;
  for (; args.row_end - row > 2 * kTileRows; row += kTileRows) {
    for (int64_t g = group_begin; g < group_end; ++g) Family::template tile<8, false>(args, g, row);
  }
  // The rest in tiles of equal size: 9 rows are 4 and 5, for a tile of one row costs as much decoding as one of 8.
  const int64_t rest = args.row_end - row;
  for (int64_t n_tiles = (rest + kTileRows - 1) / kTileRows, i = 0; i < n_tiles; ++i) {
    const int64_t begin = rest * i / n_tiles, end = rest * (i + 1) / n_tiles;
    for (int64_t g = group_begin; g < group_end; ++g) kTiles<Family>[end - begin - 1](args, g, row + begin);
  }
}

template <class Family>
void any_rows(const MatmulArgs& args) noexcept {
  const int64_t reuse = args.group_bytes < kReuseBytes ? kReuseBytes / args.group_bytes : 1;
  for (int64_t g = args.group_begin; g < args.group_end; g += reuse) {
    rows_of_groups<Family>(args, g, g + reuse < args.group_end ? g + reuse : args.group_end);
  }
}

template <class Family>
constexpr MatmulKernels kernels_of() {
  return {Family::one, any_rows<Family>, any_rows<Family>};
}

STOKER_INLINE const uint8_t* group_start(const MatmulArgs& args, int64_t group) {
  return reinterpret_cast<const uint8_t*>(args.w) + group * args.group_bytes;
}

// Fetches the next n bytes of the group that comes after, while this one is computed: for several rows the pauses
// between reads are too long for the processor's own prefetcher.
template <int n>
STOKER_INLINE void prefetch_ahead(const uint8_t*& p) {
  STOKER_UNROLL for (int i = 0; i < n; i += kLine) prefetch(p + i);
  p += n;
}

template <int N>
STOKER_INLINE void store_rows(const MatmulArgs& args, int64_t group, int64_t row, const Floats (&sums)[N]) {
  STOKER_UNROLL for (int t = 0; t < N; ++t) store(args.y + (row + t) * args.y_stride + group * 16, sums[t]);
}

}  // namespace
}  // namespace stoker::kernels::avx512
