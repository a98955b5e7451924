#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gguf/file.h"
#include "model/weights.h"

namespace stoker::model {

/// The matrices of an expert with a gate, in the order in which they are multiplied: by these numbers they stand in
/// ExpertIndex. One without has up and down there.
enum Projection : size_t { kGate, kUp, kDown };
inline constexpr size_t kProjections = 3;
/// Of an entry of the index: a layer's attention and its shared expert.
inline constexpr size_t kMostMatrices = 16;

/// Where the matrices lie in the file that an ExpertStore reads: those of experts, or those that all tokens of a layer
/// need, which are the index's only expert there (units_of).
struct ExpertIndex {
  /// Rows of one matrix, one after the other in the file's layout.
  struct Place {
    const gguf::TensorInfo* tensor = nullptr;
    uint64_t begin = 0;  ///< Of the first row, inside the tensor.
    uint64_t row_bytes = 0;
  };
  /// The experts of a layer, or one of its units.
  struct Layer {
    int64_t layer = 0;
    std::vector<const Matrix*> matrices{};      ///< Shapes, in order of use; of a streamed one `data` is null.
    std::vector<std::vector<Place>> experts{};  ///< Of each, by matrix.

    /// One expert in the layout of the kernels: its matrices one after the other, each at a multiple of 64.
    uint64_t expert_bytes() const {
      uint64_t sum = 0;
      for (const Matrix* w : matrices) sum += static_cast<uint64_t>(w->bytes());
      return sum;
    }
    /// What of the file is read for one.
    uint64_t file_bytes() const {
      uint64_t sum = 0;
      for (size_t m = 0; m < matrices.size(); ++m) {
        sum += experts[0][m].row_bytes * static_cast<uint64_t>(matrices[m]->n_out);
      }
      return sum;
    }
  };
  std::vector<Layer> layers;  ///< Ascending.
  int64_t n_experts = 0;      ///< Per layer.
  int64_t n_used = 0;         ///< Per token and layer.
  int64_t n_ring = 0;         ///< Slots that entries pass through, none staying; 0: a cache of what a budget holds.

  /// What of the file is read for all.
  uint64_t file_bytes() const {
    uint64_t sum = 0;
    for (const Layer& layer : layers) sum += layer.file_bytes() * layer.experts.size();
    return sum;
  }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const Layer& layer : layers) sum += layer.expert_bytes() * layer.experts.size();
    return sum;
  }
  /// What one token passes through: below it, a cache that keeps the most recent experts never finds one again.
  uint64_t cycle_bytes() const {
    uint64_t sum = 0;
    for (const Layer& layer : layers) sum += layer.expert_bytes() * static_cast<uint64_t>(n_used);
    return sum;
  }
};

}  // namespace stoker::model
