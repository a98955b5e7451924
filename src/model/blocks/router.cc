// Which experts each row goes to, and the sum of what they give back (docs/kernels.md#experts).
#include <algorithm>
#include <cstring>

#include "base/math.h"
#include "model/exec.h"

namespace stoker::model {
namespace {

// Of a sum of weights that is divided by: the reference models' bound against division by almost nothing, 2^-14.
constexpr double kSmallestSum = 6.103515625e-5;

/// The n_used largest logits, largest first, the lower index where two are equal. NaN is never larger, so that the
/// indices are different ones whatever the logits are.
void choose(const float* logits, const MoeSpec& moe, int32_t* chosen) noexcept {
  for (int64_t e = 0; e < moe.n_experts; ++e) {
    int64_t at = std::min(e, moe.n_used);
    while (at > 0 && logits[e] > logits[chosen[at - 1]]) --at;
    if (at == moe.n_used) continue;
    const int64_t last = std::min(e, moe.n_used - 1);
    for (int64_t i = last; i > at; --i) chosen[i] = chosen[i - 1];
    chosen[at] = static_cast<int32_t>(e);
  }
}

/// In double, sums in ascending order, rounded once: the same on every instruction set.
void weigh(const float* logits, const MoeSpec& moe, const int32_t* chosen, float* weight) noexcept {
  const auto best = static_cast<double>(logits[chosen[0]]);
  const auto relative = [&](int64_t expert) { return math::exp(static_cast<double>(logits[expert]) - best); };
  double of_chosen = 0, sum = 0;
  for (int64_t i = 0; i < moe.n_used; ++i) of_chosen += relative(chosen[i]);
  if (moe.routing.weights == RouterWeights::kOverChosen) {
    sum = of_chosen;
  } else {
    for (int64_t e = 0; e < moe.n_experts; ++e) sum += relative(e);
    if (moe.routing.renormalize) sum *= std::max(of_chosen / sum, kSmallestSum);
  }
  for (int64_t i = 0; i < moe.n_used; ++i) weight[i] = static_cast<float>(relative(chosen[i]) / sum);
}

void route_row(const Step& step, Exec& exec, int64_t r) noexcept {
  const MoeSpec& moe = step.moe;
  float* logits = exec.row(Buf::kRouter, r);
  add_vector(*exec.table, moe.router_bias, logits);
  if (!exec.table->all_finite(logits, moe.n_experts)) exec.mark_bad(exec.original_row(r), step);
  int32_t* chosen = exec.experts.expert + r * moe.n_used;
  choose(logits, moe, chosen);
  weigh(logits, moe, chosen, exec.experts.weight + r * moe.n_used);
}

/// Sorts the choices by expert; those of one expert stay in the order of rows and ranks.
void sort_by_expert(const MoeSpec& moe, ExpertRows& rows) noexcept {
  std::fill_n(rows.first, moe.n_experts + 1, 0);
  for (int64_t i = 0; i < rows.n; ++i) ++rows.first[rows.expert[i] + 1];
  rows.n_active = 0;
  for (int64_t e = 0; e < moe.n_experts; ++e) {
    if (rows.first[e + 1] > 0) rows.active[rows.n_active++] = static_cast<int32_t>(e);
    rows.first[e + 1] += rows.first[e];
  }
  // `first` serves as the place of the next choice, and ends up one expert too far.
  for (int64_t i = 0; i < rows.n; ++i) {
    const int32_t row = rows.first[rows.expert[i]]++;
    rows.row_of[i] = row;
    rows.choice[row] = static_cast<int32_t>(i);
  }
  for (int64_t e = moe.n_experts; e > 0; --e) rows.first[e] = rows.first[e - 1];
  rows.first[0] = 0;
  std::fill_n(rows.bad, rows.n, uint8_t{0});
#ifndef NDEBUG
  std::fill_n(rows.produced, rows.n, 0);
#endif
}

/// Copies entry `from` of every super-block to entry `to` of another table: `width` bytes each.
void copy_row(const void* source, int64_t n_source, int64_t from, void* target, int64_t n_target, int64_t to,
              int64_t width, int64_t n_blocks) noexcept {
  const auto* x = static_cast<const std::byte*>(source);
  auto* y = static_cast<std::byte*>(target);
  for (int64_t s = 0; s < n_blocks; ++s) {
    std::memcpy(y + (s * n_target + to) * width, x + (s * n_source + from) * width, static_cast<size_t>(width));
  }
}

/// The activations of the row that a row of experts stands for, as they are and quantized.
void gather_row(const Step& step, Exec& exec, int64_t to) noexcept {
  const int64_t from = exec.experts.choice[to] / step.moe.n_used;
  const int64_t n_blocks = (step.k + 255) / 256;
  const QuantizedTables &x = exec.quantized, &y = exec.experts.quantized;
  const auto copy = [&](const void* source, void* target, int64_t width) {
    copy_row(source, exec.n_rows, from, target, exec.experts.n, to, width, n_blocks);
  };
  if (step.forms.a256) copy(x.q256, y.q256, 256), copy(x.d256, y.d256, 4), copy(x.sums256, y.sums256, 32);
  if (step.forms.a32) copy(x.q32, y.q32, 256), copy(x.d32, y.d32, 32), copy(x.sums32, y.sums32, 16);
  if (exec.stride(Buf::kExpertIn) > 0) {
    std::memcpy(exec.row(Buf::kExpertIn, to), exec.row(Buf::kNormed, from),
                static_cast<size_t>(step.k) * sizeof(float));
  }
}

}  // namespace

void route_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) route_row(step, exec, r);
  worker.barrier();
  if (worker.index() == 0) {
    exec.experts.n = exec.n_rows * step.moe.n_used;
    sort_by_expert(step.moe, exec.experts);
  }
  if (exec.n_rows == 1) return;  // all experts read the one row where it is
  worker.barrier();
  const Range mine = worker.share(exec.experts.n);
  for (int64_t row = mine.begin; row < mine.end; ++row) gather_row(step, exec, row);
  if (worker.index() != 0) return;
  Step gathered = step;
  gathered.in = Buf::kExpertIn;
  point_activations(gathered, exec);
}

void combine_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  const MoeSpec& moe = step.moe;
  const ExpertRows& experts = exec.experts;
  const int64_t dim = exec.plan->config->dim;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* y = exec.row(Buf::kBranch, r);
    std::memset(y, 0, static_cast<size_t>(dim) * sizeof(float));
    for (int64_t i = r * moe.n_used; i < (r + 1) * moe.n_used; ++i) {
      STOKER_DCHECK(experts.produced[experts.row_of[i]] == exec.stride(Buf::kBranch) / 16);
      float* e = exec.row(Buf::kExpertUp, experts.row_of[i]);
      if (moe.down_bias) t.add(e, moe.down_bias->of(experts.expert[i]), dim, e);
      t.add_scaled(experts.weight[i], e, dim, y);
    }
    if (!moe.shared) continue;
    float weight = 1;
    if (moe.shared_weight_column > 0) {
      const auto logit = static_cast<double>(exec.row(Buf::kRouter, r)[moe.shared_weight_column]);
      weight = static_cast<float>(1 / (1 + math::exp(-logit)));
    }
    t.add_scaled(weight, exec.row(Buf::kUp, r), dim, y);
  }
}

}  // namespace stoker::model
