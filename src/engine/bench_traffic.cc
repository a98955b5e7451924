#include "engine/bench_traffic.h"

#include <algorithm>
#include <span>

#include "base/math.h"
#include "model/exec.h"

namespace stoker::engine {
namespace {

/// The rows of a call that a step works on: all of them, or, from the last layer's attention on, those that want
/// outputs.
struct Rows {
  int64_t all = 0, outputs = 0;
};

void add_product(const model::Matrix& w, double rows, CallTraffic::Part& sums) {
  const CallTraffic::Product one{.type = w.type,
                                 .rows = rows,
                                 .bytes = static_cast<double>(w.bytes()),
                                 .operations = 2 * static_cast<double>(w.n_out) * static_cast<double>(w.n_in) * rows};
  for (CallTraffic::Product& p : sums.products) {
    if (p.type != one.type || p.rows != rows || p.of_experts) continue;
    p.bytes += one.bytes;
    p.operations += one.operations;
    return;
  }
  sums.products.push_back(one);
}

/// Experts as if chosen evenly: of n, each row takes k others than those it has already.
void add_experts(const model::Step& step, int64_t rows, CallTraffic::Part& sums) {
  const auto n = static_cast<double>(step.moe.n_experts), k = static_cast<double>(step.moe.n_used);
  const double active = n * (1 - math::pow(1 - k / n, static_cast<double>(rows)));
  sums.expert_rows = rows;
  sums.active_experts = active;
  for (const model::Target& target : model::targets_of(step)) {
    const model::Matrix& w = *target.w;
    const double each = active > 0 ? static_cast<double>(rows) * k / active : 0;
    sums.products.push_back(
        {.type = w.type,
         .rows = each,
         .bytes = active * static_cast<double>(w.bytes()),
         .operations = 2 * static_cast<double>(w.n_out) * static_cast<double>(w.n_in) * active * each,
         .of_experts = true});
  }
}

/// Pairs of a query and a position that it sees, of queries [begin, end).
double pairs_seen(int64_t begin, int64_t end, int64_t window) {
  const auto triangle = [](int64_t n) { return static_cast<double>(n) * static_cast<double>(n + 1) / 2; };
  if (window <= 0) return triangle(end) - triangle(begin);
  const auto up_to = [&](int64_t n) {
    const int64_t growing = std::min(n, window);
    return triangle(growing) + static_cast<double>(n - growing) * static_cast<double>(window);
  };
  return up_to(end) - up_to(begin);
}

/// The same of rows that each stand for `ratio` positions, at most so many a query; 0: any number.
double row_pairs_seen(int64_t begin, int64_t end, int64_t ratio, int64_t most) {
  const auto sum = [&](int64_t n) {  // of m / ratio for m = 1 ... n
    const int64_t whole = n / ratio;
    return static_cast<double>(ratio) * static_cast<double>(whole) * static_cast<double>(whole - 1) / 2 +
           static_cast<double>(whole) * static_cast<double>(n - whole * ratio + 1);
  };
  const auto up_to = [&](int64_t n) {
    const int64_t growing = most > 0 ? std::min(n, (most + 1) * ratio - 1) : n;
    return sum(growing) + static_cast<double>(n - growing) * static_cast<double>(most);
  };
  return up_to(end) - up_to(begin);
}

/// A window, whose positions each call copies, and rows.
void add_window(const model::Step& step, const BenchCall& call, int64_t depth, CallTraffic::Part& sums) {
  const model::AttentionSpec& a = step.attention;
  const auto row_bytes = static_cast<double>(a.kv.window_tile_bytes) / static_cast<double>(kernels::kTilePositions);
  sums.kv_bytes +=
      2 * static_cast<double>(a.kv.n_window_tiles * a.kv.window_tile_bytes) * static_cast<double>(call.size());
  for (const BenchPiece& piece : call) {
    if (step.outputs_only && !piece.wants_logits) continue;
    const int64_t begin = depth + (step.outputs_only ? piece.end - 1 : piece.begin), end = depth + piece.end;
    double pairs = pairs_seen(begin, end, a.window);
    if (a.kv.ratio > 0) pairs += row_pairs_seen(begin, end, a.kv.ratio, a.most_seen);
    const auto all =
        static_cast<double>(std::min(end, a.window + end - begin) + (a.kv.ratio > 0 ? end / a.kv.ratio : 0));
    sums.kv_bytes += row_bytes * std::min(all, pairs);
    sums.attention_operations += 2 * static_cast<double>(a.n_heads * (a.k_dim + a.v_dim)) * pairs;
  }
}

void add_attention(const model::Step& step, const BenchCall& call, int64_t depth, CallTraffic::Part& sums) {
  const model::AttentionSpec& a = step.attention;
  const auto position_bytes = static_cast<double>(a.kv.bytes()) / static_cast<double>(kernels::kTilePositions);
  // What is chosen counts like a window, which lies anywhere.
  const int64_t window = a.most_seen > 0 ? a.most_seen : a.window;
  for (const BenchPiece& piece : call) {
    if (step.outputs_only && !piece.wants_logits) continue;
    const int64_t first_query = depth + (step.outputs_only ? piece.end - 1 : piece.begin);
    const double pairs = pairs_seen(first_query, depth + piece.end, window);
    const int64_t begin = a.window > 0 ? std::max<int64_t>(0, first_query - a.window + 1) : 0;
    const auto positions = static_cast<double>(depth + piece.end - begin);
    sums.kv_bytes += position_bytes * (a.most_seen > 0 ? std::min(positions, pairs) : positions);
    sums.attention_operations += 2 * static_cast<double>(a.n_heads * (a.k_dim + a.v_dim)) * pairs;
  }
}

/// An indexer scores all positions for the queries that could see more than they may.
void add_selection(const model::Step& step, const BenchCall& call, int64_t depth, CallTraffic::Part& sums) {
  const model::IndexSpec& index = step.indexer;
  const auto position_bytes = static_cast<double>(index.keys.bytes()) / static_cast<double>(kernels::kTilePositions);
  const int64_t ratio = std::max<int64_t>(1, index.keys.ratio), free = (index.most_seen + 1) * ratio - 1;
  for (const BenchPiece& piece : call) {
    if (step.outputs_only && !piece.wants_logits) continue;
    const int64_t first_query = depth + (step.outputs_only ? piece.end - 1 : piece.begin);
    if (depth + piece.end <= free) continue;
    const double pairs = row_pairs_seen(std::max(first_query, free), depth + piece.end, ratio, 0);
    sums.kv_bytes += position_bytes * static_cast<double>(depth + piece.end);
    sums.attention_operations += 2 * static_cast<double>(index.n_heads * index.dim) * pairs;
  }
}

/// The state of each sequence is read once and written once.
void add_recurrence(const model::Step& step, const BenchCall& call, CallTraffic::Part& sums) {
  const model::RecurrentSpec& r = step.recurrent;
  const auto values = static_cast<double>(r.n_heads * r.k_dim * r.v_dim + (r.taps - 1) * r.conv_channels());
  sums.kv_bytes += 2 * sizeof(float) * values * static_cast<double>(call.size());
  for (const BenchPiece& piece : call) {
    sums.attention_operations += 7 * static_cast<double>(r.n_heads * r.k_dim * r.v_dim * (piece.end - piece.begin));
  }
}

/// What a step reads and computes beside products.
void add_state(const model::Step& step, const BenchCall& call, int64_t depth, CallTraffic::Part& sums) {
  if (step.run == model::attention_step) add_attention(step, call, depth, sums);
  if (step.run == model::window_attention_step) add_window(step, call, depth, sums);
  if (step.run == model::select_step) add_selection(step, call, depth, sums);
  if (step.run == model::recur_step) add_recurrence(step, call, sums);
}

}  // namespace

CallTraffic call_traffic(const model::Model& model, const BenchCall& call, int64_t depth) {
  CallTraffic traffic{.parts = {{}}};
  const model::Plan& plan = model.plan();
  Rows rows;
  for (const BenchPiece& piece : call) {
    rows.all += piece.end - piece.begin;
    rows.outputs += piece.wants_logits;
  }
  const model::Matrix& embedding = model.weights().embedding;
  const model::Matrix& inputs = model.weights().layer_inputs;  // group_bytes 0 where there are none
  traffic.parts[0].embedding_bytes = static_cast<double>((embedding.group_bytes + inputs.group_bytes) * rows.all) / 16;
  const size_t n_steps = rows.outputs > 0 ? plan.steps.size() : static_cast<size_t>(plan.n_steps_to_store);
  bool outputs_only = false;
  for (const model::Step& step : std::span(plan.steps).first(n_steps)) {
    CallTraffic::Part& sums = traffic.parts.back();
    ++sums.n_steps;
    outputs_only |=
        (step.run == model::window_attention_step || step.run == model::attention_step) && step.outputs_only;
    const int64_t n_rows = outputs_only ? rows.outputs : rows.all;
    add_state(step, call, depth, sums);
    if (step.run == model::experts_step) {
      add_experts(step, n_rows, sums);
      traffic.parts.emplace_back();
      continue;
    }
    for (const model::Target& target : model::targets_of(step)) {
      add_product(*target.w, static_cast<double>(n_rows), sums);
    }
  }
  if (rows.outputs > 0 && plan.head.w) {
    add_product(*plan.head.w, static_cast<double>(rows.outputs), traffic.parts.back());
  }
  return traffic;
}

BenchTraffic bench_traffic(const model::Model& model, const BenchCase& test, int64_t batch) {
  double bytes = 0, int8_ops = 0;
  for (const BenchCall& call : bench_calls(test, batch)) {
    for (const CallTraffic::Part& part : call_traffic(model, call, test.depth).parts) {
      bytes += part.kv_bytes + part.embedding_bytes;
      for (const CallTraffic::Product& p : part.products) {
        bytes += p.bytes;
        if (kernels::activation_form(p.type) != kernels::ActForm::kF32) int8_ops += p.operations;
      }
    }
  }
  const auto tokens = static_cast<double>(test.tokens());
  return {.bytes_per_token = bytes / tokens, .int8_ops_per_token = int8_ops / tokens};
}

}  // namespace stoker::engine
