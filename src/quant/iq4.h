#pragma once

#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

/// What a nibble of the IQ4 types stands for: denser near zero, where most weights are.
inline constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// 32 nibbles that index kIq4Levels, with one scale. Layout: docs/quants.md#iq4_nl.
struct IQ4NL {
  static constexpr gguf::TensorType kType = gguf::TensorType::kIQ4NL;
  static constexpr std::string_view kName = "IQ4_NL";
  static constexpr int kWeights = 32;
  static constexpr bool kHasMin = false;
  struct Block {
    uint16_t d;      // f16
    uint8_t qs[16];  // nibbles as in Q4_0
  };
  static_assert(sizeof(Block) == 18);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

// The same as 8 sub-blocks of 32 with scales of 6 bits: w = d * scale * level. Layout: docs/quants.md#iq4_xs.
struct IQ4XS {
  static constexpr gguf::TensorType kType = gguf::TensorType::kIQ4XS;
  static constexpr std::string_view kName = "IQ4_XS";
  static constexpr int kWeights = 256;
  static constexpr int kSubBlock = 32;
  static constexpr bool kHasMin = false;
  struct Block {
    uint16_t d;           // f16
    uint16_t scales_h;    // two high bits of each sub-block's scale + 32
    uint8_t scales_l[4];  // four low bits, the even sub-block in the low nibble
    uint8_t qs[128];      // 16 bytes per sub-block, as in Q4_0
  };
  static_assert(sizeof(Block) == 136);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static void scales(const Block& block, int8_t* scales);
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

}  // namespace stoker::quant
