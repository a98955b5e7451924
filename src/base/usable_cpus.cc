#include <algorithm>
#include <thread>

#include "base/cpu_order.h"
#include "base/memory_limit.h"
#include "base/pool.h"

namespace stoker {

namespace {

int count_usable() {
  const auto allowed = static_cast<int>(process_cpus().size());
  const int cpus = allowed > 0 ? allowed : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int quota = cpu_quota();
  return quota == 0 ? cpus : std::min(cpus, quota);
}

}  // namespace

int usable_cpus() {
  static const int n = count_usable();  // Every pool asks, and the control groups' files may be slow to read.
  return n;
}

}  // namespace stoker
