#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

namespace stoker::gguf {

// Names from a file are looked up in a sorted list of positions rather than a hash table: whoever made the file cannot
// make it slow, and it stays valid when the names move.

/// 0 ... n - 1 in the order of their names; equal names in the order of the file. `n` is below 2^32.
template <class NameOf>
std::vector<uint32_t> sorted_index(size_t n, const NameOf& name_of) {
  std::vector<uint32_t> index(n);
  std::iota(index.begin(), index.end(), 0u);
  std::sort(index.begin(), index.end(), [&](uint32_t a, uint32_t b) {
    const int order = name_of(a).compare(name_of(b));
    return order != 0 ? order < 0 : a < b;
  });
  return index;
}

/// The position of a name that stands before it already.
template <class NameOf>
std::optional<uint32_t> first_duplicate(const std::vector<uint32_t>& index, const NameOf& name_of) {
  const auto twin =
      std::adjacent_find(index.begin(), index.end(), [&](uint32_t a, uint32_t b) { return name_of(a) == name_of(b); });
  if (twin == index.end()) return std::nullopt;
  return *(twin + 1);
}

template <class NameOf>
std::optional<uint32_t> find_name(const std::vector<uint32_t>& index, std::string_view name, const NameOf& name_of) {
  const auto found = std::lower_bound(index.begin(), index.end(), name,
                                      [&](uint32_t i, std::string_view n) { return name_of(i) < n; });
  if (found == index.end() || name_of(*found) != name) return std::nullopt;
  return *found;
}

}  // namespace stoker::gguf
