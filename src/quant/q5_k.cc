#include "quant/q5_k.h"

#include "quant/k_scales.h"
#include "quant/nibbles.h"
#include "quant/search.h"
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

void Q5K::encode(const float* x, Block& block) {
  OffsetBlock fit;
  fit_offset(x, kSubBlock, 31, 63, fit);
  block = {};
  block.d = fit.d;
  block.dmin = fit.dmin;
  pack_pairs(fit.scales, fit.mins, block.scales);
  uint8_t nibbles[kWeights];
  for (int i = 0; i < kWeights; ++i) {
    nibbles[i] = fit.q[i] & 15;
    block.qh[i % 32] = static_cast<uint8_t>(block.qh[i % 32] | ((fit.q[i] >> 4) << (i / 32)));
  }
  join_paired_nibbles(nibbles, block.qs);
}

}  // namespace stoker::quant
