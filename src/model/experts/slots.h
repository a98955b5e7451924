#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stoker::model {

/// Experts of one size, which share slots.
struct SlotClass {
  uint64_t slot_bytes = 0;
  int64_t n_experts = 0;  ///< Of all layers.
  int64_t n_slots = 0;
  bool keeps = true;  ///< False: nothing stays in the slots.
};

struct SlotShares {
  std::vector<SlotClass> classes;
  std::vector<size_t> class_of_layer;
};

/// How a budget becomes slots, for layers with `n_experts` experts of `expert_bytes` each. The store does so, and the
/// simulator that replays routes. It is shared out in proportion to what the sizes have in the file; what rounding
/// leaves goes to the first. Less than two experts of a size: two slots beside the budget, in which nothing stays.
SlotShares share_slots(std::span<const uint64_t> expert_bytes, int64_t n_experts, uint64_t budget_bytes);

/// Slots for entries that come and go in turn: at most `n`, as large as the largest of them.
SlotShares ring_slots(std::span<const uint64_t> entry_bytes, int64_t n);

}  // namespace stoker::model
