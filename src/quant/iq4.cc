#include "quant/iq4.h"

#include "quant/nibbles.h"

namespace stoker::quant {

void IQ4NL::levels(const Block& block, int8_t* q) {
  uint8_t nibbles[kWeights];
  split_nibbles(block.qs, nibbles);
  for (int i = 0; i < kWeights; ++i) q[i] = kIq4Levels[nibbles[i]];
}

void IQ4XS::scales(const Block& block, int8_t* scales) {
  for (int j = 0; j < kWeights / kSubBlock; ++j) {
    const int low = (block.scales_l[j / 2] >> (4 * (j % 2))) & 15;
    const int high = (block.scales_h >> (2 * j)) & 3;
    scales[j] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
}

void IQ4XS::levels(const Block& block, int8_t* q) {
  uint8_t nibbles[kWeights];
  for (int j = 0; j < kWeights / kSubBlock; ++j) split_nibbles(block.qs + 16 * j, nibbles + kSubBlock * j);
  for (int i = 0; i < kWeights; ++i) q[i] = kIq4Levels[nibbles[i]];
}

}  // namespace stoker::quant
