#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/memory_limit.h"
#include "base/pool.h"

namespace stoker {
namespace {

/// The size of this process's affinity mask.
int affinity_count() {
  for (int n_cpus = 1024; n_cpus <= 1 << 20; n_cpus *= 2) {  // The kernel refuses a mask smaller than its own.
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(n_cpus));
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(n_cpus));
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !ok && errno == EINVAL;
    const int count = ok ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (ok) return count;
    if (!too_small) break;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int usable_cpus() {
  const int cpus = std::max(1, affinity_count());
  const int quota = cpu_quota();
  return quota == 0 ? cpus : std::min(cpus, quota);
}

}  // namespace stoker
