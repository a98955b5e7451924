#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

/// A counter that threads wait on: they spin for a bounded time, then sleep in the kernel.
/// What was written before advance() is visible after a wait_past() that saw it.
class Gate {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }

  /// Returns once the value is another than `seen`. Spins at most `spins` pauses before it sleeps.
  void wait_past(uint32_t seen, int spins);

  /// Adds one and wakes all sleepers. One thread at a time.
  void advance();

 private:
  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> n_asleep_{0};
};

/// Tells the processor that this is a spin loop.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` is a no-op on most cores; isb waits some 10 ns.
#endif
}

}  // namespace stoker
