#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gguf/file.h"
#include "model/weights.h"

namespace stoker::model {

/// The matrices of an expert, in the order in which they are multiplied.
enum class Projection : int { kGate, kUp, kDown };
inline constexpr size_t kProjections = 3;

/// Where the matrices of experts lie in the file.
struct ExpertIndex {
  /// Rows of one matrix, one after the other in the file's layout.
  struct Place {
    const gguf::TensorInfo* tensor = nullptr;
    uint64_t begin = 0;  ///< Of the first row, inside the tensor.
    uint64_t row_bytes = 0;
  };
  /// A layer with experts.
  struct Layer {
    int64_t layer = 0;
    std::array<const ExpertMatrix*, kProjections> matrices{};  ///< Shapes; of a streamed one `data` is null.
    std::vector<std::array<Place, kProjections>> experts;

    /// One expert in the layout of the kernels: its matrices one after the other, each at a multiple of 64.
    uint64_t expert_bytes() const {
      uint64_t sum = 0;
      for (const ExpertMatrix* w : matrices) sum += static_cast<uint64_t>(w->bytes());
      return sum;
    }
    /// What of the file is read for one.
    uint64_t file_bytes() const {
      uint64_t sum = 0;
      for (size_t p = 0; p < kProjections; ++p) {
        sum += experts[0][p].row_bytes * static_cast<uint64_t>(matrices[p]->n_out);
      }
      return sum;
    }
  };
  std::vector<Layer> layers;  ///< Ascending.
  int64_t n_experts = 0;      ///< Per layer.
  int64_t n_used = 0;         ///< Per token and layer.

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
