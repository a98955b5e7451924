#pragma once

#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

// 256 weights of 6 bits as 16 sub-blocks of 16: w = d * scale * (q - 32). Layout: docs/quants.md#q6_k.
struct Q6K {
  static constexpr gguf::TensorType kType = gguf::TensorType::kQ6K;
  static constexpr std::string_view kName = "Q6_K";
  static constexpr int kWeights = 256;
  static constexpr int kSubBlock = 16;
  static constexpr bool kHasMin = false;
  struct Block {
    uint8_t ql[128];  // four low bits: byte 64 n + l has weights 128 n + l and, in the high nibble, 128 n + 64 + l
    uint8_t qh[64];   // two high bits, as the bits of Q2_K
    int8_t scales[16];
    uint16_t d;  // f16
  };
  static_assert(sizeof(Block) == 210);

  static float scale(const Block& block) { return f16_to_f32(block.d); }
  static void scales(const Block& block, int8_t* scales);
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

}  // namespace stoker::quant
