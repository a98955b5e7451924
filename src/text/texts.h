#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::text {

/// Many short strings in one block of memory. Views stay valid once nothing more is added.
class Texts {
 public:
  void reserve(size_t count, size_t bytes) {
    ends_.reserve(count);
    bytes_.reserve(bytes);
  }
  void add(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  size_t size() const { return ends_.size(); }
  size_t begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }
  std::string_view operator[](size_t i) const { return at(begin(i), ends_[i] - begin(i)); }
  std::string_view at(size_t begin, size_t size) const { return {bytes_.data() + begin, size}; }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

/// Which id has a text: flat, linear probing. The texts stay in a `Texts`, index = id, of less than 4 GiB.
class TextTable {
 public:
  static constexpr int32_t kNone = -1;

  void reserve(size_t count);
  /// A later id of the same text takes the place of the earlier one, whose id is returned (kNone: new).
  int32_t insert(const Texts& texts, int32_t id) { return insert(texts, id, hash(texts[static_cast<size_t>(id)])); }
  /// All ids that `wanted` has, upwards. How many took the place of another one.
  size_t insert_all(const Texts& texts, const std::vector<bool>& wanted);

  int32_t find(const Texts& texts, std::string_view text) const { return find(texts, text, hash(text)); }
  int32_t find(const Texts& texts, std::string_view text, uint64_t hash) const {
    for (size_t at = hash & mask_; slots_[at].id != kNone; at = (at + 1) & mask_)
      if (slots_[at].tag == tag(hash) && texts.at(slots_[at].begin, slots_[at].size) == text) return slots_[at].id;
    return kNone;
  }

  // For many look-ups that overlap: all hashes first, then all slots, then all texts are on their way into the cache.
  uint64_t hash(std::string_view text) const;
  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }
  void prefetch_text(const Texts& texts, uint64_t hash) const {
    __builtin_prefetch(texts.at(slots_[hash & mask_].begin, 0).data());
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t id = kNone;
    uint32_t begin = 0, size = 0;
  };
  int32_t insert(const Texts& texts, int32_t id, uint64_t hash);
  static uint32_t tag(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  void place(uint64_t hash, const Slot& slot);
  void grow(const Texts& texts);

  std::vector<Slot> slots_ = std::vector<Slot>(2);  // At most three quarters full.
  size_t mask_ = 1;
  size_t used_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace stoker::text
