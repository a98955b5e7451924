// Products of quantized activations with one to four matrices.
#include <algorithm>

#include "model/exec.h"

namespace stoker::model {
namespace {

// One row and few: workers read in runs, so a piece may be small; a slow worker does not hold up the others for long.
// Not so small that the start of another's, which nobody has fetched, counts. Many rows: pieces of 64 matrix rows,
// whose packed weights stay in cache while the activations pass.
constexpr int64_t kBytesOfFewRows = 64 << 10;
constexpr int64_t kGroupsOfManyRows = 4;
constexpr int64_t kPiecesPerWorker = 4;
constexpr int64_t kFewRows = 16;

}  // namespace

const std::byte* data_of(const Matrix& w, const Step& step, Exec& exec) noexcept {
  if (w.data) return w.data;
  const std::byte* data = exec.units->wait(w);
  if (data) return data;
  exec.errors->add(step.index, exec.units->error());
  for (int64_t r = 0; r < exec.n_rows; ++r) exec.mark_unread(exec.original_row(r), step);
  return nullptr;
}

bool reads_in_runs(int64_t n_rows) noexcept { return n_rows <= kFewRows; }

int64_t groups_per_piece(const MatrixWork& work, int n_workers) noexcept {
  const int64_t even = (work.n_groups + n_workers * kPiecesPerWorker - 1) / (n_workers * kPiecesPerWorker);
  const int64_t most = reads_in_runs(work.n_rows) ? kBytesOfFewRows / work.group_bytes : kGroupsOfManyRows;
  return std::max<int64_t>(1, std::min(most, even));
}

void multiply(const Product& product, std::byte* scratch) noexcept {
  const Target& target = product.target;
  const int64_t n_rows = product.row_end - product.row_begin;
  const kernels::MatmulKernels& k = target.kernels;
  const kernels::MatmulFn fn = n_rows == 1 ? k.one : n_rows <= kFewRows ? k.few : k.many;
  const int64_t bytes = target.w->group_bytes;
  const kernels::MatmulArgs::Run run{product.data + product.run.begin * bytes, product.data + product.run.end * bytes};
  fn({.w = product.data,
      .group_bytes = bytes,
      .k = target.w->n_in,
      .group_begin = product.groups.begin,
      .group_end = product.groups.end,
      .x = &product.x,
      .row_begin = product.row_begin,
      .row_end = product.row_end,
      .y = product.y,
      .y_stride = product.y_stride,
      .scratch = scratch,
      .spread = k.spread ? &run : nullptr});
}

void product_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const std::span<const Target> targets = targets_of(step);
  const int64_t n_rows = exec.n_rows;
  // The matrices' groups one after the other are one list of work; a piece may reach from one matrix into the next.
  each_piece(worker, {count_groups(targets, worker), targets[0].w->group_bytes, n_rows}, [&](Range groups, Range run) {
    each_part(targets, worker, groups, run, [&](const Target& target, Range part, Range part_run) {
      const std::byte* data = data_of(*target.w, step, exec);
      if (!data) return;
      float* y = exec.row(target.out, 0) + target.column;
      multiply({target, part, part_run, exec.activations, 0, n_rows, y, exec.stride(target.out), data},
               exec.worker_scratch(worker));
    });
  });
}

}  // namespace stoker::model
