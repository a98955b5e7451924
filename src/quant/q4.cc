#include "quant/q4.h"

#include <algorithm>

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

}  // namespace stoker::quant
