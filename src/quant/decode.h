// The plain decoder: what the bits of a block mean, for every type. It is the specification.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/block.h"

namespace stoker::quant {

/// One weight per block: F32 and the like.
template <class Type>
concept PlainType = requires(const typename Type::Block& block) {
  Type::value(block);
};
/// 256-blocks whose sub-blocks have integer scales.
template <class Type>
concept SuperType = requires {
  Type::kSubBlock;
};

/// w = d * q, with minimum d * q + m. Super-blocks: w = (d * scale) * q, with minimum (d * scale) * q - dmin * min.
/// All in f32. Products of finite values are exact, only the addition rounds.
template <class Type>
void decode_block(const typename Type::Block& block, float* w) {
  if constexpr (PlainType<Type>) {
    *w = Type::value(block);
  } else {
    int8_t q[Type::kWeights];
    Type::levels(block, q);
    const float d = Type::scale(block);
    if constexpr (SuperType<Type>) {
      int8_t scales[Type::kWeights / Type::kSubBlock];
      if constexpr (Type::kHasMin) {
        int8_t mins[Type::kWeights / Type::kSubBlock];
        Type::scales(block, scales, mins);
        const float dmin = Type::minimum(block);
        for (int i = 0; i < Type::kWeights; ++i) {
          const int j = i / Type::kSubBlock;
          w[i] = d * static_cast<float>(scales[j]) * static_cast<float>(q[i]) - dmin * static_cast<float>(mins[j]);
        }
      } else {
        Type::scales(block, scales);
        for (int i = 0; i < Type::kWeights; ++i) {
          w[i] = d * static_cast<float>(scales[i / Type::kSubBlock]) * static_cast<float>(q[i]);
        }
      }
    } else {
      for (int i = 0; i < Type::kWeights; ++i) {
        w[i] = d * static_cast<float>(q[i]);
        if constexpr (Type::kHasMin) w[i] += Type::minimum(block);
      }
    }
  }
}

/// `n` weights, a multiple of Type::kWeights.
template <class Type>
void decode_row(const std::byte* bytes, int64_t n, float* w) {
  for (int64_t i = 0; i < n; i += Type::kWeights, bytes += sizeof(typename Type::Block)) {
    decode_block<Type>(load_block<typename Type::Block>(bytes), w + i);
  }
}

}  // namespace stoker::quant
