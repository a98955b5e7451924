// What turns logits into shares, in double: of routers, of residuals and of residual streams.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/math.h"

namespace stoker::model {

inline double sigmoid(double x) noexcept { return 1 / (1 + math::exp(-x)); }

/// In place; n is at least 1.
inline void softmax(double* x, int64_t n) noexcept {
  const double best = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] = math::exp(x[i] - best);
  for (int64_t i = 0; i < n; ++i) x[i] /= sum;
}

}  // namespace stoker::model
