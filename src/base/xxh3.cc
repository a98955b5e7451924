#include "base/xxh3.h"

#define XXH_INLINE_ALL  // header only: cross builds need no library
#include <xxhash.h>

namespace stoker {

struct Xxh3::State {
  XXH3_state_t xxh;
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }
Xxh3::Xxh3(Xxh3&&) noexcept = default;
Xxh3& Xxh3::operator=(Xxh3&&) noexcept = default;
Xxh3::~Xxh3() = default;

void Xxh3::add(std::span<const std::byte> bytes) { XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size()); }

uint64_t Xxh3::value() const { return XXH3_64bits_digest(&state_->xxh); }

}  // namespace stoker
