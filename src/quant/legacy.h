// The rounding of the oldest types, to the bit: scale from the extremes, then one multiplication and truncation a
// weight.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "quant/half.h"

namespace stoker::quant {

/// The value of largest magnitude with its sign; the first of equals.
inline float extreme_of(const float* x, int n) {
  float extreme = 0;
  for (int i = 0; i < n; ++i) extreme = std::fabs(x[i]) > std::fabs(extreme) ? x[i] : extreme;
  return extreme;
}

/// floor(value + 0.5) for values from 0 to top; what lies outside goes to the end.
inline uint8_t truncate_half_up(float value, int top) {
  return static_cast<uint8_t>(std::clamp(value + 0.5f, 0.0f, static_cast<float>(top)));
}

/// Levels 0 ... 2 * middle - 1 where the extreme value gets level 0. Returns the scale.
inline float symmetric_levels(const float* x, int n, int middle, uint8_t* levels) {
  const float d = within_half(extreme_of(x, n) / static_cast<float>(-middle)), inverse = inverse_or_zero(d);
  // One addition of middle + 0.5: two would round twice.
  const float shift = static_cast<float>(middle) + 0.5f, top = static_cast<float>(2 * middle - 1);
  for (int i = 0; i < n; ++i) levels[i] = static_cast<uint8_t>(std::clamp(x[i] * inverse + shift, 0.0f, top));
  return d;
}

struct ScaleAndMin {
  float d, m;
};

/// Levels 0 ... top between the smallest and the largest value.
inline ScaleAndMin offset_levels(const float* x, int n, int top, uint8_t* levels) {
  const auto [smallest, largest] = std::minmax_element(x, x + n);
  const float m = within_half(*smallest);
  // Below zero only when all values lie below the smallest that f16 can hold.
  const float d = std::max(within_half((*largest - m) / static_cast<float>(top)), 0.0f), inverse = inverse_or_zero(d);
  for (int i = 0; i < n; ++i) levels[i] = truncate_half_up((x[i] - m) * inverse, top);
  return {d, m};
}

}  // namespace stoker::quant
