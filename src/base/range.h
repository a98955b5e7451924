#pragma once

#include <cstdint>

namespace stoker {

/// A half-open range of work items.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

}  // namespace stoker
