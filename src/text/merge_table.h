#pragma once

#include <cstdint>
#include <vector>

#include "text/hash.h"

namespace stoker::text {

constexpr uint32_t kNoMerge = 0xFFFFFFFF;

/// What two neighbouring symbols become, and how soon: the lowest rank first.
struct Merge {
  uint32_t rank = kNoMerge;
  int32_t result = -1;
};

/// Pair of symbol ids -> Merge. Flat, linear probing, at most three quarters full.
class MergeTable {
 public:
  void reserve(size_t count);
  /// A pair that is there already keeps its first rank. At most as many as reserved.
  void insert(int32_t left, int32_t right, Merge merge);
  Merge find(int32_t left, int32_t right) const {
    for (size_t at = slot_of(left, right);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.merge.rank == kNoMerge || (slot.left == left && slot.right == right)) return slot.merge;
    }
  }
  void prefetch(int32_t left, int32_t right) const { __builtin_prefetch(&slots_[slot_of(left, right)]); }

 private:
  struct Slot {
    int32_t left = -1, right = -1;
    Merge merge;
  };
  size_t slot_of(int32_t left, int32_t right) const {
    uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    return mix(key ^ seed_, 0x9E3779B97F4A7C15) & mask_;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1);
  size_t mask_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace stoker::text
