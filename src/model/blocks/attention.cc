// Grouped-query attention over paged K and V.
#include <algorithm>
#include <cstring>

#include "base/math.h"
#include "model/blocks/attention_calls.h"
#include "model/blocks/tile_rows.h"

namespace stoker::model {
namespace {

using kernels::kMaxQueries;
using kernels::kTilePositions;

/// A head after the projection: its part of the bias, the norm of its own, the rotation.
struct HeadWork {
  const float* bias = nullptr;
  const float* gain = nullptr;
};

void finish_head(const Step& step, Exec& exec, HeadWork work, int64_t r, float* x) noexcept {
  const kernels::Table& t = *exec.table;
  const AttentionSpec& a = step.attention;
  if (work.bias) t.add(x, work.bias, a.k_dim, x);
  if (a.qkv_limit != 0) limit_values(a.qkv_limit, x, a.k_dim);
  const auto norm = [&] {
    if (work.gain) exec.plan->norm(x, work.gain, exec.plan->config->norm_eps, a.k_dim, x);
  };
  if (!a.late_norm) norm();
  rotate_head(a, exec, r, x);
  if (a.late_norm) norm();
  if (a.plain_late_norm) exec.plan->norm(x, nullptr, exec.plan->config->norm_eps, a.k_dim, x);
}

const float* bias_of(const Vector* own, const Vector* fused, int64_t own_at, int64_t fused_at) noexcept {
  return own ? own->data + own_at : fused ? fused->data + fused_at : nullptr;
}

/// One for all heads, or one for each.
const float* gain_of(const AttentionSpec& a, const Vector* gain, int64_t at) noexcept {
  return gain ? gain->data + (gain->n > a.k_dim ? at : 0) : nullptr;
}

void finish_query(const Step& step, Exec& exec, int64_t r, int64_t head) noexcept {
  const AttentionSpec& a = step.attention;
  const int64_t at = head * a.k_dim;
  float* q = exec.row(Buf::kQkv, r) + a.q_column + head * (a.gated ? a.q_stride : a.k_dim);
  finish_head(step, exec, {bias_of(a.bq, a.bqkv, at, at), gain_of(a, a.q_norm, at)}, r, q);
  if (a.temperature != 0) exec.table->scale(q, temperature_at(a, exec.positions[exec.token(r)]), a.k_dim, q);
}

/// K and V of some rows for one key-value head: finished, then stored.
void store_tile_rows(const Step& step, Exec& exec, const TileRows& rows, int64_t head) noexcept {
  const AttentionSpec& a = step.attention;
  const kernels::Table& t = *exec.table;
  const int64_t k_at = head * a.k_dim, v_at = head * a.v_dim;
  const float* k_bias = bias_of(a.bk, a.bqkv, k_at, a.n_heads * a.k_dim + k_at);
  const float* v_bias = bias_of(a.bv, a.bqkv, v_at, (a.n_heads + a.n_kv_heads) * a.k_dim + v_at);
  for (int64_t r = rows.row0; r < rows.row0 + rows.n; ++r) {
    float* row = exec.row(Buf::kQkv, r);
    float* v = row + a.v_column + v_at;
    if (a.values_of_keys) std::memcpy(v, row + a.k_column + k_at, static_cast<size_t>(a.v_dim) * sizeof(float));
    finish_head(step, exec, {k_bias, gain_of(a, a.k_norm, k_at)}, r, row + a.k_column + k_at);
    if (v_bias) t.add(v, v_bias, a.v_dim, v);
    if (a.qkv_limit != 0) limit_values(a.qkv_limit, v, a.v_dim);
    if (a.value_norm) t.rms_norm(v, nullptr, exec.plan->config->norm_eps, a.v_dim, v);
    if (a.value_scale != 0) t.scale(v, a.value_scale, a.v_dim, v);
  }
  const int64_t stride = exec.stride(Buf::kQkv);
  const auto store = [&](int64_t row0, int n, int position) {
    const float* row = exec.row(Buf::kQkv, row0);
    const bool k_ok = t.store_k({.type = exec.plan->kv.type,
                                 .dim = static_cast<int>(a.k_dim),
                                 .tile = rows.page + a.kv.k_offset(head),
                                 .position = position,
                                 .n = n,
                                 .x = row + a.k_column + k_at,
                                 .stride = stride});
    const bool v_ok = t.store_v({.type = exec.plan->kv.type,
                                 .dim = static_cast<int>(a.v_dim),
                                 .tile = rows.page + a.kv.v_offset(head),
                                 .position = position,
                                 .n = n,
                                 .x = row + a.v_column + v_at,
                                 .stride = stride});
    return k_ok && v_ok;
  };
  store_rows(step, exec, rows, store);
}

/// How the queries of one key-value head are cut into calls of the attention kernel.
Cut cut_queries(const AttentionSpec& a) noexcept {
  const int64_t group = a.n_heads / a.n_kv_heads;
  Cut cut{.heads = std::min<int64_t>(group, kMaxQueries), .tokens = 1, .parts = 1};
  if (a.most_seen == 0) cut.tokens = std::max<int64_t>(1, kMaxQueries / cut.heads);  // otherwise each sees others
  cut.parts = (group + cut.heads - 1) / cut.heads;
  return cut;
}

/// Too few calls for all workers: they share a head's queries and read its K and V once each.
Cut share_heads(const AttentionSpec& a, Cut cut, int64_t n_calls, int n_workers) noexcept {
  const int64_t group = a.n_heads / a.n_kv_heads, n_blocks = n_calls / cut.parts;
  while (cut.heads > 1 && n_blocks * ((group + cut.heads - 1) / cut.heads) < n_workers) cut.heads = (cut.heads + 1) / 2;
  cut.parts = (group + cut.heads - 1) / cut.heads;
  return cut;
}

}  // namespace

float temperature_at(const AttentionSpec& a, int64_t position) noexcept {
  const auto times = static_cast<double>((position + a.temperature_offset) / a.temperature_length + 1);
  return static_cast<float>(1 + static_cast<double>(a.temperature) * math::log(times));
}

int64_t AttentionCalls::count() const noexcept {
  int64_t n_blocks = 0;
  for (const RowSpan& span : spans) n_blocks += (span.n + cut.tokens - 1) / cut.tokens;
  return n_blocks * spec.n_kv_heads * cut.parts;
}

AttentionCall AttentionCalls::at(int64_t index) const noexcept {
  const int64_t group = spec.n_heads / spec.n_kv_heads;
  int64_t block = index / (spec.n_kv_heads * cut.parts);
  size_t s = 0;
  for (int64_t in_span = (spans[s].n + cut.tokens - 1) / cut.tokens; block >= in_span;
       in_span = (spans[s].n + cut.tokens - 1) / cut.tokens) {
    block -= in_span;
    ++s;
  }
  const int64_t kv_head = index / cut.parts % spec.n_kv_heads;
  const int64_t first_head = kv_head * group + index % cut.parts * cut.heads;
  return {.span = &spans[s],
          .kv_head = kv_head,
          .tokens = {block * cut.tokens, std::min(spans[s].n, (block + 1) * cut.tokens)},
          .heads = {first_head, std::min((kv_head + 1) * group, first_head + cut.heads)}};
}

Range AttentionCall::tiles(const AttentionSpec& spec) const noexcept {
  const int64_t begin = seen_by(spec, span->position0 + tokens.begin, span->length).begin;
  int64_t end = seen_by(spec, span->position0 + tokens.end - 1, span->length).end;
  if (spec.most_seen > 0) end = std::min(end, spec.most_seen);
  return {begin / kTilePositions, (end + kTilePositions - 1) / kTilePositions};
}

kernels::AttentionArgs QueryList::fill(const Step& step, const Exec& exec, const Worker& worker,
                                       const AttentionCall& call) noexcept {
  const AttentionSpec& a = step.attention;
  int n = 0;
  const int32_t* selected = nullptr;
  for (int64_t i = call.tokens.begin; i < call.tokens.end; ++i) {
    const int64_t position = call.span->position0 + i;
    Range seen = seen_by(a, position, call.span->length);
    if (a.most_seen > 0) {
      seen.end = std::min(seen.end, a.most_seen);
      selected = exec.selected(call.span->q_row0 + i);
    }
    for (int64_t head = call.heads.begin; head < call.heads.end; ++head) {
      const int64_t q_row = (step.after_gather ? call.span->row0 : call.span->q_row0) + i;
      queries[n++] = {.q = exec.row(a.queries, q_row) + a.q_column + head * a.q_stride,
                      .out = exec.row(Buf::kAttended, call.span->row0 + i) + head * a.v_dim,
                      .begin = seen.begin,
                      .end = seen.end,
                      .sink = a.sinks ? a.sinks->data + head : nullptr,
                      .slope = a.slopes ? a.slopes[head] : 0,
                      .position = position};
    }
  }
  return {.type = exec.plan->kv.type,
          .k_dim = static_cast<int>(a.k_dim),
          .v_dim = static_cast<int>(a.v_dim),
          .scale = a.scale,
          .softcap = a.softcap,
          .values_in_keys = a.values_in_keys,
          .selected = selected,
          .queries = queries,
          .n_queries = n,
          .pages = call.span->tiles,
          .k_offset = a.kv.k_offset(call.kv_head),
          .v_offset = a.kv.v_offset(call.kv_head),
          .scratch = exec.worker_scratch(worker)};
}

void qk_norm_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const AttentionSpec& a = step.attention;
  const float eps = exec.plan->config->norm_eps;
  const Range rows = worker.share(exec.n_tokens);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* q = exec.row(Buf::kQkv, r) + a.q_column;
    float* k = exec.row(Buf::kQkv, r) + a.k_column;
    exec.plan->norm(q, a.q_norm->data, eps, a.n_heads * a.k_dim, q);
    exec.plan->norm(k, a.k_norm->data, eps, a.n_kv_heads * a.k_dim, k);
  }
}

void qkv_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const AttentionSpec& a = step.attention;
  const auto n_tile_rows = static_cast<int64_t>(exec.tile_rows.size());
  const int64_t n_store = a.stores ? n_tile_rows * a.n_kv_heads : 0;
  // K and V first: a piece of them is up to 64 rows, a piece of q is one row.
  worker.each(n_store + exec.n_rows, 1, [&](Range items) {
    for (int64_t item = items.begin; item < items.end; ++item) {
      if (item < n_store) {
        store_tile_rows(step, exec, exec.tile_rows[static_cast<size_t>(item / a.n_kv_heads)], item % a.n_kv_heads);
      } else {
        for (int64_t head = 0; head < a.n_heads; ++head) finish_query(step, exec, item - n_store, head);
      }
    }
  });
}

namespace {

/// A row of attended heads times what their gates give, which takes the gates' place.
void gate_row(const kernels::Table& t, const AttentionSpec& a, float* gates, float* x) noexcept {
  const int64_t n = a.head_gates ? 1 : a.v_dim;
  for (int64_t head = 0; head < a.n_heads; ++head) {
    float *of_head = x + head * a.v_dim, *gate = gates + head * a.gate_stride;
    if (a.softplus_gates) {
      t.softplus(gate, n, gate);
    } else if (a.head_gates) {
      t.sigmoid(gate, n, gate);
    } else {
      t.sigmoid_mul(gate, of_head, n, of_head);
      continue;
    }
    if (a.head_gates) {
      t.scale(of_head, *gate, a.v_dim, of_head);
    } else {
      t.mul(of_head, gate, n, of_head);
    }
  }
}

}  // namespace

void gate_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const AttentionSpec& a = step.attention;
  const Range rows = worker.share(exec.n_rows);
  for (const RowSpan& span : step.gathered ? exec.output_spans : exec.spans) {
    const int64_t end = std::min(rows.end, span.row0 + span.n);
    for (int64_t r = std::max(rows.begin, span.row0); r < end; ++r) {
      gate_row(*exec.table, a, exec.row(step.up, span.q_row0 + r - span.row0) + a.gate_column, exec.row(step.in, r));
    }
  }
  quantize_rows(step, exec, rows.begin, rows.end);
  if (worker.index() == 0) point_activations(step, exec);
}

void attention_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const AttentionSpec& a = step.attention;
  const auto spans = step.outputs_only ? exec.output_spans : exec.spans;
  AttentionCalls calls{a, spans, cut_queries(a)};
  int64_t n_calls = calls.count();
  if (share_tiles(step, exec, worker, calls, n_calls)) return;
  calls.cut = share_heads(a, calls.cut, n_calls, worker.count());
  n_calls = calls.count();
  worker.each(n_calls, 1, [&](Range one) {
    QueryList list;
    // Backwards: the last blocks of a long prompt see the most positions, and a long piece should not be the last one.
    exec.table->attention(list.fill(step, exec, worker, calls.at(n_calls - 1 - one.begin)));
  });
}

}  // namespace stoker::model
