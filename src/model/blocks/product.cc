// Products of quantized activations with one to three matrices.
#include <algorithm>

#include "model/exec.h"

namespace stoker::model {
namespace {

// Groups of 16 matrix rows per piece of work. One row: enough pieces that a slow worker does not hold up the others,
// few enough that each is a long sequential read. Many rows: whole panels of 64 matrix rows, which the kernels expand
// once.
constexpr int64_t kPanelGroups = 4;
constexpr int64_t kPiecesPerWorker = 4;

kernels::MatmulFn pick(const kernels::MatmulKernels& k, int64_t n_rows) noexcept {
  return n_rows == 1 ? k.one : n_rows <= 16 ? k.few : k.many;
}

int64_t piece(int64_t n_groups, int64_t n_rows, int n_workers) noexcept {
  const int64_t even = (n_groups + n_workers * kPiecesPerWorker - 1) / (n_workers * kPiecesPerWorker);
  if (n_rows == 1) return std::max<int64_t>(1, even);
  return std::max<int64_t>(1, std::min<int64_t>(kPanelGroups, even));
}

}  // namespace

void run_product(const Target& target, const kernels::Activations& x, int64_t row_begin, int64_t row_end, float* y,
                 int64_t y_stride, const Exec& exec, Worker& worker) noexcept {
  const kernels::MatmulFn fn = pick(target.kernels, row_end - row_begin);
  const int64_t n_groups = target.w->n_groups();
  worker.each(n_groups, piece(n_groups, row_end - row_begin, worker.count()), [&](Range groups) {
    fn({.w = target.w->data,
        .group_bytes = target.w->group_bytes,
        .k = target.w->n_in,
        .group_begin = groups.begin,
        .group_end = groups.end,
        .x = &x,
        .row_begin = row_begin,
        .row_end = row_end,
        .y = y - row_begin * y_stride,
        .y_stride = y_stride,
        .scratch = exec.worker_scratch(worker)});
  });
}

void product_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const int64_t n_rows = exec.n_rows;
  int64_t n_groups = 0;
  for (int i = 0; i < step.n_targets; ++i) n_groups += step.targets[static_cast<size_t>(i)].w->n_groups();
  // The matrices' groups one after the other are one list of work; a piece may reach from one matrix into the next.
  worker.each(n_groups, piece(n_groups, n_rows, worker.count()), [&](Range groups) {
    int64_t first = 0;
    for (int i = 0; i < step.n_targets; ++i) {
      const Target& target = step.targets[static_cast<size_t>(i)];
      const int64_t n = target.w->n_groups();
      const int64_t begin = std::max<int64_t>(groups.begin - first, 0), end = std::min(groups.end - first, n);
      if (begin < end) {
        pick(target.kernels, n_rows)({.w = target.w->data,
                                      .group_bytes = target.w->group_bytes,
                                      .k = step.k,
                                      .group_begin = begin,
                                      .group_end = end,
                                      .x = &exec.activations,
                                      .row_begin = 0,
                                      .row_end = n_rows,
                                      .y = exec.row(target.out, 0) + target.column,
                                      .y_stride = exec.stride(target.out),
                                      .scratch = exec.worker_scratch(worker)});
      }
      first += n;
    }
  });
}

}  // namespace stoker::model
