#include "model/page_nodes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace stoker::model {
namespace {

constexpr uint64_t kPage = PageNodes::kPage;

/// Nodes with so many processors each, and a worker for each of these.
NodeSplit split_of(const std::vector<int>& n_cpus) {
  std::vector<MemoryNode> nodes;
  for (const int n : n_cpus) {
    nodes.push_back({.id = static_cast<int>(nodes.size()), .cpus = std::vector<int>(static_cast<size_t>(n))});
  }
  return NodeSplit(nodes, std::accumulate(n_cpus.begin(), n_cpus.end(), 0));
}

/// Matrices of random sizes with gaps of what no product reads in between.
struct Arena {
  std::vector<SplitRange> ranges;
  uint64_t size = 0;
  Arena(uint32_t seed, uint64_t most_bytes) {
    std::mt19937 random(seed);
    for (int i = 0; i < 40; ++i) {
      size += random() % 3 == 0 ? random() % (3 * kPage) / 64 * 64 : 0;
      const uint64_t unit = (1 + random() % 5000) * 64;
      const auto n = static_cast<int64_t>(1 + random() % (most_bytes / unit));
      ranges.push_back({.begin = size, .unit_bytes = unit, .n = n, .n_all = n});
      size += unit * static_cast<uint64_t>(n);
    }
    size += 64;
  }
};

TEST(PlacePages, EachByteOnceAndMostOfThemNear) {
  for (const auto& cpus : std::vector<std::vector<int>>{{4}, {4, 4}, {1, 7}, {2, 2, 2, 2}, {5, 1, 3}}) {
    const NodeSplit split = split_of(cpus);
    for (uint32_t seed = 0; seed < 20; ++seed) {
      const Arena arena(seed, (seed % 2 ? 64u : 2u) << 20);
      const PageNodes pages = place_pages(arena.ranges, arena.size, split);
      ASSERT_EQ(pages.node.size(), (arena.size + kPage - 1) / kPage);
      EXPECT_EQ(std::accumulate(pages.bytes.begin(), pages.bytes.end(), uint64_t{0}), arena.size);
      uint64_t read = 0;
      for (const SplitRange& range : arena.ranges) read += range.unit_bytes * static_cast<uint64_t>(range.n);
      EXPECT_EQ(pages.split_bytes, read);
      // Taking all pages in turn would have one in n_nodes bytes near, on average.
      EXPECT_GE(pages.near_bytes * cpus.size(), read);
      if (cpus.size() == 1) {
        EXPECT_EQ(pages.near_bytes, read);
      }
      if (seed % 2) {
        EXPECT_GT(static_cast<double>(pages.near_bytes), 0.85 * static_cast<double>(read)) << seed;
      }
    }
  }
}

/// Bytes of the range that lie on each node.
std::vector<uint64_t> placed(const PageNodes& pages, const SplitRange& range, size_t n_nodes) {
  std::vector<uint64_t> bytes(n_nodes);
  const uint64_t end = range.begin + range.unit_bytes * static_cast<uint64_t>(range.n);
  for (uint64_t at = range.begin; at < end;) {
    const uint64_t stop = std::min(end, (at / kPage + 1) * kPage);
    bytes[static_cast<size_t>(pages.node[at / kPage])] += stop - at;
    at = stop;
  }
  return bytes;
}

TEST(PlacePages, EachMatrixIsBalancedWithinAPage) {
  const NodeSplit split = split_of({2, 2, 2, 2});
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Arena arena(seed, 64u << 20);
    const PageNodes pages = place_pages(arena.ranges, arena.size, split);
    for (const SplitRange& range : arena.ranges) {
      const std::vector<uint64_t> bytes = placed(pages, range, 4);
      for (int node = 0; node < 4; ++node) {
        const auto wanted =
            static_cast<double>(range.unit_bytes) * static_cast<double>(split.part(range.n, node).size());
        // A part begins and ends inside a page, which goes to one of the two that read it.
        EXPECT_LE(std::abs(static_cast<double>(bytes[static_cast<size_t>(node)]) - wanted), 2.0 * kPage);
      }
    }
  }
}

TEST(PlacePages, BordersGoToWhoReadsMoreOfThePage) {
  const NodeSplit split = split_of({1, 1});
  const auto nodes = [&](std::vector<SplitRange> ranges, uint64_t size) {
    return place_pages(ranges, size, split).node;
  };
  const uint64_t unit = kPage / 8;
  // 4 pages in the middle of 5: the second node begins in the middle of the third.
  const SplitRange range{.begin = 3 * unit, .unit_bytes = unit, .n = 32, .n_all = 32};
  EXPECT_EQ(nodes({range}, 5 * kPage), (std::vector{0, 0, 1, 1, 1}));
  const SplitRange less{.begin = unit, .unit_bytes = unit, .n = 32, .n_all = 32};
  EXPECT_EQ(nodes({less}, 5 * kPage), (std::vector{0, 0, 1, 1, 1}));
  // The same units as two stretches of one matrix.
  const SplitRange first{.begin = 0, .unit_bytes = unit, .first = 0, .n = 16, .n_all = 48};
  const SplitRange second{.begin = 2 * kPage, .unit_bytes = unit, .first = 16, .n = 32, .n_all = 48};
  EXPECT_EQ(nodes({first, second}, 6 * kPage), (std::vector{0, 0, 0, 1, 1, 1}));
}

TEST(PlacePages, WhatAllReadComesFromNodesInTurn) {
  const NodeSplit split = split_of({1, 5, 1});
  const SplitRange tiny{.begin = 2 * kPage, .unit_bytes = kPage, .n = 7, .n_all = 7};
  EXPECT_EQ(place_pages({}, 4 * kPage, split).node, (std::vector{0, 1, 2, 0}));
  EXPECT_EQ(place_pages(std::span(&tiny, 1), 13 * kPage, split).node,
            (std::vector{0, 1, 0, 1, 1, 1, 1, 1, 2, 2, 0, 1, 2}));
  EXPECT_TRUE(place_pages({}, 0, split).node.empty());
}

}  // namespace
}  // namespace stoker::model
