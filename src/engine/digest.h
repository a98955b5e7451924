#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace stoker::engine {

/// XXH3-64 (seed 0) over rows of logits, little-endian f32: how anyone sees that two runs gave the same bits.
class Digest {
 public:
  Digest();
  ~Digest();
  void add(const float* row, int64_t n);
  /// 16 hex digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::engine
