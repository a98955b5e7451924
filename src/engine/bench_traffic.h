#pragma once

#include <cstdint>

#include "engine/bench_case.h"
#include "model/model.h"

namespace stoker::engine {

/// What a test cannot do without, per token.
struct BenchTraffic {
  /// Bytes read from memory if every forward pass reads each weight matrix once, one row of the embedding per token,
  /// and the K and V that its queries see once per sequence. Activations and norms stay in the caches.
  double bytes_per_token = 0;
  /// Operations (a multiplication and an addition are two) of the matrix products that work on int8.
  double int8_ops_per_token = 0;
};

BenchTraffic bench_traffic(const model::Model& model, const BenchCase& test, int64_t batch);

}  // namespace stoker::engine
