#include "engine/digest.h"

namespace stoker::engine {

std::string Digest::hex() const {
  static constexpr char kHex[] = "0123456789abcdef";
  const uint64_t value = xxh3_.value();
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += kHex[(value >> shift) & 15];
  return out;
}

}  // namespace stoker::engine
