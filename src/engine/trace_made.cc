// Routes out of nothing.
#include <algorithm>
#include <numeric>
#include <random>

#include "base/math.h"
#include "engine/trace.h"

namespace stoker::engine {
namespace {

/// In (0, 1). std::uniform_real_distribution differs between libraries.
double uniform(std::mt19937_64& random) { return (static_cast<double>(random() >> 12) + 0.5) / 0x1p52; }

std::vector<double> log_weights(const MadeRoutes& options, std::mt19937_64& random) {
  std::vector<double> weights(static_cast<size_t>(options.n_experts));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = -options.zipf * math::log(static_cast<double>(i + 1));
  for (size_t i = weights.size(); i > 1; --i) std::swap(weights[i - 1], weights[random() % i]);
  return weights;
}

/// The experts of a token, from those of the token before. Drawn without replacement: the largest of the weights'
/// logarithms, each with noise of Gumbel's distribution.
void draw(const MadeRoutes& options, std::span<const double> weights, std::mt19937_64& random,
          std::vector<int32_t>& chosen) {
  std::erase_if(chosen, [&](int32_t) { return uniform(random) >= options.persistence; });
  std::vector<std::pair<double, int32_t>> others;
  for (size_t e = 0; e < weights.size(); ++e) {
    const auto id = static_cast<int32_t>(e);
    const double noise = -math::log(-math::log(uniform(random)));
    if (std::find(chosen.begin(), chosen.end(), id) == chosen.end()) others.emplace_back(-weights[e] - noise, id);
  }
  const size_t n = static_cast<size_t>(options.n_used) - chosen.size();
  std::partial_sort(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(n), others.end());
  for (size_t i = 0; i < n; ++i) chosen.push_back(others[i].second);
}

}  // namespace

Trace make_routes(const MadeRoutes& options) {
  Trace trace;
  trace.model = "made up";
  trace.n_experts = options.n_experts;
  trace.n_used = options.n_used;
  std::mt19937_64 random(options.seed);
  std::vector<std::vector<double>> weights;
  for (int64_t layer = 0; layer < options.n_layers; ++layer) {
    trace.layers.push_back({layer, 1 << 20, 1 << 20});
    weights.push_back(log_weights(options, random));
  }
  std::vector<std::vector<int32_t>> chosen(weights.size());
  for (int64_t token = 0; token < options.n_tokens; ++token) {
    trace.calls.push_back({1, trace.visits.size()});
    for (size_t layer = 0; layer < weights.size(); ++layer) {
      draw(options, weights[layer], random, chosen[layer]);
      trace.visits.push_back({layer, trace.routes.size()});
      trace.routes.insert(trace.routes.end(), chosen[layer].begin(), chosen[layer].end());
    }
  }
  return trace;
}

}  // namespace stoker::engine
