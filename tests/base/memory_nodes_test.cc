#include "base/memory_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <numeric>
#include <thread>

#include "base/buffer.h"
#include "base/cpu_order.h"
#include "base/pool.h"
#include "base/str_cat.h"
#include "tests/base/temp_dir.h"

namespace stoker {
namespace {

using Cpus = std::vector<int>;

Cpus numbers(int begin, int end) {
  Cpus cpus(static_cast<size_t>(end - begin));
  std::iota(cpus.begin(), cpus.end(), begin);
  return cpus;
}

/// A made-up machine.
struct Machine {
  test::TempDir dir;
  void node(int id, std::string_view cpus, std::string_view distances = "") const {
    const std::string folder = str_cat("sys/devices/system/node/node", id);
    dir.write(folder + "/cpulist", str_cat(cpus, "\n"));
    if (!distances.empty()) dir.write(folder + "/distance", str_cat(distances, "\n"));
  }
  void has_memory(std::string_view nodes) const {
    dir.write("sys/devices/system/node/has_memory", str_cat(nodes, "\n"));
  }
  void allowed_memory(std::string_view nodes) const {
    dir.write("proc/self/status",
              str_cat("Name:\tx\nMems_allowed:\t3\nMems_allowed_list:\t", nodes, "\nThreads:\t1\n"));
  }
  std::vector<MemoryNode> nodes(const Cpus& cpus) const { return memory_nodes(cpus, dir.path()); }
};

/// "0:0,1 1:2,3"
std::string text(const std::vector<MemoryNode>& nodes) {
  std::string out;
  for (const MemoryNode& node : nodes) {
    out += str_cat(out.empty() ? "" : " ", node.id, ":");
    for (size_t i = 0; i < node.cpus.size(); ++i) out += str_cat(i ? "," : "", node.cpus[i]);
  }
  return out;
}

TEST(MemoryNodes, OneNodeWhereNothingIsTold) {
  const Machine machine;
  EXPECT_EQ(text(machine.nodes({3, 1, 2})), "0:1,2,3");
  EXPECT_EQ(text(machine.nodes({})), "0:");
}

TEST(MemoryNodes, OneTwoAndFourSockets) {
  {
    const Machine machine;
    machine.node(0, "0-3");
    EXPECT_EQ(text(machine.nodes({0, 1, 2, 3})), "0:0,1,2,3");
  }
  {
    const Machine machine;  // numbered round the sockets
    machine.node(0, "0,2,4,6"), machine.node(1, "1,3,5,7");
    machine.has_memory("0-1"), machine.allowed_memory("0-1");
    EXPECT_EQ(text(machine.nodes(numbers(0, 8))), "0:0,2,4,6 1:1,3,5,7");
    EXPECT_EQ(text(machine.nodes({1, 2, 3})), "0:2 1:1,3");  // others are offline or not in the affinity mask
    EXPECT_EQ(text(machine.nodes({1, 3})), "0: 1:1,3");
  }
  {
    const Machine machine;  // uneven, nodes in no order, node 2 does not exist
    machine.node(10, "6"), machine.node(0, "0-2"), machine.node(3, "4-5"), machine.node(1, "3");
    EXPECT_EQ(text(machine.nodes(numbers(0, 7))), "0:0,1,2 1:3 3:4,5 10:6");
  }
}

TEST(MemoryNodes, MemoryWithoutProcessors) {
  const Machine machine;
  machine.node(0, "0-1"), machine.node(1, "2-3"), machine.node(2, "");
  EXPECT_EQ(text(machine.nodes(numbers(0, 4))), "0:0,1 1:2,3 2:");
}

TEST(MemoryNodes, ProcessorsWithoutMemoryBelongToTheNearest) {
  const Machine machine;
  machine.node(0, "0", "10 40 20"), machine.node(1, "1", "40 10 30"), machine.node(2, "2", "20 30 10");
  EXPECT_EQ(text(machine.nodes({0, 1, 2})), "0:0 1:1 2:2");
  machine.has_memory("0-1");
  EXPECT_EQ(text(machine.nodes({0, 1, 2})), "0:0,2 1:1");
  machine.has_memory("1-2");
  EXPECT_EQ(text(machine.nodes({0, 1, 2})), "1:1 2:0,2");
  machine.has_memory("1");
  EXPECT_EQ(text(machine.nodes({0, 1, 2})), "1:0,1,2");
  machine.has_memory("0-2");
  machine.allowed_memory("1");  // of the control group
  EXPECT_EQ(text(machine.nodes({0, 1, 2})), "1:0,1,2");
}

TEST(MemoryNodes, WhatMakesNoSenseIsOneNode) {
  const auto expect_one = [](const char* what, const std::function<void(const Machine&)>& damage) {
    const Machine machine;
    machine.node(0, "0-1"), machine.node(1, "2-3");
    machine.has_memory("0-1"), machine.allowed_memory("0-1");
    ASSERT_EQ(text(machine.nodes(numbers(0, 4))), "0:0,1 1:2,3");
    damage(machine);
    EXPECT_EQ(text(machine.nodes(numbers(0, 4))), "0:0,1,2,3") << what;
  };
  for (const char* list : {"0-", "x", "3-2", "2--3", "2;3", "2-3x", "99999999999", "-1", "2, 3", "1-3"}) {
    expect_one(list, [&](const Machine& m) { m.node(1, list); });
  }
  for (const char* list : {"", "0", "2-2", "4-9"}) {  // a processor without a node
    expect_one(list, [&](const Machine& m) { m.node(1, list); });
  }
  expect_one("no cpulist",
             [](const Machine& m) { std::filesystem::remove(m.dir / "sys/devices/system/node/node1/cpulist"); });
  expect_one("no memory", [](const Machine& m) { m.has_memory(""); });
  expect_one("no memory allowed", [](const Machine& m) { m.allowed_memory(""); });
  expect_one("memory elsewhere", [](const Machine& m) { m.has_memory("7"); });
  expect_one("damaged has_memory", [](const Machine& m) { m.has_memory("0-1-2"); });
  expect_one("damaged status", [](const Machine& m) { m.allowed_memory("a"); });
}

TEST(MemoryNodes, DistancesThatMakeNoSenseAreNotUsed) {
  const Machine machine;
  machine.node(0, "0", "10 20"), machine.node(1, "1", "20 10"), machine.node(2, "2", "30 x");
  machine.has_memory("0-1");
  EXPECT_EQ(text(machine.nodes({0, 1, 2})), "0:0,2 1:1");
}

TEST(MemoryNodes, ThisMachineHasAllItsProcessorsOnce) {
  Cpus all;
  for (const MemoryNode& node : memory_nodes(process_cpus())) all.insert(all.end(), node.cpus.begin(), node.cpus.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, process_cpus());
}

/// "0:2 1:1": node and workers.
std::string workers(const std::vector<MemoryNode>& nodes, int n_workers) {
  const NodeSplit split(nodes, n_workers);
  std::string out;
  int64_t next = 0;
  for (int i = 0; i < split.n_nodes(); ++i) {
    const Range range = split.workers(i);
    EXPECT_EQ(range.begin, next);
    next = range.end;
    for (int64_t w = range.begin; w < range.end; ++w) EXPECT_EQ(split.node_of(static_cast<int>(w)), i);
    out += str_cat(i ? " " : "", split.node(i).id, ":", range.size());
  }
  EXPECT_EQ(next, n_workers);
  return out;
}

TEST(NodeSplit, WorkersInProportionToProcessors) {
  const std::vector<MemoryNode> even = {{0, numbers(0, 4)}, {1, numbers(4, 8)}};
  EXPECT_EQ(workers(even, 1), "0:1");
  EXPECT_EQ(workers(even, 2), "0:1 1:1");
  EXPECT_EQ(workers(even, 3), "0:2 1:1");
  EXPECT_EQ(workers(even, 8), "0:4 1:4");
  EXPECT_EQ(workers(even, 17), "0:9 1:8");
  const std::vector<MemoryNode> uneven = {{0, numbers(0, 1)}, {2, numbers(1, 7)}, {5, {}}};
  EXPECT_EQ(workers(uneven, 1), "2:1");
  EXPECT_EQ(workers(uneven, 7), "0:1 2:6");
  EXPECT_EQ(workers(uneven, 14), "0:2 2:12");
  const std::vector<MemoryNode> four = {{0, numbers(0, 2)}, {1, numbers(2, 4)}, {2, numbers(4, 6)}, {3, numbers(6, 8)}};
  EXPECT_EQ(workers(four, 2), "0:1 1:1");
  EXPECT_EQ(workers(four, 6), "0:2 1:2 2:1 3:1");
  EXPECT_EQ(workers({}, 5), "0:5");
  EXPECT_EQ(workers({{3, {}}}, 5), "3:5");
  EXPECT_EQ(workers({{0, {}}, {1, {}}}, 5), "0:4 1:1");
}

TEST(NodeSplit, EachItemIsOfOneNode) {
  const std::vector<MemoryNode> nodes = {{0, numbers(0, 3)}, {1, numbers(3, 4)}, {2, numbers(4, 8)}};
  const NodeSplit split(nodes, 8);
  for (const int64_t n : {0, 1, 2, 7, 8, 9, 1000, 1001, 1 << 30}) {
    int64_t next = 0;
    for (int i = 0; i < split.n_nodes(); ++i) {
      const Range part = split.part(n, i);
      EXPECT_EQ(part.begin, next);
      next = part.end;
      const double fair = static_cast<double>(n * split.workers(i).size()) / 8;
      EXPECT_LT(std::abs(static_cast<double>(part.size()) - fair), 1) << n;
    }
    EXPECT_EQ(next, n);
  }
}

TEST(Interleave, IsRefusedWithoutHarm) {
  Ledger ledger(1u << 30);
  const auto buffer = std::move(Buffer::allocate(ledger, "x", 4u << 20)).value();
  EXPECT_FALSE(interleave(buffer.bytes(), Cpus{}));
  EXPECT_FALSE(interleave(buffer.bytes(), Cpus{0}));
  EXPECT_FALSE(interleave(buffer.bytes(), Cpus{0, 5000}));
  EXPECT_FALSE(interleave(buffer.bytes(), Cpus{-1, 0}));
  EXPECT_FALSE(can_interleave(Cpus{0}));
  const auto nodes = memory_nodes(process_cpus());
  const NodeSplit split(nodes, static_cast<int>(process_cpus().size()));
  // Granted or not; the bytes are there either way.
  const bool granted = interleave(buffer.bytes(), split.ids());
  EXPECT_EQ(granted, can_interleave(split.ids()));
  std::fill(buffer.bytes().begin(), buffer.bytes().end(), std::byte{7});
}

/// What each worker of a pool over two made-up nodes of this machine may run on.
std::vector<Cpus> places(int n_workers, bool pin, const std::vector<MemoryNode>& nodes) {
  std::vector<Cpus> found(static_cast<size_t>(n_workers));
  std::thread([&] {
    auto pool = std::move(Pool::create({.n_threads = n_workers, .pin = pin, .nodes = nodes})).value();
    pool->run([&](Worker& worker) { found[static_cast<size_t>(worker.index())] = allowed_cpus(); });
  }).join();
  return found;
}

TEST(NodePool, WorkersStayOnTheirNode) {
  const Cpus cpus = process_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one processor";
  const std::vector<MemoryNode> nodes = {{0, {cpus.begin(), cpus.end() - 1}}, {1, {cpus.back()}}};
  const auto n = static_cast<int>(cpus.size());
  const auto bound = places(n, false, nodes);
  for (int i = 0; i + 1 < n; ++i) EXPECT_EQ(bound[static_cast<size_t>(i)], nodes[0].cpus);
  EXPECT_EQ(bound.back(), nodes[1].cpus);
  const auto pinned = places(n, true, nodes);
  for (const Cpus& place : pinned) EXPECT_EQ(place.size(), 1u);
  EXPECT_EQ(pinned.back(), nodes[1].cpus);
  // One node: they run where they may.
  for (const Cpus& place : places(n, false, {{0, cpus}})) EXPECT_EQ(place, cpus);
}

/// Items of each node are dealt with once, by workers of that node, phase after phase.
void check_each_near(const std::vector<MemoryNode>& nodes, int n_workers) {
  auto pool = std::move(Pool::create({.n_threads = n_workers, .nodes = nodes})).value();
  const NodeSplit& split = pool->split();
  for (const int64_t n : {0, 1, 5, 64, 1000}) {
    std::vector<std::atomic<int>> by(static_cast<size_t>(n)), count(static_cast<size_t>(n));
    pool->run([&](Worker& worker) {
      for (int phase = 0; phase < 3; ++phase) {
        const Range near = worker.near(n);
        worker.each_near(near.size(), 3, [&](Range piece) {
          for (int64_t i = near.begin + piece.begin; i < near.begin + piece.end; ++i) {
            ++count[static_cast<size_t>(i)];
            by[static_cast<size_t>(i)] = worker.index();
          }
        });
        worker.barrier();
        worker.each(n, 2, [&](Range piece) {
          for (int64_t i = piece.begin; i < piece.end; ++i) ++count[static_cast<size_t>(i)];
        });
        worker.barrier();
      }
    });
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(count[static_cast<size_t>(i)], 6) << i << " of " << n;
      const Range part = split.part(n, split.node_of(by[static_cast<size_t>(i)]));
      EXPECT_TRUE(part.begin <= i && i < part.end) << i << " of " << n;
    }
  }
  // A run inside a run is alone, and everything is near it.
  pool->run([&](Worker& outer) {
    if (outer.index() != 0) return;
    pool->run([&](Worker& alone) {
      EXPECT_EQ(alone.near(10).size(), 10);
      int64_t n = 0;
      alone.each_near(10, 3, [&](Range piece) { n += piece.size(); });
      EXPECT_EQ(n, 10);
    });
  });
}

TEST(NodePool, EachNear) {
  std::thread([] {
    const Cpus cpus = process_cpus();
    check_each_near({{0, cpus}}, 3);
    check_each_near({{0, cpus}, {1, cpus}}, 1);
    check_each_near({{0, cpus}, {1, cpus}}, 2);
    check_each_near({{0, cpus}, {1, cpus}}, 5);
    check_each_near({{0, cpus}, {1, cpus}, {2, cpus}, {3, cpus}}, 4);
    check_each_near({{0, cpus}, {1, cpus}, {2, cpus}, {3, cpus}}, 11);
  }).join();
}

}  // namespace
}  // namespace stoker
