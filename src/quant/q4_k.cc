#include "quant/q4_k.h"

#include <algorithm>

#include "quant/k_scales.h"
#include "quant/nibbles.h"
#include "quant/search.h"
namespace stoker::quant {

void Q4K::scales(const Block& block, int8_t* scales, int8_t* mins) { unpack_pairs(block.scales, scales, mins); }

void Q4K::levels(const Block& block, int8_t* q) {
  uint8_t nibbles[kWeights];
  split_paired_nibbles(block.qs, nibbles);
  std::copy_n(nibbles, kWeights, q);
}

void Q4K::encode(const float* x, Block& block) {
  OffsetBlock fit;
  fit_offset(x, kSubBlock, 15, 63, fit);
  block.d = fit.d;
  block.dmin = fit.dmin;
  pack_pairs(fit.scales, fit.mins, block.scales);
  join_paired_nibbles(fit.q, block.qs);
}

}  // namespace stoker::quant
