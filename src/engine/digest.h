#pragma once

#include <cstdint>
#include <string>

#include "base/xxh3.h"

namespace stoker::engine {

/// XXH3-64 (seed 0) over rows of logits, little-endian f32: how anyone sees that two runs gave the same bits.
class Digest {
 public:
  void add(const float* row, int64_t n) { xxh3_.add(std::as_bytes(std::span(row, static_cast<size_t>(n)))); }
  /// 16 hex digits.
  std::string hex() const;

 private:
  Xxh3 xxh3_;
};

}  // namespace stoker::engine
