#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "model/weights.h"

namespace stoker::model {

/// Rotation frequencies of one kind of layer: the angle of pair i at position p is p * frequency[i] (scaling and factor
/// tensors are in it), and cos and sin are multiplied by `magnitude`.
struct RopeTable {
  std::vector<double> frequency;
  double magnitude = 1;

  /// cos and sin of all pairs at one position, rounded once from double.
  void at(int64_t position, float* cos, float* sin) const noexcept;
};

/// `sliding`: the table of sliding layers. `context`: positions that a sequence may take, which decides between the
/// long and the short factors of long-rope. kCorrupt: a factor tensor with values that cannot be.
Result<RopeTable> make_rope(const ModelConfig& config, const Weights& weights, bool sliding, int64_t context);

}  // namespace stoker::model
