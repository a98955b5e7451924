// Sparse attention: an indexer scores all positions that a query could see, and the best ones are all that it sees.
//
// Scores of a few rows and a stretch of positions stand in memory at a time, so that neither a long context nor many
// rows need more. All workers share the tiles of a stretch; then each row's best so far are brought up to date, rows
// shared among workers. The set does not depend on how it was cut.
#include <algorithm>

#include "base/checked.h"
#include "model/blocks/tile_rows.h"
#include "model/blocks/top_positions.h"

namespace stoker::model {
namespace {

constexpr int64_t kRows = 16;
constexpr int64_t kStretch = 16384;  // positions
constexpr int64_t kMostTiles = 32;   // in one piece of work
constexpr int64_t kGathered = 4;     // tiles that are put together before they are scored
constexpr int64_t kTile = kernels::kTilePositions;

int64_t tiles_of(int64_t positions) { return (positions + kTile - 1) / kTile; }

/// Some neighbouring rows of one sequence.
struct Group {
  int64_t row0, n, position0;
  const std::byte* const* tiles;
  int64_t first;    ///< Of its rows, in the round.
  int64_t end = 0;  ///< What its last row may see.
};

/// How many keys a query at this position may see, where each stands for so many positions.
int64_t seen_at(int64_t position, int64_t ratio) noexcept { return (position + 1) / ratio; }

/// The rows that are worked on together.
struct Round {
  int64_t ratio;
  Group groups[kRows];
  int n_groups = 0;
  int64_t n_rows = 0, longest = 0;

  /// How many of the rows it takes.
  int64_t add(const Group& rows) {
    const int64_t n = std::min(rows.n, kRows - n_rows);
    Group& group = groups[n_groups++] = rows;
    group.n = n;
    group.first = n_rows;
    n_rows += n;
    group.end = seen_at(group.position0 + n - 1, ratio);
    longest = std::max(longest, group.end);
    return n;
  }
};

class Selection {
 public:
  Selection(const Step& step, Exec& exec, Worker& worker) : step_(step), exec_(exec), worker_(worker) {}

  void run(Round& round) {
    for (int64_t begin = 0; begin < round.longest; begin += kStretch) {
      if (!first_) worker_.barrier();
      first_ = false;
      score(round, begin);
      worker_.barrier();
      keep_best(round, begin);
    }
    round = {.ratio = round.ratio, .groups = {}};
  }

 private:
  float* scores(int64_t row) const { return reinterpret_cast<float*>(exec_.select_scratch) + row * kStretch; }
  TopPositions::State& state(int64_t row) const { return reinterpret_cast<TopPositions::State*>(scores(kRows))[row]; }
  TopPositions best(int64_t row) const {
    std::byte* at = reinterpret_cast<std::byte*>(&state(kRows));
    return {step_.indexer.most_seen, at + row * TopPositions::bytes(step_.indexer.most_seen)};
  }

  /// Tiles of the stretch that the group's rows could see.
  static Range tiles(const Group& group, int64_t begin) {
    return {begin / kTile, std::max(begin / kTile, tiles_of(std::min(group.end, begin + kStretch)))};
  }

  void score(const Round& round, int64_t begin) {
    int64_t n_tiles = 0;
    for (int g = 0; g < round.n_groups; ++g) n_tiles += tiles(round.groups[g], begin).size();
    const int64_t piece = std::clamp<int64_t>(n_tiles / (4 * worker_.count()), 1, kMostTiles);
    int64_t n_items = 0;
    for (int g = 0; g < round.n_groups; ++g) n_items += pieces(round.groups[g], begin, piece);
    worker_.each(n_items, 1, [&](Range one) {
      int64_t item = one.begin;
      int g = 0;
      for (; item >= pieces(round.groups[g], begin, piece); ++g) item -= pieces(round.groups[g], begin, piece);
      const Range all = tiles(round.groups[g], begin);
      score(round.groups[g], begin, {all.begin + item * piece, std::min(all.end, all.begin + (item + 1) * piece)});
    });
  }
  static int64_t pieces(const Group& group, int64_t begin, int64_t piece) {
    return (tiles(group, begin).size() + piece - 1) / piece;
  }

  void score(const Group& group, int64_t begin, Range tiles) const {
    const IndexSpec& index = step_.indexer;
    if (index.keys.ratio <= 1) return score_tiles(group, begin, tiles, group.tiles);
    // A tile of keys lies in several pages.
    const int64_t in_page = RowPlace::in_page(index.keys.ratio), n_pages = kTile / in_page;
    const std::byte* gathered[kGathered];
    for (int64_t t = tiles.begin; t < tiles.end; t += kGathered) {
      const int64_t n = std::min(kGathered, tiles.end - t);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t n_there = std::min(n_pages, (group.end - (t + i) * kTile + in_page - 1) / in_page);
        std::byte* const tile = gathered_tile(i);
        gather_index_keys(index, exec_.plan->kv.type, group.tiles + (t + i) * n_pages, n_there, tile);
        gathered[i] = tile;
      }
      score_tiles(group, begin - t * kTile, {0, n}, gathered);
    }
  }
  std::byte* gathered_tile(int64_t i) const {
    const auto dim = static_cast<int>(step_.indexer.dim);
    return exec_.worker_scratch(worker_) + round_up<int64_t>(kernels::index_scratch_bytes(dim), 64) +
           i * kernels::kv_tile_bytes(exec_.plan->kv.type, dim);
  }

  void score_tiles(const Group& group, int64_t begin, Range tiles, const std::byte* const* pages) const {
    const IndexSpec& index = step_.indexer;
    exec_.table->index_scores({.type = exec_.plan->kv.type,
                               .dim = static_cast<int>(index.dim),
                               .n_heads = static_cast<int>(index.n_heads),
                               .n_tokens = static_cast<int>(group.n),
                               .q = exec_.row(Buf::kGate, group.row0),
                               .q_stride = exec_.stride(Buf::kGate),
                               .weights = exec_.row(Buf::kDown, group.row0) + index.weight_column,
                               .weight_stride = exec_.stride(Buf::kDown),
                               .pages = pages,
                               .k_offset = pages == group.tiles ? index.keys.k_offset(0) : 0,
                               .tile_begin = tiles.begin,
                               .tile_end = tiles.end,
                               .scores = scores(group.first) + tiles.begin * kTile - begin,
                               .score_stride = kStretch,
                               .scratch = exec_.worker_scratch(worker_)});
  }

  void keep_best(const Round& round, int64_t begin) {
    worker_.each(round.n_rows, 1, [&](Range one) {
      const int64_t i = one.begin;
      int g = 0;
      while (i >= round.groups[g].first + round.groups[g].n) ++g;
      const Group& group = round.groups[g];
      const int64_t row = group.row0 + i - group.first, end = seen_at(group.position0 + i - group.first, round.ratio);
      const int64_t n = std::min(end - begin, kStretch);
      if (n <= 0) return;
      if (begin == 0) state(i) = {};
      if (!exec_.table->all_finite(scores(i), n)) exec_.mark_bad(exec_.original_row(row), step_);
      TopPositions top = best(i);
      top.add(state(i), scores(i), n, begin);
      if (end <= begin + kStretch) top.finish(state(i), exec_.selected(row));
    });
  }

  const Step& step_;
  Exec& exec_;
  Worker& worker_;
  bool first_ = true;
};

}  // namespace

int64_t select_scratch_bytes(int64_t most_seen) noexcept {
  return kRows * (kStretch * static_cast<int64_t>(sizeof(float)) + static_cast<int64_t>(sizeof(TopPositions::State)) +
                  TopPositions::bytes(most_seen));
}

int64_t index_scratch_bytes(const IndexSpec& index, kernels::KvType type) noexcept {
  const auto dim = static_cast<int>(index.dim);
  const int64_t scratch = kernels::index_scratch_bytes(dim);
  if (index.keys.ratio <= 1) return scratch;
  return round_up<int64_t>(scratch, 64) + kGathered * kernels::kv_tile_bytes(type, dim);
}

void index_query_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* q = exec.row(Buf::kGate, r);
    for (int64_t head = 0; head < step.indexer.n_heads; ++head) {
      rotate_head(step.indexer.rotation, exec, r, q + head * step.indexer.dim + step.indexer.first_turned);
    }
  }
}

void select_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const int64_t most = step.indexer.most_seen, ratio = std::max<int64_t>(1, step.indexer.keys.ratio);
  Selection selection(step, exec, worker);
  Round round{.ratio = ratio, .groups = {}};
  for (const RowSpan& span : step.outputs_only ? exec.output_spans : exec.spans) {
    // Rows that may see everything so far do.
    const int64_t n_whole = std::clamp<int64_t>((most + 1) * ratio - 1 - span.position0, 0, span.n);
    const Range whole = worker.share(n_whole);
    for (int64_t i = whole.begin; i < whole.end; ++i) {
      int32_t* selected = exec.selected(span.q_row0 + i);
      for (int64_t p = 0; p < seen_at(span.position0 + i, ratio); ++p) selected[p] = static_cast<int32_t>(p);
    }
    for (int64_t i = n_whole; i < span.n;) {
      i += round.add(
          {.row0 = span.q_row0 + i, .n = span.n - i, .position0 = span.position0 + i, .tiles = span.tiles, .first = 0});
      if (round.n_rows == kRows) selection.run(round);
    }
  }
  if (round.n_rows > 0) selection.run(round);
}

}  // namespace stoker::model
