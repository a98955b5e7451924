// Residual streams of which a layer computes one and predicts the others (AltUp, arXiv:2301.13310), and the low-rank
// branch beside attention (LAuReL, arXiv:2411.07501): docs/kernels.md#altup.
#include <algorithm>

#include "base/math.h"
#include "model/exec.h"

namespace stoker::model {
namespace {

/// Where stream `i` of row `r` stands: the computed one, 0, last, so that the others are rows of one product.
float* stream(const Exec& exec, int64_t n, int64_t r, int64_t i) noexcept {
  return exec.row(Buf::kKept, r) + (i + n - 1) % n * exec.plan->config->dim;
}

/// Of x^2, in double: lanes of a fixed number, so that every instruction set adds in the same order.
double mean_square(const float* x, int64_t n) noexcept {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i % kLanes] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum / static_cast<double>(n);
}

/// y gets the magnitude of x.
void match(const kernels::Table& t, const float* x, int64_t n, float* y) noexcept {
  constexpr double kLeast = 1e-5;
  const double ratio = math::sqrt(mean_square(x, n)) / math::sqrt(std::max(mean_square(y, n), kLeast));
  t.scale(y, static_cast<float>(ratio), n, y);
}

double tanh(double x) noexcept {
  const double e = math::exp(-2 * __builtin_fabs(x)), y = (1 - e) / (1 + e);
  return x < 0 ? -y : y;
}

/// What the router gave, times a matrix [n_out, n].
void coefficients(const Step& step, const Exec& exec, int64_t r, int64_t n_out, double* out) noexcept {
  const int64_t n = step.altup.n;
  const float* logits = exec.row(Buf::kRouter, r);
  for (int64_t i = 0; i < n_out; ++i) {
    out[i] = 0;
    for (int64_t k = 0; k < n; ++k) {
      const double share = tanh(static_cast<double>(logits[k]) / static_cast<double>(exec.plan->config->dim));
      out[i] += static_cast<double>(step.altup.coefficients->data[i * n + k]) * share;
    }
  }
}

}  // namespace

void altup_begin_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const int64_t n = step.altup.n, dim = exec.plan->config->dim;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = exec.row(Buf::kResidual, r);
    for (int64_t i = 1; i < n; ++i) match(*exec.table, x, dim, stream(exec, n, r, i));
    std::copy_n(x, dim, stream(exec, n, r, 0));
  }
}

void altup_predict_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const int64_t n = step.altup.n, dim = exec.plan->config->dim;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    double wide[kMaxAltup * kMaxAltup];
    float c[kMaxAltup * kMaxAltup], *x[kMaxAltup];
    coefficients(step, exec, r, n * n, wide);
    for (int64_t i = 0; i < n * n; ++i) c[i] = static_cast<float>(wide[i]);
    for (int64_t i = 0; i < n; ++i) x[i] = stream(exec, n, r, i);
    for (int64_t at = 0; at < dim; ++at) {
      float before[kMaxAltup];
      for (int64_t i = 0; i < n; ++i) before[i] = x[i][at];
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < n; ++k) x[i][at] += c[i * n + k] * before[k];
      }
    }
    std::copy_n(x[0], dim, exec.row(Buf::kResidual, r));
  }
}

void altup_correct_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  const int64_t n = step.altup.n, dim = exec.plan->config->dim;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    double c[kMaxAltup];
    coefficients(step, exec, r, n, c);
    float *computed = exec.row(Buf::kResidual, r), *error = exec.row(Buf::kNormed, r);
    t.scale(stream(exec, n, r, 0), -1, dim, error);
    t.add(computed, error, dim, error);
    for (int64_t i = 0; i < n; ++i) t.add_scaled(static_cast<float>(c[i] + 1), error, dim, stream(exec, n, r, i));
    std::copy_n(stream(exec, n, r, 0), dim, computed);
    t.mul(computed, step.altup.scale->data, dim, error);
    quantize_rows(step, exec, r, r + 1);
  }
  if (worker.index() == 0) point_activations(step, exec);
}

void altup_spread_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const int64_t n = step.altup.n, dim = exec.plan->config->dim;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* x = exec.row(Buf::kBranch, r);
    norm_row(*exec.plan, step, x, x);
    for (int64_t i = 1; i < n; ++i) exec.table->add(stream(exec, n, r, i), x, dim, stream(exec, n, r, i));
  }
}

void altup_end_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  const int64_t n = step.altup.n, dim = exec.plan->config->dim;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* sum = exec.row(Buf::kResidual, r);
    for (int64_t i = 1; i < n; ++i) {
      float* back = exec.row(Buf::kUp, r) + (i - 1) * dim;
      match(t, stream(exec, n, r, 0), dim, back);
      t.add(sum, back, dim, sum);
    }
    t.scale(sum, 1 / static_cast<float>(n), dim, sum);
  }
}

void laurel_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const int64_t dim = exec.plan->config->dim;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* x = exec.row(Buf::kParallel, r);
    norm_row(*exec.plan, step, x, x);
    exec.table->add(x, exec.row(Buf::kNormed, r), dim, x);
  }
}

void sparsify(float times, float* x, int64_t n) noexcept {
  double mean = 0;
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i % kLanes] += static_cast<double>(x[i]);
  for (const double lane : lanes) mean += lane / static_cast<double>(n);
  const auto center = static_cast<float>(mean);
  for (int64_t i = 0; i < n; ++i) x[i] -= center;
  const auto cut = static_cast<float>(static_cast<double>(times) * math::sqrt(mean_square(x, n)));
  // What is no number stays so.
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] - cut < 0 ? 0 : x[i] - cut;
}

}  // namespace stoker::model
