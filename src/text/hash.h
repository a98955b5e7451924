#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace stoker::text {

/// Different in every process, so that a file cannot be made whose texts all fall into one slot. Results of look-ups
/// do not depend on it.
uint64_t hash_seed();

inline uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

template <class T>
T load(const char* p) {
  T out;
  std::memcpy(&out, p, sizeof out);
  return out;
}

/// A hash for tables in memory: not the same on machines of another byte order.
inline uint64_t hash_bytes(std::string_view text, uint64_t seed) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  const char* p = text.data();
  size_t n = text.size();
  uint64_t h = seed ^ (n * kOdd);
  for (; n > 8; n -= 8, p += 8) h = mix(h ^ load<uint64_t>(p), kOdd);
  uint64_t tail = 0;
  if (n >= 4) {
    tail = load<uint32_t>(p) | static_cast<uint64_t>(load<uint32_t>(p + n - 4)) << 32;
  } else if (n > 0) {
    auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<uint8_t>(p[i])); };
    tail = byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16;
  }
  return mix(h ^ tail, kOdd ^ seed << 1);
}

}  // namespace stoker::text
