#include "quant/q4_k.h"

#include "quant/k_scales.h"

namespace stoker::quant {

void Q4K::scales(const Block& block, int8_t* scales, int8_t* mins) { unpack_pairs(block.scales, scales, mins); }

void Q4K::levels(const Block& block, int8_t* q) {
  for (int i = 0; i < kWeights; ++i) {
    const int shift = i / 32 % 2 * 4;
    q[i] = static_cast<int8_t>((block.qs[i / 64 * 32 + i % 32] >> shift) & 15);
  }
}

}  // namespace stoker::quant
