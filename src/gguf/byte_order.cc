#include "gguf/byte_order.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/check.h"

namespace stoker::gguf {
namespace {

/// `count` fields of `size` bytes each, one after the other, from `offset` in the block.
struct Run {
  int offset, size, count;
};

/// All multi-byte fields of a block; what is not named is bytes and nibbles, which have no order.
struct Layout {
  TensorType type;
  std::array<Run, 2> runs = {};
};

using enum TensorType;
constexpr Layout kLayouts[] = {
    {kF32, {{{0, 4, 1}}}},
    {kF16, {{{0, 2, 1}}}},
    {kBF16, {{{0, 2, 1}}}},
    {kF64, {{{0, 8, 1}}}},
    {kI8, {}},
    {kI16, {{{0, 2, 1}}}},
    {kI32, {{{0, 4, 1}}}},
    {kI64, {{{0, 8, 1}}}},
    {kQ4_0, {{{0, 2, 1}}}},
    {kQ4_1, {{{0, 2, 2}}}},
    {kQ5_0, {{{0, 2, 1}, {2, 4, 1}}}},  // d, the 32 high bits
    {kQ5_1, {{{0, 2, 2}, {4, 4, 1}}}},  // d and m, the 32 high bits
    {kQ8_0, {{{0, 2, 1}}}},
    {kQ8_1, {{{0, 2, 2}}}},
    {kQ2K, {{{80, 2, 2}}}},
    {kQ3K, {{{108, 2, 1}}}},
    {kQ4K, {{{0, 2, 2}}}},
    {kQ5K, {{{0, 2, 2}}}},
    {kQ6K, {{{208, 2, 1}}}},
    {kQ8K, {{{0, 4, 1}, {260, 2, 16}}}},  // d, the 16 sums
    {kIQ2XS, {{{0, 2, 33}}}},             // d and the 32 codes
    {kIQ2S, {{{0, 2, 1}}}},
    {kIQ3S, {{{0, 2, 1}}}},
    {kIQ1S, {{{0, 2, 1}, {34, 2, 8}}}},  // d, the 8 words of high bits
    {kIQ4NL, {{{0, 2, 1}}}},
    {kIQ4XS, {{{0, 2, 2}}}},  // d, the word of high scale bits
    {kTQ1_0, {{{52, 2, 1}}}},
    {kTQ2_0, {{{64, 2, 1}}}},
    {kMXFP4, {}},
    {kNVFP4, {}},
    {kQ1_0, {{{0, 2, 1}}}},
    {kQ2_0, {{{0, 2, 1}}}},
};

const Layout* find_layout(TensorType type) {
  const auto* found =
      std::find_if(std::begin(kLayouts), std::end(kLayouts), [&](const Layout& l) { return l.type == type; });
  return found == std::end(kLayouts) ? nullptr : found;
}

}  // namespace

bool can_swap(TensorType type) { return find_layout(type) != nullptr; }

void swap_blocks(TensorType type, std::span<std::byte> bytes) {
  const Layout* layout = find_layout(type);
  const std::optional<TypeInfo> info = type_info(type);
  STOKER_CHECK(layout && info);
  const auto block_bytes = static_cast<size_t>(info->n_bytes);
  STOKER_CHECK(bytes.size() % block_bytes == 0);
  for (size_t block = 0; block < bytes.size(); block += block_bytes)
    for (const Run& run : layout->runs)
      for (int i = 0; i < run.count; ++i) {
        std::byte* field = bytes.data() + block + run.offset + i * run.size;
        std::reverse(field, field + run.size);
      }
}

}  // namespace stoker::gguf
