#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "base/check.h"
#include "base/result.h"

namespace stoker::model {

/// Places for states of fixed size (convolutions, recurrences), reference-counted: each holds that of all layers of one
/// sequence at one position. A state that others see is never written: a call reads one slot and writes another.
/// Threads: one at a time (the engine's).
class StateSlots {
 public:
  static constexpr int32_t kNone = -1;

  /// kOutOfMemory: the ledger refuses.
  static Result<std::unique_ptr<StateSlots>> create(Ledger& ledger, int64_t bytes_each, int64_t n);

  int64_t n() const { return static_cast<int64_t>(references_.size()); }
  int64_t n_free() const { return static_cast<int64_t>(free_.size()); }
  std::byte* at(int32_t id) const { return slab_.data() + id * bytes_each_; }

  /// A slot with one reference, whose bytes are whatever the last user left. There must be a free one.
  int32_t take();
  void add_reference(int32_t id) { ++references_[static_cast<size_t>(id)]; }
  void drop_reference(int32_t id) {
    if (--references_[static_cast<size_t>(id)] == 0) free_.push_back(id);
  }
  bool is_shared(int32_t id) const { return references_[static_cast<size_t>(id)] > 1; }

 private:
  StateSlots() = default;
  int64_t bytes_each_ = 0;
  Buffer slab_;
  std::vector<int32_t> references_, free_;
};

/// The states of one sequence: the one at its end, the one before the last call, and those at checkpoints. To these
/// positions it can be cut. Without slots (a model that has no such state) it does nothing.
class KeptStates {
 public:
  explicit KeptStates(StateSlots* slots) : slots_(slots) {}
  KeptStates(KeptStates&& other) noexcept;
  KeptStates& operator=(KeptStates&& other) noexcept;
  ~KeptStates() { clear(); }

  /// Slots that `begin` would take.
  int64_t wanted() const;
  /// Makes room for the state after the call that comes; forgets the one before the last call. There must be `wanted`
  /// free slots.
  void begin();
  /// The call has been: the room now holds the state at `length`.
  void commit(int64_t length);

  /// What the call reads; null: zeros. And what it writes.
  const std::byte* current() const { return kept_.empty() ? nullptr : slots_->at(kept_.back().slot); }
  std::byte* next() const { return next_ == StateSlots::kNone ? nullptr : slots_->at(next_); }

  /// The state at the end stays until the sequence is cut below it.
  void pin() {
    if (!kept_.empty()) kept_.back().pinned = true;
  }
  /// What was pinned stays until the next call only, and what no call wants any more goes at once.
  void unpin();
  /// The longest length up to `length` that it can be cut to.
  int64_t cut_point(int64_t length) const;
  /// `length` is a cut point.
  void cut(int64_t length);
  /// Another sequence's, with the state at the end only.
  KeptStates fork() const;
  void clear();

 private:
  struct Kept {
    int64_t length;
    int32_t slot;
    bool pinned;
  };
  bool is_previous(size_t i) const { return i + 1 < kept_.size() && !kept_[i].pinned; }

  StateSlots* slots_;
  std::vector<Kept> kept_;  ///< By length; the last one is the state at the end.
  int32_t next_ = StateSlots::kNone;
};

}  // namespace stoker::model
