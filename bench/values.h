#pragma once

#include <cstdint>
#include <vector>

namespace stoker::bench {

/// `n` values between -1 and 1, the same at every call.
inline std::vector<float> values(int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  uint32_t state = 1;
  for (float& value : out) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return out;
}

}  // namespace stoker::bench
