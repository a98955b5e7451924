#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

/// Sleeps in the kernel as long as `word` is `value`; wakes for no reason too. Unlike std::atomic::wait it makes no
/// other system call, such as yielding the processor first.
void sleep_while(std::atomic<uint32_t>& word, uint32_t value);
/// Wakes all who sleep on the word, once it has another value.
void wake_all(std::atomic<uint32_t>& word);

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
