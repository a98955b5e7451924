#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

// OCP microscaling: 32 numbers of 4 bits (1 sign, 2 exponent, 1 mantissa) with a power of two as the scale. The levels
// are twice those of the standard and so integers; the scale is half of it. Layout: docs/quants.md#mxfp4.
struct MXFP4 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kMXFP4;
  static constexpr std::string_view kName = "MXFP4";
  static constexpr int kWeights = 32;
  static constexpr bool kHasMin = false;
  struct Block {
    uint8_t e;       // the standard's scale is 2^(e - 127)
    uint8_t qs[16];  // nibbles as in Q4_0
  };
  static_assert(sizeof(Block) == 17);

  static constexpr int8_t kLevels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

  /// 2^(e - 128): the two smallest are denormal.
  static float scale_of(uint8_t e) {
    return std::bit_cast<float>(e >= 2 ? static_cast<uint32_t>(e - 1) << 23 : 0x200000u << e);
  }
  static float scale(const Block& block) { return scale_of(block.e); }
  static void levels(const Block& block, int8_t* q);
  static void encode(const float* x, Block& block);
};

}  // namespace stoker::quant
