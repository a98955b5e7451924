// Steps that work row by row: embedding, norms, activations, quantization.
#include <cstring>

#include "model/exec.h"

namespace stoker::model {
namespace {

void norm_row(const Step& step, Exec& exec, int64_t r) noexcept {
  const kernels::Table& t = *exec.table;
  const int64_t dim = exec.plan->config->dim;
  const float eps = exec.plan->config->norm_eps;
  float* residual = exec.row(Buf::kResidual, r);
  if (step.add_branch) {
    float* branch = exec.row(Buf::kBranch, r);
    add_vector(t, step.branch_bias, branch);
    if (step.post_gain) t.rms_norm(branch, step.post_gain->data, eps, dim, branch);
    const float scale = exec.plan->config->residual_scale;
    if (scale != 0) {
      t.add_scaled(scale, branch, dim, residual);
    } else {
      t.add(residual, branch, dim, residual);
    }
  }
  t.rms_norm(residual, step.gain->data, eps, dim, exec.row(Buf::kNormed, r));
}

}  // namespace

void add_vector(const kernels::Table& table, const Vector* bias, float* x) noexcept {
  if (bias) table.add(x, bias->data, bias->n, x);
}

GateFn gate_of(const kernels::Table& table, Activation activation) noexcept {
  switch (activation) {
    case Activation::kSilu:
      return table.silu_mul;
    case Activation::kGelu:
      return table.gelu_mul;
    case Activation::kClampedSilu:
      return table.clamped_silu_mul;
  }
  return nullptr;
}

void quantize_rows(const Step& step, Exec& exec, int64_t begin, int64_t end) noexcept {
  const bool of_experts = is_of_experts(step.in);
  const QuantizedTables& to = of_experts ? exec.experts.quantized : exec.quantized;
  kernels::QuantizeArgs args{.x = exec.row(step.in, 0),
                             .stride = exec.stride(step.in),
                             .n = of_experts ? exec.experts.n : exec.n_rows,
                             .k = step.k,
                             .row_begin = begin,
                             .row_end = end,
                             .q = to.q256,
                             .d = to.d256,
                             .sums = to.sums256,
                             .bad = of_experts ? exec.experts.bad : exec.bad};
  if (step.forms.a256) exec.table->quantize_a256(args);
  args.q = to.q32, args.d = to.d32, args.sums = to.sums32;
  if (step.forms.a32) exec.table->quantize_a32(args);
  for (int64_t r = begin; r < end; ++r) {
    const bool checked = step.forms.a256 || step.forms.a32;
    const bool is_bad = checked ? args.bad[r] != 0 : !exec.table->all_finite(exec.row(step.in, r), step.k);
    if (is_bad) exec.mark_bad(exec.original_row(of_experts ? exec.experts.choice[r] / exec.plan->moe.n_used : r), step);
  }
}

void point_activations(const Step& step, Exec& exec) noexcept {
  const bool of_experts = is_of_experts(step.in);
  const QuantizedTables& from = of_experts ? exec.experts.quantized : exec.quantized;
  exec.activations = {.n = of_experts ? exec.experts.n : exec.n_rows,
                      .k = step.k,
                      .f32 = exec.row(step.in, 0),
                      .f32_stride = exec.stride(step.in),
                      .q256 = from.q256,
                      .d256 = from.d256,
                      .sums256 = from.sums256,
                      .q32 = from.q32,
                      .d32 = from.d32,
                      .sums32 = from.sums32};
}

void embed_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const ModelConfig& config = *exec.plan->config;
  const Target& table = step.targets[0];
  const auto look_up = exec.table->row[static_cast<size_t>(table.w->type)];
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* x = exec.row(Buf::kResidual, r);
    look_up(
        {.w = table.w->data, .group_bytes = table.w->group_bytes, .k = config.dim, .row = exec.tokens[r], .out = x});
    if (config.embedding_scale != 0) exec.table->scale(x, config.embedding_scale, config.dim, x);
    for (size_t i = 0; i < exec.plan->ropes.size(); ++i) {
      exec.plan->ropes[i].at(exec.positions[r], exec.rope_cos[i] + r * exec.rope_stride,
                             exec.rope_sin[i] + r * exec.rope_stride);
    }
  }
}

void norm_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    norm_row(step, exec, r);
    quantize_rows(step, exec, r, r + 1);
  }
  if (worker.index() == 0) point_activations(step, exec);
}

void quantize_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Range rows = worker.share(exec.n_rows);
  quantize_rows(step, exec, rows.begin, rows.end);
  if (worker.index() == 0) point_activations(step, exec);
}

void gated_act_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  const GateFn act = gate_of(t, step.activation);
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* gate = exec.row(Buf::kGate, r);
    float* up = exec.row(Buf::kUp, r);
    add_vector(t, step.gate_bias, gate);
    add_vector(t, step.up_bias, up);
    act(gate, up, step.k, gate);
    quantize_rows(step, exec, r, r + 1);
  }
  if (worker.index() == 0) point_activations(step, exec);
}

void gather_step(const Step&, Exec& exec, Worker& worker) noexcept {
  // Output rows ascend and each moves to a lower place, so moving them in order never overwrites one that is still
  // needed.
  if (worker.index() == 0) {
    const auto bytes = static_cast<size_t>(exec.plan->config->dim) * sizeof(float);
    for (int64_t i = 0; i < exec.n_outputs; ++i) {
      if (exec.output_rows[i] != i)
        std::memcpy(exec.row(Buf::kResidual, i), exec.row(Buf::kResidual, exec.output_rows[i]), bytes);
      exec.bad[i] = exec.bad[exec.output_rows[i]];
    }
  }
  worker.barrier();  // nobody may see the new number of rows before all have left the step before
  if (worker.index() == 0) exec.n_rows = exec.n_outputs;
}

}  // namespace stoker::model
