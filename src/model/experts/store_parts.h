// What the files of the store share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "model/experts/store.h"

namespace stoker::model {

struct ExpertStore::Class : SlotClass {
  int32_t first = 0;
  std::vector<int32_t> evictable{};  ///< By slot from `first` on: its key, or -1.
  std::vector<int32_t> free{};
};

struct ExpertStore::Slot {
  Slot() = default;
  Slot(Slot&& other) noexcept : data(other.data), size_class(other.size_class) {}

  std::byte* data = nullptr;
  size_t size_class = 0;
  // Pieces of a matrix that are still to come, and what they will be part of.
  std::array<std::atomic<uint32_t>, kMostMatrices> pending{};
  std::array<uint64_t, kMostMatrices> offset{};
  std::atomic<bool> failed{false};
  // Guarded by the store's mutex.
  int32_t key = -1;
  int32_t leases = 0;
  int32_t left = 0;       ///< Pieces of all matrices.
  bool given_up = false;  ///< Nobody wants it any more, though it is being read.
  bool ahead = false;     ///< Nobody but requests made ahead has asked for it.
  std::optional<Error> error{};
};

/// What is read at once: some groups of 16 rows.
struct ExpertStore::Piece {
  int32_t slot = -1;
  size_t m = 0;
  const Matrix* matrix = nullptr;
  ExpertIndex::Place place{};
  int64_t begin = 0, end = 0;
  bool skip = false;
  std::optional<Error> error{};
  uint64_t bytes = 0;
};

/// How many groups are read at once.
inline int64_t groups_of(const Matrix& w, const ExpertIndex::Place& place, uint64_t piece_bytes) {
  const auto most = std::max<int64_t>(1, static_cast<int64_t>(piece_bytes / (16 * place.row_bytes)));
  const int64_t n_pieces = (w.n_groups() + most - 1) / most;
  return (w.n_groups() + n_pieces - 1) / n_pieces;
}

}  // namespace stoker::model
