#include "quant/mxfp4.h"

#include "quant/nibbles.h"

namespace stoker::quant {

void MXFP4::levels(const Block& block, int8_t* q) {
  for (int i = 0; i < kWeights; ++i) q[i] = kLevels[split_nibble(block.qs, i)];
}

}  // namespace stoker::quant
