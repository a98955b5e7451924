// Attention whose tiles are shared among workers: one long sequence on several threads.
//
// The tiles of all calls stand in one line, call after call, and every worker gets an equal stretch of it; so most
// calls stay whole and at most one is cut at each border. The first piece of a cut call merges its tiles as it goes and
// leaves one part; the other pieces leave a part per tile, because the order of the merge is the order of tiles
// (docs/kernels.md#attention). After a barrier those are merged onto the first, queries shared among workers. What does
// not fit into the memory for parts is done in rounds.
#include <algorithm>

#include "kernels/kv_layout.h"
#include "model/blocks/attention_calls.h"

namespace stoker::model {
namespace {

using kernels::AttentionPart;

constexpr int64_t kFewCalls = 4;     // Per worker; with more of them idle workers find something.
constexpr int64_t kFewestTiles = 4;  // Per worker; below that a barrier costs more than it gains.

int64_t part_floats(int n_queries, int64_t v_dim) { return AttentionPart(n_queries, static_cast<int>(v_dim)).total; }

/// A line of tiles, cut into rounds and these into one stretch per worker.
class Line {
 public:
  Line(const AttentionCalls& calls, int64_t n_calls, int n_workers, int64_t parts_bytes)
      : calls_(calls), n_calls_(n_calls), n_workers_(n_workers) {
    int most_queries = 1;
    for (int64_t i = 0; i < n_calls; ++i) {
      const AttentionCall call = calls.at(i);
      const int64_t n = call.tiles(calls.spec).size();
      n_tiles_ += n;
      longest_ = std::max(longest_, n);
      most_queries = std::max(most_queries, call.n_queries());
    }
    const int64_t floats = part_floats(most_queries, calls.spec.v_dim);
    // Two of the parts are for first pieces, of this round and of the one before.
    const int64_t most_tiles = parts_bytes / (floats * static_cast<int64_t>(sizeof(float))) - 2;
    n_rounds_ = (n_tiles_ + most_tiles * n_workers - 1) / (most_tiles * n_workers);
    slot_floats_ = floats;
  }

  /// Whether whole calls would leave workers idle for an eighth of the time or more.
  bool is_uneven() const {
    const int64_t turns = (n_calls_ + n_workers_ - 1) / n_workers_;
    return 8 * n_workers_ * std::max(longest_, turns * n_tiles_ / n_calls_) >= 9 * n_tiles_;
  }
  int64_t n_tiles() const { return n_tiles_; }
  int64_t n_rounds() const { return n_rounds_; }
  int64_t slot_floats() const { return slot_floats_; }
  Range round(int64_t r) const { return {n_tiles_ * r / n_rounds_, n_tiles_ * (r + 1) / n_rounds_}; }
  Range stretch(Range round, int worker) const {
    return {round.begin + round.size() * worker / n_workers_, round.begin + round.size() * (worker + 1) / n_workers_};
  }
  /// Who does tile `at` of the line.
  int worker_of(Range round, int64_t at) const {
    int worker = 0;
    while (stretch(round, worker).end <= at) ++worker;
    return worker;
  }
  /// f(call, where it lies in the line) for all calls.
  template <class F>
  void each_call(F f) const {
    int64_t at = 0;
    for (int64_t i = 0; i < n_calls_; ++i) {
      const AttentionCall call = calls_.at(i);
      const int64_t n = call.tiles(calls_.spec).size();
      f(call, Range{at, at + n});
      at += n;
    }
  }

 private:
  const AttentionCalls& calls_;
  int64_t n_calls_;
  int n_workers_;
  int64_t n_tiles_ = 0, longest_ = 0, n_rounds_ = 1, slot_floats_ = 0;
};

Range common(Range a, Range b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

struct Sharing {
  const Step& step;
  Exec& exec;
  Worker& worker;
  const Line& line;

  /// Where `w` leaves the part of a first piece in round r, and those of single tiles.
  float* first_part(int64_t r, int w) const { return exec.parts(w) + r % 2 * line.slot_floats(); }
  float* tile_parts(int w) const { return exec.parts(w) + 2 * line.slot_floats(); }
  /// Where the merged tiles of a call stand after round r.
  float* total(int64_t r, Range in_line) const {
    const Range round = line.round(r);
    return first_part(r, line.worker_of(round, common(in_line, round).begin));
  }

  void compute(int64_t r) const {
    const Range mine = line.stretch(line.round(r), worker.index());
    line.each_call([&](const AttentionCall& call, Range in_line) {
      const Range piece = common(mine, in_line);
      if (piece.begin >= piece.end) return;
      QueryList list;
      kernels::AttentionArgs args = list.fill(step, exec, worker, call);
      if (piece.size() < in_line.size()) {
        const int64_t first_tile = call.tiles(step.attention).begin - in_line.begin;
        args.tile_begin = piece.begin + first_tile;
        args.tile_end = piece.end + first_tile;
        const bool goes_on = piece.begin == line.round(r).begin && piece.begin > in_line.begin;
        if (goes_on) args.before = total(r - 1, in_line);
        args.each_tile = piece.begin > in_line.begin && !goes_on;
        args.parts = args.each_tile ? tile_parts(worker.index()) : first_part(r, worker.index());
      }
      exec.table->attention(args);
    });
  }

  void merge(int64_t r) const {
    const Range round = line.round(r);
    line.each_call([&](const AttentionCall& call, Range in_line) {
      const Range now = common(round, in_line);
      if (now.begin >= now.end) return;
      const int first = line.worker_of(round, now.begin), last = line.worker_of(round, now.end - 1);
      const bool ends = now.end == in_line.end;
      if (first == last && (!ends || now.size() == in_line.size())) return;
      const Range mine = worker.share(call.n_queries());
      if (mine.begin >= mine.end) return;
      QueryList list;
      list.fill(step, exec, worker, call);
      for (int w = std::min(first + 1, last); w <= last; ++w) {
        const int64_t n_parts = w == first ? 0 : common(line.stretch(round, w), in_line).size();
        exec.table->attention_merge({.v_dim = static_cast<int>(step.attention.v_dim),
                                     .queries = list.queries,
                                     .n_queries = call.n_queries(),
                                     .query_begin = static_cast<int>(mine.begin),
                                     .query_end = static_cast<int>(mine.end),
                                     .total = first_part(r, first),
                                     .parts = tile_parts(w),
                                     .n_parts = n_parts,
                                     .last = ends && w == last});
      }
    });
  }
};

}  // namespace

bool share_tiles(const Step& step, Exec& exec, Worker& worker, const AttentionCalls& calls, int64_t n_calls) noexcept {
  if (worker.count() == 1 || n_calls >= kFewCalls * worker.count()) return false;
  for (int64_t i = 0; i < n_calls; ++i) {
    if (calls.at(i).n_queries() > kMostSharingQueries) return false;
  }
  const Line line(calls, n_calls, worker.count(), exec.parts_bytes);
  if (line.n_tiles() < kFewestTiles * worker.count() || !line.is_uneven()) return false;
  const Sharing sharing{step, exec, worker, line};
  for (int64_t r = 0; r < line.n_rounds(); ++r) {
    if (r > 0) worker.barrier();
    sharing.compute(r);
    worker.barrier();
    sharing.merge(r);
  }
  return true;
}

}  // namespace stoker::model
