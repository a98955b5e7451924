// The tile instructions in plain C++, as Intel's manual (volume 2, chapter on AMX) defines them, faults included: what
// the processor refuses stops the program. Only the tests build this.
#pragma once

#include <cstring>

namespace stoker::kernels::amx {
namespace {

struct Tile {
  uint8_t bytes[16][64];
};
struct TileState {
  bool configured = false;
  TileConfig config;
  Tile tiles[8];
};
thread_local TileState tile_state;

inline void fault_unless(bool legal) {
  if (!legal) __builtin_trap();
}

inline int rows_of(int tile) { return tile_state.config.rows[tile]; }
inline int row_bytes_of(int tile) { return tile_state.config.row_bytes[tile]; }
inline void need_tile(int tile) { fault_unless(tile_state.configured && rows_of(tile) != 0); }

STOKER_TILE tile_config(const TileConfig& config) {
  fault_unless(config.palette == 1 && config.start_row == 0);
  for (uint8_t byte : config.reserved) fault_unless(byte == 0);
  for (int i = 0; i < 16; ++i) {
    fault_unless(config.rows[i] <= 16 && config.row_bytes[i] <= 64);
    fault_unless((config.rows[i] == 0) == (config.row_bytes[i] == 0));
    fault_unless(i < 8 || config.rows[i] == 0);
  }
  tile_state.configured = true;
  tile_state.config = config;
  std::memset(tile_state.tiles, 0, sizeof tile_state.tiles);
}

STOKER_TILE tile_release() {
  tile_state.configured = false;
  std::memset(tile_state.tiles, 0xee, sizeof tile_state.tiles);
}

template <int kTile>
STOKER_TILE tile_zero() {
  need_tile(kTile);
  std::memset(&tile_state.tiles[kTile], 0, sizeof(Tile));
}

template <int kTile>
STOKER_TILE tile_load(const void* p, int64_t stride) {
  tile_zero<kTile>();
  for (int row = 0; row < rows_of(kTile); ++row) {
    const void* from = static_cast<const char*>(p) + row * stride;
    std::memcpy(tile_state.tiles[kTile].bytes[row], from, static_cast<size_t>(row_bytes_of(kTile)));
  }
}

template <int kTile>
STOKER_TILE tile_store(void* p, int64_t stride) {
  need_tile(kTile);
  for (int row = 0; row < rows_of(kTile); ++row) {
    void* to = static_cast<char*>(p) + row * stride;
    std::memcpy(to, tile_state.tiles[kTile].bytes[row], static_cast<size_t>(row_bytes_of(kTile)));
  }
}

// ByteA, ByteB: int8_t or uint8_t.
template <class ByteA, class ByteB>
__attribute__((noinline)) void tile_product(int c, int a, int b) {
  need_tile(a);
  need_tile(b);
  need_tile(c);
  fault_unless(c != a && c != b && a != b);
  fault_unless(row_bytes_of(a) % 4 == 0 && row_bytes_of(c) % 4 == 0);
  fault_unless(rows_of(c) == rows_of(a) && row_bytes_of(c) == row_bytes_of(b) && row_bytes_of(a) / 4 == rows_of(b));
  Tile sums{};  // What lies beyond the tile becomes zero.
  for (int m = 0; m < rows_of(c); ++m) {
    for (int n = 0; n < row_bytes_of(c) / 4; ++n) {
      uint32_t sum;  // Wraps around.
      std::memcpy(&sum, &tile_state.tiles[c].bytes[m][4 * n], sizeof sum);
      for (int k = 0; k < rows_of(b); ++k) {
        for (int i = 0; i < 4; ++i) {
          const int x = static_cast<ByteA>(tile_state.tiles[a].bytes[m][4 * k + i]);
          const int y = static_cast<ByteB>(tile_state.tiles[b].bytes[k][4 * n + i]);
          sum += static_cast<uint32_t>(x * y);
        }
      }
      std::memcpy(&sums.bytes[m][4 * n], &sum, sizeof sum);
    }
  }
  tile_state.tiles[c] = sums;
}

template <int kC, int kA, int kB>
STOKER_TILE tile_dpbssd() {
  tile_product<int8_t, int8_t>(kC, kA, kB);
}
template <int kC, int kA, int kB>
STOKER_TILE tile_dpbsud() {
  tile_product<int8_t, uint8_t>(kC, kA, kB);
}
template <int kC, int kA, int kB>
STOKER_TILE tile_dpbusd() {
  tile_product<uint8_t, int8_t>(kC, kA, kB);
}
template <int kC, int kA, int kB>
STOKER_TILE tile_dpbuud() {
  tile_product<uint8_t, uint8_t>(kC, kA, kB);
}

}  // namespace
}  // namespace stoker::kernels::amx
