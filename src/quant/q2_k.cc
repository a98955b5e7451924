#include "quant/q2_k.h"

#include <algorithm>

#include "quant/nibbles.h"
#include "quant/search.h"
namespace stoker::quant {

void Q2K::scales(const Block& block, int8_t* scales, int8_t* mins) {
  for (int j = 0; j < kWeights / kSubBlock; ++j) {
    scales[j] = static_cast<int8_t>(block.scales[j] & 15);
    mins[j] = static_cast<int8_t>(block.scales[j] >> 4);
  }
}

void Q2K::levels(const Block& block, int8_t* q) {
  uint8_t pairs[kWeights];
  split_bit_pairs(block.qs, pairs);
  std::copy_n(pairs, kWeights, q);
}

void Q2K::encode(const float* x, Block& block) {
  OffsetBlock fit;
  fit_offset(x, kSubBlock, 3, 15, fit);
  block.d = fit.d;
  block.dmin = fit.dmin;
  for (int j = 0; j < 16; ++j) block.scales[j] = static_cast<uint8_t>(fit.scales[j] | (fit.mins[j] << 4));
  join_bit_pairs(fit.q, block.qs);
}

}  // namespace stoker::quant
