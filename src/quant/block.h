// What the types have in common: blocks as they lie in a file are not aligned, so they are copied, never cast.
#pragma once

#include <cstddef>
#include <cstring>

namespace stoker::quant {

template <class Block>
Block load_block(const std::byte* bytes) {
  Block block;
  std::memcpy(&block, bytes, sizeof block);
  return block;
}

template <class Block>
void store_block(const Block& block, std::byte* bytes) {
  std::memcpy(bytes, &block, sizeof block);
}

}  // namespace stoker::quant
