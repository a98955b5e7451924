#include "quant/q5_k.h"

#include "quant/k_scales.h"

namespace stoker::quant {

void Q5K::scales(const Block& block, int8_t* scales, int8_t* mins) { unpack_pairs(block.scales, scales, mins); }

void Q5K::levels(const Block& block, int8_t* q) {
  for (int i = 0; i < kWeights; ++i) {
    const int shift = i / 32 % 2 * 4;
    const int low = (block.qs[i / 64 * 32 + i % 32] >> shift) & 15;
    const int high = (block.qh[i % 32] >> (i / 32)) & 1;
    q[i] = static_cast<int8_t>(low | (high << 4));
  }
}

}  // namespace stoker::quant
