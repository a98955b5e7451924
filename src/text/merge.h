#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "text/merge_table.h"

namespace stoker::text {

/// A text cut into symbols. Symbol i is bytes [starts[i], starts[i + 1]) and has id ids[i]; `starts` has one more
/// entry.
struct Symbols {
  std::vector<int32_t> ids;
  std::vector<size_t> starts;

  void clear() {
    ids.clear();
    starts.clear();
  }
  void add(int32_t id, size_t start) {
    ids.push_back(id);
    starts.push_back(start);
  }
  size_t size() const { return ids.size(); }
};

/// Below this many symbols, looking through all pairs for the best one is faster than a heap.
constexpr size_t kFewSymbols = 32;

namespace detail {

// Pair is a function of (left id, right id, first byte, end byte) that gives the Merge of two neighbours.
template <class Pair>
void merge_few(Symbols& s, const Pair& pair) {
  Merge merges[kFewSymbols];
  size_t n = s.size();
  auto update = [&](size_t i) { merges[i] = pair(s.ids[i], s.ids[i + 1], s.starts[i], s.starts[i + 2]); };
  for (size_t i = 0; i + 1 < n; ++i) update(i);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (merges[i].rank < merges[best].rank) best = i;
    if (merges[best].rank == kNoMerge) break;
    s.ids[best] = merges[best].result;
    --n;
    for (size_t i = best + 1; i < n; ++i) {
      s.ids[i] = s.ids[i + 1];
      merges[i - 1] = merges[i];
    }
    for (size_t i = best + 1; i <= n; ++i) s.starts[i] = s.starts[i + 1];
    if (best > 0) update(best - 1);
    if (best + 1 < n) update(best);
  }
  s.ids.resize(n);
  s.starts.resize(n + 1);
}

// Symbols as a linked list, candidates in a heap. An entry of the heap is out of date when its pair has another rank by
// now; where the rank is the same the entry does what the current one would do.
template <class Index, class Pair>
class HeapMerger {
 public:
  HeapMerger(Symbols& s, const Pair& pair) : s_(s), pair_(pair), n_(static_cast<Index>(s.size())) {}

  void run() {
    next_.resize(n_ + size_t{1});
    previous_.resize(n_ + size_t{1});
    merges_.resize(n_);
    for (Index i = 0; i <= n_; ++i) {
      next_[i] = i + 1;
      previous_[i] = i - 1;
    }
    for (Index i = 0; i + 1 < n_; ++i) {
      update(i);
      if (merges_[i].rank != kNoMerge) heap_.push_back({merges_[i].rank, i});
    }
    std::make_heap(heap_.begin(), heap_.end());
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      Entry top = heap_.back();
      heap_.pop_back();
      if (merges_[top.at].rank == top.rank) join(top.at);
    }
    compact();
  }

 private:
  struct Entry {
    uint32_t rank;
    Index at;
    bool operator<(const Entry& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };

  void update(Index i) {
    Index right = next_[i];
    merges_[i] = right == n_ ? Merge{} : pair_(s_.ids[i], s_.ids[right], s_.starts[i], s_.starts[next_[right]]);
  }
  void renew(Index i) {
    update(i);
    if (merges_[i].rank == kNoMerge) return;
    heap_.push_back({merges_[i].rank, i});
    std::push_heap(heap_.begin(), heap_.end());
  }
  void join(Index i) {
    Index gone = next_[i];
    s_.ids[i] = merges_[i].result;
    next_[i] = next_[gone];
    previous_[next_[gone]] = i;
    merges_[gone] = Merge{};
    renew(i);
    if (i > 0) renew(previous_[i]);
  }
  void compact() {
    size_t n = 0;
    for (Index i = 0; i != n_; i = next_[i], ++n) {
      s_.ids[n] = s_.ids[i];
      s_.starts[n] = s_.starts[i];
    }
    s_.starts[n] = s_.starts[n_];
    s_.ids.resize(n);
    s_.starts.resize(n + 1);
  }

  Symbols& s_;
  const Pair& pair_;
  Index n_;
  std::vector<Index> next_, previous_;  // Place n_ is the end.
  std::vector<Merge> merges_;           // Of symbol i with the one behind it.
  std::vector<Entry> heap_;
};

}  // namespace detail

/// Joins neighbours, the lowest rank first and the leftmost of equal ones, until none can be. O(n log n), no recursion.
template <class Pair>
void merge_all(Symbols& s, const Pair& pair) {
  if (s.size() <= kFewSymbols) {
    detail::merge_few(s, pair);
  } else if (s.size() < std::numeric_limits<uint32_t>::max()) {
    detail::HeapMerger<uint32_t, Pair>(s, pair).run();
  } else {
    detail::HeapMerger<uint64_t, Pair>(s, pair).run();
  }
}

}  // namespace stoker::text
