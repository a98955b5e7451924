#include "model/experts/slots.h"

#include <algorithm>

namespace stoker::model {

SlotShares share_slots(std::span<const uint64_t> expert_bytes, int64_t n_experts, uint64_t budget_bytes) {
  SlotShares shares;
  std::vector<SlotClass>& classes = shares.classes;
  uint64_t all = 0;
  for (const uint64_t bytes : expert_bytes) {
    auto same = std::find_if(classes.begin(), classes.end(), [&](const SlotClass& c) { return c.slot_bytes == bytes; });
    if (same == classes.end()) same = classes.insert(classes.end(), SlotClass{.slot_bytes = bytes});
    same->n_experts += n_experts;
    shares.class_of_layer.push_back(static_cast<size_t>(same - classes.begin()));
    all += bytes * static_cast<uint64_t>(n_experts);
  }
  const double share = std::min(1.0, static_cast<double>(budget_bytes) / static_cast<double>(all));
  uint64_t left = budget_bytes;
  for (SlotClass& c : classes) {
    c.n_slots = budget_bytes >= all ? c.n_experts : static_cast<int64_t>(share * static_cast<double>(c.n_experts));
    left -= static_cast<uint64_t>(c.n_slots) * c.slot_bytes;
  }
  for (SlotClass& c : classes) {
    const auto more = std::min<uint64_t>(static_cast<uint64_t>(c.n_experts - c.n_slots), left / c.slot_bytes);
    left -= more * c.slot_bytes;
    c.n_slots += static_cast<int64_t>(more);
    c.keeps = c.n_slots >= 2;
    c.n_slots = std::max<int64_t>(c.n_slots, std::min<int64_t>(2, c.n_experts));
  }
  return shares;
}

SlotShares ring_slots(std::span<const uint64_t> entry_bytes, int64_t n) {
  const auto n_entries = static_cast<int64_t>(entry_bytes.size());
  SlotClass ring{.n_experts = n_entries, .n_slots = std::min(n, n_entries), .keeps = false};
  for (const uint64_t bytes : entry_bytes) ring.slot_bytes = std::max(ring.slot_bytes, bytes);
  return {.classes = {ring}, .class_of_layer = std::vector<size_t>(entry_bytes.size(), 0)};
}

}  // namespace stoker::model
