#include "gguf/verify.h"

#include <algorithm>

#include "base/check.h"
#include "base/str_cat.h"
#include "gguf/byte_order.h"

namespace stoker::gguf {
namespace {

enum class Kind { kF16, kBF16, kF32, kF64, kE8M0, kUE4M3, kIQ1M };

/// The fields of a block that can be wrong: `count` of them, one after the other.
struct FloatField {
  TensorType type;
  std::string_view name;
  Kind kind;
  int offset, count;
};

using enum TensorType;
constexpr FloatField kFields[] = {
    {kF32, "an element", Kind::kF32, 0, 1},   {kF16, "an element", Kind::kF16, 0, 1},
    {kBF16, "an element", Kind::kBF16, 0, 1}, {kF64, "an element", Kind::kF64, 0, 1},
    {kQ4_0, "d", Kind::kF16, 0, 1},           {kQ4_1, "d or m", Kind::kF16, 0, 2},
    {kQ5_0, "d", Kind::kF16, 0, 1},           {kQ5_1, "d or m", Kind::kF16, 0, 2},
    {kQ8_0, "d", Kind::kF16, 0, 1},           {kQ8_1, "d or s", Kind::kF16, 0, 2},
    {kQ2K, "d or dmin", Kind::kF16, 80, 2},   {kQ3K, "d", Kind::kF16, 108, 1},
    {kQ4K, "d or dmin", Kind::kF16, 0, 2},    {kQ5K, "d or dmin", Kind::kF16, 0, 2},
    {kQ6K, "d", Kind::kF16, 208, 1},          {kQ8K, "d", Kind::kF32, 0, 1},
    {kIQ2XXS, "d", Kind::kF16, 0, 1},         {kIQ2XS, "d", Kind::kF16, 0, 1},
    {kIQ2S, "d", Kind::kF16, 0, 1},           {kIQ3XXS, "d", Kind::kF16, 0, 1},
    {kIQ3S, "d", Kind::kF16, 0, 1},           {kIQ1S, "d", Kind::kF16, 0, 1},
    {kIQ1M, "d", Kind::kIQ1M, 48, 1},         {kIQ4NL, "d", Kind::kF16, 0, 1},
    {kIQ4XS, "d", Kind::kF16, 0, 1},          {kTQ1_0, "d", Kind::kF16, 52, 1},
    {kTQ2_0, "d", Kind::kF16, 64, 1},         {kMXFP4, "the exponent", Kind::kE8M0, 0, 1},
    {kNVFP4, "a scale", Kind::kUE4M3, 0, 4},  {kQ1_0, "d", Kind::kF16, 0, 1},
    {kQ2_0, "d", Kind::kF16, 0, 1},
};

enum class Class { kFinite, kInfinite, kNan };

/// Of a float with `exponent_mask` over its exponent and `fraction_mask` over its fraction.
template <class Bits>
Class classify(Bits bits, Bits exponent_mask, Bits fraction_mask) {
  if ((bits & exponent_mask) != exponent_mask) return Class::kFinite;
  return (bits & fraction_mask) == 0 ? Class::kInfinite : Class::kNan;
}

Class classify_f16(unsigned bits) { return classify(bits, 0x7c00u, 0x03ffu); }

/// The scale of an IQ1_M block is spread over the top four bits of four words.
unsigned gather_iq1_m(const std::byte* words) {
  unsigned bits = 0;
  for (unsigned i = 0; i < 4; ++i) bits |= unsigned{load<uint16_t>(words + 2 * i, false)} >> 12 << (4 * i);
  return bits;
}

template <Kind kKind>
constexpr int kBytes = kKind == Kind::kF16 || kKind == Kind::kBF16   ? 2
                       : kKind == Kind::kF32                         ? 4
                       : kKind == Kind::kF64 || kKind == Kind::kIQ1M ? 8
                                                                     : 1;

template <Kind kKind>
Class classify_at(const std::byte* at) {
  if constexpr (kKind == Kind::kF16) return classify_f16(load<uint16_t>(at, false));
  if constexpr (kKind == Kind::kBF16) return classify<unsigned>(load<uint16_t>(at, false), 0x7f80u, 0x007fu);
  if constexpr (kKind == Kind::kF32) return classify(load<uint32_t>(at, false), 0x7f800000u, 0x007fffffu);
  if constexpr (kKind == Kind::kF64)
    return classify<uint64_t>(load<uint64_t>(at, false), 0x7ff0000000000000u, 0x000fffffffffffffu);
  if constexpr (kKind == Kind::kE8M0) return *at == std::byte{0xff} ? Class::kNan : Class::kFinite;
  if constexpr (kKind == Kind::kUE4M3) return (*at & std::byte{0x7f}) == std::byte{0x7f} ? Class::kNan : Class::kFinite;
  if constexpr (kKind == Kind::kIQ1M) return classify_f16(gather_iq1_m(at));
}

template <Kind kKind>
std::optional<Fault> walk(const FloatField& field, size_t block_bytes, std::span<const std::byte> bytes) {
  std::optional<Fault> out;
  const size_t n_blocks = bytes.size() / block_bytes;
  for (size_t block = 0; block < n_blocks; ++block) {
    const std::byte* at = bytes.data() + block * block_bytes + field.offset;
    Class found = Class::kFinite;
    for (int i = 0; i < field.count && found == Class::kFinite; ++i) found = classify_at<kKind>(at + i * kBytes<kKind>);
    if (found == Class::kFinite) continue;
    if (!out) out = Fault{block, 0, str_cat(field.name, found == Class::kNan ? " is NaN" : " is infinite")};
    ++out->n_blocks;
  }
  return out;
}

}  // namespace

std::optional<Fault> verify_tensor(TensorType type, std::span<const std::byte> bytes) {
  const auto* field =
      std::find_if(std::begin(kFields), std::end(kFields), [&](const FloatField& f) { return f.type == type; });
  if (field == std::end(kFields)) return std::nullopt;
  const auto block_bytes = static_cast<size_t>(type_info(type)->n_bytes);
  STOKER_CHECK(bytes.size() % block_bytes == 0);
  switch (field->kind) {
    case Kind::kF16:
      return walk<Kind::kF16>(*field, block_bytes, bytes);
    case Kind::kBF16:
      return walk<Kind::kBF16>(*field, block_bytes, bytes);
    case Kind::kF32:
      return walk<Kind::kF32>(*field, block_bytes, bytes);
    case Kind::kF64:
      return walk<Kind::kF64>(*field, block_bytes, bytes);
    case Kind::kE8M0:
      return walk<Kind::kE8M0>(*field, block_bytes, bytes);
    case Kind::kUE4M3:
      return walk<Kind::kUE4M3>(*field, block_bytes, bytes);
    case Kind::kIQ1M:
      return walk<Kind::kIQ1M>(*field, block_bytes, bytes);
  }
  return std::nullopt;
}

}  // namespace stoker::gguf
