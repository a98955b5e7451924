#include "base/gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace stoker {
namespace {

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

/// Tells the processor that this is a spin loop.
void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` is a no-op on most cores; isb waits some 10 ns.
#endif
}

}  // namespace

void sleep_while(std::atomic<uint32_t>& word, uint32_t value) { futex(word, FUTEX_WAIT, value); }

void wake_all(std::atomic<uint32_t>& word) { futex(word, FUTEX_WAKE, INT_MAX); }

void Gate::wait_past(uint32_t seen) {
  for (int i = 0; i < spins_; ++i) {
    if (value_.load(std::memory_order_acquire) != seen) return;
    spin_pause();
  }
  // The order against advance(): either it sees this sleeper and wakes, or the kernel sees the new value and returns
  // at once. Both sides store first and load then, which needs seq_cst.
  n_asleep_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == seen) sleep_while(value_, seen);
  n_asleep_.fetch_sub(1, std::memory_order_relaxed);
}

void Gate::advance() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (n_asleep_.load(std::memory_order_seq_cst) != 0) wake_all(value_);
}

}  // namespace stoker
