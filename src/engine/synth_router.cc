#include "engine/synth_router.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace stoker::engine {
namespace {

double density(double x) { return math::exp(-x * x / 2) * 0.3989422804014327; }

/// P(N(0, 1) <= x) within 7.5e-8 (Abramowitz and Stegun, 26.2.17), and the x that gives it.
double normal(double x) {
  if (x < 0) return 1 - normal(-x);
  const double t = 1 / (1 + 0.2316419 * x);
  const double sum = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return 1 - density(x) * sum;
}
double normal_inverse(double p) {
  double low = -9, high = 9;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (normal(middle) < p ? low : high) = middle;
  }
  return low;
}

/// counts[j]: the probability that j of some independent events happened, for j below `counts.size()`. One more event.
void add_event(std::vector<double>& counts, double p) {
  for (size_t j = counts.size() - 1; j > 0; --j) counts[j] = counts[j] * (1 - p) + counts[j - 1] * p;
  counts[0] *= 1 - p;
}

/// The probability that each logit N(offset, 1) is among the `used` largest: over where it lies, that fewer than `used`
/// of the others lie above.
std::vector<double> choice_shares(std::span<const double> offsets, size_t used) {
  constexpr double kStep =
      0.25;  // of a sum over a smooth function that falls off as exp(-t^2 / 2): far finer than needed
  const size_t n = offsets.size();
  const auto [least, most] = std::minmax_element(offsets.begin(), offsets.end());
  std::vector<double> shares(n, 0), none(used, 0);
  none[0] = 1;
  std::vector<std::vector<double>> before(n + 1, none);  // of the events of experts 0 to e - 1
  for (double t = *least - 6; t < *most + 6; t += kStep) {
    for (size_t e = 0; e < n; ++e) {
      before[e + 1] = before[e];
      add_event(before[e + 1], normal(offsets[e] - t));
    }
    std::vector<double> after = none;
    for (size_t e = n; e-- > 0;) {
      double fewer = 0;
      for (size_t i = 0; i < used; ++i) {
        for (size_t j = 0; i + j < used; ++j) fewer += before[e][i] * after[j];
      }
      const double z = t - offsets[e];
      shares[e] += density(z) * kStep * fewer;
      add_event(after, normal(offsets[e] - t));
    }
  }
  return shares;
}

}  // namespace

std::vector<double> zipf_shares(int64_t n, int64_t used, double exponent) {
  std::vector<double> weights(static_cast<size_t>(n)), shares(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = math::pow(static_cast<double>(i + 1), -exponent);
  const double cap = std::max(kMostChosen, static_cast<double>(used) / static_cast<double>(n));
  double rest = static_cast<double>(used), sum = 0;
  for (const double weight : weights) sum += weight;
  for (size_t i = 0; i < weights.size(); ++i) {  // the largest come first, and with them those that are capped
    shares[i] = std::min(cap, weights[i] * rest / sum);
    rest -= shares[i];
    sum -= weights[i];
  }
  return shares;
}

std::vector<float> router_offsets(std::span<const double> shares, int64_t used) {
  std::vector<double> offsets(shares.size());
  const bool even = shares.front() - shares.back() < 1e-9;
  for (size_t e = 0; !even && e < offsets.size(); ++e) offsets[e] = normal_inverse(shares[e]);
  for (int round = 0; !even && round < 12; ++round) {
    const std::vector<double> got = choice_shares(offsets, static_cast<size_t>(used));
    for (size_t e = 0; e < offsets.size(); ++e) offsets[e] += normal_inverse(shares[e]) - normal_inverse(got[e]);
  }
  // Rounded, so that the last bits of the mathematics library do not show.
  std::vector<float> out(offsets.size());
  for (size_t e = 0; e < out.size(); ++e) out[e] = static_cast<float>(std::round(offsets[e] * 1024) / 1024);
  return out;
}

}  // namespace stoker::engine
