#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/embed.h"

namespace stoker::engine {

/// Vectors of a text's tokens as they come out of calls, and what becomes of them: one vector, or with Pooling::kRank
/// the score of each label. Sums are in double, in an order that nothing above can change.
class Pooler {
 public:
  Pooler(const model::Model& model, Pooling pooling, bool normalize);

  /// The rows of a text of `n` tokens that `add` wants, in order.
  Range wanted_rows(int64_t n) const;
  void add(const float* row);
  /// Of the rows since the last one.
  Embedding finish();

 private:
  void multiply(const model::Matrix& w, const model::Vector& bias);
  void through_dense();
  void through_rank_head();
  void to_length_1(float* x) const;

  const model::Model& model_;
  Pooling pooling_;
  Pooling gather_;  ///< How rows become one: of a head that ranks, what it wants.
  bool normalize_;
  int64_t dim_;
  int64_t n_ = 0;
  std::vector<double> sums_;
  Embedding out_;
};

}  // namespace stoker::engine
