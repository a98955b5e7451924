// What the tile products of both block sizes share. A tile of activations (A) is 16 rows, a tile of weights (B) the
// lines of a group as R16 has them or as they are decoded, and the products (C) have activations as rows and the 16
// rows of the group as lanes. Sums of floats wait in scratch, one line per row of activations and group, while the
// super-blocks pass.
//
// Tiles 0, 1 and 2, 3 are two sets of products that take turns: while one adds up, the other, finished, is stored, and
// what was stored before that is scaled. So no instruction waits for the one before it.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/avx512/matmul_dots.h"

namespace stoker::kernels::amx {
namespace {

using namespace avx512;  // NOLINT(google-build-using-namespace): all vectors here are of that set.

constexpr int kTileRows = 16;          // Rows of activations in a tile.
constexpr int64_t kActivations = 256;  // Bytes from one row of activations to the next.
constexpr int64_t kSumLines = 2048;    // In scratch: half of it.
constexpr int64_t kLeastRows = 9;      // Fewer are as fast with AVX-512, and so are 16 of 32-blocks (docs/kernels.md).

struct alignas(64) Product {
  int32_t sums[kTileRows][16];
};
struct alignas(64) Line {
  float lanes[16];
};

/// Rows [begin, begin + n) of the activations as tiles. Where n is no multiple of 16 the last one overlaps the one
/// before: the same rows are computed twice, to the same bits. Less than 16 rows are one tile of so many.
struct RowTiles {
  int64_t begin, n;
  STOKER_INLINE int64_t count() const { return (n + kTileRows - 1) / kTileRows; }
  STOKER_INLINE int rows() const { return n < kTileRows ? static_cast<int>(n) : kTileRows; }
  STOKER_INLINE int64_t row(int64_t tile) const {
    const int64_t at = tile * kTileRows;
    return begin + (at < n - kTileRows ? at : n - rows());
  }
};

/// The sums of a pass: of `kGroups` groups that share it.
template <int kGroups>
struct Sums {
  static constexpr int64_t kMostRows = kSumLines / kGroups;
  Line lines[kGroups][kMostRows];

  STOKER_INLINE void clear(int n_groups, const RowTiles& tiles) {
    for (int g = 0; g < n_groups; ++g) {
      for (int64_t i = 0; i < tiles.count() * kTileRows; ++i) store(lines[g][i].lanes, floats(0));
    }
  }
  STOKER_INLINE float* of(int group, int64_t tile) { return lines[group][tile * kTileRows].lanes; }
  STOKER_INLINE void write(const MatmulArgs& args, int64_t group, int n_groups, const RowTiles& tiles) const {
    for (int64_t tile = 0; tile < tiles.count(); ++tile) {
      for (int i = 0; i < tiles.rows(); ++i) {
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
  const uint8_t* from = nullptr;
  int64_t group_bytes = 0;
  int n_groups = 0;
  int64_t n_lines = 0, per_step = 0, done = 0;

  STOKER_INLINE void step() {
    const int64_t end = done + per_step < n_lines ? done + per_step : n_lines;
    for (int g = 0; g < n_groups; ++g) {
      for (int64_t i = done; i < end; ++i) prefetch(from + g * group_bytes + i * kLineBytes);
    }
    done = end;
  }
};

constexpr int kTurns = 3;  // What belongs to a step of a set of tiles is read until two steps later.
STOKER_INLINE int next_turn(int turn) { return turn == kTurns - 1 ? 0 : turn + 1; }

/// Runs a Pass<Type, kFull>(args, group, n_groups, tiles) for each panel of up to kGroups groups and for rows, so many
/// at a time that the sums fit. kFull: there are 16 rows and more, and all tiles have 16 of them. `config` has tiles of
/// 16 rows.
template <template <class, bool> class Pass, class Type, bool kFull, int kGroups>
STOKER_INLINE void run_panels(const MatmulArgs& args, TileConfig config) {
  const int64_t n = args.row_end - args.row_begin;
  if constexpr (!kFull) {
    for (int i = 0; i < 5; ++i) config.rows[i] = static_cast<uint8_t>(n);  // products and activations
  }
  tile_config(config);
  const int64_t most = Sums<kGroups>::kMostRows, n_passes = (n + most - 1) / most;
  for (int64_t group = args.group_begin; group < args.group_end; group += kGroups) {
    const int64_t left = args.group_end - group;
    const int n_groups = left < kGroups ? static_cast<int>(left) : kGroups;
    for (int64_t i = 0; i < n_passes; ++i) {
      const int64_t begin = args.row_begin + n * i / n_passes, end = args.row_begin + n * (i + 1) / n_passes;
      Pass<Type, kFull>(args, group, n_groups, {begin, end - begin}).run();
    }
  }
  tile_release();
}

}  // namespace
}  // namespace stoker::kernels::amx
