// Random weights in the form of files, as fast as they can be written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/types.h"

namespace stoker::engine {

/// Numbers that depend on a seed only, the same everywhere (splitmix64).
class SynthRandom {
 public:
  explicit SynthRandom(uint64_t seed) : state_(seed) {}
  /// Of one part of something with a name.
  SynthRandom(uint64_t seed, std::string_view name, uint64_t part);

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Uniform around 0 with a standard deviation of 1.
  float uniform() { return (static_cast<float>(next() >> 40) * 0x1p-24f - 0.5f) * 3.4641016f; }

 private:
  uint64_t state_;
};

/// Makes valid blocks of one type whose values are spread around 0 with a given standard deviation: random bytes, in
/// which the scales are then replaced by one of 256 that vary by a fifth. Nothing is quantized.
class SynthBlocks {
 public:
  /// A type that synth_types() names.
  SynthBlocks(gguf::TensorType type, float deviation);
  /// `out`: whole blocks.
  void fill(SynthRandom random, std::span<std::byte> out) const noexcept;

 private:
  void set_scales(float scale);
  float measure() const;
  void fill_scales(std::span<std::byte> out) const noexcept;

  gguf::TensorType type_;
  size_t block_bytes_ = 0;
  std::array<uint16_t, 256> scale_{}, minimum_{};  ///< By the random byte that stood in the scale's place.
  std::vector<uint16_t> values_;                   ///< Of 16-bit types: by 12 random bits.
  float step_ = 0;                                 ///< F32: times a random int32.
};

}  // namespace stoker::engine
