// The order of nibbles and bits that several types share.
#pragma once

#include <cstdint>

namespace stoker::quant {

/// Nibble i of a block of 32: the low halves of 16 bytes come first, then the high halves.
inline int split_nibble(const uint8_t* qs, int i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }

/// Two bits of weight i of a block of 256: four weights, 32 apart, share a byte.
inline int crumb(const uint8_t* bytes, int i) {
  const int n = i / 128, shift = 2 * (i % 128 / 32);
  return (bytes[32 * n + i % 32] >> shift) & 3;
}

}  // namespace stoker::quant
