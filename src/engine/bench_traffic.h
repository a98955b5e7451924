#pragma once

#include <cstdint>
#include <vector>

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

/// What one forward pass asks of the machine.
struct CallTraffic {
  struct Product {
    gguf::TensorType type{};
    double rows = 0;   ///< That multiply each matrix: of an expert, those that go to it.
    double bytes = 0;  ///< Of the matrices, each once.
    double operations = 0;
    bool of_experts = false;
  };
  /// The steps up to a layer's experts, and these; behind the last ones, the rest of the pass.
  struct Part {
    std::vector<Product> products{};  ///< Those of one type and as many rows are one, but for experts.
    double kv_bytes = 0;
    double attention_operations = 0;
    double embedding_bytes = 0;
    int64_t n_steps = 0;
    int64_t expert_rows = 0;    ///< Tokens of these experts; 0 in the last part.
    double active_experts = 0;  ///< If they are chosen evenly.
  };
  std::vector<Part> parts{};

  double sum(double Part::*member) const {
    double all = 0;
    for (const Part& part : parts) all += part.*member;
    return all;
  }
};
CallTraffic call_traffic(const model::Model& model, const BenchCall& call, int64_t depth);

BenchTraffic bench_traffic(const model::Model& model, const BenchCase& test, int64_t batch);

}  // namespace stoker::engine
