#include "quant/q5.h"

#include <algorithm>

#include "quant/legacy.h"
#include "quant/nibbles.h"
namespace stoker::quant {

namespace {

void split_levels(const uint8_t* qs, const uint8_t* qh, uint8_t* levels) {
  split_nibbles(qs, levels);
  for (int i = 0; i < 32; ++i) levels[i] = static_cast<uint8_t>(levels[i] | (((qh[i / 8] >> (i % 8)) & 1) << 4));
}

void join_levels(const uint8_t* levels, uint8_t* qs, uint8_t* qh) {
  uint8_t nibbles[32];
  std::fill_n(qh, 4, static_cast<uint8_t>(0));
  for (int i = 0; i < 32; ++i) {
    nibbles[i] = levels[i] & 15;
    qh[i / 8] = static_cast<uint8_t>(qh[i / 8] | ((levels[i] >> 4) << (i % 8)));
  }
  join_nibbles(nibbles, qs);
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

void Q5_0::encode(const float* x, Block& block) {
  uint8_t levels[kWeights];
  block.d = finite_half(symmetric_levels(x, kWeights, 16, levels));
  join_levels(levels, block.qs, block.qh);
}

void Q5_1::encode(const float* x, Block& block) {
  uint8_t levels[kWeights];
  const auto [d, m] = offset_levels(x, kWeights, 31, levels);
  block.d = finite_half(d);
  block.m = finite_half(m);
  join_levels(levels, block.qs, block.qh);
}

}  // namespace stoker::quant
