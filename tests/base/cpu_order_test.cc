#include "base/cpu_order.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/pool.h"
#include "base/str_cat.h"
#include "tests/base/temp_dir.h"

namespace stoker {
namespace {

/// A made-up machine.
struct Machine {
  test::TempDir dir;
  void add(int cpu, int package, int core, int node) const {
    const std::string folder = str_cat("sys/devices/system/cpu/cpu", cpu);
    dir.write(folder + "/topology/core_id", str_cat(core, "\n"));
    dir.write(folder + "/topology/physical_package_id", str_cat(package, "\n"));
    dir.write(str_cat(folder, "/node", node, "/x"), "");
  }
  std::vector<int> order(std::vector<int> cpus) const { return cpu_order(cpus, dir.path()); }
};

using Cpus = std::vector<int>;

TEST(CpuOrder, CoresBeforeTheirSecondThreads) {
  const Machine machine;
  for (int cpu = 0; cpu < 8; ++cpu) machine.add(cpu, 0, cpu / 2, 0);  // 0 and 1 share a core, and so on
  EXPECT_EQ(machine.order({0, 1, 2, 3, 4, 5, 6, 7}), (Cpus{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(machine.order({1, 2, 3}), (Cpus{1, 2, 3}));  // an affinity mask that leaves out 0
}

TEST(CpuOrder, NodesStayTogether) {
  const Machine machine;
  // Two sockets of four cores with two threads; processors are numbered round the sockets.
  for (int cpu = 0; cpu < 16; ++cpu) machine.add(cpu, cpu % 2, cpu / 2 % 4, cpu % 2);
  Cpus all(16);
  for (int cpu = 0; cpu < 16; ++cpu) all[static_cast<size_t>(cpu)] = cpu;
  EXPECT_EQ(machine.order(all), (Cpus{0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15}));
}

TEST(CpuOrder, WithoutToldTopologyAsNumbered) {
  const test::TempDir nothing;
  EXPECT_EQ(cpu_order(Cpus{3, 5, 9}, nothing.path()), (Cpus{3, 5, 9}));
}

TEST(CpuOrder, PinnedWorkersStayOnTheirProcessors) {
  const std::vector<int> cpus = cpu_order(allowed_cpus());
  ASSERT_FALSE(cpus.empty());
  // On a thread of its own: the one that makes the pool is pinned too.
  std::thread([&] {
    const auto n = static_cast<int>(std::min<size_t>(cpus.size(), 4));
    auto pool = std::move(Pool::create({.n_threads = n, .pin = true})).value();
    std::vector<std::vector<int>> found(static_cast<size_t>(n));
    pool->run([&](Worker& worker) { found[static_cast<size_t>(worker.index())] = allowed_cpus(); });
    for (int i = 0; i < n; ++i) EXPECT_EQ(found[static_cast<size_t>(i)], Cpus{cpus[static_cast<size_t>(i)]});
  }).join();
  EXPECT_EQ(cpu_order(allowed_cpus()), cpus);  // this one never was
  std::thread([] {
    const int before = usable_cpus();
    ASSERT_TRUE(pin_to(process_cpus().back()));
    EXPECT_EQ(allowed_cpus(), Cpus{process_cpus().back()});
    EXPECT_EQ(usable_cpus(), before);  // what one thread was bound to limits no pool
  }).join();
}

TEST(CpuOrder, MoreWorkersThanProcessorsGoRound) {
  std::thread([] {
    const auto n = static_cast<int>(allowed_cpus().size()) + 3;
    auto pool = std::move(Pool::create({.n_threads = n, .pin = true})).value();
    std::atomic<int> n_ran{0};
    pool->run([&](Worker&) { ++n_ran; });
    EXPECT_EQ(n_ran, n);
  }).join();
}

}  // namespace
}  // namespace stoker
