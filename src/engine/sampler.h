#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker::engine {

/// How the next token is chosen. The chain is: top-k, top-p, min-p, temperature, draw (docs/sampling.md).
struct SamplerOptions {
  double temperature = 0.8;  ///< Below 1e-5: greedy, the largest logit, the lowest id of equals.
  int64_t top_k = 40;        ///< 0: off.
  double top_p = 0.95;       ///< 1: off.
  double min_p = 0.05;       ///< 0: off.
  uint64_t seed = 0;
  uint64_t stream = 0;  ///< Separates sequences that share a seed.

  bool greedy() const { return temperature < 1e-5; }
  /// kInvalidArgument: names the field, its value and the range.
  Status check() const;
};

/// Random bits that depend on (seed, stream, position) alone, so that resuming, batching and speculation reproduce
/// them. Philox4x32-10 (Salmon et al., SC 2011).
struct Philox {
  uint64_t seed, stream;
  /// Uniform in [0, 1) with 53 bits.
  double uniform(uint64_t position) const;
};

/// Draws tokens. Keeps scratch for one vocabulary, so one sampler serves one thread.
class Sampler {
 public:
  explicit Sampler(SamplerOptions options) : options_(options) {}

  /// `logits`: [n_vocab], all finite or -infinity; `position`: of the token that is drawn.
  int32_t sample(const float* logits, int64_t n_vocab, int64_t position);

  const SamplerOptions& options() const { return options_; }

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  void take_top_k(const float* logits, int64_t n_vocab);
  void cut_top_p();
  void cut_min_p();
  int32_t draw(int64_t position);

  SamplerOptions options_;
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;
};

}  // namespace stoker::engine
