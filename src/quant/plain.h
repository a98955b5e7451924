// Types without blocks: one weight each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/f16.h"
#include "gguf/types.h"
#include "quant/half.h"

namespace stoker::quant {
namespace detail {

/// A finite value stays finite: it becomes the largest that fits.
inline uint16_t to_f16(float value) {
  return std::fabs(value) <= kLargestFloat ? finite_half(value) : f32_to_f16(value);
}
inline uint16_t to_bf16(float value) {
  const uint16_t bits = f32_to_bf16(value);
  const bool overflowed = (bits & 0x7fffu) == 0x7f80u && std::fabs(value) <= kLargestFloat;
  return overflowed ? static_cast<uint16_t>(bits - 1) : bits;
}

/// Nearest, ties to even, saturating; NaN becomes 0.
template <class Integer>
Integer to_integer(float value) {
  if (!(value == value)) return 0;
  constexpr double kMagic = 0x1.8p52;
  const auto lo = static_cast<double>(std::numeric_limits<Integer>::min());
  const auto hi = static_cast<double>(std::numeric_limits<Integer>::max());
  return static_cast<Integer>((std::clamp(static_cast<double>(value), lo, hi) + kMagic) - kMagic);
}

}  // namespace detail

struct F32 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kF32;
  static constexpr std::string_view kName = "F32";
  static constexpr int kWeights = 1;
  struct Block {
    float value;
  };
  static float value(const Block& block) { return block.value; }
  static Block encode(float x) { return {x}; }
};

struct F16 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kF16;
  static constexpr std::string_view kName = "F16";
  static constexpr int kWeights = 1;
  struct Block {
    uint16_t value;
  };
  static float value(const Block& block) { return f16_to_f32(block.value); }
  static Block encode(float x) { return {detail::to_f16(x)}; }
};

struct BF16 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kBF16;
  static constexpr std::string_view kName = "BF16";
  static constexpr int kWeights = 1;
  struct Block {
    uint16_t value;
  };
  static float value(const Block& block) { return bf16_to_f32(block.value); }
  static Block encode(float x) { return {detail::to_bf16(x)}; }
};

struct F64 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kF64;
  static constexpr std::string_view kName = "F64";
  static constexpr int kWeights = 1;
  struct Block {
    double value;
  };
  static float value(const Block& block) { return static_cast<float>(block.value); }  // rounded to nearest
  static Block encode(float x) { return {x}; }
};

struct I8 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kI8;
  static constexpr std::string_view kName = "I8";
  static constexpr int kWeights = 1;
  struct Block {
    int8_t value;
  };
  static float value(const Block& block) { return block.value; }
  static Block encode(float x) { return {detail::to_integer<int8_t>(x)}; }
};

struct I16 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kI16;
  static constexpr std::string_view kName = "I16";
  static constexpr int kWeights = 1;
  struct Block {
    int16_t value;
  };
  static float value(const Block& block) { return block.value; }
  static Block encode(float x) { return {detail::to_integer<int16_t>(x)}; }
};

struct I32 {
  static constexpr gguf::TensorType kType = gguf::TensorType::kI32;
  static constexpr std::string_view kName = "I32";
  static constexpr int kWeights = 1;
  struct Block {
    int32_t value;
  };
  static float value(const Block& block) { return static_cast<float>(block.value); }  // rounded to nearest
  static Block encode(float x) { return {detail::to_integer<int32_t>(x)}; }
};

}  // namespace stoker::quant
