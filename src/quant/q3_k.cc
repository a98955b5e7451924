#include "quant/q3_k.h"

#include "quant/nibbles.h"

namespace stoker::quant {

void Q3K::scales(const Block& block, int8_t* scales) {
  for (int j = 0; j < kWeights / kSubBlock; ++j) {
    const int low = j < 8 ? block.scales[j] & 15 : block.scales[j - 8] >> 4;
    const int high = (block.scales[8 + j % 4] >> (2 * (j / 4))) & 3;
    scales[j] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
}

void Q3K::levels(const Block& block, int8_t* q) {
  for (int i = 0; i < kWeights; ++i) {
    const int high = (block.hmask[i % 32] >> (i / 32)) & 1;
    q[i] = static_cast<int8_t>(crumb(block.qs, i) + 4 * high - 4);
  }
}

}  // namespace stoker::quant
