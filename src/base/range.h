#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {

/// A half-open range of work items.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  /// What it has of the `n` items from `first` on, counted from there; with nothing of them, end <= begin.
  Range of_items(int64_t first, int64_t n) const {
    return {std::max<int64_t>(begin - first, 0), std::min(end - first, n)};
  }
};

}  // namespace stoker
