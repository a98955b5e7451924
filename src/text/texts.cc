#include "text/texts.h"

#include <bit>
#include <random>

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
  slots_.assign(std::bit_ceil(count + count / 3 + 2), Slot{});
  mask_ = slots_.size() - 1;
  seed_ = hash_seed();
  used_ = 0;
}

void TextTable::grow(const Texts& texts) {
  std::vector<Slot> old = std::move(slots_);
  reserve(old.size());
  for (Slot& slot : old) {
    if (slot.id == kNone) continue;
    uint64_t h = hash(texts.at(slot.begin, slot.size));  // The seed may be new.
    slot.tag = tag(h);
    place(h, slot);
  }
}

size_t TextTable::insert_all(const Texts& texts, const std::vector<bool>& wanted) {
  constexpr size_t kAhead = 16;  // Slots that are on their way into the cache.
  uint64_t hashes[kAhead];
  auto start = [&](size_t id) {
    hashes[id % kAhead] = hash(texts[id]);
    prefetch(hashes[id % kAhead]);
  };
  reserve(wanted.size());
  for (size_t id = 0; id < wanted.size() && id < kAhead; ++id) start(id);
  size_t n_same = 0;
  for (size_t id = 0; id < wanted.size(); ++id) {
    if (wanted[id] && insert(texts, static_cast<int32_t>(id), hashes[id % kAhead]) != kNone) ++n_same;
    if (id + kAhead < wanted.size()) start(id + kAhead);
  }
  return n_same;
}

int32_t TextTable::insert(const Texts& texts, int32_t id, uint64_t h) {
  if (used_ + used_ / 3 + 1 >= slots_.size()) {
    grow(texts);
    h = hash(texts[static_cast<size_t>(id)]);
  }
  size_t begin = texts.begin(static_cast<size_t>(id));
  std::string_view text = texts[static_cast<size_t>(id)];
  STOKER_CHECK(begin + text.size() <= 0xFFFFFFFF);
  Slot slot{tag(h), id, static_cast<uint32_t>(begin), static_cast<uint32_t>(text.size())};
  for (size_t at = h & mask_; slots_[at].id != kNone; at = (at + 1) & mask_) {
    if (slots_[at].tag != slot.tag || texts.at(slots_[at].begin, slots_[at].size) != text) continue;
    int32_t before = slots_[at].id;
    slots_[at] = slot;
    return before;
  }
  place(h, slot);
  return kNone;
}

void TextTable::place(uint64_t h, const Slot& slot) {
  size_t at = h & mask_;
  while (slots_[at].id != kNone) at = (at + 1) & mask_;
  slots_[at] = slot;
  ++used_;
}

}  // namespace stoker::text
