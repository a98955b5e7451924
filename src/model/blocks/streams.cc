// Several residual streams of a token: a block reads one mixture of them, and what it gives goes back into another
// mixture of each (docs/kernels.md#streams).
#include <cstring>

#include "model/blocks/shares.h"
#include "model/exec.h"

namespace stoker::model {
namespace {

constexpr int64_t kMostStreams = 4;

/// [n][n], from stream to stream; rows or columns divided by their sums.
struct Square {
  double values[kMostStreams * kMostStreams];
  int64_t n;

  void divide(int64_t step, int64_t next, double eps) noexcept {
    for (int64_t line = 0; line < n; ++line) {
      double* first = values + line * next;
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += first[i * step];
      for (int64_t i = 0; i < n; ++i) first[i * step] /= sum + eps;
    }
  }
  void divide_rows(double eps) noexcept { divide(1, n, eps); }
  void divide_columns(double eps) noexcept { divide(n, 1, eps); }
};

/// Softmax of each row, plus eps.
void softmax_rows(Square& c, double eps) noexcept {
  for (int64_t i = 0; i < c.n; ++i) {
    double* row = c.values + i * c.n;
    softmax(row, c.n);
    for (int64_t j = 0; j < c.n; ++j) row[j] += eps;
  }
}

/// Logits become factors, in their places: into the block, out of it, from stream to stream. In double, rounded once.
/// False: one of them was not finite.
bool make_factors(const MixSpec& mix, float* m) noexcept {
  const int64_t n = mix.n_streams;
  bool finite = true;
  const auto logit = [&](int64_t i, int64_t part) {
    const double x =
        static_cast<double>(m[i]) * static_cast<double>(mix.scale->data[part]) + static_cast<double>(mix.base->data[i]);
    finite &= x - x == 0;
    return x;
  };
  for (int64_t i = 0; i < n; ++i) m[i] = static_cast<float>(sigmoid(logit(i, 0)) + mix.eps);
  if (!mix.back) return finite;
  for (int64_t i = n; i < 2 * n; ++i) m[i] = static_cast<float>(2 * sigmoid(logit(i, 1)));
  Square c{.values = {}, .n = n};
  for (int64_t i = 0; i < n * n; ++i) c.values[i] = logit(2 * n + i, 2);
  softmax_rows(c, mix.eps);
  c.divide_columns(mix.eps);
  for (int64_t round = 1; round < mix.n_rounds; ++round) {
    c.divide_rows(mix.eps);
    c.divide_columns(mix.eps);
  }
  for (int64_t i = 0; i < n * n; ++i) m[2 * n + i] = static_cast<float>(c.values[i]);
  return finite;
}

}  // namespace

void add_to_streams(const Step& step, Exec& exec, int64_t r) noexcept {
  const kernels::Table& t = *exec.table;
  const int64_t n = step.mix.n_streams, dim = exec.plan->config->dim;
  const float *out = exec.row(Buf::kMix, r) + n, *mixing = out + n, *branch = exec.row(Buf::kBranch, r);
  float *streams = exec.row(Buf::kResidual, r), *mixed = exec.row(Buf::kNormed, r);  // which nobody needs any more
  for (int64_t to = 0; to < n; ++to) {
    t.scale(branch, out[to], dim, mixed + to * dim);
    for (int64_t from = 0; from < n; ++from) {
      t.add_scaled(mixing[from * n + to], streams + from * dim, dim, mixed + to * dim);
    }
  }
  std::memcpy(streams, mixed, static_cast<size_t>(n * dim) * sizeof(float));
}

void mix_norm_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    if (step.add_branch && exec.branch_added != step.index) add_to_streams(step, exec, r);
    exec.table->rms_norm(exec.row(Buf::kResidual, r), nullptr, exec.plan->config->norm_eps, step.k,
                         exec.row(Buf::kNormed, r));
    quantize_rows(step, exec, r, r + 1);
  }
  if (worker.index() == 0) point_activations(step, exec);
}

void mix_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  const int64_t dim = exec.plan->config->dim;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* factors = exec.row(Buf::kMix, r);
    if (!make_factors(step.mix, factors)) exec.mark_bad(exec.original_row(r), step);
    const float* streams = exec.row(Buf::kResidual, r);
    float* mixed = exec.row(Buf::kNormed, r);
    t.scale(streams, factors[0], dim, mixed);
    for (int64_t i = 1; i < step.mix.n_streams; ++i) t.add_scaled(factors[i], streams + i * dim, dim, mixed);
    norm_row(*exec.plan, step, mixed, mixed);
    quantize_rows(step, exec, r, r + 1);
  }
  if (worker.index() == 0) point_activations(step, exec);
}

}  // namespace stoker::model
