// Products with the matrices of experts: each active expert's once, times all rows that go to it.
#include <algorithm>
#include <atomic>

#include "model/exec.h"

namespace stoker::model {
namespace {

/// Counts what is written of each row, so that combine_step can tell that nothing is missing or was done twice.
[[maybe_unused]] void count_produced(const Step& step, Exec& exec, Range rows, int64_t n_groups) noexcept {
  if (step.in != Buf::kExpertGate) return;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    std::atomic_ref<int32_t>(exec.experts.produced[row]).fetch_add(static_cast<int32_t>(n_groups));
  }
}

/// Groups [begin, end) of an expert's matrices, counted one matrix after the other.
void multiply_expert(const Step& step, Exec& exec, const Worker& worker, int64_t expert, Range groups) noexcept {
  const Range rows{exec.experts.first[expert], exec.experts.first[expert + 1]};
  // A lone row is not gathered: each of its experts reads row 0.
  const bool lone = step.in == Buf::kExpertIn && exec.n_rows == 1;
  each_part(step, groups, [&](const Target& target, Range part) {
    multiply({.target = target,
              .groups = part,
              .row_begin = lone ? 0 : rows.begin,
              .row_end = lone ? 1 : rows.end,
              .y = exec.row(target.out, lone ? rows.begin : 0),
              .y_stride = exec.stride(target.out),
              .data = target.experts->of(expert)},
             exec, worker);
#ifndef NDEBUG
    count_produced(step, exec, rows, part.size());
#endif
  });
}

}  // namespace

void expert_product_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const ExpertRows& experts = exec.experts;
  const int64_t n_groups = count_groups(step);  // of one expert
  const int64_t n_all = n_groups * experts.n_active;
  const int64_t n_rows = (experts.n + experts.n_active - 1) / experts.n_active;
  // The groups of all active experts are one list of work, as the matrices of product_step.
  worker.each(n_all, groups_per_piece(n_all, n_rows, worker.count()), [&](Range piece) {
    for (int64_t i = piece.begin / n_groups; i * n_groups < piece.end; ++i) {
      const int64_t first = i * n_groups;
      multiply_expert(step, exec, worker, experts.active[i],
                      {std::max<int64_t>(piece.begin - first, 0), std::min(piece.end - first, n_groups)});
    }
  });
}

void expert_act_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  const GateFn act = gate_of(t, step.activation);
  const Range rows = worker.share(exec.experts.n);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t expert = exec.experts.expert[exec.experts.choice[row]];
    float* gate = exec.row(Buf::kExpertGate, row);
    float* up = exec.row(Buf::kExpertUp, row);
    if (step.moe.gate_bias) t.add(gate, step.moe.gate_bias->of(expert), step.k, gate);
    if (step.moe.up_bias) t.add(up, step.moe.up_bias->of(expert), step.k, up);
    act(gate, up, step.k, gate);
    quantize_rows(step, exec, row, row + 1);
  }
  if (worker.index() == 0) point_activations(step, exec);
}

}  // namespace stoker::model
