// Latent attention but for attention itself: what goes into the cache, and the products that take queries into the
// space of latents and values out of it, a matrix for each head.
#include <algorithm>
#include <cstring>

#include "model/blocks/tile_rows.h"

namespace stoker::model {
namespace {

constexpr int64_t kRowsByHeads = 64;  // up to so many rows are shared among workers by heads

/// The indexer's keys of some rows of a tile.
void store_index_keys(const Step& step, Exec& exec, const TileRows& rows) noexcept {
  const IndexSpec& index = step.indexer;
  for (int64_t r = rows.row0; r < rows.row0 + rows.n; ++r) {
    float* key = exec.row(Buf::kDown, r) + index.key_column;
    exec.table->layer_norm(key, index.k_norm->data, exec.plan->config->index_norm_eps, index.dim, key);
    add_vector(*exec.table, index.k_norm_bias, key);
    rotate_head(index.rotation, exec, r, key);
  }
  const auto store = [&](int64_t row0, int n, int position) {
    return exec.table->store_k({.type = exec.plan->kv.type,
                                .dim = static_cast<int>(index.dim),
                                .tile = rows.page + index.keys.k_offset(0),
                                .position = position,
                                .n = n,
                                .x = exec.row(Buf::kDown, row0) + index.key_column,
                                .stride = exec.stride(Buf::kDown)});
  };
  store_rows(step, exec, rows, store);
}

/// Some rows of a tile: the latent normed, the rest rotated, then stored as one row.
void store_tile_rows(const Step& step, Exec& exec, const TileRows& rows) noexcept {
  const AttentionSpec& a = step.attention;
  const LatentSpec& spec = step.latent;
  for (int64_t r = rows.row0; r < rows.row0 + rows.n; ++r) {
    float* row = exec.row(Buf::kDown, r) + spec.kv_column;
    exec.table->rms_norm(row, spec.kv_norm->data, exec.plan->config->norm_eps, a.v_dim, row);
    rotate_head(a, exec, r, row + a.v_dim);
  }
  const auto store = [&](int64_t row0, int n, int position) {
    const auto to = a.kv.kind == StateKind::kLatentRows ? exec.table->store_v : exec.table->store_k;
    return to({.type = exec.plan->kv.type,
               .dim = static_cast<int>(a.k_dim),
               .tile = rows.page + a.kv.k_offset(0),
               .position = position,
               .n = n,
               .x = exec.row(Buf::kDown, row0) + spec.kv_column,
               .stride = exec.stride(Buf::kDown)});
  };
  store_rows(step, exec, rows, store);
  if (step.indexer.n_heads > 0) store_index_keys(step, exec, rows);
}

/// The tables from row `rows` of super-blocks on.
QuantizedTables from_row(QuantizedTables tables, int64_t rows) noexcept {
  const auto skip = [&](auto*& at, int64_t each) {
    if (at) at += rows * each;
  };
  skip(tables.q256, 256), skip(tables.d256, 1), skip(tables.sums256, 16);
  skip(tables.q32, 256), skip(tables.d32, 8), skip(tables.sums32, 8);
  return tables;
}

/// The rows of one head. In the tables those of all heads stand one head after the other; `to` is where its own begin.
Quantize head_rows(const Step& step, const Exec& exec, int64_t head, const QuantizedTables& to) noexcept {
  const HeadsSpec& heads = step.heads;
  return {.x = exec.row(step.in, 0) + head * heads.in_stride,
          .stride = exec.stride(step.in),
          .n = heads.n_heads * exec.n_rows,
          .k = heads.k,
          .forms = step.forms,
          .to = to,
          .bad = exec.bad};
}

void quantize_heads(const Step& step, Exec& exec, Range heads, Range rows) noexcept {
  uint8_t few[kRowsByHeads] = {};  // others are at work on the same rows
  const bool by_heads = heads.size() < step.heads.n_heads;
  for (int64_t h = heads.begin; h < heads.end; ++h) {
    const QuantizedTables to = from_row(exec.quantized, h * exec.n_rows);
    Quantize job = head_rows(step, exec, h, to);
    if (by_heads) job.bad = few;
    quantize(*exec.table, job, rows.begin, rows.end);
  }
  const uint8_t* bad = by_heads ? few : exec.bad;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    if (bad[r] != 0) exec.mark_bad(exec.original_row(r), step);
  }
}

/// What a worker does of all heads of all rows.
struct Share {
  Range heads, rows;
};
Share share_of(const Step& step, const Exec& exec, const Worker& worker) noexcept {
  const int64_t n_heads = step.heads.n_heads, n = exec.n_rows;
  if (n <= kRowsByHeads) return {worker.share(n_heads), {0, n}};
  return {{0, n_heads}, worker.share(n)};
}

void finish_latent_query(const Step& step, Exec& exec, int64_t head, int64_t r) noexcept {
  const AttentionSpec& a = step.attention;
  const int64_t plain = step.latent.plain, shared = step.latent.shared;
  float* q = exec.row(step.in, r) + head * step.heads.in_stride;
  if (a.temperature != 0) exec.table->scale(q, temperature_at(a, exec.positions[r]), plain + shared, q);
  rotate_head(a, exec, r, q + plain);
  float* to = exec.row(a.queries, r) + head * a.q_stride + a.v_dim;
  std::memcpy(to, q + plain, static_cast<size_t>(shared) * sizeof(float));
}

}  // namespace

void latent_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const auto n_store = static_cast<int64_t>(exec.tile_rows.size());
  const LatentSpec& spec = step.latent;
  worker.each(n_store + (spec.q_norm ? exec.n_tokens : 0), 1, [&](Range items) {
    for (int64_t item = items.begin; item < items.end; ++item) {
      if (item < n_store) {
        store_tile_rows(step, exec, exec.tile_rows[static_cast<size_t>(item)]);
        continue;
      }
      float* q = exec.row(Buf::kDown, item - n_store);
      exec.table->rms_norm(q, spec.q_norm->data, exec.plan->config->norm_eps, spec.q_latent, q);
      quantize_rows(step, exec, item - n_store, item - n_store + 1);
    }
  });
  if (worker.index() == 0 && spec.q_norm) point_activations(step, exec);
}

void absorb_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Share mine = share_of(step, exec, worker);
  for (int64_t h = mine.heads.begin; h < mine.heads.end; ++h) {
    for (int64_t r = mine.rows.begin; r < mine.rows.end; ++r) finish_latent_query(step, exec, h, r);
  }
  quantize_heads(step, exec, mine.heads, mine.rows);
  if (worker.index() == 0) exec.activations = activations_of(head_rows(step, exec, 0, exec.quantized));
}

void quantize_heads_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const Share mine = share_of(step, exec, worker);
  quantize_heads(step, exec, mine.heads, mine.rows);
  if (worker.index() == 0) exec.activations = activations_of(head_rows(step, exec, 0, exec.quantized));
}

void heads_product_step(const Step& step, Exec& exec, Worker& worker) noexcept {
  const HeadsSpec& heads = step.heads;
  const Target& target = step.targets[0];
  const int64_t n_rows = exec.n_rows;
  each_piece_of(worker, {heads.n_heads * heads.n_groups, target.w->group_bytes, n_rows}, [&](Range groups, Range) {
    const std::byte* data = data_of(*target.w, step, exec);
    if (!data) return;
    for (int64_t at = groups.begin; at < groups.end;) {
      const int64_t head = at / heads.n_groups, first = at % heads.n_groups;
      const Range part{first, std::min(heads.n_groups, first + groups.end - at)};
      kernels::Activations x = exec.activations;
      const QuantizedTables tables = from_row(exec.quantized, head * n_rows);
      x.f32 += head * heads.in_stride;
      x.q256 = tables.q256, x.d256 = tables.d256, x.sums256 = tables.sums256;
      x.q32 = tables.q32, x.d32 = tables.d32, x.sums32 = tables.sums32;
      float* y = exec.row(target.out, 0) + head * heads.out_stride;
      const int64_t group0 = heads.first_group + head * heads.group_step;
      multiply({target,
                part,
                {first, heads.n_groups},
                x,
                0,
                n_rows,
                y,
                exec.stride(target.out),
                data + group0 * target.w->group_bytes},
               exec.worker_scratch(worker));
      at += part.size();
    }
  });
}

}  // namespace stoker::model
