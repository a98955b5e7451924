#include "model/experts/policy.h"

#include "base/math.h"

namespace stoker::model {

EvictionPolicy::EvictionPolicy(Kind kind, int64_t n_keys, double half_life)
    : kind_(kind),
      per_token_(math::pow(2, 1 / half_life)),
      counts_(static_cast<size_t>(n_keys), 0.0),
      last_(static_cast<size_t>(n_keys), 0) {}

void EvictionPolicy::use(int64_t key, int64_t n) {
  counts_[static_cast<size_t>(key)] += weight_ * static_cast<double>(n);
  last_[static_cast<size_t>(key)] = ++clock_;
}

void EvictionPolicy::end_call(int64_t n_tokens) {
  weight_ *= math::pow(per_token_, static_cast<double>(n_tokens));
  if (weight_ < 1e100) return;
  for (double& count : counts_) count /= weight_;
  weight_ = 1;
}

double EvictionPolicy::count(int64_t key) const { return counts_[static_cast<size_t>(key)] / weight_; }

bool EvictionPolicy::before(int64_t a, int64_t b) const {
  const auto x = static_cast<size_t>(a), y = static_cast<size_t>(b);
  if (kind_ == Kind::kCounts && counts_[x] != counts_[y]) return counts_[x] < counts_[y];
  return last_[x] < last_[y];
}

int64_t EvictionPolicy::victim(std::span<const int32_t> keys) const {
  int64_t best = -1;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] < 0) continue;
    if (best < 0 || before(keys[i], keys[static_cast<size_t>(best)])) best = static_cast<int64_t>(i);
  }
  return best;
}

}  // namespace stoker::model
