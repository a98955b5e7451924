#include "quant/q4.h"

#include "quant/nibbles.h"

namespace stoker::quant {

void Q4_0::levels(const Block& block, int8_t* q) {
  for (int i = 0; i < kWeights; ++i) q[i] = static_cast<int8_t>(split_nibble(block.qs, i) - 8);
}

void Q4_1::levels(const Block& block, int8_t* q) {
  for (int i = 0; i < kWeights; ++i) q[i] = static_cast<int8_t>(split_nibble(block.qs, i));
}

}  // namespace stoker::quant
