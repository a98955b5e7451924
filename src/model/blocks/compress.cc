// Rows that stand for several positions each: per channel a softmax over the positions' scores weighs their values. It
// runs token by token, so that a row is the same however its tokens come, and only sums stand in the state between
// them (docs/kernels.md#compressed).
#include <algorithm>
#include <cassert>
#include <cstring>

#include "kernels/kv_layout.h"
#include "model/blocks/tile_rows.h"

namespace stoker::model {
namespace {

using kernels::kTilePositions;
using kernels::KvType;

constexpr int64_t kPieceChannels = 64;  // of a piece of work

/// The softmax of some channels so far: the largest score, and relative to it the sums of weights and of weighted
/// values.
struct Pool {
  float *max, *sum, *values;

  /// Channels from `first` on of the pool number `index` of so many channels each.
  static Pool at(float* pools, int64_t index, int64_t dim, int64_t first) noexcept {
    float* from = pools + index * 3 * dim + first;
    return {from, from + dim, from + 2 * dim};
  }
  void copy(const Pool& from, int64_t n) const noexcept {
    const auto bytes = static_cast<size_t>(n) * sizeof(float);
    std::memcpy(max, from.max, bytes), std::memcpy(sum, from.sum, bytes), std::memcpy(values, from.values, bytes);
  }
};

/// What a token has for some channels.
struct Candidate {
  float scores[kPieceChannels];
  const float* values;
};

void start(const Pool& pool, const Candidate& c, int64_t n) noexcept {
  std::copy_n(c.scores, n, pool.max);
  std::fill_n(pool.sum, n, 1.0F);
  std::memcpy(pool.values, c.values, static_cast<size_t>(n) * sizeof(float));
}

constexpr auto kOnes = [] {
  std::array<float, kPieceChannels> ones{};
  for (float& one : ones) one = 1;
  return ones;
}();

void add(const kernels::Table& t, const Pool& pool, const Candidate& c, int64_t n) noexcept {
  float kept[kPieceChannels] = {}, weight[kPieceChannels] = {};
  for (int64_t i = 0; i < n; ++i) {
    const float score = c.scores[i], before = pool.max[i];
    const float max = score > before ? score : before;
    kept[i] = before - max;
    weight[i] = score - max;
    pool.max[i] = max;
  }
  t.exp_mul(kept, kOnes.data(), n, kept);
  t.exp_mul(weight, kOnes.data(), n, weight);
  for (int64_t i = 0; i < n; ++i) pool.sum[i] = pool.sum[i] * kept[i] + weight[i];
  for (int64_t i = 0; i < n; ++i) pool.values[i] = pool.values[i] * kept[i] + weight[i] * c.values[i];
}

/// Some channels of all tokens of a span. A row that becomes complete replaces the values of its last token.
class RowPooling {
 public:
  RowPooling(const Step& step, const CompressSpec& spec, Exec& exec, int64_t first)
      : step_(step),
        spec_(spec),
        exec_(exec),
        first_(first),
        n_(std::min(kPieceChannels, spec.dim - first)),
        width_(spec.dim * (ModelConfig::overlaps(spec.ratio) ? 2 : 1)) {}

  void run(const RowSpan& span) const noexcept {
    const bool overlaps = ModelConfig::overlaps(spec_.ratio);
    auto* pools = reinterpret_cast<float*>(span.next_state + spec_.layout.pool_offset);
    const Pool now = Pool::at(pools, 0, spec_.dim, first_), next = Pool::at(pools, 1, spec_.dim, first_);
    if (span.state && span.state != span.next_state) {
      auto* from = reinterpret_cast<float*>(const_cast<std::byte*>(span.state) + spec_.layout.pool_offset);
      now.copy(Pool::at(from, 0, spec_.dim, first_), n_);
      if (overlaps) next.copy(Pool::at(from, 1, spec_.dim, first_), n_);
    }
    for (int64_t i = 0; i < span.n; ++i) {
      const int64_t position = span.position0 + i, row = span.row0 + i;
      overlaps ? add_overlapping(now, next, position, row) : add_plain(now, position, row);
      if (position % spec_.ratio == spec_.ratio - 1) finish(now, row);
    }
  }

 private:
  /// The first or, of rows that overlap, the second half of what the token has.
  Candidate candidate(int64_t position, int64_t row, int64_t half) const noexcept {
    const int64_t channel = half * spec_.dim + first_;
    const float* x = exec_.row(Buf::kDown, row);
    Candidate c{.scores = {}, .values = x + spec_.value_column + channel};
    exec_.table->add(x + spec_.score_column + channel,
                     spec_.position_scores->data + position % spec_.ratio * width_ + channel, n_, c.scores);
    if (!exec_.table->all_finite(c.scores, n_) || !exec_.table->all_finite(c.values, n_)) {
      exec_.mark_bad(exec_.original_row(row), step_);
    }
    return c;
  }

  void add_plain(const Pool& now, int64_t position, int64_t row) const noexcept {
    const Candidate c = candidate(position, row, 0);
    if (position % spec_.ratio == 0) return start(now, c, n_);
    add(*exec_.table, now, c, n_);
  }

  /// A row is made of the first halves of the positions before its own, and of the second halves of its own.
  void add_overlapping(const Pool& now, const Pool& next, int64_t position, int64_t row) const noexcept {
    const bool begins = position % spec_.ratio == 0;
    if (begins && position > 0) now.copy(next, n_);
    const Candidate own = candidate(position, row, 1), ahead = candidate(position, row, 0);
    position == 0 ? start(now, own, n_) : add(*exec_.table, now, own, n_);
    begins ? start(next, ahead, n_) : add(*exec_.table, next, ahead, n_);
  }

  void finish(const Pool& now, int64_t row) const noexcept {
    float* out = exec_.row(Buf::kDown, row) + spec_.value_column + first_;
    for (int64_t i = 0; i < n_; ++i) out[i] = now.values[i] / now.sum[i];
  }

  const Step& step_;
  const CompressSpec& spec_;
  Exec& exec_;
  int64_t first_, n_, width_;
};

int64_t pieces_of(const CompressSpec& spec) noexcept {
  return spec.ratio == 0 ? 0 : (spec.dim + kPieceChannels - 1) / kPieceChannels;
}

/// Positions of a K tile that 16 rows of keys in a page are a part of.
struct PartOfTile {
  int64_t n_lines, value_bytes;
  explicit PartOfTile(KvType type, int64_t dim) noexcept
      : n_lines(type == KvType::kBf16 ? kernels::kv_padded_dim(type, static_cast<int>(dim)) / 2 : dim),
        value_bytes(type == KvType::kBf16 ? 4 : kernels::kv_value_bytes(type)) {}
};

/// A size that is known beforehand is one load and one store.
template <int64_t kBytes>
void copy_lines(const std::byte* from, std::byte* to, int64_t to_stride, int64_t n) {
  for (int64_t line = 0; line < n; ++line) std::memcpy(to + line * to_stride, from + line * kBytes, kBytes);
}

/// Row number `place.row` of a page's keys, by way of a whole tile.
bool store_key(const CompressSpec& spec, const Exec& exec, const RowPlace& place, std::byte* page, const float* x,
               std::byte* scratch) noexcept {
  const bool ok = exec.table->store_k({.type = exec.plan->kv.type,
                                       .dim = static_cast<int>(spec.dim),
                                       .tile = scratch,
                                       .position = 0,
                                       .n = 1,
                                       .x = x,
                                       .stride = 0});
  const PartOfTile part(exec.plan->kv.type, spec.dim);
  const int64_t in_page = RowPlace::in_page(spec.ratio);
  std::byte* to = page + spec.layout.offset + place.row * part.value_bytes;
  for (int64_t line = 0; line < part.n_lines; ++line) {
    std::memcpy(to + line * in_page * part.value_bytes, scratch + line * kTilePositions * part.value_bytes,
                static_cast<size_t>(part.value_bytes));
  }
  return ok;
}

/// The row that is complete with the token of row `r`: normed, rotated by its first position, stored.
void store_row(const Step& step, const CompressSpec& spec, Exec& exec, int64_t r, std::byte* page,
               std::byte* scratch) noexcept {
  const AttentionSpec& a = step.attention;
  const int64_t index = exec.positions[r] / spec.ratio;
  float* x = exec.row(Buf::kDown, r) + spec.value_column;
  exec.table->rms_norm(x, spec.norm->data, exec.plan->config->norm_eps, spec.dim, x);
  float cos[kMostHeadPairs], sin[kMostHeadPairs];
  exec.plan->ropes[static_cast<size_t>(a.rope)].at(index * spec.ratio, cos, sin);
  a.rotate(x + spec.dim - 2 * a.rope_pairs, cos, sin, a.rope_pairs);
  const RowPlace place = RowPlace::of(index, spec.ratio);
  const bool ok = spec.is_index ? store_key(spec, exec, place, page, x, scratch)
                                : exec.table->store_v({.type = exec.plan->kv.type,
                                                       .dim = static_cast<int>(spec.dim),
                                                       .tile = page + spec.layout.offset,
                                                       .position = place.row,
                                                       .n = 1,
                                                       .x = x,
                                                       .stride = 0});
  if (!ok) exec.mark_bad(exec.original_row(r), step);
}

void store_complete_rows(const Step& step, Exec& exec, const TileRows& rows, std::byte* scratch) noexcept {
  for (const CompressSpec* spec : {&step.compress, &step.index_compress}) {
    if (spec->ratio == 0) continue;
    for (int64_t r = rows.row0; r < rows.row0 + rows.n; ++r) {
      if ((exec.positions[r] + 1) % spec->ratio == 0) store_row(step, *spec, exec, r, rows.page, scratch);
    }
  }
}

void finish_queries(const Step& step, Exec& exec, int64_t r) noexcept {
  const AttentionSpec& a = step.attention;
  for (int64_t head = 0; head < a.n_heads; ++head) {
    float* q = exec.row(a.queries, r) + a.q_column + head * a.q_stride;
    exec.table->rms_norm(q, nullptr, exec.plan->config->norm_eps, a.k_dim, q);
    rotate_head(a, exec, r, q + a.k_dim - 2 * a.rope_pairs);
  }
}

void norm_latents(const Step& step, Exec& exec, int64_t r) noexcept {
  const AttentionSpec& a = step.attention;
  const LatentSpec& spec = step.latent;
  const float eps = exec.plan->config->norm_eps;
  float *q = exec.row(Buf::kDown, r), *kv = q + spec.kv_column;
  exec.table->rms_norm(q, spec.q_norm->data, eps, spec.q_latent, q);
  quantize_rows(step, exec, r, r + 1);
  exec.table->rms_norm(kv, spec.kv_norm->data, eps, a.k_dim, kv);
  rotate_head(a, exec, r, kv + a.k_dim - 2 * a.rope_pairs);
}

}  // namespace

void compress_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const int64_t n_main = pieces_of(step.compress), n_pieces = n_main + pieces_of(step.index_compress);
  const int64_t n_pooled = static_cast<int64_t>(exec.spans.size()) * n_pieces;
  // The pieces of spans first: one of them may be all tokens.
  worker.each(n_pooled + exec.n_rows, 1, [&](Range one) {
    const int64_t item = one.begin;
    if (item >= n_pooled) return norm_latents(step, exec, item - n_pooled);
    const int64_t piece = item % n_pieces;
    const CompressSpec& spec = piece < n_main ? step.compress : step.index_compress;
    const RowPooling pooling(step, spec, exec, (piece < n_main ? piece : piece - n_main) * kPieceChannels);
    pooling.run(exec.spans[static_cast<size_t>(item / n_pieces)]);
  });
  if (worker.index() == 0) point_activations(step, exec);
}

void compressed_rows_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const int64_t n_store = step.compress.ratio > 0 ? static_cast<int64_t>(exec.tile_rows.size()) : 0;
  worker.each(n_store + exec.n_rows, 1, [&](Range one) {
    const int64_t item = one.begin;
    if (item >= n_store) return finish_queries(step, exec, item - n_store);
    store_complete_rows(step, exec, exec.tile_rows[static_cast<size_t>(item)], exec.worker_scratch(worker));
  });
}

void gather_index_keys(const IndexSpec& index, KvType type, const std::byte* const* pages, int64_t n_pages,
                       std::byte* tile) noexcept {
  const PartOfTile part(type, index.dim);
  const int64_t in_page = RowPlace::in_page(index.keys.ratio), bytes = in_page * part.value_bytes;
  assert(bytes == 32 || bytes == 64);
  const auto copy = bytes == 32 ? copy_lines<32> : copy_lines<64>;
  for (int64_t i = 0; i < n_pages; ++i) {
    copy(pages[i] + index.keys.offset, tile + i * bytes, kTilePositions * part.value_bytes, part.n_lines);
  }
}

}  // namespace stoker::model
