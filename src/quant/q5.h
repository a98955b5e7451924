#pragma once

#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

// 32 numbers of 5 bits with one scale: w = d * (q - 16). Layout: docs/quants.md#q5_0.
struct Q5_0 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kQ5_0;
  static constexpr std::string_view kName = "Q5_0";
  static constexpr int kWeights = 32;
  static constexpr bool kHasMin = false;
  struct Block {
    uint16_t d;      // f16
    uint8_t qh[4];   // bit i: bit 4 of weight i
    uint8_t qs[16];  // the four low bits, as in Q4_0
  };
  static_assert(sizeof(Block) == 22);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

// The same with an offset: w = d * q + m. Layout: docs/quants.md#q5_1.
struct Q5_1 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kQ5_1;
  static constexpr std::string_view kName = "Q5_1";
  static constexpr int kWeights = 32;
  static constexpr bool kHasMin = true;
  struct Block {
    uint16_t d, m;  // f16
    uint8_t qh[4];
    uint8_t qs[16];
  };
  static_assert(sizeof(Block) == 24);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static float minimum(const Block& block) { return f16_to_f32(block.m); }
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

}  // namespace stoker::quant
