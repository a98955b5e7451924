#include "quant/mxfp4.h"

#include "quant/legacy.h"
#include "quant/nibbles.h"
namespace stoker::quant {

void MXFP4::levels(const Block& block, int8_t* q) {
  uint8_t nibbles[kWeights];
  split_nibbles(block.qs, nibbles);
  for (int i = 0; i < kWeights; ++i) q[i] = kLevels[nibbles[i]];
}

void MXFP4::encode(const float* x, Block& block) {
  // The largest magnitude, whose exponent is E, becomes 4 to 8 in steps of the standard's scale 2^(E - 2); above 6 it
  // saturates.
  const uint32_t exponent = (std::bit_cast<uint32_t>(extreme_of(x, kWeights)) >> 23) & 255;
  block.e = static_cast<uint8_t>(exponent < 2 ? 0 : exponent - 2);
  const float d = scale(block);
  uint8_t nibbles[kWeights];
  for (int i = 0; i < kWeights; ++i) {
    // The first of the closest: 0 rather than the other zero, 8.
    const auto closer = [&](int8_t a, int8_t b) { return std::fabs(d * a - x[i]) < std::fabs(d * b - x[i]); };
    nibbles[i] = static_cast<uint8_t>(std::min_element(kLevels, kLevels + 16, closer) - kLevels);
  }
  join_nibbles(nibbles, block.qs);
}

}  // namespace stoker::quant
