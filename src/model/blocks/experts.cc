// Experts at work: each active expert's matrices times all rows that go to it, wave by wave.
#include <algorithm>
#include <atomic>

#include "base/math.h"
#include "model/exec.h"
#include "model/lookahead.h"

namespace stoker::model {
namespace {

constexpr double kMostInVain = 0.1;  // Of the experts that are read ahead, if they are chosen evenly.

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

void count_uses(const MoeSpec& moe, Experts& experts) noexcept {
  uint64_t* of_layer = experts.counts + moe.index * static_cast<size_t>(moe.n_experts);
  for (int64_t i = 0; i < experts.n_active; ++i) {
    const int32_t expert = experts.active[i];
    experts.uses[i] = experts.first[expert + 1] - experts.first[expert];
    of_layer[expert] += static_cast<uint64_t>(experts.uses[i]);
  }
}

/// For Runner::routes.
void keep_routes(const MoeSpec& moe, Experts& experts) noexcept {
  if (!experts.routes) return;
  std::copy_n(experts.expert, experts.n, experts.routes + static_cast<int64_t>(moe.index) * experts.routes_stride);
  experts.routed[moe.index] = experts.n;
}

/// The rows of active expert `i` from its current row on, as many as the wave takes, which is not full; what is left
/// waits in `current`. The part that they are.
WavePart& add_rows(Experts& experts, int32_t i) noexcept {
  const int32_t expert = experts.active[i];
  const int64_t begin = experts.current < 0 ? experts.first[expert] : experts.current_row;
  const int64_t end = experts.first[expert + 1], n = std::min(end - begin, experts.wave_rows - experts.n_wave);
  const auto index = static_cast<int32_t>(experts.n_parts);
  experts.parts[experts.n_parts++] = {.expert = expert, .row = experts.n_wave, .begin = begin, .end = begin + n};
  std::fill_n(experts.part_of + experts.n_wave, n, index);
  std::fill_n(experts.bad + experts.n_wave, n, uint8_t{0});
  experts.n_wave += n;
  experts.current_row = begin + n;
  experts.current = experts.current_row == end ? -1 : i;
  return experts.parts[index];
}

/// Of an expert.
size_t n_matrices(const Step& step) noexcept { return static_cast<size_t>(step.n_targets); }

void next_resident_wave(Experts& experts) noexcept {
  while (experts.n_wave < experts.wave_rows && (experts.current >= 0 || experts.n_taken < experts.n_active)) {
    add_rows(experts, experts.current >= 0 ? experts.current : static_cast<int32_t>(experts.n_taken++));
  }
  experts.last = experts.current < 0 && experts.n_taken == experts.n_active;
}

/// The next expert of the request: one that is there before one that is still being read, and that before waiting for a
/// place, which only an empty wave does.
int32_t take_next(Experts& experts) noexcept {
  ExpertRequest& request = *experts.request;
  using Take = ExpertRequest::Take;
  const int32_t i = request.take(experts.together || experts.n_parts == 0 ? Take::kAny : Take::kReady);
  return i < 0 && experts.n_parts == 0 ? request.take(Take::kWait) : i;
}

void next_streamed_wave(const Step& step, Exec& exec) noexcept {
  Experts& experts = *exec.experts;
  while (experts.n_wave < experts.wave_rows) {
    const int32_t i = experts.current >= 0 ? experts.current : take_next(experts);
    if (i < 0) break;
    WavePart& part = add_rows(experts, i);
    part.lease = i;
    for (size_t p = 0; p < n_matrices(step); ++p) {
      part.matrices[p] = experts.request->data(i, p);
    }
  }
  experts.last = experts.current < 0 && experts.request->all_taken();
  const bool most = 10 * experts.n_active >= 8 * step.moe.n_experts;  // What holds here will hold there.
  if (experts.last && most) read_ahead(*exec.plan, experts, step.moe.index + 1);
}

void next_wave(const Step& step, Exec& exec) noexcept {
  Experts& experts = *exec.experts;
  experts.n_parts = experts.n_wave = 0;
  if (experts.request) {
    next_streamed_wave(step, exec);
  } else {
    next_resident_wave(experts);
  }
}

void give_up_later(const Experts& experts) noexcept {
  for (ExpertRequest* later : experts.later) later->finish();
}

/// Asks the store for the active experts.
void start_request(const Step& step, Experts& experts) noexcept {
  const auto n = static_cast<size_t>(experts.n_active);
  const bool few = experts.n <= experts.wave_rows;
  using Order = ExpertRequest::Order;
  experts.request->start(step.moe.index, {experts.active, n}, {experts.uses, n},
                         few ? Order::kByProjection : Order::kByExpert);
  experts.ahead->finish();
  if (!experts.request->all_placed()) give_up_later(experts);  // Their leases may be what is in the way.
  experts.together = few && experts.request->all_placed();
}

/// Asks for what the next layers will probably want, once all that this one wants has a place.
void look_ahead(const Step& step, const Exec& exec, Worker& worker) noexcept {
  Experts& experts = *exec.experts;
  const size_t next = step.moe.index + 1;
  if (!experts.guess || !experts.last || next >= experts.n_layers) return;
  if (reads_ahead(exec.plan->moe, experts.n_rows)) return;  // Then all of them may have been asked for.
  const auto guessed = experts.lookahead->guess(next, exec, exec.worker_scratch(worker));
  if (!guessed.empty()) experts.ahead->start(next, guessed, {}, ExpertRequest::Order::kAhead);
  // Each takes over from the one behind it, which still holds what was guessed of this layer before.
  for (size_t i = 0; i < kLaterLayers; ++i) {
    experts.later[i]->finish();
    const auto more = experts.lookahead->guess(next + 1 + i, exec, exec.worker_scratch(worker));
    if (!more.empty()) experts.later[i]->start(next + 1 + i, more, {}, ExpertRequest::Order::kLater);
  }
}

/// Gives back the experts whose last rows were in the wave.
void release_wave(Experts& experts) noexcept {
  for (int64_t i = 0; i < experts.n_parts; ++i) {
    const WavePart& part = experts.parts[i];
    if (part.end == experts.first[part.expert + 1]) experts.request->release(part.lease);
  }
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
  const Step& step;
  std::span<const Target> targets;
  size_t first;  ///< Of the targets, among WavePart::matrices.
  bool down;
};

/// A part whose expert cannot be read: its rows have failed.
void fail_part(const Step& step, Exec& exec, const WavePart& part) noexcept {
  const Experts& experts = *exec.experts;
  exec.errors->add(step.index, experts.request->error(part.lease));
  for (int64_t row = part.begin; row < part.end; ++row) {
    const int64_t token = experts.choice[row] / step.moe.n_used;
    exec.mark_unread(experts.original_row(token), step);
  }
}

void multiply_part(const Side& side, Exec& exec, const Worker& worker, const WavePart& part, Range groups,
                   Range run) noexcept {
  Experts& experts = *exec.experts;
  const bool lone = !side.down && experts.n_rows == 1;
  const int64_t row = lone ? 0 : part.row, to = side.down ? part.begin : part.row;
  each_part(side.targets, worker, groups, run, [&](const Target& target, Range some, Range in_run) {
    const auto which = side.first + static_cast<size_t>(&target - side.targets.data());
#ifndef NDEBUG
    if (side.down) count_produced(experts, part, some.size());
#endif
    if (part.lease >= 0 && !experts.request->wait(part.lease, which)) {
      return fail_part(side.step, exec, part);
    }
    const auto multiply_groups = [&](Range stretch, const std::byte* data) {
      multiply({.target = target,
                .groups = stretch,
                .run = in_run,
                .x = experts.activations,
                .row_begin = row,
                .row_end = lone ? 1 : row + part.size(),
                .y = exec.row(target.out, to - row),
                .y_stride = exec.stride(target.out),
                .data = data},
               exec.worker_scratch(worker));
    };
    if (part.lease >= 0) return multiply_groups(some, part.matrices[which]);
    for (int64_t g = some.begin; g < some.end;) {
      const ExpertMatrix::Stretch stretch = target.experts->stretch(part.expert, g);
      multiply_groups({g, std::min(some.end, stretch.end)}, stretch.data);
      g = stretch.end;
    }
  });
}

/// The groups of all experts of the wave are one list of work, as the matrices of product_step.
void multiply_wave(const Side& side, Exec& exec, Worker& worker) noexcept {
  const Experts& experts = *exec.experts;
  const int64_t n_groups = count_groups(side.targets, worker);  // of one expert
  const int64_t n_all = n_groups * experts.n_parts;
  const int64_t n_rows = (experts.n_wave + experts.n_parts - 1) / experts.n_parts;
  each_piece(worker, {n_all, side.targets[0].w->group_bytes, n_rows}, [&](Range piece, Range run) {
    for (int64_t i = piece.begin / n_groups; i * n_groups < piece.end; ++i) {
      const int64_t first = i * n_groups;
      multiply_part(side, exec, worker, experts.parts[i], piece.of_items(first, n_groups),
                    run.of_items(first, n_groups));
    }
  });
}

void activate(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  Experts& experts = *exec.experts;
  const MoeSpec& moe = step.moe;
  const Quantize job{.x = exec.row(Buf::kWaveGate, 0),
                     .stride = exec.stride(Buf::kWaveGate),
                     .n = experts.n_wave,
                     .k = moe.ff,
                     .forms = moe.ff_forms,
                     .to = experts.wave,
                     .bad = experts.bad};
  const bool alone = step.n_targets == 2;  // There is no gate.
  const Range rows = worker.share(experts.n_wave);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const WavePart& part = experts.parts[experts.part_of[row]];
    float* gate = exec.row(Buf::kWaveGate, row);
    float* up = exec.row(Buf::kWaveUp, row);
    if (moe.gate_bias) t.add(gate, moe.gate_bias->of(part.expert), moe.ff, gate);
    if (moe.up_bias) t.add(up, moe.up_bias->of(part.expert), moe.ff, up);
    if (alone) {
      activate_alone(*exec.plan, step, gate, moe.ff);
    } else {
      activate_gate(*exec.plan, step, gate, up, moe.ff);
    }
    quantize(t, job, row, row + 1);
    if (experts.bad[row] == 0) continue;
    const int64_t token = experts.choice[part.begin + row - part.row] / moe.n_used;
    exec.mark_bad(experts.original_row(token), step);
  }
  if (worker.index() == 0) experts.activations = activations_of(job);
}

}  // namespace

bool reads_ahead(const MoePlan& moe, int64_t n_rows) noexcept {
  const auto n = static_cast<double>(moe.n_experts), k = static_cast<double>(moe.n_used);
  return math::pow(1 - k / n, static_cast<double>(n_rows)) <= kMostInVain;
}

void read_ahead(const Plan& plan, Experts& experts, size_t index) noexcept {
  if (!experts.ahead || index >= experts.n_layers) return;
  const bool gathered = plan.expert_steps[index] > plan.n_steps_to_store;
  if (!reads_ahead(plan.moe, gathered ? experts.n_last_rows : experts.n_rows)) return;
  const auto n_all = static_cast<size_t>(plan.moe.n_experts);
  experts.ahead->start(index, {experts.all, n_all}, {}, ExpertRequest::Order::kAhead);
}

/// `exec` is the first chunk's.
void experts_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  Experts& experts = *exec.experts;
  if (worker.index() == 0) {
    sort_by_expert(step.moe, experts);
    count_uses(step.moe, experts);
    keep_routes(step.moe, experts);
    experts.n_taken = 0;
    experts.current = -1;
    if (experts.request) start_request(step, experts);
  }
  const std::span<const Target> targets = targets_of(step);
  const size_t n_up = targets.size() - 1;  // before down
  for (;;) {
    if (worker.index() == 0) {
      next_wave(step, exec);
      point_inputs(step, exec);
    }
    worker.barrier();
    if (worker.index() == 0) look_ahead(step, exec, worker);
    if (experts.n_rows > 1) {
      gather(step, exec, worker);
      worker.barrier();
    }
    multiply_wave({step, targets.first(n_up), 0, false}, exec, worker);
    worker.barrier();
    activate(step, exec, worker);
    worker.barrier();
    multiply_wave({step, targets.subspan(n_up), n_up, true}, exec, worker);
    const bool last = experts.last;
    if (last && !experts.request) return;
    worker.barrier();
    if (worker.index() == 0 && experts.request) release_wave(experts);
    if (last) return;
  }
}

}  // namespace stoker::model
