#include "quant/q5_k.h"

#include "quant/k_scales.h"
#include "quant/nibbles.h"

namespace stoker::quant {

void Q5K::scales(const Block& block, int8_t* scales, int8_t* mins) { unpack_pairs(block.scales, scales, mins); }

void Q5K::levels(const Block& block, int8_t* q) {
  uint8_t nibbles[kWeights];
  split_paired_nibbles(block.qs, nibbles);
  for (int j = 0; j < 8; ++j) {
    for (int l = 0; l < 32; ++l) {
      const int high = (block.qh[l] >> j) & 1;
      q[32 * j + l] = static_cast<int8_t>(nibbles[32 * j + l] | (high << 4));
    }
  }
}

}  // namespace stoker::quant
