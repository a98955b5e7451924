#include "quant/q4.h"

#include <algorithm>

#include "quant/legacy.h"
#include "quant/nibbles.h"
namespace stoker::quant {

void Q4_0::levels(const Block& block, int8_t* q) {
  uint8_t nibbles[kWeights];
  split_nibbles(block.qs, nibbles);
  for (int i = 0; i < kWeights; ++i) q[i] = static_cast<int8_t>(nibbles[i] - 8);
}

void Q4_1::levels(const Block& block, int8_t* q) {
  uint8_t nibbles[kWeights];
  split_nibbles(block.qs, nibbles);
  std::copy_n(nibbles, kWeights, q);
}

void Q4_0::encode(const float* x, Block& block) {
  uint8_t nibbles[kWeights];
  block.d = finite_half(symmetric_levels(x, kWeights, 8, nibbles));
  join_nibbles(nibbles, block.qs);
}

void Q4_1::encode(const float* x, Block& block) {
  uint8_t nibbles[kWeights];
  const auto [d, m] = offset_levels(x, kWeights, 15, nibbles);
  block.d = finite_half(d);
  block.m = finite_half(m);
  join_nibbles(nibbles, block.qs);
}

}  // namespace stoker::quant
