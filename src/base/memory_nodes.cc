#include "base/memory_nodes.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/cgroup.h"
#include "base/str_cat.h"

namespace stoker {
namespace {

constexpr int kMostCpus = 1 << 20, kMostNodes = 1024;
constexpr std::string_view kBlanks = " \t";

std::optional<int> number(std::string_view text, int below) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 && value < below ? std::optional(value) : std::nullopt;
}

/// "0-3,8,10-11"; nothing: it is no such list. An empty one is.
std::optional<std::set<int>> parse_list(std::string_view text, int below) {
  std::set<int> out;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t dash = item.find('-');
    const auto first = number(item.substr(0, dash), below);
    const auto last = dash == std::string_view::npos ? first : number(item.substr(dash + 1), below);
    if (!first || !last || *last < *first) return std::nullopt;
    for (int i = *first; i <= *last; ++i) out.insert(i);
  }
  return out;
}

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

/// What follows "KEY:" in proc/self/status; nothing: there is no such line.
std::optional<std::string> status_line(const std::string& root, std::string_view key) {
  std::ifstream in(root + "/proc/self/status");
  for (std::string text; std::getline(in, text);) {
    if (text.starts_with(key) && text.size() > key.size() && text[key.size()] == ':') {
      return std::string(without_blanks(std::string_view(text).substr(key.size() + 1)));
    }
  }
  return std::nullopt;
}

/// What the system tells of one node.
struct Told {
  std::set<int> cpus;
  bool has_memory = true;
  std::vector<int> distances;  ///< To all nodes, ascending; empty: not told.
};

std::optional<std::map<int, Told>> read_nodes(const std::string& folder) {
  std::map<int, Told> nodes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    const auto id = name.starts_with("node") ? number(std::string_view(name).substr(4), kMostNodes) : std::nullopt;
    if (!id) continue;
    const std::string list = entry.path() / "cpulist";
    auto cpus = parse_list(first_line(list), kMostCpus);
    if (!cpus || !std::filesystem::exists(list, error)) return std::nullopt;
    Told& node = nodes[*id];
    node.cpus = std::move(*cpus);
    std::ifstream distances(entry.path() / "distance");
    node.distances.assign(std::istream_iterator<int>(distances), {});
  }
  return nodes.empty() ? std::nullopt : std::optional(std::move(nodes));
}

/// False: a list that is none.
bool note_memory(const std::string& root, std::map<int, Told>& nodes) {
  const auto keep = [&](const std::optional<std::set<int>>& with) {
    if (!with) return false;
    for (auto& [id, node] : nodes) node.has_memory &= with->contains(id);
    return true;
  };
  const std::string has_memory = root + "/sys/devices/system/node/has_memory";
  std::error_code error;
  if (std::filesystem::exists(has_memory, error) && !keep(parse_list(first_line(has_memory), kMostNodes))) return false;
  // Of the control group: memory of other nodes is not to be had, however near it is.
  const auto allowed = status_line(root, "Mems_allowed_list");
  return !allowed || keep(parse_list(*allowed, kMostNodes));
}

/// The node with memory that is nearest to this one, of equal ones the first; -1: there is none.
int nearest(const std::map<int, Told>& nodes, int id) {
  const Told& from = nodes.at(id);
  if (from.has_memory) return id;
  const bool told = from.distances.size() == nodes.size();
  int best = -1, best_distance = 0;
  size_t i = 0;
  for (const auto& [other, node] : nodes) {
    const int distance = told ? from.distances[i] : 0;
    ++i;
    if (!node.has_memory || (best >= 0 && distance >= best_distance)) continue;
    best = other;
    best_distance = distance;
  }
  return best;
}

std::optional<std::vector<MemoryNode>> find_nodes(std::span<const int> cpus, const std::string& root) {
  auto nodes = read_nodes(root + "/sys/devices/system/node");
  if (!nodes || !note_memory(root, *nodes)) return std::nullopt;
  std::map<int, MemoryNode> out;
  for (const auto& [id, node] : *nodes) {
    if (node.has_memory) out[id].id = id;
  }
  for (const int cpu : cpus) {
    int home = -1;
    for (const auto& [id, node] : *nodes) {
      if (!node.cpus.contains(cpu)) continue;
      if (home >= 0) return std::nullopt;
      home = id;
    }
    if (home < 0 || (home = nearest(*nodes, home)) < 0) return std::nullopt;
    out[home].cpus.push_back(cpu);
  }
  std::vector<MemoryNode> all;
  all.reserve(out.size());
  for (auto& [id, node] : out) all.push_back(std::move(node));
  return all;
}

/// Workers of each node: in proportion to processors, what is left over to the largest remainders, the first nodes
/// where these are equal.
std::vector<int64_t> share_workers(std::span<const MemoryNode> nodes, int64_t n_workers) {
  const auto add = [](int64_t sum, const MemoryNode& node) { return sum + static_cast<int64_t>(node.cpus.size()); };
  const int64_t n_cpus = std::accumulate(nodes.begin(), nodes.end(), int64_t{0}, add);
  std::vector<int64_t> shares, rests;
  for (const MemoryNode& node : nodes) {
    const int64_t scaled = n_workers * static_cast<int64_t>(node.cpus.size());
    shares.push_back(n_cpus > 0 ? scaled / n_cpus : 0);
    rests.push_back(n_cpus > 0 ? scaled % n_cpus : 0);
  }
  for (int64_t left = n_workers - std::accumulate(shares.begin(), shares.end(), int64_t{0}); left > 0; --left) {
    const auto next = std::max_element(rests.begin(), rests.end());
    *next = -1;
    ++shares[static_cast<size_t>(next - rests.begin())];
  }
  return shares;
}

}  // namespace

std::vector<MemoryNode> memory_nodes(std::span<const int> cpus, const std::string& root) {
  if (auto found = find_nodes(cpus, root)) return std::move(*found);
  MemoryNode all{.cpus = {cpus.begin(), cpus.end()}};
  std::sort(all.cpus.begin(), all.cpus.end());
  return {std::move(all)};
}

NodeSplit::NodeSplit(std::span<const MemoryNode> nodes, int n_workers) {
  if (nodes.empty()) {
    first_ = {0, n_workers};
    return;
  }
  nodes_.clear();
  first_ = {0};
  const std::vector<int64_t> shares = share_workers(nodes, n_workers);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (shares[i] == 0) continue;
    nodes_.push_back(nodes[i]);
    first_.push_back(first_.back() + shares[i]);
  }
}

int NodeSplit::node_of(int worker) const {
  return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), worker) - first_.begin()) - 1;
}

std::vector<int> NodeSplit::ids() const {
  std::vector<int> ids;
  ids.reserve(nodes_.size());
  for (const MemoryNode& node : nodes_) ids.push_back(node.id);
  return ids;
}

bool interleave(std::span<std::byte> bytes, std::span<const int> nodes) {
  constexpr int kInterleave = 3;  // MPOL_INTERLEAVE of linux/mempolicy.h
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  if (nodes.size() < 2 || bytes.empty()) return false;
  std::array<unsigned long, kMostNodes / kBits> mask{};
  for (const int node : nodes) {
    if (node < 0 || node >= kMostNodes) return false;
    mask[static_cast<size_t>(node) / kBits] |= 1UL << (static_cast<size_t>(node) % kBits);
  }
  return syscall(SYS_mbind, bytes.data(), bytes.size(), kInterleave, mask.data(), kMostNodes + 1, 0) == 0;
}

bool can_interleave(std::span<const int> nodes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const map = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return false;
  const bool granted = interleave({static_cast<std::byte*>(map), page}, nodes);
  munmap(map, page);
  return granted;
}

}  // namespace stoker
