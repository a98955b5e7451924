#pragma once

#include <chrono>
#include <cstdint>

#include "base/mutex.h"

namespace stoker::model {

inline uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

/// How long reads are under way: at least one, and all of them together. Threads: any.
class ReadClock {
 public:
  void begin(uint64_t n = 1) {
    const MutexLock lock(mu_);
    pass();
    n_ += n;
  }
  void end(uint64_t n = 1) {
    const MutexLock lock(mu_);
    pass();
    n_ -= n;
  }
  struct Times {
    uint64_t busy_ns = 0;  ///< With at least one.
    uint64_t sum_ns = 0;   ///< Of each, added up.
  };
  Times times() {
    const MutexLock lock(mu_);
    pass();
    return times_;
  }

 private:
  void pass() REQUIRES(mu_) {
    const uint64_t now = now_ns(), passed = now - last_ns_;
    last_ns_ = now;
    times_.busy_ns += n_ > 0 ? passed : 0;
    times_.sum_ns += n_ * passed;
  }
  Mutex mu_;
  uint64_t n_ GUARDED_BY(mu_) = 0, last_ns_ GUARDED_BY(mu_) = now_ns();
  Times times_ GUARDED_BY(mu_);
};

}  // namespace stoker::model
