// The steps of attention over a window and compressed rows, and of residual streams.
#include <algorithm>

#include "base/checked.h"
#include "model/exec.h"
#include "model/plan.h"

namespace stoker::model {

/// A norm of what is mixed of the residual streams.
void PlanBuilder::mixed_norm(const Vector* gain, int64_t layer, Forms forms) {
  const Mixing from = std::exchange(mixing_, {});
  MixSpec mix{.n_streams = config_.n_streams,
              .n_rounds = config_.mix_rounds,
              .eps = static_cast<double>(config_.mix_eps),
              .base = from.base,
              .scale = from.scale};
  Step& norms = add(mix_norm_step, branch_pending_ ? "add+norm streams" : "norm streams", layer);
  norms.add_branch = std::exchange(branch_pending_, false);
  norms.mix = mix;
  norms.in = Buf::kNormed;
  norms.k = config_.n_streams * config_.dim;
  norms.forms = forms_of({from.w});
  need(Buf::kNormed, norms.k);
  product("mix", layer, Buf::kNormed, {{from.w, {Buf::kMix, 0}}});
  mix.back = layer >= 0;  // Behind the last layer nothing goes back.
  Step& step = add(mix_step, "mix, norm", layer);
  step.mix = mix;
  step.gain = gain;
  step.in = Buf::kNormed;
  step.k = config_.dim;
  step.forms = forms;
}

namespace {

/// Where the parts of a row of Buf::kDown begin.
struct Columns {
  int64_t next = 0;
  int64_t take(const Matrix& w) { return std::exchange(next, next + w.padded_out()); }
};

}  // namespace

AttentionSpec PlanBuilder::window_spec(const LayerWeights& w, int64_t layer) {
  const int64_t dim = config_.k_dim;
  AttentionSpec spec;
  spec.n_heads = config_.n_heads[layer], spec.n_kv_heads = 1;
  spec.k_dim = spec.v_dim = dim;
  spec.window = config_.window;
  spec.scale = config_.attn_scale;
  spec.rope = config_.ratio_of(layer) == 0 && plan_.ropes.size() > 1 ? 1 : 0;
  spec.rope_pairs = config_.rope_dims / 2;
  spec.rotate = finder_.table().rope_interleaved;
  spec.q_stride = dim;
  spec.values_in_keys = true;
  spec.sinks = &w.sinks;
  spec.kv = plan_.kv.layers[static_cast<size_t>(layer)];
  spec.most_seen = config_.has_indexer(layer) ? config_.index_top_k : 0;
  plan_.max_positions = config_.context_length;
  const int64_t most = spec.kv.ratio == 0   ? 0
                       : spec.most_seen > 0 ? spec.most_seen
                                            : plan_.max_positions / spec.kv.ratio;
  spec.most_rows = spec.window + most;
  spec.rows_offset =
      round_up<int64_t>(kernels::attention_scratch_bytes(static_cast<int>(dim), static_cast<int>(dim), true), 64);
  plan_.attention_scratch = std::max(
      plan_.attention_scratch,
      round_up<int64_t>(spec.rows_offset + spec.most_rows * static_cast<int64_t>(sizeof(void*) + sizeof(int32_t)), 64));
  return spec;
}

void PlanBuilder::compressed_attention(const LayerWeights& w, int64_t layer) {
  attend_window(w, layer, window_spec(w, layer));
  const int64_t n_groups = config_.out_groups, latent = config_.out_latent_dim, of_group = w.out_down.n_in;
  HeadsSpec groups{.n_heads = n_groups, .k = of_group, .in_stride = of_group, .out_stride = latent};
  groups.n_groups = groups.group_step = latent / 16;
  heads_step(quantize_heads_step, "quantize groups", layer, Buf::kAttended, groups, w.out_down);
  head_product("groups to latents", layer, groups, w.out_down, Buf::kQkv);
  quantize(Buf::kQkv, 0, n_groups * latent, forms_of({&w.wo}), layer);
  product("attention out", layer, Buf::kQkv, {{&w.wo, {Buf::kBranch, 0}}});
  branch_pending_ = true;
}

/// What rows are made of, the steps that make and store them, and attention to those that queries see.
void PlanBuilder::attend_window(const LayerWeights& w, int64_t layer, const AttentionSpec& spec) {
  Columns columns;
  columns.take(w.q_down);
  const LatentSpec down{.kv_column = columns.take(w.kv_down),
                        .q_latent = w.q_down.n_out,
                        .q_norm = &w.q_latent_norm,
                        .kv_norm = &w.latent_norm};
  CompressSpec rows{}, keys{};
  IndexSpec index{};
  if (w.compress_kv) {
    rows = {.ratio = spec.kv.ratio, .dim = spec.k_dim, .position_scores = &w.compress_ape, .norm = &w.compress_norm};
    rows.layout = spec.kv;
    rows.value_column = columns.take(w.compress_kv), rows.score_column = columns.take(w.compress_gate);
  }
  if (w.index_q) {
    index = {.n_heads = config_.index_heads, .dim = config_.index_dim, .most_seen = spec.most_seen};
    index.rotation = spec;
    index.first_turned = index.dim - config_.rope_dims;
    index.keys = plan_.kv.index_keys[static_cast<size_t>(layer)];
    index.weight_column = columns.take(w.index_weights);
    keys = {.ratio = spec.kv.ratio, .dim = index.dim, .position_scores = &w.index_compress_ape};
    keys.norm = &w.index_compress_norm;
    keys.is_index = true;
    keys.layout = index.keys;
    keys.value_column = columns.take(w.index_compress_kv), keys.score_column = columns.take(w.index_compress_gate);
  }

  norm(&w.attn_norm, nullptr, layer,
       forms_of({&w.q_down, &w.kv_down, &w.compress_kv, &w.compress_gate, &w.index_weights, &w.index_compress_kv,
                 &w.index_compress_gate}));
  product(w.compress_kv ? "q down, kv, rows" : "q down, kv", layer, Buf::kNormed,
          {{&w.q_down, {Buf::kDown, 0}},
           {&w.kv_down, {Buf::kDown, down.kv_column}},
           {&w.compress_kv, {Buf::kDown, rows.value_column}},
           {&w.compress_gate, {Buf::kDown, rows.score_column}}});
  if (w.index_q) {
    product("index weights, keys", layer, Buf::kNormed,
            {{&w.index_weights, {Buf::kDown, index.weight_column}},
             {&w.index_compress_kv, {Buf::kDown, keys.value_column}},
             {&w.index_compress_gate, {Buf::kDown, keys.score_column}}});
  }
  Step& compress =
      add(compress_step, w.compress_kv ? "norm q; norm, rope kv; compress" : "norm q; norm, rope kv", layer);
  compress.attention = spec;
  compress.latent = down;
  compress.compress = rows, compress.index_compress = keys;
  compress.in = Buf::kDown;
  compress.k = down.q_latent;
  compress.forms = forms_of({&w.wq, &w.index_q});
  product(w.index_q ? "q up, index q" : "q up", layer, Buf::kDown,
          {{&w.wq, {Buf::kQkv, 0}}, {&w.index_q, {Buf::kGate, 0}}});
  Step& store = add(compressed_rows_step, w.compress_kv ? "norm, rope q; store rows" : "norm, rope q", layer);
  store.attention = spec;
  store.compress = rows, store.index_compress = keys;
  if (index.n_heads > 0) select(index, layer);
  if (layer == last_with_state_) gather(layer);
  Step& attend = add(window_attention_step, "store kv, attention", layer);
  attend.attention = spec;
  attend.latent = down;
  attend.outputs_only = layer == last_with_state_;
  need(Buf::kAttended, spec.n_heads * spec.v_dim);
  stored();
}

}  // namespace stoker::model
