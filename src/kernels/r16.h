// Where the bytes of a block go in the layout R16: rows in groups of 16, and every 4-byte word of the 16 rows in one
// 64-byte line, so that vector lanes are rows. Plain constants: files of any instruction set may include this.
#pragma once

#include <cstdint>

#include "gguf/types.h"

namespace stoker::kernels {

inline constexpr int kGroupRows = 16;
inline constexpr int kLineBytes = 64;

/// A group holds its blocks in runs of r16_run: first the headers of the run, 16 per block, in whole lines, then its
/// lines, `words` per block (line w has word w of each of the 16 rows). The last run may be shorter. A type without
/// words (F16) is all headers. So a product reads a group from its first byte to its last: processors fetch ahead in
/// one ascending stream, and with all headers behind all lines the product with one row lost up to a third of the
/// memory's speed (Zen 4, k 4096).
struct R16Layout {
  int weights = 0;        ///< Per block; 0: this type has no kernels.
  int block_bytes = 0;    ///< In the file.
  int word_offset = 0;    ///< Of the first word inside the block.
  int words = 0;          ///< 4 bytes each.
  int header_offset = 0;  ///< Inside the block.
  int header_bytes = 0;   ///< 0, 1 or 2.
};

namespace detail {

struct R16Entry {
  gguf::TensorType type;
  R16Layout layout;
};
using T = gguf::TensorType;
inline constexpr R16Entry kR16Entries[] = {
    {T::kF32, {1, 4, 0, 1, 0, 0}},        {T::kF16, {1, 2, 0, 0, 0, 2}},
    {T::kBF16, {2, 4, 0, 1, 0, 0}},  // Pairs of neighbours; an odd k has a zero behind its last weight.
    {T::kQ4_0, {32, 18, 2, 4, 0, 2}},     {T::kQ4_1, {32, 20, 0, 5, 0, 0}},
    {T::kQ5_0, {32, 22, 2, 5, 0, 2}},     {T::kQ5_1, {32, 24, 0, 6, 0, 0}},
    {T::kQ8_0, {32, 34, 2, 8, 0, 2}},     {T::kIQ4NL, {32, 18, 2, 4, 0, 2}},
    {T::kMXFP4, {32, 17, 1, 4, 0, 1}},    {T::kQ2K, {256, 84, 0, 21, 0, 0}},
    {T::kQ3K, {256, 110, 0, 27, 108, 2}}, {T::kQ4K, {256, 144, 0, 36, 0, 0}},
    {T::kQ5K, {256, 176, 0, 44, 0, 0}},   {T::kQ6K, {256, 210, 0, 52, 208, 2}},
    {T::kIQ4XS, {256, 136, 0, 34, 0, 0}},
};

}  // namespace detail

constexpr R16Layout r16_layout(gguf::TensorType type) {
  for (const detail::R16Entry& entry : detail::kR16Entries) {
    if (entry.type == type) return entry.layout;
  }
  return {};
}

/// Blocks per run: those of a super-block of the activations, or as many as fill a line with headers.
constexpr int64_t r16_run(R16Layout layout) { return layout.weights == 256 ? 2 : 8; }

/// Blocks per row of k weights.
constexpr int64_t r16_blocks(R16Layout layout, int64_t k) { return (k + layout.weights - 1) / layout.weights; }

/// Where the 16 headers of a block begin, from the start of the group.
constexpr int64_t r16_headers_at(R16Layout layout, int64_t block) {
  const int64_t run_begin = block / r16_run(layout) * r16_run(layout);
  return run_begin * layout.words * kLineBytes + block * kGroupRows * layout.header_bytes;
}

/// Where its lines begin.
constexpr int64_t r16_lines_at(R16Layout layout, int64_t k, int64_t block) {
  const int64_t n_blocks = r16_blocks(layout, k), run_end = (block / r16_run(layout) + 1) * r16_run(layout);
  const int64_t header_bytes = (run_end < n_blocks ? run_end : n_blocks) * kGroupRows * layout.header_bytes;
  return (header_bytes + kLineBytes - 1) / kLineBytes * kLineBytes + block * layout.words * kLineBytes;
}

/// From one group to the next.
constexpr int64_t r16_group_bytes(R16Layout layout, int64_t k) {
  const int64_t bytes = r16_blocks(layout, k) * (layout.words * kLineBytes + layout.header_bytes * kGroupRows);
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

}  // namespace stoker::kernels
