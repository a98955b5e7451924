#include "engine/synth_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/f16.h"
#include "quant/all.h"

namespace stoker::engine {
namespace {

using gguf::TensorType;

/// Where a block keeps its scale, and its minimum with the multiple of the scale that makes the mean about zero. Scales
/// of types without one have either sign, for the same purpose.
struct ScalePlace {
  TensorType type;
  size_t scale;
  std::optional<size_t> minimum{};
  float multiple = 0;
};
constexpr ScalePlace kPlaces[] = {
    {TensorType::kQ4_0, offsetof(quant::Q4_0::Block, d)},
    {TensorType::kQ4_1, offsetof(quant::Q4_1::Block, d), offsetof(quant::Q4_1::Block, m), -7.5f},
    {TensorType::kQ5_0, offsetof(quant::Q5_0::Block, d)},
    {TensorType::kQ5_1, offsetof(quant::Q5_1::Block, d), offsetof(quant::Q5_1::Block, m), -15.5f},
    {TensorType::kQ8_0, offsetof(quant::Q8_0::Block, d)},
    {TensorType::kIQ4NL, offsetof(quant::IQ4NL::Block, d)},
    {TensorType::kIQ4XS, offsetof(quant::IQ4XS::Block, d)},
    {TensorType::kQ2K, offsetof(quant::Q2K::Block, d), offsetof(quant::Q2K::Block, dmin), 1.5f},
    {TensorType::kQ3K, offsetof(quant::Q3K::Block, d)},
    {TensorType::kQ4K, offsetof(quant::Q4K::Block, d), offsetof(quant::Q4K::Block, dmin), 7.5f},
    {TensorType::kQ5K, offsetof(quant::Q5K::Block, d), offsetof(quant::Q5K::Block, dmin), 15.5f},
    {TensorType::kQ6K, offsetof(quant::Q6K::Block, d)},
};

const ScalePlace* place_of(TensorType type) {
  for (const ScalePlace& place : kPlaces) {
    if (place.type == type) return &place;
  }
  return nullptr;
}

constexpr size_t kValueBits = 12;
constexpr float kWidth = 3.4641016f;  // of a uniform distribution with a standard deviation of 1

uint64_t hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return h;
}

void fill_bytes(SynthRandom random, std::span<std::byte> out) noexcept {
  size_t at = 0;
  for (; at + 8 <= out.size(); at += 8) {
    const uint64_t bytes = random.next();
    std::memcpy(out.data() + at, &bytes, 8);
  }
  const uint64_t bytes = random.next();
  std::memcpy(out.data() + at, &bytes, out.size() - at);
}

}  // namespace

SynthRandom::SynthRandom(uint64_t seed, std::string_view name, uint64_t part) : state_(seed) {
  state_ = next() ^ hash(name);
  state_ = next() ^ part;
  state_ = next();
}

SynthBlocks::SynthBlocks(TensorType type, float deviation)
    : type_(type), block_bytes_(static_cast<size_t>(gguf::type_info(type)->n_bytes)) {
  if (type == TensorType::kF32) {
    step_ = deviation * kWidth * 0x1p-32f;
  } else if (type == TensorType::kF16 || type == TensorType::kBF16) {
    values_.resize(size_t{1} << kValueBits);
    for (size_t i = 0; i < values_.size(); ++i) {
      const float unit = (static_cast<float>(i) + 0.5f) / static_cast<float>(values_.size()) - 0.5f;
      const float value = unit * kWidth * deviation;
      values_[i] = type == TensorType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    }
  } else if (type == TensorType::kMXFP4) {
    // Three powers of two, the smallest 2^-3 to 2^-2 of the deviation: the values' is 1 to 2 times what was wanted.
    const auto least = static_cast<int>(std::bit_cast<uint32_t>(deviation / 4) >> 23);  // its exponent
    for (size_t i = 0; i < scale_.size(); ++i) scale_[i] = static_cast<uint16_t>(least + static_cast<int>(i % 3));
  } else {
    set_scales(1.0f / 64);
    set_scales(deviation / 64 / measure());
  }
}

void SynthBlocks::set_scales(float scale) {
  const ScalePlace& place = *place_of(type_);
  for (size_t i = 0; i < scale_.size(); ++i) {
    const float vary = 1 + (static_cast<float>(i) - 127.5f) / 256 * (kWidth / 8);
    const bool negative = !place.minimum && i % 2 != 0;
    scale_[i] = f32_to_f16(negative ? -vary * scale : vary * scale);
    minimum_[i] = f32_to_f16(vary * scale * place.multiple);
  }
}

/// The standard deviation of what `fill` makes now.
float SynthBlocks::measure() const {
  constexpr size_t kWeights = 1 << 17;
  const auto n_blocks = kWeights / static_cast<size_t>(gguf::type_info(type_)->n_weights);
  std::vector<std::byte> bytes(n_blocks * block_bytes_);
  std::vector<float> values(kWeights);
  fill(SynthRandom(1), bytes);
  STOKER_CHECK(quant::dequantize_row(type_, bytes, kWeights, values.data()).has_value());
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return static_cast<float>(std::sqrt(squares / static_cast<double>(kWeights)));
}

void SynthBlocks::fill(SynthRandom random, std::span<std::byte> out) const noexcept {
  fill_bytes(random, out);
  if (type_ == TensorType::kF32) {
    for (size_t at = 0; at < out.size(); at += 4) {
      int32_t bits;
      std::memcpy(&bits, out.data() + at, 4);
      const float value = static_cast<float>(bits) * step_;
      std::memcpy(out.data() + at, &value, 4);
    }
  } else if (!values_.empty()) {
    for (size_t at = 0; at < out.size(); at += 2) {
      uint16_t bits;
      std::memcpy(&bits, out.data() + at, 2);
      std::memcpy(out.data() + at, &values_[bits >> (16 - kValueBits)], 2);
    }
  } else {
    fill_scales(out);
  }
}

void SynthBlocks::fill_scales(std::span<std::byte> out) const noexcept {
  if (type_ == TensorType::kMXFP4) {
    for (size_t at = offsetof(quant::MXFP4::Block, e); at < out.size(); at += block_bytes_)
      out[at] = static_cast<std::byte>(scale_[static_cast<uint8_t>(out[at])]);
    return;
  }
  const ScalePlace& place = *place_of(type_);
  for (size_t at = 0; at < out.size(); at += block_bytes_) {
    const auto index = static_cast<uint8_t>(out[at + place.scale]);
    std::memcpy(out.data() + at + place.scale, &scale_[index], 2);
    if (place.minimum) std::memcpy(out.data() + at + *place.minimum, &minimum_[index], 2);
  }
}

}  // namespace stoker::engine
