// Reading R16: one block of one row, put together again as it was in the file.
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/r16.h"

namespace stoker::kernels::scalar {

/// One of the 16 rows of a group.
struct GroupRow {
  const std::byte* group;
  int64_t k;
  int lane;
};

template <class Type>
typename Type::Block read_block(const GroupRow& row, int64_t index) {
  constexpr R16Layout kLayout = r16_layout(Type::kType);
  static_assert(sizeof(typename Type::Block) == kLayout.block_bytes);
  std::byte bytes[sizeof(typename Type::Block)];
  const std::byte* word = row.group + r16_lines_at(kLayout, row.k, index) + 4 * row.lane;
  for (int w = 0; w < kLayout.words; ++w) std::memcpy(bytes + kLayout.word_offset + 4 * w, word + w * kLineBytes, 4);
  const std::byte* header = row.group + r16_headers_at(kLayout, index) + row.lane * kLayout.header_bytes;
  std::memcpy(bytes + kLayout.header_offset, header, kLayout.header_bytes);
  typename Type::Block block;
  std::memcpy(&block, bytes, sizeof block);
  return block;
}

}  // namespace stoker::kernels::scalar
