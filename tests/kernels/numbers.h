// Inputs that make kernels differ when they can, and the comparison of bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace stoker::kernels {

/// The bits, with one pattern for all NaN: which of them an instruction set gives is not promised.
inline std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> out;
  for (float value : values) out.push_back(std::isnan(value) ? 0x7fc00000u : std::bit_cast<uint32_t>(value));
  return out;
}

/// Normally distributed, times `scale`.
inline std::vector<float> normal_values(size_t n, uint32_t seed, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random) * scale;
  return values;
}

/// Every kind of number in one vector: all magnitudes, denormals, both zeros, ties; NaN and infinity with `wild`.
inline std::vector<float> odd_values(size_t n, uint32_t seed, bool wild = false) {
  std::mt19937 random(seed);
  std::vector<float> values = normal_values(n, seed + 1);
  const float specials[] = {0.0f,  -0.0f,  0x1p-149f, -0x1p-130f, 0.5f,     -1.5f, 2.5f,
                            88.7f, -88.7f, 0.625f,    -10.0f,     0x1p-60f, 1e30f, -1e-30f};
  const float wilds[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                         -std::numeric_limits<float>::infinity()};
  for (float& value : values) {
    const uint32_t draw = random() % 16;
    if (draw < 4) value = std::ldexp(value, static_cast<int>(random() % 120) - 100);
    if (draw == 4) value = specials[random() % std::size(specials)];
    if (draw == 5 && wild) value = wilds[random() % std::size(wilds)];
  }
  return values;
}

/// `n` floats between two fences; `intact` says whether a kernel stayed inside.
class Fenced {
 public:
  explicit Fenced(const std::vector<float>& values) : n_(values.size()), storage_(values.size() + 2 * kFence, kMark) {
    for (size_t i = 0; i < n_; ++i) data()[i] = values[i];
  }
  explicit Fenced(size_t n) : Fenced(std::vector<float>(n, kMark)) {}

  float* data() { return storage_.data() + kFence; }
  std::vector<float> values() const {
    return {storage_.begin() + kFence, storage_.begin() + static_cast<std::ptrdiff_t>(kFence + n_)};
  }
  bool intact() const {
    for (size_t i = 0; i < kFence; ++i) {
      if (storage_[i] != kMark || storage_[kFence + n_ + i] != kMark) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kFence = 17;  // Odd, so that the data is not aligned.
  static constexpr float kMark = 12345.0f;
  size_t n_;
  std::vector<float> storage_;
};

}  // namespace stoker::kernels
