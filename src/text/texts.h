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
  std::string_view operator[](size_t i) const {
    size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

/// Which id has a text. Flat, linear probing, at most half full; the texts stay in a `Texts`, index = id.
class TextTable {
 public:
  static constexpr int32_t kNone = -1;

  void reserve(size_t count);
  /// A later id of the same text takes the place of the earlier one, whose id is returned (kNone: new).
  int32_t insert(const Texts& texts, int32_t id);
  int32_t find(const Texts& texts, std::string_view text) const { return find(texts, text, hash(text)); }
  int32_t find(const Texts& texts, std::string_view text, uint64_t hash) const {
    for (size_t at = hash & mask_; slots_[at].id != kNone; at = (at + 1) & mask_)
      if (slots_[at].tag == tag(hash) && texts[static_cast<size_t>(slots_[at].id)] == text) return slots_[at].id;
    return kNone;
  }

  /// For look-ups that overlap: the hash early, the memory on its way, `find` later.
  uint64_t hash(std::string_view text) const;
  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t id = kNone;
  };
  static uint32_t tag(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  void place(uint64_t hash, int32_t id);

  std::vector<Slot> slots_ = std::vector<Slot>(2);
  size_t mask_ = 1;
  size_t used_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace stoker::text
