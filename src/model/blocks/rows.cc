// Steps that work row by row: embedding, norms, activations, quantization.
#include <algorithm>
#include <cstring>
#include <utility>

#include "model/exec.h"

namespace stoker::model {
namespace {

void add_branch(const Step& step, Exec& exec, int64_t r) noexcept {
  const kernels::Table& t = *exec.table;
  if (step.mix.n_streams > 1) return add_to_streams(step, exec, r);
  const int64_t dim = exec.plan->config->dim;
  float* residual = exec.row(Buf::kResidual, r);
  float* branch = exec.row(Buf::kBranch, r);
  if (step.kept.begins) {
    std::copy_n(branch, dim, residual);
    return;
  }
  add_vector(t, step.branch_bias, branch);
  if (step.post_gain) exec.plan->norm(branch, step.post_gain->data, exec.plan->config->norm_eps, dim, branch);
  const float scale = exec.plan->config->residual_scale;
  const auto add = [&](const float* x) {
    if (scale != 0) {
      t.add_scaled(scale, x, dim, residual);
    } else {
      t.add(residual, x, dim, residual);
    }
  };
  if (step.add_parallel) {
    float* parallel = exec.row(Buf::kParallel, r);
    add_vector(t, step.parallel_bias, parallel);
    add(parallel);
  }
  add(branch);
  if (step.layer_scale) t.scale(residual, step.layer_scale->data[0], dim, residual);
}

}  // namespace

void norm_row(const Plan& plan, const Step& step, const float* x, float* y) noexcept {
  plan.norm(x, step.gain->data, plan.config->norm_eps, plan.config->dim, y);
  add_vector(*plan.table, step.norm_bias, y);
}

void add_vector(const kernels::Table& table, const Vector* bias, float* x) noexcept {
  if (bias) table.add(x, bias->data, bias->n, x);
}

void limit_values(float limit, float* x, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}

namespace {

/// What is no number stays so.
void limit_gate(float limit, float* gate, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) gate[i] = gate[i] > limit ? limit : gate[i];
}

/// max(gate, 0) up. What is no number stays so.
void relu_gate(const kernels::Table& table, float* gate, const float* up, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) gate[i] = gate[i] < 0 ? 0 : gate[i];
  table.mul(gate, up, n, gate);
}

/// min(silu(gate), limit) up, with up within -limit ... limit.
void silu_limited(const kernels::Table& table, float limit, float* gate, float* up, int64_t n) noexcept {
  table.sigmoid_mul(gate, gate, n, gate);
  limit_gate(limit, gate, n);
  limit_values(limit, up, n);
  table.mul(gate, up, n, gate);
}

/// beta tanh(gate / beta) sigmoid(gate) up, with up bounded likewise where the model says so.
void situ(const kernels::Table& table, const ModelConfig& config, float* gate, float* up, int64_t n) noexcept {
  if (config.situ_linear_beta > 0) table.softcap(up, config.situ_linear_beta, n);
  table.sigmoid_mul(gate, up, n, up);
  table.softcap(gate, config.situ_beta, n);
  table.mul(gate, up, n, gate);
}

}  // namespace

void activate_gate(const Plan& plan, const Step& step, float* gate, float* up, int64_t n) noexcept {
  const kernels::Table& t = *plan.table;
  if (step.limit != 0) {
    if (step.late_limit) return silu_limited(t, step.limit, gate, up, n);
    limit_gate(step.limit, gate, n);
    limit_values(step.limit, up, n);
  }
  switch (step.activation) {
    case Activation::kSilu:
      return t.silu_mul(gate, up, n, gate);
    case Activation::kGelu:
      return t.gelu_mul(gate, up, n, gate);
    case Activation::kGeluErf:
      return t.gelu_erf_mul(gate, up, n, gate);
    case Activation::kClampedSilu:
      return t.clamped_silu_mul(gate, up, n, gate);
    case Activation::kRelu:
      return relu_gate(t, gate, up, n);
    case Activation::kSitu:
      return situ(t, *plan.config, gate, up, n);
    case Activation::kReluSquared:
    case Activation::kXielu:
      break;  // Of a feed-forward block without a gate only.
  }
}

void activate_alone(const Plan& plan, const Step& step, float* x, int64_t n) noexcept {
  const kernels::Table& t = *plan.table;
  switch (step.activation) {
    case Activation::kGelu:
      return t.gelu(x, n, x);
    case Activation::kGeluErf:
      return t.gelu_erf(x, n, x);
    case Activation::kReluSquared:
      return t.relu_squared(x, n, x);
    case Activation::kXielu:
      return t.xielu(x, step.xielu, n, x);
    case Activation::kSilu:
    case Activation::kClampedSilu:
    case Activation::kRelu:
    case Activation::kSitu:
      break;  // Of blocks with a gate only.
  }
}

void quantize(const kernels::Table& table, const Quantize& job, int64_t begin, int64_t end) noexcept {
  kernels::QuantizeArgs args{.x = job.x,
                             .stride = job.stride,
                             .n = job.n,
                             .k = job.k,
                             .row_begin = begin,
                             .row_end = end,
                             .q = job.to.q256,
                             .d = job.to.d256,
                             .sums = job.to.sums256,
                             .bad = job.bad};
  if (job.forms.a256) table.quantize_a256(args);
  args.q = job.to.q32, args.d = job.to.d32, args.sums = job.to.sums32;
  if (job.forms.a32) table.quantize_a32(args);
  if (job.forms.a256 || job.forms.a32) return;
  for (int64_t r = begin; r < end; ++r) {
    if (!table.all_finite(job.x + r * job.stride, job.k)) job.bad[r] = 1;
  }
}

kernels::Activations activations_of(const Quantize& job) noexcept {
  return {.n = job.n,
          .k = job.k,
          .f32 = job.x,
          .f32_stride = job.stride,
          .q256 = job.to.q256,
          .d256 = job.to.d256,
          .sums256 = job.to.sums256,
          .q32 = job.to.q32,
          .d32 = job.to.d32,
          .sums32 = job.to.sums32};
}

namespace {

Quantize quantize_of(const Step& step, const Exec& exec) noexcept {
  return {.x = exec.row(step.in, 0) + step.in_column,
          .stride = exec.stride(step.in),
          .n = exec.n_rows,
          .k = step.k,
          .forms = step.forms,
          .to = exec.quantized,
          .bad = exec.bad};
}

}  // namespace

void quantize_rows(const Step& step, Exec& exec, int64_t begin, int64_t end) noexcept {
  quantize(*exec.table, quantize_of(step, exec), begin, end);
  for (int64_t r = begin; r < end; ++r) {
    if (exec.bad[r] != 0) exec.mark_bad(exec.original_row(r), step);
  }
}

void point_activations(const Step& step, Exec& exec) noexcept {
  exec.activations = activations_of(quantize_of(step, exec));
}

namespace {

void add_row(const Matrix& table, int64_t index, Exec& exec, int64_t r) noexcept {
  float *x = exec.row(Buf::kResidual, r), *row = exec.row(Buf::kNormed, r);
  const int64_t dim = exec.plan->config->dim;
  exec.table->row[static_cast<size_t>(table.type)](
      {.w = table.data, .group_bytes = table.group_bytes, .k = dim, .row = index, .out = row});
  exec.table->add(x, row, dim, x);
}

/// Row `r`'s token in a table, out of the file if there is a reader; then `window` is what it reads through.
void look_up(const Step& step, Exec& exec, const Matrix& table, const EmbeddingReader* reader, int64_t r,
             std::span<std::byte> window, float* x) noexcept {
  if (!reader) {
    exec.table->row[static_cast<size_t>(table.type)](
        {.w = table.data, .group_bytes = table.group_bytes, .k = table.n_in, .row = exec.tokens[r], .out = x});
    return;
  }
  Status read = reader->read(exec.tokens[r], window, {x, static_cast<size_t>(table.n_in)});
  if (read) return;
  std::fill_n(x, table.n_in, 0.0F);
  exec.errors->add(step.index, std::move(read).error());
  exec.mark_unread(exec.original_row(r), step);
}

}  // namespace

void embed_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const ModelConfig& config = *exec.plan->config;
  const std::span window(exec.worker_scratch(worker), static_cast<size_t>(exec.scratch_stride));
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* x = exec.row(Buf::kResidual, r);
    look_up(step, exec, *step.targets[0].w, exec.embedding, r, window, x);
    if (config.embedding_scale != 0) exec.table->scale(x, config.embedding_scale, config.dim, x);
    if (step.positions) add_row(*step.positions, exec.positions[r], exec, r);
    if (step.token_types) add_row(*step.token_types, exec.kinds ? exec.kinds[r] : 0, exec, r);
    for (int64_t i = 1; i < config.n_streams; ++i) std::copy_n(x, config.dim, x + i * config.dim);
    for (size_t i = 0; i < exec.plan->ropes.size(); ++i) {
      exec.plan->ropes[i].at(exec.positions[r], exec.rope_cos[i] + r * exec.rope_stride,
                             exec.rope_sin[i] + r * exec.rope_stride);
    }
  }
}

void layer_inputs_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  const Matrix& table = *step.layer_inputs;
  const auto root = [](int64_t n) { return __builtin_sqrtf(static_cast<float>(n)); };
  const int64_t n = table.n_in, width = step.k;
  const auto bytes = exec.stride(Buf::kLayerInputs) * static_cast<int64_t>(sizeof(float));
  const std::span window(exec.worker_scratch(worker), static_cast<size_t>(exec.scratch_stride - bytes));
  auto* looked_up = reinterpret_cast<float*>(window.data() + window.size());
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* x = exec.row(Buf::kLayerInputs, r);
    t.scale(x, 1 / root(exec.plan->config->dim), n, x);
    for (float* at = x; at < x + n; at += width)
      t.rms_norm(at, step.gain->data, exec.plan->config->norm_eps, width, at);
    look_up(step, exec, table, exec.layer_inputs, r, window, looked_up);
    t.add_scaled(root(width), looked_up, n, x);
    t.scale(x, 1 / root(2), n, x);
  }
}

void norm_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    if (step.add_branch && exec.branch_added != step.index) add_branch(step, exec, r);
    const float* x = exec.row(Buf::kResidual, r);
    float* y = exec.row(step.gain ? step.in : Buf::kNormed, r);
    if (step.gain) norm_row(*exec.plan, step, step.kept.n > 0 ? read_kept(step, exec, r, y) : x, y);
    if (step.kept.keeps)
      std::copy_n(x, exec.plan->config->dim, exec.row(Buf::kKept, r) + step.kept.n * exec.plan->config->dim);
    quantize_rows(step, exec, r, r + 1);
  }
  if (worker.index() == 0) point_activations(step, exec);
}

void add_branch_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) add_branch(step, exec, r);
  if (worker.index() == 0) exec.branch_added = step.index;
}

void quantize_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Range rows = worker.share(exec.n_rows);
  quantize_rows(step, exec, rows.begin, rows.end);
  if (worker.index() == 0) point_activations(step, exec);
}

void gated_act_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* gate = exec.row(Buf::kGate, r);
    float* up = step.fused ? gate + step.k : exec.row(step.up, r) + step.up_column;
    add_vector(t, step.gate_bias, gate);
    add_vector(t, step.up_bias, up);
    if (step.sparsity != 0) sparsify(step.sparsity, gate, step.k);
    activate_gate(*exec.plan, step, gate, up, step.k);
    quantize_rows(step, exec, r, r + 1);
  }
  if (worker.index() == 0) point_activations(step, exec);
}

void act_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const kernels::Table& t = *exec.table;
  const Range rows = worker.share(exec.n_rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* x = exec.row(Buf::kGate, r);
    add_vector(t, step.up_bias, x);
    activate_alone(*exec.plan, step, x, step.k);
    quantize_rows(step, exec, r, r + 1);
  }
  if (worker.index() == 0) point_activations(step, exec);
}

namespace {

/// Of what a row has beside its residual.
void move_row(Exec& exec, Buf buf, int64_t to, int64_t from) noexcept {
  const auto bytes = static_cast<size_t>(exec.stride(buf)) * sizeof(float);
  if (bytes > 0 && to != from) std::memcpy(exec.row(buf, to), exec.row(buf, from), bytes);
}

}  // namespace

void gather_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  // Output rows ascend and each moves to a lower place, so moving them in order never overwrites one that is still
  // needed: not of this chunk, nor of a later one.
  float* const first = exec.row(Buf::kResidual, exec.out0 - exec.row0);
  if (worker.index() == 0) {
    const ModelConfig& config = *exec.plan->config;
    const auto bytes = static_cast<size_t>(config.n_streams * config.dim) * sizeof(float);
    for (int64_t i = 0; i < exec.n_outputs; ++i) {
      const int64_t from = exec.output_rows[i] - exec.row0;
      float* to = first + i * exec.stride(Buf::kResidual);
      if (to != exec.row(Buf::kResidual, from)) std::memcpy(to, exec.row(Buf::kResidual, from), bytes);
      for (Buf buf : {Buf::kLayerInputs, Buf::kKept, Buf::kMix}) move_row(exec, buf, exec.out0 - exec.row0 + i, from);
      if (step.add_parallel) move_row(exec, Buf::kParallel, exec.out0 - exec.row0 + i, from);
      if (step.gathered && from != i) {
        std::memcpy(exec.row(step.in, i), exec.row(step.in, from), static_cast<size_t>(step.k) * sizeof(float));
      }
      if (step.routed) move_row(exec, Buf::kRouter, i, from);
      exec.bad[i] = exec.bad[from];
    }
  }
  worker.barrier();  // nobody may see the new number of rows before all have left the step before
  if (worker.index() == 0) {
    for (Buf buf :
         {Buf::kResidual, Buf::kMix, Buf::kParallel, Buf::kShared, Buf::kExpertIn, Buf::kKept, Buf::kLayerInputs}) {
      exec.buffers[static_cast<size_t>(buf)] += (exec.out0 - exec.row0) * exec.stride(buf);
    }
    exec.row0 = exec.out0;
    exec.n_rows = exec.n_outputs;
    exec.gathered = true;
  }
}

}  // namespace stoker::model
