#pragma once

#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

// 32 nibbles with one scale: w = d * (nibble - 8). Layout: docs/quants.md#q4_0.
struct Q4_0 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kQ4_0;
  static constexpr std::string_view kName = "Q4_0";
  static constexpr int kWeights = 32;
  static constexpr bool kHasMin = false;
  struct Block {
    uint16_t d;      // f16
    uint8_t qs[16];  // low nibbles: weights 0 ... 15, high nibbles: 16 ... 31
  };
  static_assert(sizeof(Block) == 18);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

// The same with an offset: w = d * nibble + m. Layout: docs/quants.md#q4_1.
struct Q4_1 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kQ4_1;
  static constexpr std::string_view kName = "Q4_1";
  static constexpr int kWeights = 32;
  static constexpr bool kHasMin = true;
  struct Block {
    uint16_t d, m;  // f16
    uint8_t qs[16];
  };
  static_assert(sizeof(Block) == 20);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static float minimum(const Block& block) { return f16_to_f32(block.m); }
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

}  // namespace stoker::quant
