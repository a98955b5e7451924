#include "quant/mxfp4.h"

#include "quant/nibbles.h"

namespace stoker::quant {

void MXFP4::levels(const Block& block, int8_t* q) {
  uint8_t nibbles[kWeights];
  split_nibbles(block.qs, nibbles);
  for (int i = 0; i < kWeights; ++i) q[i] = kLevels[nibbles[i]];
}

}  // namespace stoker::quant
