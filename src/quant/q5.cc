#include "quant/q5.h"

#include <algorithm>

#include "quant/nibbles.h"

namespace stoker::quant {

namespace {

void split_levels(const uint8_t* qs, const uint8_t* qh, uint8_t* levels) {
  split_nibbles(qs, levels);
  for (int i = 0; i < 32; ++i) levels[i] = static_cast<uint8_t>(levels[i] | (((qh[i / 8] >> (i % 8)) & 1) << 4));
}

}  // namespace

void Q5_0::levels(const Block& block, int8_t* q) {
  uint8_t unsigned_levels[kWeights];
  split_levels(block.qs, block.qh, unsigned_levels);
  for (int i = 0; i < kWeights; ++i) q[i] = static_cast<int8_t>(unsigned_levels[i] - 16);
}

void Q5_1::levels(const Block& block, int8_t* q) {
  uint8_t unsigned_levels[kWeights];
  split_levels(block.qs, block.qh, unsigned_levels);
  std::copy_n(unsigned_levels, kWeights, q);
}

}  // namespace stoker::quant
