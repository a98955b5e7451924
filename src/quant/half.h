// Scales as files hold them. A finite number never becomes infinity on the way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/f16.h"

namespace stoker::quant {

inline constexpr float kLargestFloat = std::numeric_limits<float>::max();
inline constexpr float kLargestHalf = 65504.0f;
inline constexpr float kSmallestHalf = 0x1p-24f;

/// `value` as it is, or the nearest number that f16 can hold where it would become infinity.
inline float within_half(float value) {
  constexpr float kBecomesInfinity = 65520.0f;
  if (std::fabs(value) < kBecomesInfinity) return value;
  return value < 0 ? -kLargestHalf : kLargestHalf;
}

inline uint16_t finite_half(float value) { return f32_to_f16(within_half(value)); }

/// 1 / d; 0 where that is infinite: numbers that small are zero in every type with f16 scales.
inline float inverse_or_zero(float d) {
  const float inverse = 1.0f / d;
  return std::fabs(inverse) <= kLargestFloat ? inverse : 0.0f;
}

/// Nearest integer, ties to even, of values below 2^22; no call of the mathematics library.
inline int nearest(float value) {
  constexpr float kMagic = 0x1.8p23f;
  return static_cast<int>((value + kMagic) - kMagic);
}

inline int nearest_within(float value, int lo, int hi) {
  return nearest(std::clamp(value, static_cast<float>(lo), static_cast<float>(hi)));
}

}  // namespace stoker::quant
