#pragma once

#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

// 256 weights of 3 bits as 16 sub-blocks of 16: w = d * scale * q, q from -4 to 3. Layout: docs/quants.md#q3_k.
struct Q3K {
  static constexpr gguf::TensorType kType = gguf::TensorType::kQ3K;
  static constexpr std::string_view kName = "Q3_K";
  static constexpr int kWeights = 256;
  static constexpr int kSubBlock = 16;
  static constexpr bool kHasMin = false;
  struct Block {
    uint8_t hmask[32];   // byte l, bit b: clear means that 4 is taken off weight 32 b + l
    uint8_t qs[64];      // two low bits, as in Q2_K
    uint8_t scales[12];  // 16 scales + 32 of 6 bits
    uint16_t d;          // f16
  };
  static_assert(sizeof(Block) == 110);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static void scales(const Block& block, int8_t* scales);
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

}  // namespace stoker::quant
