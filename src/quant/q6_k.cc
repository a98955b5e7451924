#include "quant/q6_k.h"

#include <algorithm>

#include "quant/nibbles.h"
#include "quant/search.h"
namespace stoker::quant {

void Q6K::scales(const Block& block, int8_t* scales) { std::copy_n(block.scales, kWeights / kSubBlock, scales); }

void Q6K::levels(const Block& block, int8_t* q) {
  uint8_t high[kWeights];
  split_bit_pairs(block.qh, high);
  for (int half = 0; half < 2; ++half) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      const uint8_t* ql = block.ql + 64 * half + 32 * (quarter % 2);
      const int first = 128 * half + 32 * quarter, shift = 4 * (quarter / 2);
      for (int l = 0; l < 32; ++l) {
        q[first + l] = static_cast<int8_t>((((ql[l] >> shift) & 15) | (high[first + l] << 4)) - 32);
      }
    }
  }
}

void Q6K::encode(const float* x, Block& block) {
  ScaledBlock fit;
  fit_scaled(x, kSubBlock, {.lo = -32, .hi = 31}, -128, 127, fit);
  block = {};
  block.d = fit.d;
  std::copy_n(fit.scales, 16, block.scales);
  uint8_t high[kWeights];
  for (int i = 0; i < kWeights; ++i) {
    const int level = fit.q[i] + 32, half = i / 128, quarter = i % 128 / 32;
    uint8_t& low = block.ql[64 * half + 32 * (quarter % 2) + i % 32];
    low = static_cast<uint8_t>(low | ((level & 15) << (4 * (quarter / 2))));
    high[i] = static_cast<uint8_t>(level >> 4);
  }
  join_bit_pairs(high, block.qh);
}

}  // namespace stoker::quant
