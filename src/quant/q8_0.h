#pragma once

#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

// 32 signed bytes with one scale: w = d * q. Layout: docs/quants.md#q8_0.
struct Q8_0 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kQ8_0;
  static constexpr std::string_view kName = "Q8_0";
  static constexpr int kWeights = 32;
  static constexpr bool kHasMin = false;
  struct Block {
    uint16_t d;  // f16
    int8_t qs[32];
  };
  static_assert(sizeof(Block) == 34);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

}  // namespace stoker::quant
