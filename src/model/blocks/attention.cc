// Grouped-query attention over paged K and V.
#include <algorithm>

#include "model/exec.h"

namespace stoker::model {
namespace {

using kernels::kMaxQueries;

/// A head after the projection: its part of the bias, the norm of its own, the rotation.
struct HeadWork {
  const float* bias = nullptr;
  const float* gain = nullptr;
};

void finish_head(const Step& step, Exec& exec, HeadWork work, int64_t r, float* x) noexcept {
  const kernels::Table& t = *exec.table;
  const AttentionSpec& a = step.attention;
  if (work.bias) t.add(x, work.bias, a.k_dim, x);
  if (work.gain) t.rms_norm(x, work.gain, exec.plan->config->norm_eps, a.k_dim, x);
  const auto rope = static_cast<size_t>(a.rope);
  a.rotate(x, exec.rope_cos[rope] + r * exec.rope_stride, exec.rope_sin[rope] + r * exec.rope_stride, a.rope_pairs);
}

const float* bias_of(const Vector* own, const Vector* fused, int64_t own_at, int64_t fused_at) noexcept {
  return own ? own->data + own_at : fused ? fused->data + fused_at : nullptr;
}

void finish_query(const Step& step, Exec& exec, int64_t r, int64_t head) noexcept {
  const AttentionSpec& a = step.attention;
  const int64_t at = head * a.k_dim;
  finish_head(step, exec, {bias_of(a.bq, a.bqkv, at, at), a.q_norm ? a.q_norm->data : nullptr}, r,
              exec.row(Buf::kQkv, r) + a.q_column + at);
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
    finish_head(step, exec, {k_bias, a.k_norm ? a.k_norm->data : nullptr}, r, row + a.k_column + k_at);
    if (v_bias) t.add(row + a.v_column + v_at, v_bias, a.v_dim, row + a.v_column + v_at);
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
  if (store(rows.row0, rows.n, rows.in_tile)) return;
  for (int i = 0; i < rows.n; ++i) {  // rare: find out whose values they are
    if (!store(rows.row0 + i, 1, rows.in_tile + i)) exec.mark_bad(rows.row0 + i, step);
  }
}

/// How the queries of one key-value head are cut into calls of the attention kernel.
struct Cut {
  int64_t heads;   ///< Query heads per call.
  int64_t tokens;  ///< Neighbouring tokens per call.
  int64_t parts;   ///< Calls per token block: group / heads, rounded up.
};

Cut cut_queries(const AttentionSpec& a, std::span<const RowSpan> spans, int n_workers) noexcept {
  const int64_t group = a.n_heads / a.n_kv_heads;
  Cut cut{.heads = std::min<int64_t>(group, kMaxQueries), .tokens = 1, .parts = 1};
  cut.tokens = std::max<int64_t>(1, kMaxQueries / cut.heads);
  int64_t items = 0;
  for (const RowSpan& span : spans) items += a.n_kv_heads * ((span.n + cut.tokens - 1) / cut.tokens);
  // Too few items for all workers: they share a head's queries and read its K and V once each.
  while (cut.heads > 1 && items * ((group + cut.heads - 1) / cut.heads) < n_workers) cut.heads = (cut.heads + 1) / 2;
  cut.parts = (group + cut.heads - 1) / cut.heads;
  return cut;
}

void attend(const Step& step, Exec& exec, Worker& worker, const RowSpan& span, int64_t kv_head, Range tokens,
            Range heads) noexcept {
  const AttentionSpec& a = step.attention;
  kernels::AttentionQuery queries[kMaxQueries];
  int n = 0;
  for (int64_t i = tokens.begin; i < tokens.end; ++i) {
    const int64_t position = span.position0 + i;
    for (int64_t head = heads.begin; head < heads.end; ++head) {
      queries[n++] = {.q = exec.row(Buf::kQkv, span.q_row0 + i) + a.q_column + head * a.k_dim,
                      .out = exec.row(Buf::kAttended, span.row0 + i) + head * a.v_dim,
                      .begin = a.window ? std::max<int64_t>(0, position + 1 - a.window) : 0,
                      .end = position + 1,
                      .sink = nullptr};
    }
  }
  exec.table->attention({.type = exec.plan->kv.type,
                         .k_dim = static_cast<int>(a.k_dim),
                         .v_dim = static_cast<int>(a.v_dim),
                         .scale = a.scale,
                         .softcap = a.softcap,
                         .queries = queries,
                         .n_queries = n,
                         .pages = span.tiles,
                         .k_offset = a.kv.k_offset(kv_head),
                         .v_offset = a.kv.v_offset(kv_head),
                         .scratch = exec.worker_scratch(worker)});
}

}  // namespace

void qkv_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const AttentionSpec& a = step.attention;
  const auto n_tile_rows = static_cast<int64_t>(exec.tile_rows.size());
  const int64_t n_store = n_tile_rows * a.n_kv_heads;
  // K and V first: a piece of them is up to 64 rows, a piece of q is one row.
  worker.each(n_store + exec.n_tokens, 1, [&](Range items) {
    for (int64_t item = items.begin; item < items.end; ++item) {
      if (item < n_store) {
        store_tile_rows(step, exec, exec.tile_rows[static_cast<size_t>(item / a.n_kv_heads)], item % a.n_kv_heads);
      } else {
        for (int64_t head = 0; head < a.n_heads; ++head) finish_query(step, exec, item - n_store, head);
      }
    }
  });
}

void attention_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const AttentionSpec& a = step.attention;
  const auto spans = step.outputs_only ? exec.output_spans : exec.spans;
  const int64_t group = a.n_heads / a.n_kv_heads;
  const Cut cut = cut_queries(a, spans, worker.count());
  int64_t n_blocks = 0;
  for (const RowSpan& span : spans) n_blocks += (span.n + cut.tokens - 1) / cut.tokens;
  const int64_t n_items = n_blocks * a.n_kv_heads * cut.parts;
  worker.each(n_items, 1, [&](Range items) {
    // Backwards: the last blocks of a long prompt see the most positions, and a long piece should not be the last one.
    const int64_t item = n_items - 1 - items.begin;
    int64_t block = item / (a.n_kv_heads * cut.parts);
    size_t s = 0;
    for (int64_t in_span = (spans[s].n + cut.tokens - 1) / cut.tokens; block >= in_span;
         in_span = (spans[s].n + cut.tokens - 1) / cut.tokens) {
      block -= in_span;
      ++s;
    }
    const int64_t kv_head = item / cut.parts % a.n_kv_heads;
    const int64_t first_head = kv_head * group + item % cut.parts * cut.heads;
    attend(step, exec, worker, spans[s], kv_head, {block * cut.tokens, std::min(spans[s].n, (block + 1) * cut.tokens)},
           {first_head, std::min((kv_head + 1) * group, first_head + cut.heads)});
  });
}

}  // namespace stoker::model
