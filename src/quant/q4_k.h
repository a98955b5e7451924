#pragma once

#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

// 256 nibbles as 8 sub-blocks of 32: w = d * scale * q - dmin * min. Layout: docs/quants.md#q4_k.
struct Q4K {
  static constexpr gguf::TensorType kType = gguf::TensorType::kQ4K;
  static constexpr std::string_view kName = "Q4_K";
  static constexpr int kWeights = 256;
  static constexpr int kSubBlock = 32;
  static constexpr bool kHasMin = true;
  struct Block {
    uint16_t d, dmin;    // f16
    uint8_t scales[12];  // pairs of 6 bits, k_scales.h
    uint8_t qs[128];     // 32 bytes per two sub-blocks: low nibbles the even one, high nibbles the odd one
  };
  static_assert(sizeof(Block) == 144);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static float minimum(const Block& block) { return f16_to_f32(block.dmin); }
  static void scales(const Block& block, int8_t* scales, int8_t* mins);
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

}  // namespace stoker::quant
