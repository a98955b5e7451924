// The arguments of all kernels: plain structs, so that files built for one instruction set can include this header
// without instantiating a function that the linker might keep for every CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::kernels {

/// Rows of activations, quantized once and read by every matrix that takes them. `n` rows of `k` values; a super-block
/// is 256 values, the last one of a row padded with zeros (value 0, scale 0); ns = ceil(k / 256). Super-block-major:
/// entry (s, row) of a table with m values per super-block sits at (s * n + row) * m.
struct Activations {
  int64_t n;
  int64_t k;
  const float* f32;    ///< [n][f32_stride]: the values themselves, for F32, F16 and BF16 weights.
  int64_t f32_stride;  ///< At least k.
  const int8_t* q256;  ///< [ns][n][256], one scale per super-block ("A256", for the K-quants). Null when not wanted.
  const float* d256;   ///< [ns][n]
  const int16_t* sums256;  ///< [ns][n][16]: sums of q256 over 16 consecutive values.
  const int8_t* q32;  ///< [ns][n][256], one scale per 32 values ("A32", for types of 32-blocks). Null when not wanted.
  const float* d32;   ///< [ns][n][8]
  const int16_t* sums32;  ///< [ns][n][8]: sums of q32 over 32 consecutive values.
};

/// What a quantizer writes: the tables of Activations for rows [row_begin, row_end) of x.
struct QuantizeArgs {
  const float* x;  ///< [n][stride]
  int64_t stride;
  int64_t n, k;
  int64_t row_begin, row_end;
  int8_t* q;      ///< q256 or q32
  float* d;       ///< d256 or d32
  int16_t* sums;  ///< sums256 or sums32
  uint8_t* bad;   ///< [n]: set to 1 for rows that hold a value that is not finite; others are left alone. May be null.
};

/// y[row][16 g + lane] = sum over k of w[16 g + lane][k] * x[row][k], in the order of docs/kernels.md.
/// Rows of the matrix come in groups of 16 ("R16"); the last group is padded with zero rows, so y has room for whole
/// groups.
struct MatmulArgs {
  /// What a worker reads in several calls one after the other; this one's groups are a part of it.
  struct Run {
    const std::byte *begin, *end;
  };
  const std::byte* w;   ///< Group 0 of the matrix, 64-byte aligned.
  int64_t group_bytes;  ///< From one group to the next, a multiple of 64.
  int64_t k;
  int64_t group_begin, group_end;
  const Activations* x;
  int64_t row_begin, row_end;
  float* y;                     ///< 64-byte aligned.
  int64_t y_stride;             ///< From one row to the next, in floats, a multiple of 16.
  std::byte* scratch;           ///< Of this worker, kMatmulScratchBytes, 64-byte aligned.
  const Run* spread = nullptr;  ///< Few rows: fetch ahead of it in several pages at once (MatmulKernels::spread).
};
using MatmulFn = void (*)(const MatmulArgs&) noexcept;
inline constexpr int64_t kMatmulScratchBytes = 256 << 10;

/// One matrix type on one instruction set. The bits do not depend on which of the three is called.
struct MatmulKernels {
  MatmulFn one = nullptr;   ///< Exactly one row.
  MatmulFn few = nullptr;   ///< 2 to 16 rows.
  MatmulFn many = nullptr;  ///< Any number of rows; built for 17 and more.
  bool spread = false;      ///< Whether MatmulArgs::spread pays on this processor.
};

enum class KvType : int { kF16 = 0, kBf16 = 1, kF32 = 2, kQ8_0 = 3 };
inline constexpr int kKvTypes = 4;
inline constexpr int64_t kTilePositions = 64;  ///< Positions per attention tile and per KV page.

/// One query head of one token. Sees positions [begin, end).
struct AttentionQuery {
  const float* q;  ///< [k_dim]
  float* out;      ///< [v_dim]
  int64_t begin, end;
  const float* sink;  ///< The head's sink logit, or null.
  /// ALiBi: what a score loses for each position between the key and the query's own, below 2^24.
  float slope = 0;
  int64_t position = 0;
};

/// Queries that read the same K and V: the heads of a group, and in prefill also neighbouring tokens of the sequence.
/// Tile t of a KV head covers positions 64 t ... 64 t + 63; its K tile starts at pages[t] + k_offset, its V tile at
/// pages[t] + v_offset (64-byte aligned). f16 and f32: K [k_dim][64], V [64][v_dim]. bf16: K [k_dim/2][64][2], V
/// [32][v_dim][2] (dimensions padded to multiples of 32). q8_0: as f16 but int8, then the scales. Positions at or
/// beyond a query's end may hold anything, NaN included.
struct AttentionArgs {
  KvType type;
  int k_dim, v_dim;  ///< Multiples of 8.
  float scale;       ///< Multiplies the score.
  float softcap;     ///< 0: none.
  /// V of a position is the first v_dim dimensions of its K, v_dim a multiple of 16; v_offset is not read.
  bool values_in_keys = false;
  /// With values_in_keys: the positions that the queries see, ascending. Then begin, end and tiles count in this list:
  /// tile t is its entries 64 t ... 64 t + 63, and what is cached lies as rows, V tiles of k_dim.
  const int32_t* selected = nullptr;
  const AttentionQuery* queries;
  int n_queries;
  const std::byte* const* pages;
  int64_t k_offset, v_offset;
  std::byte* scratch;  ///< Of this worker, attention_scratch_bytes(...) of the table, 64-byte aligned.

  /// Several workers share the tiles of a long sequence: this call does tiles [tile_begin, tile_end), which lie within
  /// what the queries see, and leaves what is yet to be merged in `parts` (AttentionPart of kv_layout.h; 64-byte
  /// aligned) instead of answering the queries.
  float* parts = nullptr;
  int64_t tile_begin = 0, tile_end = INT64_MAX;
  /// One part per tile, for attention_merge. Otherwise one for all tiles, merged ascending onto those before them.
  bool each_tile = false;
  const float* before = nullptr;  ///< The part of the tiles before tile_begin, if there are any.
};
using AttentionFn = void (*)(const AttentionArgs&) noexcept;

/// Merges parts, one per tile and ascending, onto the part of all tiles before them.
struct AttentionMergeArgs {
  int v_dim;
  const AttentionQuery* queries;  ///< Those of the calls that left the parts.
  int n_queries;
  int query_begin, query_end;  ///< Which of them to merge.
  float* total;                ///< The part before, and then also of these.
  const float* parts;
  int64_t n_parts;
  bool last;  ///< No tile follows: the queries are answered.
};
using AttentionMergeFn = void (*)(const AttentionMergeArgs&) noexcept;

/// Scores of an indexer: how much the positions of tiles [tile_begin, tile_end) matter to each token, the sum over its
/// heads of weight * max(q . key, 0). Keys lie as K tiles at pages[t] + k_offset, whatever beyond the last position.
struct IndexArgs {
  KvType type;
  int dim;  ///< Of a head, a multiple of 8.
  int n_heads, n_tokens;
  const float* q;  ///< [n_tokens][q_stride], heads one after the other.
  int64_t q_stride;
  const float* weights;  ///< [n_tokens][weight_stride]: one for each head.
  int64_t weight_stride;
  const std::byte* const* pages;
  int64_t k_offset;
  int64_t tile_begin, tile_end;
  float* scores;  ///< [n_tokens][score_stride], from the first position of tile_begin; whole tiles are written.
  int64_t score_stride;
  std::byte* scratch;  ///< Of this worker, index_scratch_bytes(dim), 64-byte aligned.
};
using IndexFn = void (*)(const IndexArgs&) noexcept;

/// Writes K or V of `n` consecutive positions of one sequence into one tile.
struct KvStoreArgs {
  KvType type;
  int dim;
  std::byte* tile;  ///< The K (or V) tile of this KV head.
  int position;     ///< First position inside the tile, 0 ... 63; position + n <= 64.
  int n;
  const float* x;  ///< [n][stride]
  int64_t stride;
};
/// Returns false when a stored value is not finite (also one that overflows f16, or whose q8_0 scale does).
using KvStoreFn = bool (*)(const KvStoreArgs&) noexcept;

/// Parameters of an activation (docs/kernels.md#rows).
struct Xielu {
  float alpha_p, alpha_n, beta, eps;
};

/// Causal convolution of each channel by itself: y[t] = sum over j of w[j] * x[t - taps + 1 + j], then SiLU, in place.
struct ConvolveArgs {
  int taps;  ///< 2 ... 4
  int64_t n_channels;
  const float* w;  ///< [taps][w_stride], that of the oldest value first.
  int64_t w_stride;
  const float* bias;  ///< [n_channels], or null.
  bool silu;          ///< Of the result.
  const float* from;  ///< [taps - 1][state_stride]: the values before x, oldest first. Null: zeros.
  float* to;          ///< The same after x; may be `from`.
  int64_t state_stride;
  float* x;  ///< [n][stride]
  int64_t stride;
  int64_t n;
};
using ConvolveFn = void (*)(const ConvolveArgs&) noexcept;

inline constexpr int64_t kRecurTokens = 16;  ///< Most tokens in one call of `recur`.

/// A head of a recurrence goes on by some tokens. Its state S is k_dim rows of v_dim values, in columns of 16:
/// [v_dim / 16][k_dim][16]. For each token, with w = k * g by rows:
///   e = beta * (v - w S), or beta * v without `delta`;  S = g S + k e;  out = q S.
struct RecurArgs {
  int64_t k_dim, v_dim;  ///< v_dim a multiple of 16.
  bool delta;
  const float* from;           ///< Null: zeros.
  float* to;                   ///< May be `from`.
  const float *q, *k, *w, *g;  ///< [n][k_dim]; g: what is left of each row of S.
  const float* v;
  int64_t v_stride;
  const float* beta;  ///< [n]
  float* out;
  int64_t out_stride;
  int64_t n;  ///< 1 ... kRecurTokens
};
using RecurFn = void (*)(const RecurArgs&) noexcept;

/// Copies row `row` of an R16 matrix as f32: the embedding look-up.
struct RowArgs {
  const std::byte* w;
  int64_t group_bytes;
  int64_t k;
  int64_t row;
  float* out;  ///< [k]
};
using RowFn = void (*)(const RowArgs&) noexcept;

/// Puts 16 rows in file layout into one R16 group.
struct PackArgs {
  const std::byte* rows;  ///< First of the rows, `row_bytes` apart.
  int64_t row_bytes;
  int n_rows;  ///< 1 ... 16; missing rows become zeros.
  int64_t k;
  std::byte* group;  ///< group_bytes, 64-byte aligned; every byte is written.
};
using PackFn = void (*)(const PackArgs&) noexcept;

}  // namespace stoker::kernels
