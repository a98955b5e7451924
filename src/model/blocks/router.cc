// Which experts each row goes to, and the sum of what they give back (docs/kernels.md#experts).
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/math.h"
#include "model/blocks/shares.h"
#include "model/exec.h"

namespace stoker::model {
namespace {

// Of a sum of weights that is divided by: the reference models' bound against division by almost nothing, 2^-14.
constexpr double kSmallestSum = 6.103515625e-5;

/// The n largest of x, largest first, the lower index where two are equal. NaN is never larger, so that the indices are
/// different ones whatever the values are.
template <class T>
void find_largest(const T* x, int64_t n_all, int64_t n, int32_t* found) noexcept {
  for (int64_t e = 0; e < n_all; ++e) {
    int64_t at = std::min(e, n);
    while (at > 0 && x[e] > x[found[at - 1]]) --at;
    if (at == n) continue;
    const int64_t last = std::min(e, n - 1);
    for (int64_t i = last; i > at; --i) found[i] = found[i - 1];
    found[at] = static_cast<int32_t>(e);
  }
}

double sqrt_softplus(double x) noexcept {
  if (x > 30) return math::sqrt(x);
  const double e = math::exp(x);
  return math::sqrt(e < 1e-5 ? e - e * e / 2 : math::log(1 + e));  // log(1 + e) would lose the digits of a small e
}

/// Of gatings that look at each logit by itself.
bool is_single(Gating gating) noexcept { return gating == Gating::kSigmoid || gating == Gating::kSqrtSoftplus; }
double share_of(Gating gating, double logit) noexcept {
  return gating == Gating::kSigmoid ? sigmoid(logit) : sqrt_softplus(logit);
}

/// What the experts are chosen by, where it is not the logits themselves.
void score(const float* logits, const MoeSpec& moe, double* scores) noexcept {
  const Gating gating = moe.routing.gating;
  double sum = 1;
  if (gating == Gating::kSoftmax) {
    const auto best = static_cast<double>(*std::max_element(logits, logits + moe.n_experts));
    sum = 0;
    for (int64_t e = 0; e < moe.n_experts; ++e) sum += scores[e] = math::exp(static_cast<double>(logits[e]) - best);
  }
  const Vector* bias = moe.routing.selection_bias;
  for (int64_t e = 0; e < moe.n_experts; ++e) {
    const auto logit = static_cast<double>(logits[e]);
    if (gating == Gating::kSoftmax) scores[e] /= sum;
    if (is_single(gating)) scores[e] = share_of(gating, logit);
    if (gating == Gating::kSoftmaxOfChosen) scores[e] = logit;
    if (bias) scores[e] += static_cast<double>(bias->data[e]);
  }
}

/// Scores outside of the groups whose best (one, or the sum of two) are the most become -infinity.
void keep_best_groups(const MoeSpec& moe, double* scores) noexcept {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const int64_t n_groups = moe.routing.n_groups, size = moe.n_experts / n_groups;
  double sums[kMaxExperts / 2];
  int32_t order[kMaxExperts / 2];
  for (int64_t g = 0; g < n_groups; ++g) {
    int32_t best[2];
    find_largest(scores + g * size, size, 2, best);
    sums[g] = scores[g * size + best[0]];
    if (moe.routing.group_best > 1) sums[g] += scores[g * size + best[1]];
  }
  find_largest(sums, n_groups, n_groups, order);
  for (int64_t i = moe.routing.n_used_groups; i < n_groups; ++i) std::fill_n(scores + order[i] * size, size, kNone);
}

/// Each of the chosen shares with those that are not chosen before it and within 2 % of it, itself among them.
void weigh_near(const float* logits, const MoeSpec& moe, const int32_t* chosen, float* weight) noexcept {
  constexpr double kNear = 0.02;
  for (int64_t i = 0; i < moe.n_used; ++i) {
    const auto best = static_cast<double>(logits[chosen[i]]);
    double sum = 0;
    for (int64_t e = 0; e < moe.n_experts; ++e) {
      const auto logit = static_cast<double>(logits[e]);
      const double scale = std::max(__builtin_fabs(logit), best);
      const bool taken = std::find(chosen, chosen + i, e) != chosen + i;
      if (!taken && !((best - logit) / scale > kNear)) sum += math::exp(logit - best);
    }
    weight[i] = static_cast<float>(static_cast<double>(moe.routing.scale) / sum);
  }
}

/// In double, sums in ascending order, rounded once: the same on every instruction set.
void weigh(const float* logits, const MoeSpec& moe, const int32_t* chosen, float* weight) noexcept {
  const Routing& routing = moe.routing;
  if (routing.gating == Gating::kSoftmaxOfNear) return weigh_near(logits, moe, chosen, weight);
  float best = logits[chosen[0]];  // of those that the softmax is over
  if (routing.gating == Gating::kSoftmax) best = *std::max_element(logits, logits + moe.n_experts);
  for (int64_t i = 1; i < moe.n_used; ++i) best = std::max(best, logits[chosen[i]]);
  const auto value = [&](int64_t expert) {
    const auto logit = static_cast<double>(logits[expert]);
    if (is_single(routing.gating)) return share_of(routing.gating, logit);
    return math::exp(logit - static_cast<double>(best));
  };
  double of_chosen = 0, sum = is_single(routing.gating) ? 1 : 0;
  for (int64_t i = 0; i < moe.n_used; ++i) of_chosen += value(chosen[i]);
  if (routing.gating == Gating::kSoftmaxOfChosen) sum = of_chosen;
  if (routing.gating == Gating::kSoftmax) {
    for (int64_t e = 0; e < moe.n_experts; ++e) sum += value(e);
  }
  if (routing.renormalize) sum *= std::max(of_chosen / sum, kSmallestSum);
  for (int64_t i = 0; i < moe.n_used; ++i) {
    double scale = static_cast<double>(routing.scale);
    if (routing.expert_scale) scale *= static_cast<double>(routing.expert_scale->data[chosen[i]]);
    weight[i] = static_cast<float>(value(chosen[i]) / sum * scale);
  }
}

float weight_of_shared(const MoeSpec& moe, const float* logits) noexcept {
  if (moe.shared_weight_column == 0) return moe.routing.shared_scale;
  return static_cast<float>(sigmoid(static_cast<double>(logits[moe.shared_weight_column])));
}

void route_row(const Step& step, Exec& exec, int64_t r) noexcept {
  const MoeSpec& moe = step.moe;
  float* logits = exec.row(Buf::kRouter, r);
  if (moe.routing.logit_scale != 0) exec.table->scale(logits, moe.routing.logit_scale, moe.n_experts, logits);
  add_vector(*exec.table, moe.router_bias, logits);
  if (!exec.table->all_finite(logits, moe.n_experts)) exec.mark_bad(exec.original_row(r), step);
  Experts& experts = *exec.experts;
  const int64_t of_call = exec.row0 + r;
  int32_t* chosen = experts.expert + of_call * moe.n_used;
  choose_experts(logits, moe, exec.tokens[exec.token(r)], chosen);
  weigh(logits, moe, chosen, experts.weight + of_call * moe.n_used);
  if (moe.shared) experts.shared_weight[of_call] = weight_of_shared(moe, logits);
}

/// Quantized values times `weight`: their scales are.
void weigh_quantized(const QuantizedRow& row, const QuantizedTables& y, int64_t n_y, int64_t at,
                     float weight) noexcept {
  for (int64_t s = 0; s < (row.k + 255) / 256; ++s) {
    if (row.forms.a256) y.d256[s * n_y + at] *= weight;
    for (int64_t i = 0; row.forms.a32 && i < 8; ++i) y.d32[(s * n_y + at) * 8 + i] *= weight;
  }
}

/// The activations of the row, as they are and quantized, to where the experts will find them.
void keep_row(const Step& step, Exec& exec, int64_t r) noexcept {
  Experts& experts = *exec.experts;
  const int64_t of_call = exec.row0 + r;
  const QuantizedRow row{.forms = step.moe.in_forms, .k = step.moe.dim};
  copy_quantized(row, exec.quantized, exec.n_rows, r, experts.in, experts.n_rows, of_call);
  const bool floats = exec.stride(Buf::kExpertIn) > 0;
  float* kept = floats ? exec.row(Buf::kExpertIn, r) : nullptr;
  if (floats) std::memcpy(kept, exec.row(step.moe.in, r), static_cast<size_t>(step.moe.dim) * sizeof(float));
  if (!step.moe.routing.early) return;
  float& weight = experts.weight[of_call];  // of the only expert
  weigh_quantized(row, experts.in, experts.n_rows, of_call, weight);
  if (floats) exec.table->scale(kept, weight, step.moe.dim, kept);
  weight = 1;
}

}  // namespace

void choose_experts(const float* logits, const MoeSpec& moe, int32_t token, int32_t* chosen) noexcept {
  if (moe.routing.expert_of_token) {
    const float* of_token = moe.routing.expert_of_token->data + token * moe.n_used;
    std::transform(of_token, of_token + moe.n_used, chosen, [](float id) { return static_cast<int32_t>(id); });
    return;
  }
  if (!moe.routing.selection_bias && moe.routing.n_groups == 1) {
    return find_largest(logits, moe.n_experts, moe.n_used, chosen);
  }
  double scores[kMaxExperts];
  score(logits, moe, scores);
  if (moe.routing.n_groups > 1) keep_best_groups(moe, scores);
  find_largest(scores, moe.n_experts, moe.n_used, chosen);
}

void copy_quantized(const QuantizedRow& row, const QuantizedTables& x, int64_t n_x, int64_t from,
                    const QuantizedTables& y, int64_t n_y, int64_t to) noexcept {
  const int64_t n_blocks = (row.k + 255) / 256;
  const auto copy = [&](const void* source, void* target, int64_t width) {
    const auto* a = static_cast<const std::byte*>(source);
    auto* b = static_cast<std::byte*>(target);
    for (int64_t s = 0; s < n_blocks; ++s) {
      std::memcpy(b + (s * n_y + to) * width, a + (s * n_x + from) * width, static_cast<size_t>(width));
    }
  };
  if (row.forms.a256) copy(x.q256, y.q256, 256), copy(x.d256, y.d256, 4), copy(x.sums256, y.sums256, 32);
  if (row.forms.a32) copy(x.q32, y.q32, 256), copy(x.d32, y.d32, 32), copy(x.sums32, y.sums32, 16);
}

void route_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    route_row(step, exec, r);
    keep_row(step, exec, r);
  }
}

void combine_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  const MoeSpec& moe = step.moe;
  const Experts& experts = *exec.experts;
  const int64_t dim = moe.dim;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* y = exec.row(moe.out, r);
    std::memset(y, 0, static_cast<size_t>(dim) * sizeof(float));
    const int64_t of_call = exec.row0 + r;
    for (int64_t i = of_call * moe.n_used; i < (of_call + 1) * moe.n_used; ++i) {
      STOKER_DCHECK(experts.produced[experts.row_of[i]] == exec.stride(Buf::kExpertOut) / 16);
      float* e = exec.row(Buf::kExpertOut, experts.row_of[i]);
      if (moe.down_bias) t.add(e, moe.down_bias->of(experts.expert[i]), dim, e);
      t.add_scaled(experts.weight[i], e, dim, y);
    }
    if (moe.post_gain) exec.plan->norm(y, moe.post_gain->data, exec.plan->config->norm_eps, dim, y);
    if (!moe.shared) continue;
    float* shared = exec.row(Buf::kShared, r);
    if (moe.post_shared_gain)
      exec.plan->norm(shared, moe.post_shared_gain->data, exec.plan->config->norm_eps, dim, shared);
    t.add_scaled(experts.shared_weight[of_call], shared, dim, y);
  }
}

}  // namespace stoker::model
