#include "model/experts/policy.h"

#include <algorithm>

#include "base/math.h"

namespace stoker::model {
namespace {

// Beyond, as after a long prompt, all of a layer would seem sure to be wanted.
constexpr int64_t kMostRows = 8;

}  // namespace

EvictionPolicy::EvictionPolicy(Kind kind, int64_t n_keys, double half_life, Layers layers)
    : kind_(kind),
      shape_(layers.n_experts > 0 ? layers : Layers{.n_experts = std::max<int64_t>(1, n_keys)}),
      per_token_(math::pow(2, 1 / half_life)),
      counts_(static_cast<size_t>(n_keys), 0.0),
      last_(static_cast<size_t>(n_keys), 0),
      last_call_(static_cast<size_t>(n_keys), 0),
      layer_of_(static_cast<size_t>(n_keys)),
      layers_(static_cast<size_t>((n_keys + shape_.n_experts - 1) / shape_.n_experts)) {
  for (size_t key = 0; key < layer_of_.size(); ++key) {
    layer_of_[key] = static_cast<int32_t>(static_cast<int64_t>(key) / shape_.n_experts);
  }
}

/// A call's first use of a layer.
void EvictionPolicy::begin_visit(size_t index) {
  Layer& layer = layers_[index];
  layer.previous = layer.call;
  layer.call = call_;
  if (layer.previous == 0 || !(layer.count > 0)) return;
  const double per_count = n_rows_ * static_cast<double>(shape_.n_used) / layer.count;
  const auto first = index * static_cast<size_t>(shape_.n_experts);
  const size_t end = std::min(counts_.size(), first + static_cast<size_t>(shape_.n_experts));
  for (size_t key = first; key < end; ++key) {
    if (last_call_[key] == layer.previous) expected_ += weight_ * std::min(1.0, per_count * counts_[key]);
  }
}

void EvictionPolicy::use(int64_t key, int64_t n) {
  const auto i = static_cast<size_t>(key), index = static_cast<size_t>(layer_of_[i]);
  Layer& layer = layers_[index];
  if (layer.call != call_) begin_visit(index);
  if (layer.previous > 0 && last_call_[i] != call_) {
    wanted_ += weight_;
    if (last_call_[i] == layer.previous) repeated_ += weight_;
  }
  const double added = weight_ * static_cast<double>(n);
  counts_[i] += added;
  layer.count += added;
  last_[i] = ++clock_;
  last_call_[i] = call_;
}

void EvictionPolicy::end_call(int64_t n_tokens) {
  ++call_;
  n_rows_ = static_cast<double>(std::clamp<int64_t>(n_tokens, 1, kMostRows));
  weight_ *= math::pow(per_token_, static_cast<double>(n_tokens));
  if (weight_ < 1e100) return;
  for (double& count : counts_) count /= weight_;
  for (Layer& layer : layers_) layer.count /= weight_;
  for (double* sum : {&wanted_, &repeated_, &expected_}) *sum /= weight_;
  weight_ = 1;
}

double EvictionPolicy::count(int64_t key) const { return counts_[static_cast<size_t>(key)] / weight_; }

double EvictionPolicy::persistence() const {
  return wanted_ > expected_ ? std::max(0.0, (repeated_ - expected_) / (wanted_ - expected_)) : 0;
}

double EvictionPolicy::value(size_t key, double persistence) const {
  if (kind_ == Kind::kRecency) return 0;
  if (kind_ == Kind::kCounts) return counts_[key];
  const Layer& layer = layers_[static_cast<size_t>(layer_of_[key])];
  if (!(layer.count > 0)) return 0;
  const double share = n_rows_ * static_cast<double>(shape_.n_used) * counts_[key] / layer.count;
  return (1 - persistence) * share + (last_call_[key] == layer.call ? persistence : 0);
}

int64_t EvictionPolicy::victim(std::span<const int32_t> keys) const {
  const double again = persistence();
  int64_t best = -1;
  double least = 0;
  uint64_t oldest = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] < 0) continue;
    const auto key = static_cast<size_t>(keys[i]);
    const double x = value(key, again);
    if (best >= 0 && (x > least || (x == least && last_[key] >= oldest))) continue;
    best = static_cast<int64_t>(i);
    least = x;
    oldest = last_[key];
  }
  return best;
}

}  // namespace stoker::model
