#include "engine/pooler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/math.h"
#include "model/blocks/shares.h"

namespace stoker::engine {
namespace {

using model::RankActivation;

Pooling gathered_for(const model::ModelConfig& config, Pooling pooling) {
  if (pooling != Pooling::kRank) return pooling;
  if (config.rank_pooling >= 0) return static_cast<Pooling>(config.rank_pooling);
  return config.causal ? Pooling::kLast : Pooling::kFirst;
}

void activate(RankActivation activation, std::span<float> x) {
  for (float& value : x) {
    if (activation == RankActivation::kTanh) value = math::tanh_f32(value);
    if (activation == RankActivation::kGeluErf) value = math::gelu_erf_f32(value);
  }
}

/// A norm that subtracts the mean.
void layer_norm(const model::Vector& gain, float eps, std::span<float> x) {
  const auto n = static_cast<double>(x.size());
  double sum = 0, squares = 0;
  for (const float value : x) sum += static_cast<double>(value);
  const double mean = sum / n;
  for (const float value : x) squares += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean);
  const double inverse = 1 / math::sqrt(squares / n + static_cast<double>(eps));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>((static_cast<double>(x[i]) - mean) * inverse * static_cast<double>(gain.data[i]));
  }
}

void softmax(std::span<float> x) {
  std::vector<double> wide(x.begin(), x.end());
  model::softmax(wide.data(), static_cast<int64_t>(wide.size()));
  std::transform(wide.begin(), wide.end(), x.begin(), [](double value) { return static_cast<float>(value); });
}

}  // namespace

Pooler::Pooler(const model::Model& model, Pooling pooling, bool normalize)
    : model_(model),
      pooling_(pooling),
      gather_(gathered_for(model.config(), pooling)),
      normalize_(normalize),
      dim_(model.config().dim) {}

Range Pooler::wanted_rows(int64_t n) const {
  if (gather_ == Pooling::kFirst) return {0, 1};
  return gather_ == Pooling::kLast ? Range{n - 1, n} : Range{0, n};
}

void Pooler::add(const float* row) {
  ++n_;
  if (gather_ == Pooling::kMean) {
    sums_.resize(static_cast<size_t>(dim_));
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += static_cast<double>(row[i]);
  } else {
    out_.values.insert(out_.values.end(), row, row + dim_);
  }
}

Embedding Pooler::finish() {
  if (gather_ == Pooling::kMean) {
    for (const double sum : sums_) out_.values.push_back(static_cast<float>(sum / static_cast<double>(n_)));
    n_ = 1;
  }
  if (pooling_ == Pooling::kRank) {
    through_rank_head();
  } else if (pooling_ != Pooling::kNone) {
    through_dense();
  }
  out_.n = std::exchange(n_, 0);
  out_.dim = static_cast<int64_t>(out_.values.size()) / out_.n;
  for (int64_t i = 0; normalize_ && i < out_.n; ++i) to_length_1(out_.values.data() + i * out_.dim);
  sums_.clear();
  return std::exchange(out_, {});
}

/// The vector becomes w times it, each output a sum of 8 sums, whose order is that of the inputs, and of its bias.
void Pooler::multiply(const model::Matrix& w, const model::Vector& bias) {
  constexpr size_t kSums = 8;
  const std::vector<float> x = std::move(out_.values);
  STOKER_CHECK(w.n_in == static_cast<int64_t>(x.size()));
  std::vector<float> row(x.size()), y(static_cast<size_t>(w.n_out));
  for (size_t o = 0; o < y.size(); ++o) {
    model_.plan().table->row[static_cast<size_t>(w.type)](
        {.w = w.data, .group_bytes = w.group_bytes, .k = w.n_in, .row = static_cast<int64_t>(o), .out = row.data()});
    std::array<double, kSums> sums{};
    for (size_t i = 0; i < x.size(); ++i) sums[i % kSums] += static_cast<double>(row[i]) * static_cast<double>(x[i]);
    double sum = bias ? static_cast<double>(bias.data[o]) : 0;
    for (const double part : sums) sum += part;
    y[o] = static_cast<float>(sum);
  }
  out_.values = std::move(y);
}

void Pooler::through_dense() {
  const model::Weights& w = model_.weights();
  if (w.dense_2) multiply(w.dense_2, {});
  if (w.dense_3) multiply(w.dense_3, {});
}

void Pooler::through_rank_head() {
  const model::Weights& w = model_.weights();
  const model::ModelConfig& config = model_.config();
  if (w.rank_dense) {
    multiply(w.rank_dense, w.b_rank_dense);
    activate(config.rank_dense_activation, out_.values);
    if (w.rank_norm) layer_norm(w.rank_norm, config.norm_eps, out_.values);
  }
  multiply(w.rank_out, w.b_rank_out);
  activate(config.rank_activation, out_.values);
  if (config.rank_softmax) softmax(out_.values);
}

void Pooler::to_length_1(float* x) const {
  double sum = 0;
  for (int64_t i = 0; i < out_.dim; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  if (sum == 0) return;
  const double inverse = 1 / math::sqrt(sum);
  for (int64_t i = 0; i < out_.dim; ++i) x[i] = static_cast<float>(static_cast<double>(x[i]) * inverse);
}

}  // namespace stoker::engine
