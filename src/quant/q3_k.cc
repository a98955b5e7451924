#include "quant/q3_k.h"

#include "quant/nibbles.h"
#include "quant/search.h"
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

void Q3K::encode(const float* x, Block& block) {
  ScaledBlock fit;
  fit_scaled(x, kSubBlock, {.lo = -4, .hi = 3}, -32, 31, fit);
  block = {};
  block.d = fit.d;
  for (int j = 0; j < 16; ++j) {
    const int code = fit.scales[j] + 32, low = j < 8 ? code & 15 : (code & 15) << 4;
    block.scales[j % 8] = static_cast<uint8_t>(block.scales[j % 8] | low);
    block.scales[8 + j % 4] = static_cast<uint8_t>(block.scales[8 + j % 4] | ((code >> 4) << (2 * (j / 4))));
  }
  uint8_t pairs[kWeights];
  for (int i = 0; i < kWeights; ++i) {
    const int level = fit.q[i] + 4;
    pairs[i] = level & 3;
    block.hmask[i % 32] = static_cast<uint8_t>(block.hmask[i % 32] | ((level >> 2) << (i / 32)));
  }
  join_bit_pairs(pairs, block.qs);
}

}  // namespace stoker::quant
