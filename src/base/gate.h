#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

/// A counter that threads wait on: they spin for a bounded time, then sleep in the kernel.
/// What was written before advance() is visible after a wait_past() that saw it.
class Gate {
 public:
  /// `spins`: how many pauses a wait takes at most before it sleeps.
  explicit Gate(int spins) : spins_(spins) {}

  uint32_t value() const { return value_.load(std::memory_order_acquire); }

  /// Returns once the value is another than `seen`.
  void wait_past(uint32_t seen);

  /// Adds one and wakes all sleepers. One thread at a time.
  void advance();

 private:
  const int spins_;
  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> n_asleep_{0};
};

}  // namespace stoker
