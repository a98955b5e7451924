#include "base/cpu_order.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/cgroup.h"
#include "base/str_cat.h"

namespace stoker {
namespace {

/// The number at the end of "node12", or in a file; -1 if there is none.
int number(std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

/// Which memory node a processor belongs to: its folder holds a link named after it.
int node_of(const std::string& cpu_folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(cpu_folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node")) return number(std::string_view(name).substr(4));
  }
  return -1;
}

struct CpuSet {
  explicit CpuSet(int n_cpus)
      : set(CPU_ALLOC(static_cast<size_t>(n_cpus)), [](cpu_set_t* s) { CPU_FREE(s); }),
        bytes(CPU_ALLOC_SIZE(static_cast<size_t>(n_cpus))) {
    CPU_ZERO_S(bytes, set.get());
  }
  std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set;
  size_t bytes;
};

}  // namespace

std::vector<int> allowed_cpus() {
  for (int n_cpus = 1024; n_cpus <= 1 << 20; n_cpus *= 2) {  // The kernel refuses a mask smaller than its own.
    CpuSet mask(n_cpus);
    if (sched_getaffinity(0, mask.bytes, mask.set.get()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<int> cpus;
    cpus.reserve(static_cast<size_t>(CPU_COUNT_S(mask.bytes, mask.set.get())));
    for (int cpu = 0; cpu < n_cpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), mask.bytes, mask.set.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {};
}

const std::vector<int>& process_cpus() {
  static const std::vector<int> cpus = allowed_cpus();
  return cpus;
}

std::vector<int> cpu_order(std::span<const int> cpus, const std::string& root) {
  std::map<std::pair<int, int>, int> seen;  // Of each core: how many of its processors came before.
  std::vector<std::tuple<int, int, int>> order;
  for (int cpu : cpus) {
    const std::string folder = str_cat(root, "/sys/devices/system/cpu/cpu", cpu);
    const int core = number(first_line(folder + "/topology/core_id"));
    const int package = number(first_line(folder + "/topology/physical_package_id"));
    const int sibling = core < 0 ? 0 : seen[{package, core}]++;
    order.emplace_back(sibling, node_of(folder), cpu);
  }
  std::sort(order.begin(), order.end());
  std::vector<int> out;
  out.reserve(order.size());
  for (const auto& [sibling, node, cpu] : order) out.push_back(cpu);
  return out;
}

bool pin_to(std::span<const int> cpus) {
  if (cpus.empty()) return false;
  CpuSet mask(std::max(1024, *std::max_element(cpus.begin(), cpus.end()) + 1));
  for (const int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), mask.bytes, mask.set.get());
  return sched_setaffinity(0, mask.bytes, mask.set.get()) == 0;
}

}  // namespace stoker
