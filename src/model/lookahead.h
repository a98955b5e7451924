#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/exec.h"

namespace stoker::model {

/// Guesses which experts the next layer will want: its router, applied to the rows as they are before this layer's
/// experts have added anything. In a trained model a layer adds little to what a row is, and most guesses hold; whether
/// reading them ahead pays is another question (LookaheadTrial, docs/expert-store.md#lookahead). Threads: one at a
/// time.
class Lookahead {
 public:
  static constexpr int64_t kMostRows = 4;

  /// What a guess for a layer rests upon.
  enum class Sight {
    kNone,    ///< There is none: the router reads what is mixed of several streams.
    kRouter,  ///< The layer's router, applied early.
    kToken,   ///< The token alone, which chooses: it is no guess.
  };

  /// Allocates; a guess does not.
  explicit Lookahead(const Plan& plan);
  /// For layer `index` among those with experts: its guessed experts, all different. None where there are more rows
  /// than kMostRows, or no such layer. `scratch` as for `multiply`.
  std::span<const int32_t> guess(size_t index, const Exec& exec, std::byte* scratch) noexcept;

  /// For layer `index` among those with experts.
  Sight sight(size_t index) const noexcept;

 private:
  struct Router {
    const Step* norm = nullptr;
    const Target* product = nullptr;
    const MoeSpec* moe = nullptr;
  };
  /// Of the router, for row `r`: in `logits`.
  void find_logits(const Router& router, const Exec& exec, int64_t r, std::byte* scratch) noexcept;
  float* logits() noexcept;

  const Plan& plan_;
  std::vector<Router> routers_;
  std::vector<float> normed_, logits_;
  std::vector<std::byte> quantized_;
  std::vector<int32_t> chosen_, guessed_;
};

}  // namespace stoker::model
