// The order of nibbles and bit pairs that several types share.
#pragma once

#include <cstdint>

namespace stoker::quant {

/// 32 nibbles of 16 bytes: the low halves come first, then the high halves.
inline void split_nibbles(const uint8_t* qs, uint8_t* nibbles) {
  for (int i = 0; i < 16; ++i) {
    nibbles[i] = qs[i] & 15;
    nibbles[i + 16] = qs[i] >> 4;
  }
}

/// 256 pairs of bits of 64 bytes: byte 32 n + l has those of weights 128 n + l + (0, 32, 64, 96), low bits first.
inline void split_bit_pairs(const uint8_t* bytes, uint8_t* pairs) {
  for (int half = 0; half < 2; ++half) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int l = 0; l < 32; ++l) pairs[128 * half + 32 * quarter + l] = (bytes[32 * half + l] >> (2 * quarter)) & 3;
    }
  }
}

/// 256 nibbles of 128 bytes: 32 bytes have the nibbles of two runs of 32 weights, the first one in the low halves.
inline void split_paired_nibbles(const uint8_t* qs, uint8_t* nibbles) {
  for (int run = 0; run < 8; ++run) {
    for (int l = 0; l < 32; ++l) nibbles[32 * run + l] = (qs[run / 2 * 32 + l] >> (run % 2 * 4)) & 15;
  }
}

/// The opposite of split_nibbles.
inline void join_nibbles(const uint8_t* nibbles, uint8_t* qs) {
  for (int i = 0; i < 16; ++i) qs[i] = static_cast<uint8_t>(nibbles[i] | (nibbles[i + 16] << 4));
}

/// The opposite of split_bit_pairs.
inline void join_bit_pairs(const uint8_t* pairs, uint8_t* bytes) {
  for (int half = 0; half < 2; ++half) {
    for (int l = 0; l < 32; ++l) {
      const uint8_t* p = pairs + 128 * half + l;
      bytes[32 * half + l] = static_cast<uint8_t>(p[0] | (p[32] << 2) | (p[64] << 4) | (p[96] << 6));
    }
  }
}

/// The opposite of split_paired_nibbles.
inline void join_paired_nibbles(const uint8_t* nibbles, uint8_t* qs) {
  for (int pair = 0; pair < 4; ++pair) {
    for (int l = 0; l < 32; ++l) {
      const uint8_t* p = nibbles + 64 * pair + l;
      qs[32 * pair + l] = static_cast<uint8_t>(p[0] | (p[32] << 4));
    }
  }
}

}  // namespace stoker::quant
