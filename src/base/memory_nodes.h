#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/range.h"

namespace stoker {

/// Memory that some processors reach faster than all else: a socket's, or a part of it.
struct MemoryNode {
  int id = 0;               ///< The system's number.
  std::vector<int> cpus{};  ///< To which no node is nearer, ascending; none: memory without processors (CXL).
};

/// The nodes with memory that this process may use, ascending, and which of `cpus` each is the nearest to: every one of
/// these is of exactly one node. Reads sys/devices/system/node and proc/self/status below `root` ("" for the real
/// ones); what is not told there, or makes no sense, is one node with all processors.
std::vector<MemoryNode> memory_nodes(std::span<const int> cpus, const std::string& root = "");

/// How workers, and with them work and the memory of weights, are divided among nodes: in proportion to processors, the
/// workers of a node one after the other. Nodes that get no worker have no part in it.
class NodeSplit {
 public:
  /// One node with all workers.
  NodeSplit() = default;
  NodeSplit(std::span<const MemoryNode> nodes, int n_workers);

  int n_nodes() const { return static_cast<int>(nodes_.size()); }
  const MemoryNode& node(int i) const { return nodes_[static_cast<size_t>(i)]; }
  Range workers(int i) const { return {first_[static_cast<size_t>(i)], first_[static_cast<size_t>(i) + 1]}; }
  int node_of(int worker) const;

  /// Of `n` items in a row those that node `i` has, in proportion to its workers.
  Range part(int64_t n, int i) const { return {border(n, i), border(n, i + 1)}; }

  /// The nodes' numbers, for `interleave`.
  std::vector<int> ids() const;

 private:
  int64_t border(int64_t n, int i) const { return n * first_[static_cast<size_t>(i)] / first_.back(); }
  std::vector<MemoryNode> nodes_{MemoryNode{}};
  std::vector<int64_t> first_{0, 1};  ///< Worker of each node, and how many there are.
};

/// Asks the system to take the pages of `bytes`, none of which was touched yet, from these nodes in turn. False: it
/// refuses (containers often do), or there are fewer than two; pages then come from where the first to touch them runs.
bool interleave(std::span<std::byte> bytes, std::span<const int> nodes);
/// Whether it would be granted, tried on a page.
bool can_interleave(std::span<const int> nodes);

}  // namespace stoker
