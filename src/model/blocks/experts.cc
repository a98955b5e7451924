// Experts at work: each active expert's matrices times all rows that go to it, wave by wave.
#include <algorithm>
#include <atomic>

#include "model/exec.h"

namespace stoker::model {
namespace {

/// Sorts the choices by expert; those of one expert stay in the order of rows and ranks.
void sort_by_expert(const MoeSpec& moe, Experts& rows) noexcept {
  rows.n = rows.n_rows * moe.n_used;
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
#ifndef NDEBUG
  std::fill_n(rows.produced, rows.n, 0);
#endif
}

/// As many rows of an expert as the wave still takes. False: none.
bool add_part(Experts& experts, int32_t expert, int64_t begin, int64_t end) noexcept {
  const int64_t n = std::min(end - begin, experts.wave_rows - experts.n_wave);
  if (n <= 0) return false;
  const auto index = static_cast<int32_t>(experts.n_parts);
  experts.parts[experts.n_parts++] = {.expert = expert, .row = experts.n_wave, .begin = begin, .end = begin + n};
  std::fill_n(experts.part_of + experts.n_wave, n, index);
  std::fill_n(experts.bad + experts.n_wave, n, uint8_t{0});
  experts.n_wave += n;
  return true;
}

void next_wave(const Step& step, Experts& experts) noexcept {
  experts.n_parts = experts.n_wave = 0;
  while (experts.n_taken < experts.n_active) {
    const int32_t expert = experts.active[experts.n_taken];
    const int64_t begin = experts.first[expert] + experts.taken_rows, end = experts.first[expert + 1];
    if (!add_part(experts, expert, begin, end)) break;
    WavePart& part = experts.parts[experts.n_parts - 1];
    for (size_t i = 0; i < 3; ++i) part.matrices[i] = step.targets[i].experts->of(expert);
    const bool whole = part.end == end;
    experts.n_taken += whole;
    experts.taken_rows = whole ? 0 : experts.taken_rows + part.size();
  }
  experts.last = experts.n_taken == experts.n_active;
}

/// What gate and up multiply. A lone token is read where it is.
void point_inputs(const Step& step, Exec& exec) noexcept {
  Experts& experts = *exec.experts;
  const bool lone = experts.n_rows == 1;
  const Buf in = lone ? Buf::kExpertIn : Buf::kWaveIn;
  experts.activations = activations_of({.x = exec.row(in, 0),
                                        .stride = exec.stride(in),
                                        .n = lone ? 1 : experts.n_wave,
                                        .k = step.moe.dim,
                                        .forms = step.moe.in_forms,
                                        .to = lone ? experts.in : experts.wave,
                                        .bad = nullptr});
}

/// The tokens' activations to the rows of the wave.
void gather(const Step& step, Exec& exec, Worker& worker) noexcept {
  Experts& experts = *exec.experts;
  const Range mine = worker.share(experts.n_wave);
  for (int64_t row = mine.begin; row < mine.end; ++row) {
    const WavePart& part = experts.parts[experts.part_of[row]];
    const int64_t token = experts.choice[part.begin + row - part.row] / step.moe.n_used;
    copy_quantized({.forms = step.moe.in_forms, .k = step.moe.dim}, experts.in, experts.n_rows, token, experts.wave,
                   experts.n_wave, row);
    if (exec.stride(Buf::kWaveIn) > 0) {
      std::copy_n(exec.row(Buf::kExpertIn, token), step.moe.dim, exec.row(Buf::kWaveIn, row));
    }
  }
}

/// Counts what is written of each row, so that combine_step can tell that nothing is missing or was done twice.
[[maybe_unused]] void count_produced(Experts& experts, const WavePart& part, int64_t n_groups) noexcept {
  for (int64_t row = part.begin; row < part.end; ++row) {
    std::atomic_ref<int32_t>(experts.produced[row]).fetch_add(static_cast<int32_t>(n_groups));
  }
}

/// Gate and up go to the rows of the wave, down to those ordered by expert.
struct Side {
  std::span<const Target> targets;
  size_t first;  ///< Of the targets, among WavePart::matrices.
  bool down;
};

void multiply_part(const Side& side, Exec& exec, const Worker& worker, const WavePart& part, Range groups) noexcept {
  Experts& experts = *exec.experts;
  const bool lone = !side.down && experts.n_rows == 1;
  const int64_t row = lone ? 0 : part.row, to = side.down ? part.begin : part.row;
  each_part(side.targets, groups, [&](const Target& target, Range some) {
    const auto which = side.first + static_cast<size_t>(&target - side.targets.data());
    multiply({.target = target,
              .groups = some,
              .x = experts.activations,
              .row_begin = row,
              .row_end = lone ? 1 : row + part.size(),
              .y = exec.row(target.out, to - row),
              .y_stride = exec.stride(target.out),
              .data = part.matrices[which]},
             exec.worker_scratch(worker));
#ifndef NDEBUG
    if (side.down) count_produced(experts, part, some.size());
#endif
  });
}

/// The groups of all experts of the wave are one list of work, as the matrices of product_step.
void multiply_wave(const Side& side, Exec& exec, Worker& worker) noexcept {
  const Experts& experts = *exec.experts;
  const int64_t n_groups = count_groups(side.targets);  // of one expert
  const int64_t n_all = n_groups * experts.n_parts;
  const int64_t n_rows = (experts.n_wave + experts.n_parts - 1) / experts.n_parts;
  worker.each(n_all, groups_per_piece(n_all, n_rows, worker.count()), [&](Range piece) {
    for (int64_t i = piece.begin / n_groups; i * n_groups < piece.end; ++i) {
      const int64_t first = i * n_groups;
      multiply_part(side, exec, worker, experts.parts[i],
                    {std::max<int64_t>(piece.begin - first, 0), std::min(piece.end - first, n_groups)});
    }
  });
}

void activate(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  Experts& experts = *exec.experts;
  const MoeSpec& moe = step.moe;
  const GateFn act = gate_of(t, step.activation);
  const Quantize job{.x = exec.row(Buf::kWaveGate, 0),
                     .stride = exec.stride(Buf::kWaveGate),
                     .n = experts.n_wave,
                     .k = moe.ff,
                     .forms = moe.ff_forms,
                     .to = experts.wave,
                     .bad = experts.bad};
  const Range rows = worker.share(experts.n_wave);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const WavePart& part = experts.parts[experts.part_of[row]];
    float* gate = exec.row(Buf::kWaveGate, row);
    float* up = exec.row(Buf::kWaveUp, row);
    if (moe.gate_bias) t.add(gate, moe.gate_bias->of(part.expert), moe.ff, gate);
    if (moe.up_bias) t.add(up, moe.up_bias->of(part.expert), moe.ff, up);
    act(gate, up, moe.ff, gate);
    quantize(t, job, row, row + 1);
    if (experts.bad[row] == 0) continue;
    const int64_t token = experts.choice[part.begin + row - part.row] / moe.n_used;
    exec.mark_bad(experts.output_rows ? experts.output_rows[token] : token, step);
  }
  if (worker.index() == 0) experts.activations = activations_of(job);
}

}  // namespace

void experts_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  Experts& experts = *exec.experts;
  if (worker.index() == 0) {
    sort_by_expert(step.moe, experts);
    experts.n_taken = experts.taken_rows = 0;
  }
  const std::span<const Target> targets = targets_of(step);
  for (;;) {
    if (worker.index() == 0) {
      next_wave(step, experts);
      point_inputs(step, exec);
    }
    worker.barrier();
    if (experts.n_rows > 1) {
      gather(step, exec, worker);
      worker.barrier();
    }
    multiply_wave({targets.first(2), 0, false}, exec, worker);
    worker.barrier();
    activate(step, exec, worker);
    worker.barrier();
    multiply_wave({targets.subspan(2), 2, true}, exec, worker);
    if (experts.last) return;
    worker.barrier();
  }
}

}  // namespace stoker::model
