#include "quant/q8_0.h"

#include <algorithm>

#include "quant/legacy.h"
namespace stoker::quant {

void Q8_0::levels(const Block& block, int8_t* q) { std::copy_n(block.qs, kWeights, q); }

void Q8_0::encode(const float* x, Block& block) {
  const float d = within_half(std::fabs(extreme_of(x, kWeights)) / 127.0f), inverse = inverse_or_zero(d);
  block.d = finite_half(d);
  for (int i = 0; i < kWeights; ++i) {
    const float value = std::clamp(x[i] * inverse, -127.0f, 127.0f), magnitude = std::fabs(value);
    // Halves go away from zero. Adding 0.5 first would round 0.49999997 up.
    const auto whole = static_cast<int>(magnitude);
    const int rounded = whole + (magnitude - static_cast<float>(whole) >= 0.5f ? 1 : 0);
    block.qs[i] = static_cast<int8_t>(value < 0 ? -rounded : rounded);
  }
}

}  // namespace stoker::quant
