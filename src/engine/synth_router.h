// How random routers come to choose some experts more often than others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker::engine {

/// Most of the tokens that choose one expert of a layer: what the law asks for beyond that goes to the others.
inline constexpr double kMostChosen = 0.98;

/// The share of tokens that choose each of `n` experts, `used` at a time, most popular first: proportional to
/// rank^-exponent, none above kMostChosen; they add up to `used`.
std::vector<double> zipf_shares(int64_t n, int64_t used, double exponent);

/// What each expert's logit must have on average so that `shares` come out when the rest of every logit is independent
/// and normal with variance 1, and the `used` largest are chosen. The same on every machine.
std::vector<float> router_offsets(std::span<const double> shares, int64_t used);

}  // namespace stoker::engine
