// What the tile products of both block sizes share. A tile of activations (A) is 16 rows, a tile of weights (B) the
// lines of a group as R16 has them or as they are decoded, and the products (C) have activations as rows and the 16
// rows of the group as lanes. Sums of floats wait in scratch, one line per row of activations and group, while the
// super-blocks pass.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/avx512/matmul_dots.h"

namespace stoker::kernels::amx {
namespace {

using namespace avx512;  // NOLINT(google-build-using-namespace): all vectors here are of that set.

constexpr int kTileRows = 16;          // Rows of activations in a tile.
constexpr int kPanelGroups = 2;        // Groups that share a pass over the activations.
constexpr int64_t kMostRows = 1024;    // In such a pass: their sums take half of scratch.
constexpr int64_t kActivations = 256;  // Bytes from one row of activations to the next.

struct alignas(64) Product {
  int32_t sums[kTileRows][16];
};
struct alignas(64) Line {
  float lanes[16];
};

/// Rows [begin, begin + n) of the activations, n >= 16, as tiles. The last one overlaps the one before where n is no
/// multiple of 16: the same rows are computed twice, to the same bits.
struct RowTiles {
  int64_t begin, n;
  STOKER_INLINE int64_t count() const { return (n + kTileRows - 1) / kTileRows; }
  STOKER_INLINE int64_t row(int64_t tile) const {
    const int64_t at = tile * kTileRows;
    return begin + (at < n - kTileRows ? at : n - kTileRows);
  }
};

/// The sums of a pass.
struct Sums {
  Line lines[kPanelGroups][kMostRows];

  STOKER_INLINE void clear(int n_groups, const RowTiles& tiles) {
    for (int g = 0; g < n_groups; ++g) {
      for (int64_t i = 0; i < tiles.count() * kTileRows; ++i) store(lines[g][i].lanes, floats(0));
    }
  }
  STOKER_INLINE float* of(int group, int64_t tile) { return lines[group][tile * kTileRows].lanes; }
  STOKER_INLINE void write(const MatmulArgs& args, int64_t group, int n_groups, const RowTiles& tiles) const {
    for (int64_t tile = 0; tile < tiles.count(); ++tile) {
      for (int i = 0; i < kTileRows; ++i) {
        float* y = args.y + (tiles.row(tile) + i) * args.y_stride + group * 16;
        for (int g = 0; g < n_groups; ++g) store(y + g * 16, load_floats(lines[g][tile * kTileRows + i].lanes));
      }
    }
  }
};

/// Fetches `n` lines from p on into the first-level cache.
template <int n>
STOKER_INLINE void prefetch_near(const int8_t* p) {
  STOKER_UNROLL for (int i = 0; i < n; ++i) _mm_prefetch(p + i * kLineBytes, _MM_HINT_T0);
}

/// Fetches the weights of the next super-block of all groups of a panel, evenly spread over the steps of this one.
struct Ahead {
  const uint8_t* from[kPanelGroups];
  int n_groups;
  int64_t n_lines, per_step, done = 0;

  STOKER_INLINE void step() {
    const int64_t end = done + per_step < n_lines ? done + per_step : n_lines;
    for (; done < end; ++done) {
      for (int g = 0; g < n_groups; ++g) prefetch(from[g] + done * kLineBytes);
    }
  }
};

/// Calls pass(group, n_groups, tiles) for panels of groups and for rows, so many at a time that the sums fit; `few`
/// gets what is less than a tile.
template <class Pass>
STOKER_INLINE void for_panels(const MatmulArgs& args, const TileConfig& config, MatmulFn few, Pass pass) {
  const int64_t n = args.row_end - args.row_begin;
  if (n < kTileRows) return few(args);
  const int64_t n_passes = (n + kMostRows - 1) / kMostRows;
  tile_config(config);
  for (int64_t group = args.group_begin; group < args.group_end; group += kPanelGroups) {
    const int n_groups = group + kPanelGroups <= args.group_end ? kPanelGroups : 1;
    for (int64_t i = 0; i < n_passes; ++i) {
      const int64_t begin = args.row_begin + n * i / n_passes, end = args.row_begin + n * (i + 1) / n_passes;
      pass(group, n_groups, RowTiles{begin, end - begin});
    }
  }
  tile_release();
}

// Weights as signed bytes.
template <class Type>
STOKER_INLINE Ints with_sign(Ints v) {
  return Type::kOffset == 0 ? v : _mm512_sub_epi8(v, bytes(Type::kOffset));
}

}  // namespace
}  // namespace stoker::kernels::amx
