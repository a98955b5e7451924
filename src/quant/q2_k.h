#pragma once

#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

// 256 weights of 2 bits as 16 sub-blocks of 16: w = d * scale * q - dmin * min. Layout: docs/quants.md#q2_k.
struct Q2K {
  static constexpr gguf::TensorType kType = gguf::TensorType::kQ2K;
  static constexpr std::string_view kName = "Q2_K";
  static constexpr int kWeights = 256;
  static constexpr int kSubBlock = 16;
  static constexpr bool kHasMin = true;
  struct Block {
    uint8_t scales[16];  // low nibble: scale, high nibble: min
    uint8_t qs[64];      // byte 32 n + l: weights 128 n + l + (0, 32, 64, 96), low bits first
    uint16_t d, dmin;    // f16
  };
  static_assert(sizeof(Block) == 84);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static float minimum(const Block& block) { return f16_to_f32(block.dmin); }
  static void scales(const Block& block, int8_t* scales, int8_t* mins);
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

}  // namespace stoker::quant
