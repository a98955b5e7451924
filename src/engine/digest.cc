#include "engine/digest.h"

#define XXH_INLINE_ALL  // header only: cross builds need no library
#include <xxhash.h>

namespace stoker::engine {

struct Digest::State {
  XXH3_state_t xxh;
};

Digest::Digest() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }
Digest::~Digest() = default;

void Digest::add(const float* row, int64_t n) {
  XXH3_64bits_update(&state_->xxh, row, static_cast<size_t>(n) * sizeof(float));
}

std::string Digest::hex() const {
  static constexpr char kHex[] = "0123456789abcdef";
  const uint64_t value = XXH3_64bits_digest(&state_->xxh);
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += kHex[(value >> shift) & 15];
  return out;
}

}  // namespace stoker::engine
