// Reading single weights of the types without blocks out of R16.
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/r16.h"
#include "quant/plain.h"

namespace stoker::kernels::scalar {

/// Weight k of row `lane`.
template <class Type>
float read_weight(const std::byte* group, int64_t k, int lane) {
  // BF16 has two neighbours of a row in each word, the others one weight per row.
  constexpr int64_t kNeighbours = r16_layout(Type::kType).weights;
  typename Type::Block block;
  const int64_t index = (k / kNeighbours * kGroupRows + lane) * kNeighbours + k % kNeighbours;
  std::memcpy(&block, group + index * static_cast<int64_t>(sizeof block), sizeof block);
  return Type::value(block);
}

}  // namespace stoker::kernels::scalar
