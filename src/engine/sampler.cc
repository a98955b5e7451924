#include "engine/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/str_cat.h"

namespace stoker::engine {
namespace {

/// Larger logits first, the lower id of equals: a total order, so that no result depends on a sort's whims.
constexpr auto kBefore = [](const auto& a, const auto& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
};

Error out_of_range(const char* field, double value, const char* range) {
  return Error{ErrorCode::kInvalidArgument, str_cat(field, " is ", value, ", wanted ", range)};
}

}  // namespace

Status SamplerOptions::check() const {
  if (!(temperature >= 0 && temperature <= 1e6)) return out_of_range("temp", temperature, "0 to 1000000");
  if (top_k < 0) return out_of_range("top-k", static_cast<double>(top_k), "0 (off) or more");
  if (!(top_p >= 0 && top_p <= 1)) return out_of_range("top-p", top_p, "0 to 1");
  if (!(min_p >= 0 && min_p <= 1)) return out_of_range("min-p", min_p, "0 to 1");
  return Ok{};
}

double Philox::uniform(uint64_t position) const {
  uint32_t c[4] = {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                   static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  uint32_t k[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
                              static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    std::copy(next, next + 4, c);
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  const uint64_t bits = (uint64_t{c[0]} << 32 | c[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

void Sampler::take_top_k(const float* logits, int64_t n_vocab) {
  candidates_.clear();
  for (int64_t i = 0; i < n_vocab; ++i) {
    if (logits[i] > -INFINITY) candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  }
  const auto k = static_cast<size_t>(options_.top_k);
  const bool sort = options_.top_p < 1;  // only top-p needs an order; without it ids ascend
  if (k > 0 && k < candidates_.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<int64_t>(k), candidates_.end(), kBefore);
    candidates_.resize(k);
    std::sort(candidates_.begin(), candidates_.end(), kBefore);
  } else if (sort) {
    std::sort(candidates_.begin(), candidates_.end(), kBefore);
  }
}

void Sampler::cut_top_p() {
  if (options_.top_p >= 1) return;
  weights_.clear();
  double total = 0;
  for (const Candidate& c : candidates_) {
    weights_.push_back(math::exp(static_cast<double>(c.logit) - static_cast<double>(candidates_[0].logit)));
    total += weights_.back();
  }
  double sum = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    sum += weights_[i];
    if (sum >= options_.top_p * total) return candidates_.resize(i + 1);
  }
}

void Sampler::cut_min_p() {
  if (options_.min_p <= 0) return;
  float largest = candidates_[0].logit;
  for (const Candidate& c : candidates_) largest = std::max(largest, c.logit);
  const double least = static_cast<double>(largest) + math::log(options_.min_p);
  std::erase_if(candidates_, [&](const Candidate& c) { return static_cast<double>(c.logit) < least; });
}

int32_t Sampler::draw(int64_t position) {
  double largest = static_cast<double>(candidates_[0].logit);
  for (const Candidate& c : candidates_) largest = std::max(largest, static_cast<double>(c.logit));
  weights_.clear();
  double total = 0;
  for (const Candidate& c : candidates_) {
    weights_.push_back(math::exp((static_cast<double>(c.logit) - largest) / options_.temperature));
    total += weights_.back();
  }
  const double point = Philox{options_.seed, options_.stream}.uniform(static_cast<uint64_t>(position)) * total;
  double sum = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    sum += weights_[i];
    if (sum >= point) return candidates_[i].id;
  }
  return candidates_.back().id;
}

int32_t Sampler::sample(const float* logits, int64_t n_vocab, int64_t position) {
  const auto greedy = [&] {
    int64_t best = 0;
    for (int64_t i = 1; i < n_vocab; ++i) best = logits[i] > logits[best] ? i : best;
    return static_cast<int32_t>(best);
  };
  if (options_.greedy()) return greedy();
  take_top_k(logits, n_vocab);
  if (candidates_.empty()) return greedy();
  cut_top_p();
  cut_min_p();
  return draw(position);
}

}  // namespace stoker::engine
