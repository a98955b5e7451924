#include "engine/bench_traffic.h"

#include <algorithm>

#include "base/math.h"
#include "model/exec.h"

namespace stoker::engine {
namespace {

struct Sums {
  double bytes = 0, int8_ops = 0;
};

/// The rows of a call that a step works on: all of them, or, from the last layer's attention on, those that want
/// outputs.
struct Rows {
  int64_t all = 0, outputs = 0;
};

void add_product(const model::Matrix& w, int64_t rows, Sums& sums) {
  sums.bytes += static_cast<double>(w.bytes());
  if (kernels::activation_form(w.type) == kernels::ActForm::kF32) return;
  sums.int8_ops += 2 * static_cast<double>(w.n_out) * static_cast<double>(w.n_in * rows);
}

/// Experts as if chosen evenly: of n, each row takes k others than those it has already.
void add_experts(const model::Step& step, int64_t rows, Sums& sums) {
  const auto n = static_cast<double>(step.moe.n_experts), k = static_cast<double>(step.moe.n_used);
  const double active = n * (1 - math::pow(1 - k / n, static_cast<double>(rows)));
  for (const model::Target& target : model::targets_of(step)) {
    Sums one;
    add_product(*target.w, rows * step.moe.n_used, one);
    sums.bytes += active * one.bytes;
    sums.int8_ops += one.int8_ops;
  }
}

void add_attention(const model::Step& step, const BenchCall& call, int64_t depth, Sums& sums) {
  const model::AttentionSpec& a = step.attention;
  const auto position_bytes = static_cast<double>(a.n_kv_heads * (a.kv.k_tile_bytes + a.kv.v_tile_bytes)) /
                              static_cast<double>(kernels::kTilePositions);
  for (const BenchPiece& piece : call) {
    if (step.outputs_only && !piece.wants_logits) continue;
    const int64_t first_query = depth + (step.outputs_only ? piece.end - 1 : piece.begin);
    const int64_t begin = a.window > 0 ? std::max<int64_t>(0, first_query - a.window + 1) : 0;
    sums.bytes += position_bytes * static_cast<double>(depth + piece.end - begin);
  }
}

void add_call(const model::Model& model, const BenchCall& call, int64_t depth, Sums& sums) {
  const model::Plan& plan = model.plan();
  Rows rows;
  for (const BenchPiece& piece : call) {
    rows.all += piece.end - piece.begin;
    rows.outputs += piece.wants_logits;
  }
  const size_t n_steps = rows.outputs > 0 ? plan.steps.size() : plan.n_steps_to_store;
  bool outputs_only = false;
  for (size_t i = 0; i < n_steps; ++i) {
    const model::Step& step = plan.steps[i];
    outputs_only |= step.outputs_only;
    const int64_t n_rows = outputs_only ? rows.outputs : rows.all;
    if (step.run == model::experts_step) {
      add_experts(step, n_rows, sums);
    } else {
      for (const model::Target& target : model::targets_of(step)) add_product(*target.w, n_rows, sums);
    }
    if (step.run == model::attention_step) add_attention(step, call, depth, sums);
  }
  if (rows.outputs > 0) add_product(*plan.head.w, rows.outputs, sums);
  const model::Matrix& embedding = model.weights().embedding;
  sums.bytes += static_cast<double>(embedding.group_bytes * rows.all) / 16;
}

}  // namespace

BenchTraffic bench_traffic(const model::Model& model, const BenchCase& test, int64_t batch) {
  Sums sums;
  for (const BenchCall& call : bench_calls(test, batch)) add_call(model, call, test.depth, sums);
  const auto tokens = static_cast<double>(test.tokens());
  return {.bytes_per_token = sums.bytes / tokens, .int8_ops_per_token = sums.int8_ops / tokens};
}

}  // namespace stoker::engine
