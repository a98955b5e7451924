#include "text/merge_table.h"

#include <bit>

namespace stoker::text {

void MergeTable::reserve(size_t count) {
  slots_.assign(std::bit_ceil(count + count / 3 + 1), Slot{});
  mask_ = slots_.size() - 1;
  seed_ = hash_seed();
}

void MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  size_t at = slot_of(left, right);
  while (slots_[at].merge.rank != kNoMerge) {
    if (slots_[at].left == left && slots_[at].right == right) return;
    at = (at + 1) & mask_;
  }
  slots_[at] = {left, right, merge};
}

}  // namespace stoker::text
