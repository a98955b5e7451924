// Several residuals of a token: a new one is begun every few layers, those before are kept, and each block reads them
// all (docs/kernels.md#residuals).
#include "model/blocks/shares.h"
#include "model/exec.h"

namespace stoker::model {
const float* read_kept(const Step& step, const Exec& exec, int64_t r, float* y) noexcept {
  const kernels::Table& t = *exec.table;
  const int64_t dim = exec.plan->config->dim, n = step.kept.n;
  const auto residual = [&](int64_t i) {
    return i < n ? exec.row(Buf::kKept, r) + i * dim : exec.row(Buf::kResidual, r);
  };
  double weights[kMaxKept + 1] = {};
  for (int64_t i = 0; i <= n; ++i) {
    t.rms_norm(residual(i), step.kept.score->data, exec.plan->config->norm_eps, dim, y);
    weights[i] = static_cast<double>(t.sum(y, dim));
  }
  softmax(weights, n + 1);
  t.scale(residual(0), static_cast<float>(weights[0]), dim, y);
  for (int64_t i = 1; i <= n; ++i) t.add_scaled(static_cast<float>(weights[i]), residual(i), dim, y);
  return y;
}

}  // namespace stoker::model
