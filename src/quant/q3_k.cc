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
  uint8_t pairs[kWeights];
  split_bit_pairs(block.qs, pairs);
  for (int run = 0; run < 8; ++run) {
    for (int l = 0; l < 32; ++l) {
      const int high = (block.hmask[l] >> run) & 1;
      q[32 * run + l] = static_cast<int8_t>(pairs[32 * run + l] + 4 * high - 4);
    }
  }
}

}  // namespace stoker::quant
