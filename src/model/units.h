#pragma once

#include <cstdint>
#include <vector>

#include "model/weights.h"

namespace stoker::model {

/// Matrices of a layer that all tokens need, one after the other, or some rows of the output matrix: where the limit
/// has no room for all of them, some units stay on disk, and each call reads them as it comes to them
/// (docs/expert-store.md#layers).
struct Unit {
  enum class Kind { kAttention, kFeedForward, kOutput };
  Kind kind = Kind::kAttention;
  int64_t layer = 0;                      ///< Of parts of the output matrix: the number of layers.
  std::vector<const Matrix*> matrices{};  ///< In order of use.
  uint64_t bytes() const;                 ///< In the layout of the kernels.
};

/// The units of all layers, in order of use: attention, with the shared expert where the layer has one, and the
/// feed-forward of layers without experts; behind them Weights::output_parts. What else a layer has is small, and no
/// part of any. They point into `weights`.
std::vector<Unit> units_of(const Weights& weights);

}  // namespace stoker::model
