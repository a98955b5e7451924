// Attention of queries that each see the last positions and rows that stand for several positions each: all of these
// that are complete, or those that an indexer chooses. Keys are values, and what comes out is rotated back.
//
// Single positions live in a ring of tiles in the sequence's state, just long enough for the window of a tile's
// queries. So a call goes tile by tile: the positions of a tile of all sequences are stored, then its queries answered.
#include <algorithm>
#include <cstring>

#include "kernels/kv_layout.h"
#include "model/exec.h"

namespace stoker::model {
namespace {

using kernels::kMaxQueries;
using kernels::kTilePositions;
using kernels::KvType;

/// Tile `at`, counted from position 0, in the ring.
template <class Byte>
Byte* ring_tile(Byte* state, const KvLayout::Layer& layer, int64_t at) noexcept {
  return state + layer.window_offset + at % layer.n_window_tiles * layer.window_tile_bytes;
}

int64_t first_tile(const RowSpan& span) noexcept { return span.position0 / kTilePositions; }
int64_t tiles_of(const RowSpan& span) noexcept {
  return (span.position0 + span.n - 1) / kTilePositions - first_tile(span) + 1;
}

/// Those rows of a span whose positions lie in tile `at`.
Range rows_in(const RowSpan& span, int64_t at) noexcept {
  const int64_t begin = std::max<int64_t>(0, at * kTilePositions - span.position0);
  return {begin, std::max(begin, std::min(span.n, (at + 1) * kTilePositions - span.position0))};
}

/// The rows that one query sees, wherever they lie, as the kernel takes them: each as the first or second row of a tile
/// of its own.
class SeenRows {
 public:
  SeenRows(const Exec& exec, const AttentionSpec& a, std::byte* memory) noexcept
      : pairs_(exec.plan->kv.type == KvType::kBf16),
        row_bytes_(kernels::kv_tile_bytes(exec.plan->kv.type, static_cast<int>(a.k_dim)) / kTilePositions),
        rows_(reinterpret_cast<const std::byte**>(memory)),
        entries_(reinterpret_cast<int32_t*>(rows_ + a.most_rows)) {}

  void add(const std::byte* tile, int64_t row) noexcept {
    const int64_t in_pair = pairs_ ? row % 2 : 0;
    rows_[n_] = tile + (row - in_pair) * row_bytes_;
    entries_[n_] = static_cast<int32_t>(n_ * kTilePositions + in_pair);
    ++n_;
  }
  const std::byte* const* rows() const { return rows_; }
  const int32_t* entries() const { return entries_; }
  int64_t size() const { return n_; }

 private:
  bool pairs_;
  int64_t row_bytes_;
  const std::byte** rows_;
  int32_t* entries_;
  int64_t n_ = 0;
};

/// Queries of a span that this step answers.
struct Asked {
  const RowSpan* span;    ///< With the sequence's state.
  const RowSpan* output;  ///< Where rows are answered: the same, or those with outputs.
};

class WindowAttention {
 public:
  WindowAttention(const Step& step, Exec& exec, Worker& worker) : step_(step), exec_(exec), worker_(worker) {
    const AttentionSpec& a = step.attention;
    heads_ = std::min<int64_t>(a.n_heads, kMaxQueries);
    // Few rows: workers share the heads of one.
    while (heads_ > 1 && exec.n_rows * parts() < worker.count()) heads_ = (heads_ + 1) / 2;
  }

  void run() {
    int64_t n_rounds = 0;
    for (const RowSpan& span : exec_.spans) n_rounds = std::max(n_rounds, tiles_of(span));
    for (int64_t round = 0; round < n_rounds; ++round) {
      if (round > 0) worker_.barrier();
      worker_.each(static_cast<int64_t>(exec_.spans.size()), 1,
                   [&](Range one) { store(exec_.spans[static_cast<size_t>(one.begin)], round); });
      worker_.barrier();
      answer(round);
    }
  }

 private:
  int64_t parts() const { return (step_.attention.n_heads + heads_ - 1) / heads_; }

  void store(const RowSpan& span, int64_t round) const {
    const KvLayout::Layer& layer = step_.attention.kv;
    const int64_t at = first_tile(span) + round;
    if (round == 0 && span.state && span.state != span.next_state) {
      for (int64_t t = std::max<int64_t>(0, at + 1 - layer.n_window_tiles); t <= at; ++t) {
        std::memcpy(ring_tile(span.next_state, layer, t), ring_tile(span.state, layer, t),
                    static_cast<size_t>(layer.window_tile_bytes));
      }
    }
    const Range rows = rows_in(span, at);
    const int64_t column = step_.latent.kv_column, in_tile = (span.position0 + rows.begin) % kTilePositions;
    const auto store = [&](int64_t first, int64_t n) {
      return exec_.table->store_v({.type = exec_.plan->kv.type,
                                   .dim = static_cast<int>(step_.attention.k_dim),
                                   .tile = ring_tile(span.next_state, layer, at),
                                   .position = static_cast<int>(in_tile + first),
                                   .n = static_cast<int>(n),
                                   .x = exec_.row(Buf::kDown, span.row0 + rows.begin + first) + column,
                                   .stride = exec_.stride(Buf::kDown)});
    };
    if (rows.size() <= 0 || store(0, rows.size())) return;
    for (int64_t i = 0; i < rows.size(); ++i) {  // to find out whose value is too large or no number
      if (!store(i, 1)) exec_.mark_bad(chunk_row(span.row0 + rows.begin + i), step_);
    }
  }
  /// The row at the start of the call that `r` of the chunk was, gathered or not.
  int64_t chunk_row(int64_t r) const { return exec_.token0 + r; }

  /// f(queries, which of their rows lie in the round's tile) for all spans that have some.
  template <class F>
  void each_asked(int64_t round, F f) const {
    const RowSpan* output = exec_.output_spans.data();
    const RowSpan* const end = output + exec_.output_spans.size();
    for (const RowSpan& span : exec_.spans) {
      Asked asked{&span, &span};
      if (step_.outputs_only) {
        if (output == end || output->q_row0 >= span.row0 + span.n) continue;
        asked.output = output++;
      }
      const Range rows = rows_in(*asked.output, first_tile(span) + round);
      if (rows.size() > 0) f(asked, rows);
    }
  }

  void answer(int64_t round) {
    int64_t n_rows = 0;
    each_asked(round, [&](const Asked&, Range rows) { n_rows += rows.size(); });
    worker_.each(n_rows * parts(), 1, [&](Range one) {
      int64_t row = one.begin / parts();
      each_asked(round, [&](const Asked& asked, Range rows) {
        if (row >= 0 && row < rows.size()) attend(asked, rows.begin + row, one.begin % parts());
        row -= rows.size();
      });
    });
  }

  void list(const Asked& asked, int64_t position, int64_t q_row, SeenRows& seen) const {
    const AttentionSpec& a = step_.attention;
    for (int64_t p = std::max<int64_t>(0, position + 1 - a.window); p <= position; ++p) {
      seen.add(ring_tile(asked.span->next_state, a.kv, p / kTilePositions), p % kTilePositions);
    }
    if (a.kv.ratio == 0) return;
    const int64_t n_complete = (position + 1) / a.kv.ratio;
    const int64_t n = a.most_seen > 0 ? std::min(n_complete, a.most_seen) : n_complete;
    for (int64_t i = 0; i < n; ++i) {
      const RowPlace place = RowPlace::of(a.most_seen > 0 ? exec_.selected(q_row)[i] : i, a.kv.ratio);
      seen.add(asked.span->tiles[place.page] + a.kv.offset, place.row);
    }
  }

  void attend(const Asked& asked, int64_t i, int64_t part) const {
    const AttentionSpec& a = step_.attention;
    const int64_t position = asked.output->position0 + i, q_row = asked.output->q_row0 + i;
    std::byte* const scratch = exec_.worker_scratch(worker_);
    SeenRows seen(exec_, a, scratch + a.rows_offset);
    list(asked, position, q_row, seen);
    const Range heads{part * heads_, std::min(a.n_heads, (part + 1) * heads_)};
    kernels::AttentionQuery queries[kMaxQueries];
    float* const out = exec_.row(Buf::kAttended, asked.output->row0 + i);
    for (int64_t head = heads.begin; head < heads.end; ++head) {
      queries[head - heads.begin] = {.q = exec_.row(a.queries, q_row) + a.q_column + head * a.q_stride,
                                     .out = out + head * a.v_dim,
                                     .begin = 0,
                                     .end = seen.size(),
                                     .sink = a.sinks ? a.sinks->data + head : nullptr};
    }
    exec_.table->attention({.type = exec_.plan->kv.type,
                            .k_dim = static_cast<int>(a.k_dim),
                            .v_dim = static_cast<int>(a.v_dim),
                            .scale = a.scale,
                            .softcap = 0,
                            .values_in_keys = true,
                            .selected = seen.entries(),
                            .queries = queries,
                            .n_queries = static_cast<int>(heads.size()),
                            .pages = seen.rows(),
                            .k_offset = 0,
                            .v_offset = 0,
                            .scratch = scratch});
    turn_back(q_row, out, heads);
  }

  /// What comes out is a sum of rotated rows.
  void turn_back(int64_t token, float* out, Range heads) const {
    const AttentionSpec& a = step_.attention;
    const auto rope = static_cast<size_t>(a.rope);
    const int64_t at = token * exec_.rope_stride;
    float back[kMostHeadPairs];
    for (int64_t i = 0; i < a.rope_pairs; ++i) back[i] = -exec_.rope_sin[rope][at + i];
    for (int64_t head = heads.begin; head < heads.end; ++head) {
      a.rotate(out + (head + 1) * a.v_dim - 2 * a.rope_pairs, exec_.rope_cos[rope] + at, back, a.rope_pairs);
    }
  }

  const Step& step_;
  Exec& exec_;
  Worker& worker_;
  int64_t heads_;  ///< In one call of the kernel.
};

}  // namespace

void window_attention_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  WindowAttention(step, exec, worker).run();
}

}  // namespace stoker::model
