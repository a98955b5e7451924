#include "tests/kernels/reference_dot.h"

#include <cmath>
#include <cstring>

#include "base/f16.h"

namespace stoker::testing {
namespace {

using T = gguf::TensorType;

template <class Value>
Value load(const std::byte* bytes) {
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
int byte_at(const std::byte* block, int at) { return std::to_integer<int>(block[at]); }
int signed_byte_at(const std::byte* block, int at) { return load<int8_t>(block + at); }
float half_at(const std::byte* block, int at) { return f16_to_f32(load<uint16_t>(block + at)); }

constexpr int kFp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr int kNonLinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Weight i of a 32-block as an integer.
int code_32(T type, const std::byte* block, int i) {
  if (type == T::kQ8_0) return signed_byte_at(block, 2 + i);
  const int nibbles_at = type == T::kMXFP4 ? 1 : type == T::kQ4_1 ? 4 : type == T::kQ5_0 ? 6 : type == T::kQ5_1 ? 8 : 2;
  const int pair = byte_at(block, nibbles_at + i % 16);
  const int nibble = i < 16 ? pair % 16 : pair / 16;
  if (type == T::kMXFP4) return kFp4[nibble];
  if (type == T::kIQ4NL) return kNonLinear[nibble];
  if (type == T::kQ4_0) return nibble - 8;
  if (type == T::kQ4_1) return nibble;
  const auto fifth_bits = load<uint32_t>(block + (type == T::kQ5_0 ? 2 : 4));
  const int level = nibble + ((fifth_bits >> i) % 2 ? 16 : 0);
  return type == T::kQ5_0 ? level - 16 : level;
}

float scale_32(T type, const std::byte* block) {
  // 2^(e - 128), below the normal numbers for e < 2.
  return type == T::kMXFP4 ? std::ldexp(1.0f, byte_at(block, 0) - 128) : half_at(block, 0);
}

float dot_32(const FileType& type, const std::byte* row, const kernels::Activations& x, int64_t x_row) {
  float acc = 0;
  for (int64_t j = 0; j < x.k / 32; ++j) {
    const std::byte* block = row + j * type.bytes;
    const int64_t entry = (j / 8) * x.n + x_row;
    const int8_t* a = x.q32 + entry * 256 + j % 8 * 32;
    const float da = x.d32[entry * 8 + j % 8];
    int64_t sum = 0, a_sum = 0;
    for (int i = 0; i < 32; ++i) {
      sum += code_32(type.type, block, i) * a[i];
      a_sum += a[i];
    }
    const float d = scale_32(type.type, block);
    if (type.minimum_at >= 0) {
      const float m = half_at(block, type.minimum_at);
      acc = std::fma(da, std::fma(d, static_cast<float>(sum), m * static_cast<float>(a_sum)), acc);
    } else {
      acc = std::fma(d * da, static_cast<float>(sum), acc);
    }
  }
  return acc;
}

struct ScaleAndMin {
  int scale;
  int min;
};

// Scale and min of the sub-block that weight i belongs to.
ScaleAndMin scales_256(T type, const std::byte* block, int i) {
  const int of16 = i / 16, of32 = i / 32;
  switch (type) {
    case T::kQ2K:
      return {byte_at(block, of16) % 16, byte_at(block, of16) / 16};
    case T::kQ3K: {
      const int low = of16 < 8 ? byte_at(block, 96 + of16) % 16 : byte_at(block, 96 + of16 - 8) / 16;
      const int high = (byte_at(block, 104 + of16 % 4) >> (2 * (of16 / 4))) % 4;
      return {low + 16 * high - 32, 0};
    }
    case T::kQ4K:
    case T::kQ5K: {
      const std::byte* s = block + 4;
      if (of32 < 4) return {byte_at(s, of32) % 64, byte_at(s, of32 + 4) % 64};
      return {byte_at(s, of32 + 4) % 16 + byte_at(s, of32 - 4) / 64 * 16,
              byte_at(s, of32 + 4) / 16 + byte_at(s, of32) / 64 * 16};
    }
    case T::kQ6K:
      return {signed_byte_at(block, 192 + of16), 0};
    default: {
      const int low = (byte_at(block, 4 + of32 / 2) >> (4 * (of32 % 2))) % 16;
      return {low + (load<uint16_t>(block + 2) >> (2 * of32)) % 4 * 16 - 32, 0};
    }
  }
}

int code_256(T type, const std::byte* block, int i) {
  const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
  switch (type) {
    case T::kQ2K:
      return (byte_at(block, 16 + 32 * half + l) >> (2 * quarter)) % 4;
    case T::kQ3K: {
      const int low = (byte_at(block, 32 + 32 * half + l) >> (2 * quarter)) % 4;
      return (byte_at(block, l) >> (i / 32)) % 2 ? low : low - 4;
    }
    case T::kQ4K:
    case T::kQ5K: {
      const int pair = byte_at(block, (type == T::kQ4K ? 16 : 48) + i / 64 * 32 + l);
      const int nibble = i / 32 % 2 ? pair / 16 : pair % 16;
      return type == T::kQ4K ? nibble : nibble + (byte_at(block, 16 + l) >> (i / 32)) % 2 * 16;
    }
    case T::kQ6K: {
      const int pair = byte_at(block, 64 * half + quarter % 2 * 32 + l);
      const int low = quarter < 2 ? pair % 16 : pair / 16;
      return low + (byte_at(block, 128 + 32 * half + l) >> (2 * quarter)) % 4 * 16 - 32;
    }
    default: {
      const int pair = byte_at(block, 8 + i / 32 * 16 + i % 16);
      return kNonLinear[l < 16 ? pair % 16 : pair / 16];
    }
  }
}

float dot_256(const FileType& type, const std::byte* row, const kernels::Activations& x, int64_t x_row) {
  float acc = 0;
  for (int64_t s = 0; s < x.k / 256; ++s) {
    const std::byte* block = row + s * type.bytes;
    const int8_t* a = x.q256 + (s * x.n + x_row) * 256;
    int64_t sum = 0, min_sum = 0;
    for (int i = 0; i < 256; ++i) {
      const ScaleAndMin sub = scales_256(type.type, block, i);
      sum += sub.scale * code_256(type.type, block, i) * a[i];
      min_sum += sub.min * a[i];
    }
    const float d = half_at(block, type.scale_at);
    float t = d * static_cast<float>(sum);
    if (type.minimum_at >= 0) {
      const float m = half_at(block, type.minimum_at) * static_cast<float>(min_sum);
      t = std::fma(d, static_cast<float>(sum), -m);
    }
    acc = std::fma(x.d256[s * x.n + x_row], t, acc);
  }
  return acc;
}

float dot_floats(const FileType& type, const std::byte* row, const kernels::Activations& x, int64_t x_row) {
  float acc = 0;
  for (int64_t k = 0; k < x.k; ++k) {
    float w = 0;
    if (type.type == T::kF32) w = load<float>(row + 4 * k);
    if (type.type == T::kF16) w = half_at(row + 2 * k, 0);
    if (type.type == T::kBF16) w = bf16_to_f32(load<uint16_t>(row + 2 * k));
    acc = std::fma(w, x.f32[x_row * x.f32_stride + k], acc);
  }
  return acc;
}

}  // namespace

float reference_dot(const FileType& type, const std::byte* row, const kernels::Activations& x, int64_t x_row) {
  if (type.weights == 1) return dot_floats(type, row, x, x_row);
  return type.weights == 32 ? dot_32(type, row, x, x_row) : dot_256(type, row, x, x_row);
}

}  // namespace stoker::testing
