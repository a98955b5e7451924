#include "quant/q6_k.h"

#include <algorithm>

#include "quant/nibbles.h"

namespace stoker::quant {

void Q6K::scales(const Block& block, int8_t* scales) { std::copy_n(block.scales, kWeights / kSubBlock, scales); }

void Q6K::levels(const Block& block, int8_t* q) {
  for (int i = 0; i < kWeights; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const int low = (block.ql[64 * half + 32 * (quarter % 2) + l] >> (4 * (quarter / 2))) & 15;
    q[i] = static_cast<int8_t>((low | (crumb(block.qh, i) << 4)) - 32);
  }
}

}  // namespace stoker::quant
