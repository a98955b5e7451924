#include "model/page_nodes.h"

#include <algorithm>
#include <numeric>

namespace stoker::model {
namespace {

/// Bytes of each page that each node reads: [pages][nodes].
class Reads {
 public:
  Reads(uint64_t n_pages, int n_nodes)
      : n_nodes_(static_cast<size_t>(n_nodes)), bytes_(static_cast<size_t>(n_pages) * n_nodes_) {}

  void add(uint64_t begin, uint64_t end, int node) {
    while (begin < end) {
      const uint64_t page = begin / PageNodes::kPage, stop = std::min(end, (page + 1) * PageNodes::kPage);
      bytes_[static_cast<size_t>(page) * n_nodes_ + static_cast<size_t>(node)] += stop - begin;
      begin = stop;
    }
  }
  std::span<const uint64_t> of(uint64_t page) const {
    return std::span(bytes_).subspan(static_cast<size_t>(page) * n_nodes_, n_nodes_);
  }

 private:
  size_t n_nodes_;
  std::vector<uint64_t> bytes_;
};

Reads count_reads(std::span<const SplitRange> ranges, uint64_t n_pages, const NodeSplit& split) {
  Reads reads(n_pages, split.n_nodes());
  for (const SplitRange& range : ranges) {
    for (int node = 0; node < split.n_nodes(); ++node) {
      const Range part = split.part(range.n_all, node);
      const int64_t begin = std::max(part.begin, range.first), end = std::min(part.end, range.first + range.n);
      if (begin >= end) continue;
      const auto offset = [&](int64_t unit) {
        return range.begin + static_cast<uint64_t>(unit - range.first) * range.unit_bytes;
      };
      reads.add(offset(begin), offset(end), node);
    }
  }
  return reads;
}

/// The index of the largest from `start` on, round the end; of equal ones the first on this way.
size_t largest_from(std::span<const uint64_t> values, size_t start) {
  size_t best = start;
  for (size_t i = 1; i < values.size(); ++i) {
    const size_t at = (start + i) % values.size();
    if (values[at] > values[best]) best = at;
  }
  return best;
}

}  // namespace

PageNodes place_pages(std::span<const SplitRange> ranges, uint64_t size, const NodeSplit& split) {
  const uint64_t n_pages = (size + PageNodes::kPage - 1) / PageNodes::kPage;
  const Reads reads = count_reads(ranges, n_pages, split);
  PageNodes out;
  out.bytes.resize(static_cast<size_t>(split.n_nodes()));
  size_t turn = 0;
  for (uint64_t page = 0; page < n_pages; ++page) {
    const std::span<const uint64_t> read = reads.of(page);
    const size_t node = largest_from(read, turn);
    if (std::count(read.begin(), read.end(), read[node]) > 1) turn = (node + 1) % read.size();
    out.node.push_back(static_cast<int>(node));
    out.bytes[node] += std::min(PageNodes::kPage, size - page * PageNodes::kPage);
    out.near_bytes += read[node];
    out.split_bytes += std::accumulate(read.begin(), read.end(), uint64_t{0});
  }
  return out;
}

}  // namespace stoker::model
