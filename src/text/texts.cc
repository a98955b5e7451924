#include "text/texts.h"

#include <bit>
#include <random>
#include <utility>

#include "base/check.h"
#include "text/hash.h"

namespace stoker::text {

uint64_t hash_seed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return static_cast<uint64_t>(device()) << 32 | device();
  }();
  return seed;
}

uint64_t TextTable::hash(std::string_view text) const { return hash_bytes(text, seed_); }

void TextTable::reserve(size_t count) {
  STOKER_CHECK(used_ == 0);
  slots_.assign(std::bit_ceil(count * 2 + 2), Slot{});
  mask_ = slots_.size() - 1;
  seed_ = hash_seed();
}

int32_t TextTable::insert(const Texts& texts, int32_t id) {
  if (used_ * 2 >= slots_.size()) {
    std::vector<Slot> old = std::move(slots_);
    size_t count = used_;
    used_ = 0;
    reserve(count * 2);
    for (const Slot& slot : old)
      if (slot.id != kNone) place(hash(texts[static_cast<size_t>(slot.id)]), slot.id);
  }
  std::string_view text = texts[static_cast<size_t>(id)];
  uint64_t h = hash(text);
  for (size_t at = h & mask_; slots_[at].id != kNone; at = (at + 1) & mask_) {
    if (slots_[at].tag != tag(h) || texts[static_cast<size_t>(slots_[at].id)] != text) continue;
    return std::exchange(slots_[at].id, id);
  }
  place(h, id);
  return kNone;
}

void TextTable::place(uint64_t h, int32_t id) {
  size_t at = h & mask_;
  while (slots_[at].id != kNone) at = (at + 1) & mask_;
  slots_[at] = {tag(h), id};
  ++used_;
}

}  // namespace stoker::text
