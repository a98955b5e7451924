#pragma once

#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

// Q4_K with a fifth bit. Layout: docs/quants.md#q5_k.
struct Q5K {
  static constexpr gguf::TensorType kType = gguf::TensorType::kQ5K;
  static constexpr std::string_view kName = "Q5_K";
  static constexpr int kWeights = 256;
  static constexpr int kSubBlock = 32;
  static constexpr bool kHasMin = true;
  struct Block {
    uint16_t d, dmin;    // f16
    uint8_t scales[12];  // pairs of 6 bits, k_scales.h
    uint8_t qh[32];      // byte l, bit j: bit 4 of weight l of sub-block j
    uint8_t qs[128];     // as in Q4_K
  };
  static_assert(sizeof(Block) == 176);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static float minimum(const Block& block) { return f16_to_f32(block.dmin); }
  static void scales(const Block& block, int8_t* scales, int8_t* mins);
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

}  // namespace stoker::quant
