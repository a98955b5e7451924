#include <algorithm>
#include <thread>

#include "base/cpu_order.h"
#include "base/memory_limit.h"
#include "base/pool.h"

namespace stoker {

int usable_cpus() {
  const auto allowed = static_cast<int>(process_cpus().size());
  const int cpus = allowed > 0 ? allowed : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int quota = cpu_quota();
  return quota == 0 ? cpus : std::min(cpus, quota);
}

}  // namespace stoker
