#include "model/state/state_slots.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/str_cat.h"

namespace stoker::model {

Result<std::unique_ptr<StateSlots>> StateSlots::create(Ledger& ledger, int64_t bytes_each, int64_t n) {
  auto slots = std::unique_ptr<StateSlots>(new StateSlots);
  const auto bytes = checked_mul<int64_t>(bytes_each, n);
  if (!bytes || n <= 0 || n > INT32_MAX) {
    return Error{ErrorCode::kInvalidArgument, str_cat("recurrent states of ", n, " sequences cannot be")};
  }
  STOKER_TRY(slots->slab_, Buffer::allocate(ledger, "recurrent states", static_cast<uint64_t>(*bytes)));
  slots->bytes_each_ = bytes_each;
  slots->references_.assign(static_cast<size_t>(n), 0);
  slots->free_.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) slots->free_[static_cast<size_t>(i)] = static_cast<int32_t>(n - 1 - i);
  return slots;
}

int32_t StateSlots::take() {
  STOKER_CHECK(!free_.empty());
  const int32_t id = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(id)] = 1;
  return id;
}

KeptStates::KeptStates(KeptStates&& other) noexcept
    : slots_(other.slots_),
      kept_(std::exchange(other.kept_, {})),
      next_(std::exchange(other.next_, StateSlots::kNone)) {}

KeptStates& KeptStates::operator=(KeptStates&& other) noexcept {
  std::swap(slots_, other.slots_);
  std::swap(kept_, other.kept_);
  std::swap(next_, other.next_);
  return *this;
}

int64_t KeptStates::wanted() const {
  if (!slots_ || next_ != StateSlots::kNone) return 0;
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (is_previous(i) && !slots_->is_shared(kept_[i].slot)) return 0;
  }
  return 1;
}

void KeptStates::begin() {
  if (!slots_) return;
  for (size_t i = kept_.size(); i-- > 0;) {
    if (!is_previous(i)) continue;
    const int32_t slot = kept_[i].slot;
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    if (next_ == StateSlots::kNone && !slots_->is_shared(slot)) {
      next_ = slot;
    } else {
      slots_->drop_reference(slot);
    }
  }
  if (next_ == StateSlots::kNone) next_ = slots_->take();
}

void KeptStates::commit(int64_t length) {
  if (!slots_) return;
  kept_.push_back({.length = length, .slot = std::exchange(next_, StateSlots::kNone), .pinned = false});
}

void KeptStates::unpin() {
  for (Kept& kept : kept_) kept.pinned = false;
  while (kept_.size() > 2) {
    slots_->drop_reference(kept_.front().slot);
    kept_.erase(kept_.begin());
  }
}

int64_t KeptStates::cut_point(int64_t length) const {
  if (!slots_) return length;
  int64_t point = 0;
  for (const Kept& kept : kept_) {
    if (kept.length <= length) point = kept.length;
  }
  return point;
}

void KeptStates::cut(int64_t length) {
  while (!kept_.empty() && kept_.back().length > length) {
    slots_->drop_reference(kept_.back().slot);
    kept_.pop_back();
  }
}

KeptStates KeptStates::fork() const {
  KeptStates copy(slots_);
  if (kept_.empty()) return copy;
  copy.kept_ = {{.length = kept_.back().length, .slot = kept_.back().slot, .pinned = false}};
  slots_->add_reference(kept_.back().slot);
  return copy;
}

void KeptStates::clear() {
  for (const Kept& kept : kept_) slots_->drop_reference(kept.slot);
  kept_.clear();
  if (next_ != StateSlots::kNone) slots_->drop_reference(std::exchange(next_, StateSlots::kNone));
}

}  // namespace stoker::model
