// The tile instructions of AMX-INT8 under plain names: eight registers of up to 16 rows of 64 bytes. Tiles belong to
// the thread. Nothing survives a call of another kernel: it configures at its entry and releases before it returns.
#pragma once

#include <cstdint>

namespace stoker::kernels::amx {
namespace {

/// What ldtilecfg reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

#define STOKER_TILE inline __attribute__((always_inline)) void

}  // namespace
}  // namespace stoker::kernels::amx

// The tests build these kernels a second time, for machines without AMX.
#ifdef STOKER_EMULATED
#include "kernels/amx/tiles_emulated.h"
#else

namespace stoker::kernels::amx {
namespace {

// Assembler, not intrinsics: those of g++ 12 for the configuration declare 8 of its 64 bytes as read, so that the
// others are optimized away. Volatile, as the compiler does not know that the tiles hang together.
STOKER_TILE tile_config(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
STOKER_TILE tile_release() { asm volatile("tilerelease" : :); }

template <int kTile>
STOKER_TILE tile_zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

/// Rows `stride` bytes apart.
template <int kTile>
STOKER_TILE tile_load(const void* p, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
STOKER_TILE tile_store(void* p, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
}

/// C[m][n] += sum over k and i < 4 of A[m][4 k + i] * B[k][4 n + i], 32-bit lanes of C. The letters say whether the
/// bytes of A and of B have a sign.
template <int kC, int kA, int kB>
STOKER_TILE tile_dpbssd() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}
template <int kC, int kA, int kB>
STOKER_TILE tile_dpbsud() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}
template <int kC, int kA, int kB>
STOKER_TILE tile_dpbusd() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}
template <int kC, int kA, int kB>
STOKER_TILE tile_dpbuud() {
  asm volatile("tdpbuud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}

}  // namespace
}  // namespace stoker::kernels::amx

#endif
