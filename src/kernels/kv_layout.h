// Where one value of K or V lies inside a tile of 64 positions. Plain constants: files of any instruction set may
// include this.
//
//   f16, f32   K [dim][64]          V [64][dim]
//   bf16       K [dim / 2][64][2]   V [32][dim][2]     dim padded with zeros to a multiple of 32
//   q8_0       K [dim][64]          V [64][dim]        int8; behind them f16 scales of blocks of 32 dimensions:
//              K [blocks][64]       V [64][blocks]     the last block of a head may be shorter
//
// Lanes are positions for the scores and dimensions for the values, so the sums of docs/kernels.md run in separate
// lanes and no horizontal sum exists. The pairs of bf16 are what the AMX instructions read.
#pragma once

#include <cstdint>

#include "kernels/args.h"

namespace stoker::kernels {

constexpr int kv_padded_dim(KvType type, int dim) { return type == KvType::kBf16 ? (dim + 31) / 32 * 32 : dim; }

constexpr int64_t kv_value_bytes(KvType type) { return type == KvType::kF32 ? 4 : type == KvType::kQ8_0 ? 1 : 2; }

/// q8_0: dimensions that share a scale, and the places of scales behind the values.
constexpr int kKvBlock = 32;
constexpr int kv_blocks(int dim) { return (dim + kKvBlock - 1) / kKvBlock; }
constexpr int64_t kv_scales_offset(int dim) { return kTilePositions * dim; }  ///< In bytes from the tile's start.
constexpr int64_t kv_k_scale_index(int d, int p) { return d / kKvBlock * kTilePositions + p; }
constexpr int64_t kv_v_scale_index(int dim, int d, int p) {
  return static_cast<int64_t>(p) * kv_blocks(dim) + d / kKvBlock;
}

/// Index of dimension `d` of position `p`; `padded` is kv_padded_dim of the head.
constexpr int64_t kv_k_index(KvType type, int d, int p) {
  if (type == KvType::kBf16) return (d / 2 * kTilePositions + p) * 2 + d % 2;
  return d * kTilePositions + p;
}
constexpr int64_t kv_v_index(KvType type, int padded, int d, int p) {
  if (type == KvType::kBf16) return (static_cast<int64_t>(p / 2) * padded + d) * 2 + p % 2;
  return static_cast<int64_t>(p) * padded + d;
}

/// The parts of a worker's scratch for attention, in floats from its start; each begins on a 64-byte line.
struct AttentionScratch {
  static constexpr int kQueries = 64;         ///< kMaxQueries.
  static constexpr int kPanelDims = 64;       ///< Dimensions of V expanded at a time.
  static constexpr int kPanelPositions = 32;  ///< Positions of K expanded at a time; later V's scales lie there.

  int64_t padded_k, padded_v;  ///< Dimensions rounded up to 32.
  int64_t q, k_panel, v_panel, scores, out, stats, total;
  // Where values are in keys: a tile in f32, one of selected positions in bf16, and weights and results with the
  // queries as lanes.
  int64_t tile, pairs, turned_weights, turned_out, latent_total;

  constexpr AttentionScratch(int k_dim, int v_dim)
      : padded_k((k_dim + 31) / 32 * 32),
        padded_v((v_dim + 31) / 32 * 32),
        q(0),
        k_panel(q + kQueries * padded_k),
        v_panel(k_panel + (padded_k > padded_v ? padded_k : padded_v) * kPanelPositions),
        scores(v_panel + kTilePositions * kPanelDims),
        out(scores + kQueries * kTilePositions),
        stats(out + kQueries * padded_v),
        total(stats + 8 * kQueries),
        tile(total),
        pairs(tile + kTilePositions * padded_k),
        turned_weights(pairs + kTilePositions * padded_k / 2),
        turned_out(turned_weights + kQueries * kTilePositions),
        latent_total(turned_out + kQueries * padded_v) {}
};

/// What some tiles give a few queries before the division, in floats from its start: the largest score, the sum of the
/// weights and the weighted values, [n_queries][padded_v]. A query that sees none of the tiles has the sum 0.
struct AttentionPart {
  int64_t padded_v, max, sum, values, total;

  constexpr AttentionPart(int n_queries, int v_dim)
      : padded_v((v_dim + 31) / 32 * 32),
        max(0),
        sum((n_queries + 15) / 16 * 16),
        values(2 * sum),
        total(values + n_queries * padded_v) {}
};

}  // namespace stoker::kernels
