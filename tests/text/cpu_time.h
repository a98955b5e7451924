#pragma once

#include <time.h>

namespace stoker::text {

/// Of this thread: other work on the machine does not count.
inline double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Sanitizers and builds without optimization are slower; the limits mean the release build.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr double kSlowdown = 1;
#else
constexpr double kSlowdown = 20;
#endif

}  // namespace stoker::text
