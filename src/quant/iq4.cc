#include "quant/iq4.h"

#include <algorithm>

#include "quant/nibbles.h"
#include "quant/search.h"
namespace stoker::quant {
namespace {

// Guesses 5 % around the scale that makes the extreme weight -127.
constexpr LevelSet kIq4Set{.lo = -127, .hi = 113, .table = kIq4Levels, .step = 1.0f, .tries = 7};

uint8_t index_of(int level) {
  return static_cast<uint8_t>(std::lower_bound(kIq4Levels, kIq4Levels + 16, level) - kIq4Levels);
}

}  // namespace

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

void IQ4NL::encode(const float* x, Block& block) {
  block = {};
  UnitRange range;
  float y[kWeights];
  uint8_t nibbles[kWeights] = {};
  if (range.from(x, kWeights, y)) {
    int8_t q[kWeights];
    block.d = range.half(fit_scale(y, kWeights, kIq4Set, q));
    const float inverse = inverse_or_zero(range.shrink(scale(block)));
    for (int i = 0; i < kWeights; ++i) nibbles[i] = index_of(kIq4Set.closest(y[i] * inverse));
  }
  join_nibbles(nibbles, block.qs);
}

void IQ4XS::encode(const float* x, Block& block) {
  ScaledBlock fit;
  fit_scaled(x, kSubBlock, kIq4Set, -32, 31, fit);
  block = {};
  block.d = fit.d;
  for (int j = 0; j < kWeights / kSubBlock; ++j) {
    const int code = fit.scales[j] + 32;
    block.scales_l[j / 2] = static_cast<uint8_t>(block.scales_l[j / 2] | ((code & 15) << (4 * (j % 2))));
    block.scales_h = static_cast<uint16_t>(block.scales_h | ((code >> 4) << (2 * j)));
    uint8_t nibbles[kSubBlock];
    for (int i = 0; i < kSubBlock; ++i) nibbles[i] = index_of(fit.q[kSubBlock * j + i]);
    join_nibbles(nibbles, block.qs + 16 * j);
  }
}

}  // namespace stoker::quant
