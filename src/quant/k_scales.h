// The 12 bytes with eight pairs (scale, min) of 6 bits that Q4_K and Q5_K share.
#pragma once

#include <cstdint>

namespace stoker::quant {

// Bytes 0 ... 3 and 4 ... 7 hold the first four scales and mins in their low 6 bits. Of the last four, bytes 8 ... 11
// hold the low 4 bits (scale in the low nibble) and the top bits of bytes 0 ... 7 the high 2.
inline void unpack_pairs(const uint8_t* packed, int8_t* scales, int8_t* mins) {
  for (int j = 0; j < 4; ++j) {
    scales[j] = static_cast<int8_t>(packed[j] & 63);
    mins[j] = static_cast<int8_t>(packed[j + 4] & 63);
    scales[j + 4] = static_cast<int8_t>((packed[j + 8] & 15) | ((packed[j] >> 6) << 4));
    mins[j + 4] = static_cast<int8_t>((packed[j + 8] >> 4) | ((packed[j + 4] >> 6) << 4));
  }
}

inline void pack_pairs(const uint8_t* scales, const uint8_t* mins, uint8_t* packed) {
  for (int j = 0; j < 4; ++j) {
    packed[j] = static_cast<uint8_t>(scales[j] | ((scales[j + 4] >> 4) << 6));
    packed[j + 4] = static_cast<uint8_t>(mins[j] | ((mins[j + 4] >> 4) << 6));
    packed[j + 8] = static_cast<uint8_t>((scales[j + 4] & 15) | ((mins[j + 4] & 15) << 4));
  }
}

}  // namespace stoker::quant
