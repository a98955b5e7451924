#include "quant/q5.h"

#include "quant/nibbles.h"

namespace stoker::quant {

namespace {

int level(const uint8_t* qs, const uint8_t* qh, int i) {
  return split_nibble(qs, i) | (((qh[i / 8] >> (i % 8)) & 1) << 4);
}

}  // namespace

void Q5_0::levels(const Block& block, int8_t* q) {
  for (int i = 0; i < kWeights; ++i) q[i] = static_cast<int8_t>(level(block.qs, block.qh, i) - 16);
}

void Q5_1::levels(const Block& block, int8_t* q) {
  for (int i = 0; i < kWeights; ++i) q[i] = static_cast<int8_t>(level(block.qs, block.qh, i));
}

}  // namespace stoker::quant
