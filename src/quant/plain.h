// Types without blocks: one weight each.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"

namespace stoker::quant {

struct F32 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kF32;
  static constexpr std::string_view kName = "F32";
  static constexpr int kWeights = 1;
  struct Block {
    float value;
  };
  static float value(const Block& block) { return block.value; }
};

struct F16 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kF16;
  static constexpr std::string_view kName = "F16";
  static constexpr int kWeights = 1;
  struct Block {
    uint16_t value;
  };
  static float value(const Block& block) { return f16_to_f32(block.value); }
};

struct BF16 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kBF16;
  static constexpr std::string_view kName = "BF16";
  static constexpr int kWeights = 1;
  struct Block {
    uint16_t value;
  };
  static float value(const Block& block) { return bf16_to_f32(block.value); }
};

struct F64 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kF64;
  static constexpr std::string_view kName = "F64";
  static constexpr int kWeights = 1;
  struct Block {
    double value;
  };
  static float value(const Block& block) { return static_cast<float>(block.value); }  // rounded to nearest
};

struct I8 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kI8;
  static constexpr std::string_view kName = "I8";
  static constexpr int kWeights = 1;
  struct Block {
    int8_t value;
  };
  static float value(const Block& block) { return block.value; }
};

struct I16 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kI16;
  static constexpr std::string_view kName = "I16";
  static constexpr int kWeights = 1;
  struct Block {
    int16_t value;
  };
  static float value(const Block& block) { return block.value; }
};

struct I32 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kI32;
  static constexpr std::string_view kName = "I32";
  static constexpr int kWeights = 1;
  struct Block {
    int32_t value;
  };
  static float value(const Block& block) { return static_cast<float>(block.value); }  // rounded to nearest
};

}  // namespace stoker::quant
