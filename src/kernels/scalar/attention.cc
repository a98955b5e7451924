// Attention over tiles of 64 positions, one query at a time, as docs/kernels.md defines it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/f16.h"
#include "kernels/kv_layout.h"
#include "kernels/scalar/functions.h"
#include "kernels/scalar/numbers.h"

namespace stoker::kernels::scalar {
namespace {

constexpr int kTile = static_cast<int>(kTilePositions);

/// What attention and the store round to bf16: nearest, then everything below 2^-48 becomes zero, because the AMX
/// instructions flush small numbers and must give the same bits.
uint16_t to_kv_bf16(float x) {
  const uint16_t bits = f32_to_bf16(x);
  return std::fabs(bf16_to_f32(bits)) < 0x1p-48f ? uint16_t{0} : bits;
}
float round_bf16(float x) { return bf16_to_f32(to_kv_bf16(x)); }

/// The value at `index` of a tile for heads of `dim`; `scale` is the place of its q8_0 scale.
template <KvType kType>
float kv_value(const std::byte* tile, int dim, int64_t index, int64_t scale) {
  if constexpr (kType == KvType::kQ8_0) {
    const auto* scales = reinterpret_cast<const uint16_t*>(tile + kv_scales_offset(dim));
    const int q = reinterpret_cast<const int8_t*>(tile)[index];
    return static_cast<float>(q) * f16_to_f32(scales[scale]);  // 7 and 11 bits: exact.
  } else if constexpr (kType == KvType::kF32) {
    return reinterpret_cast<const float*>(tile)[index];
  } else {
    const uint16_t bits = reinterpret_cast<const uint16_t*>(tile)[index];
    return kType == KvType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}

/// A sum in the order of the type: one chain over terms [begin, end), or for bf16 chains over the even and the odd
/// terms of every 32 (they start at multiples of 32). left(i) * right(i) is term i.
template <KvType kType, class Left, class Right>
float chain(int begin, int end, Left left, Right right) {
  float sum = 0.0f;
  if constexpr (kType == KvType::kBf16) {
    for (int group = begin / 32 * 32; group < end; group += 32) {
      float parity[2] = {0.0f, 0.0f};
      for (int i = group; i < group + 32; ++i) {
        if (i >= begin && i < end) parity[i % 2] = std::fma(left(i), right(i), parity[i % 2]);
      }
      sum += parity[0] + parity[1];
    }
  } else {
    for (int i = begin; i < end; ++i) sum = std::fma(left(i), right(i), sum);
  }
  return sum;
}

/// Positions of a tile that one query sees.
struct Visible {
  int begin, end;
};

Visible visible_positions(const AttentionQuery& query, int64_t tile) {
  const int64_t begin = query.begin - tile * kTile, end = query.end - tile * kTile;
  return {static_cast<int>(begin > 0 ? begin : 0), static_cast<int>(end < kTile ? end : kTile)};
}

/// Dimension `d` of the key of the tile's entry `p`.
template <KvType kType>
float key(const AttentionArgs& a, int64_t tile, int d, int p) {
  if (a.selected == nullptr) {
    const std::byte* k_tile = a.pages[tile] + a.k_offset;
    return kv_value<kType>(k_tile, a.k_dim, kv_k_index(kType, d, p), kv_k_scale_index(d, p));
  }
  const int32_t position = a.selected[tile * kTile + p];
  const int row = position % kTile;
  return kv_value<kType>(a.pages[position / kTile] + a.k_offset, a.k_dim,
                         kv_v_index(kType, kv_padded_dim(kType, a.k_dim), d, row), kv_v_scale_index(a.k_dim, d, row));
}

template <KvType kType>
float score(const AttentionArgs& a, const float* q, int64_t tile, int p) {
  const float dot = chain<kType>(
      0, a.k_dim, [&](int d) { return kType == KvType::kBf16 ? round_bf16(q[d]) : q[d]; },
      [&](int d) { return key<kType>(a, tile, d, p); });
  const float scaled = dot * a.scale;
  return a.softcap > 0.0f ? a.softcap * tanh(scaled * (1.0f / a.softcap)) : scaled;
}

/// Less what ALiBi takes for the distance.
float with_distance(const AttentionQuery& query, int64_t tile, int p, float score) {
  if (query.slope == 0.0f) return score;
  const auto distance = static_cast<float>(std::abs(tile * kTile + p - query.position));
  return std::fma(-query.slope, distance, score);
}

/// Dimension `d` of V at position `p`.
template <KvType kType>
float value(const AttentionArgs& a, int64_t tile, int d, int p) {
  if (a.values_in_keys) return key<kType>(a, tile, d, p);
  const int64_t index = kv_v_index(kType, kv_padded_dim(kType, a.v_dim), d, p);
  return kv_value<kType>(a.pages[tile] + a.v_offset, a.v_dim, index, kv_v_scale_index(a.v_dim, d, p));
}

/// The running result of one query: `out` holds the unnormalized sum of the values. The sum 0 is that of no tile.
struct Running {
  float max = std::numeric_limits<float>::lowest(), sum = 0.0f;
  float* out;
  bool empty() const { return sum == 0.0f; }
};

/// Adds a tile, or a sink, whose weights are relative to `max` and add up to `sum`; values(d) is its sum of values.
template <class Values>
void merge(Running& r, float max, float sum, int v_dim, Values values) {
  if (r.empty()) {
    r.max = max, r.sum = sum;
    for (int d = 0; d < v_dim; ++d) r.out[d] = values(d);
    return;
  }
  const float top = r.max > max ? r.max : max;
  const float old_factor = exp(r.max - top), new_factor = exp(max - top);
  r.max = top;
  r.sum = std::fma(r.sum, old_factor, sum * new_factor);
  for (int d = 0; d < v_dim; ++d) r.out[d] = std::fma(r.out[d], old_factor, values(d) * new_factor);
}

template <KvType kType>
void add_tile(const AttentionArgs& a, const AttentionQuery& query, int64_t tile, Running& running) {
  const Visible seen = visible_positions(query, tile);
  if (seen.begin >= seen.end) return;
  float weights[kTile] = {};
  float max = -std::numeric_limits<float>::infinity();
  for (int p = seen.begin; p < seen.end; ++p) {
    weights[p] = with_distance(query, tile, p, score<kType>(a, query.q, tile, p));
    max = weights[p] > max ? weights[p] : max;
  }
  float lanes[16] = {};
  for (int p = seen.begin; p < seen.end; ++p) {
    weights[p] = exp(weights[p] - max);
    if (kType == KvType::kBf16) weights[p] = round_bf16(weights[p]);
    lanes[p % 16] += weights[p];
  }
  merge(running, max, sum_lanes(lanes), a.v_dim, [&](int d) {
    return chain<kType>(
        seen.begin, seen.end, [&](int p) { return weights[p]; }, [&](int p) { return value<kType>(a, tile, d, p); });
  });
}

/// Merges the sink and answers. A query that sees nothing answers zeros.
void finish(const AttentionQuery& query, int v_dim, Running& running) {
  if (query.sink != nullptr) {
    merge(running, *query.sink, 1.0f, v_dim, [](int) { return 0.0f; });
  }
  // The + 0 removes negative zeros: their sign could depend on masked rows.
  const float inverse = running.empty() ? 0.0f : 1.0f / running.sum;
  for (int d = 0; d < v_dim; ++d) query.out[d] = running.empty() ? 0.0f : std::fma(running.out[d], inverse, 0.0f);
}

/// What a part says of one query.
Running load_part(const AttentionPart& part, float* parts, int query) {
  return {parts[part.max + query], parts[part.sum + query], parts + part.values + query * part.padded_v};
}
void save_part(const AttentionPart& part, const Running& running, float* parts, int query) {
  parts[part.max + query] = running.max;
  parts[part.sum + query] = running.sum;
}

template <KvType kType>
void attend(const AttentionArgs& a, const AttentionQuery& query) {
  Running running{.out = query.out};
  for (int64_t tile = query.begin / kTile; tile * kTile < query.end; ++tile) add_tile<kType>(a, query, tile, running);
  finish(query, a.v_dim, running);
}

/// The tiles of the call, into one part or one for each.
template <KvType kType>
void attend_part(const AttentionArgs& a, int query) {
  const AttentionPart part(a.n_queries, a.v_dim);
  float* to = a.parts;
  Running running{.out = to + part.values + query * part.padded_v};
  if (a.before != nullptr) {
    const float* values = a.before + part.values + query * part.padded_v;
    running.max = a.before[part.max + query], running.sum = a.before[part.sum + query];
    for (int d = 0; d < a.v_dim; ++d) running.out[d] = values[d];
  }
  for (int64_t tile = a.tile_begin; tile < a.tile_end; ++tile) {
    add_tile<kType>(a, a.queries[query], tile, running);
    if (!a.each_tile) continue;
    save_part(part, running, to, query);
    to += part.total;
    running = {.out = running.out + part.total};
  }
  if (!a.each_tile) save_part(part, running, to, query);
}

template <KvType kType>
void attend_all(const AttentionArgs& a) {
  for (int i = 0; i < a.n_queries; ++i) {
    if (a.parts != nullptr) {
      attend_part<kType>(a, i);
    } else {
      attend<kType>(a, a.queries[i]);
    }
  }
}

/// One chain per head whatever the type: what is compared with what must not depend on it.
template <KvType kType>
void index_tile(const IndexArgs& a, int64_t tile, int token) {
  const std::byte* k_tile = a.pages[tile] + a.k_offset;
  const float* weights = a.weights + token * a.weight_stride;
  float* scores = a.scores + token * a.score_stride + (tile - a.tile_begin) * kTile;
  for (int p = 0; p < kTile; ++p) {
    float sum = 0.0f;
    for (int head = 0; head < a.n_heads; ++head) {
      const float* q = a.q + token * a.q_stride + head * a.dim;
      float dot = 0.0f;
      for (int d = 0; d < a.dim; ++d) {
        dot = std::fma(q[d], kv_value<kType>(k_tile, a.dim, kv_k_index(kType, d, p), kv_k_scale_index(d, p)), dot);
      }
      sum = std::fma(weights[head], dot > 0.0f ? dot : 0.0f, sum);
    }
    scores[p] = sum;
  }
}

template <KvType kType>
void index_tiles(const IndexArgs& a) {
  for (int token = 0; token < a.n_tokens; ++token) {
    for (int64_t tile = a.tile_begin; tile < a.tile_end; ++tile) index_tile<kType>(a, tile, token);
  }
}

/// Writes one value; false when it is not finite as stored.
template <KvType kType>
bool store_value(std::byte* tile, int64_t index, float x) {
  if constexpr (kType == KvType::kF32) {
    reinterpret_cast<float*>(tile)[index] = x;
    return is_finite(x);
  } else {
    const uint16_t bits = kType == KvType::kF16 ? f32_to_f16(x) : to_kv_bf16(x);
    reinterpret_cast<uint16_t*>(tile)[index] = bits;
    const uint16_t infinity = kType == KvType::kF16 ? 0x7c00 : 0x7f80;
    return (bits & infinity) != infinity;
  }
}

/// Writes up to 32 values of one position under one scale: docs/kernels.md#q8. False when it cannot.
bool store_block(const KvStoreArgs& a, bool is_k, const float* x, int first, int p) {
  const int n = a.dim - first < kKvBlock ? a.dim - first : kKvBlock;
  uint32_t top = 0;
  for (int i = 0; i < n; ++i) top = std::max(top, std::bit_cast<uint32_t>(x[first + i]) & 0x7fffffffu);
  const uint16_t scale = f32_to_f16(std::bit_cast<float>(top) / 127.0f);
  const bool finite = top < kInfinityBits && scale < 0x7c00u;
  const float inverse = finite && scale != 0 ? 1.0f / f16_to_f32(scale) : 0.0f;
  for (int d = first; d < first + n; ++d) {
    const float scaled = finite ? x[d] * inverse : 0.0f;
    const float bounded = scaled > 127.0f ? 127.0f : scaled < -127.0f ? -127.0f : scaled;
    const int64_t index = is_k ? kv_k_index(a.type, d, p) : kv_v_index(a.type, a.dim, d, p);
    reinterpret_cast<int8_t*>(a.tile)[index] = static_cast<int8_t>(round_to_int(bounded));
  }
  auto* scales = reinterpret_cast<uint16_t*>(a.tile + kv_scales_offset(a.dim));
  scales[is_k ? kv_k_scale_index(first, p) : kv_v_scale_index(a.dim, first, p)] = finite ? scale : uint16_t{0x7e00};
  return finite;
}

bool store_blocks(const KvStoreArgs& a, bool is_k) {
  bool finite = true;
  for (int i = 0; i < a.n; ++i) {
    for (int first = 0; first < a.dim; first += kKvBlock) {
      finite &= store_block(a, is_k, a.x + i * a.stride, first, a.position + i);
    }
  }
  return finite;
}

template <KvType kType>
bool store(const KvStoreArgs& a, bool is_k) {
  const int padded = kv_padded_dim(kType, a.dim);
  bool finite = true;
  for (int i = 0; i < a.n; ++i) {
    const int p = a.position + i;
    for (int d = 0; d < padded; ++d) {
      const int64_t index = is_k ? kv_k_index(kType, d, p) : kv_v_index(kType, padded, d, p);
      finite &= store_value<kType>(a.tile, index, d < a.dim ? a.x[i * a.stride + d] : 0.0f);
    }
  }
  return finite;
}

bool store(const KvStoreArgs& a, bool is_k) {
  switch (a.type) {
    case KvType::kF16:
      return store<KvType::kF16>(a, is_k);
    case KvType::kBf16:
      return store<KvType::kBf16>(a, is_k);
    case KvType::kF32:
      return store<KvType::kF32>(a, is_k);
    case KvType::kQ8_0:
      return store_blocks(a, is_k);
  }
  return false;
}

}  // namespace

void attention(const AttentionArgs& a) noexcept {
  switch (a.type) {
    case KvType::kF16:
      return attend_all<KvType::kF16>(a);
    case KvType::kBf16:
      return attend_all<KvType::kBf16>(a);
    case KvType::kF32:
      return attend_all<KvType::kF32>(a);
    case KvType::kQ8_0:
      return attend_all<KvType::kQ8_0>(a);
  }
}

void index_scores(const IndexArgs& a) noexcept {
  switch (a.type) {
    case KvType::kF16:
      return index_tiles<KvType::kF16>(a);
    case KvType::kBf16:
      return index_tiles<KvType::kBf16>(a);
    case KvType::kF32:
      return index_tiles<KvType::kF32>(a);
    case KvType::kQ8_0:
      return index_tiles<KvType::kQ8_0>(a);
  }
}

void attention_merge(const AttentionMergeArgs& a) noexcept {
  const AttentionPart part(a.n_queries, a.v_dim);
  for (int query = a.query_begin; query < a.query_end; ++query) {
    Running total = load_part(part, a.total, query);
    for (int64_t p = 0; p < a.n_parts; ++p) {
      const float* from = a.parts + p * part.total;
      if (from[part.sum + query] == 0.0f) continue;  // Saw nothing of the tile.
      const float* values = from + part.values + query * part.padded_v;
      merge(total, from[part.max + query], from[part.sum + query], a.v_dim, [&](int d) { return values[d]; });
    }
    if (a.last) {
      finish(a.queries[query], a.v_dim, total);
    } else {
      save_part(part, total, a.total, query);
    }
  }
}

bool store_k(const KvStoreArgs& a) noexcept { return store(a, true); }
bool store_v(const KvStoreArgs& a) noexcept { return store(a, false); }

}  // namespace stoker::kernels::scalar
