#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/memory_nodes.h"

namespace stoker::model {

/// A stretch of memory that is read in units of one size, groups of matrix rows: each by the workers of the node whose
/// part it is in (NodeSplit::part), and no others.
struct SplitRange {
  uint64_t begin = 0;  ///< Of unit `first`.
  uint64_t unit_bytes = 0;
  int64_t first = 0, n = 0;  ///< Units that lie there.
  int64_t n_all = 0;         ///< Units that are divided among nodes.
};

/// Which node each page is to come from, a page being what the system gives at once.
struct PageNodes {
  static constexpr uint64_t kPage = Buffer::kHugePage;
  std::vector<int> node;        ///< By page: index in the split.
  std::vector<uint64_t> bytes;  ///< By node.
  uint64_t split_bytes = 0;     ///< Read in parts,
  uint64_t near_bytes = 0;      ///< and of these, by the node that has them.
};

/// Places `size` bytes that begin with a page, with `ranges` in them that do not overlap. A page comes from the node
/// that reads most of it; where some read the same of it, as of one that no range says anything about, from these in
/// turn.
PageNodes place_pages(std::span<const SplitRange> ranges, uint64_t size, const NodeSplit& split);

}  // namespace stoker::model
