// The steps of latent attention.
#include <algorithm>

#include "base/checked.h"
#include "model/exec.h"
#include "model/plan_parts.h"

namespace stoker::model {

/// A step that leaves the rows of each head quantized for the product with `w`.
Step& PlanBuilder::heads_step(StepFn run, const char* name, int64_t layer, Buf in, const HeadsSpec& heads,
                              const Matrix& w) {
  Step& step = add(run, name, layer);
  step.in = in;
  step.heads = heads;
  step.k = heads.n_heads * round_up<int64_t>(heads.k, 256);  // what it takes of the tables
  step.forms = forms_of({&w});
  return step;
}

void PlanBuilder::head_product(const char* name, int64_t layer, HeadsSpec heads, const Matrix& w, Buf out) {
  Step& step = add(heads_product_step, name, layer);
  step.heads = heads;
  add_target(step, w, out, 0);
  need(out, heads.n_heads * heads.out_stride);
}

/// The layer's indexer, whose key and weights stand in Buf::kDown from `column` on.
IndexSpec PlanBuilder::indexer(const LayerWeights& w, int64_t layer, const AttentionSpec& spec, int64_t column) const {
  if (!w.index_k) return {};
  IndexSpec index{.n_heads = config_.index_heads, .dim = config_.index_dim, .most_seen = config_.index_top_k};
  index.key_column = column;
  index.weight_column = column + w.index_k.padded_out();
  index.k_norm = &w.index_k_norm;
  index.k_norm_bias = &w.b_index_k_norm;
  index.rotation = spec;
  const bool halves = config_.index_pairs == RopePairs::kHalves;
  index.rotation.rotate = halves ? finder_.table().rope_halves : finder_.table().rope_interleaved;
  index.keys = plan_.kv.index_keys[static_cast<size_t>(layer)];
  return index;
}

/// The indexer's queries are ready: which positions each row sees.
void PlanBuilder::select(const IndexSpec& index, int64_t layer) {
  add(index_query_step, "rope index q", layer).indexer = index;
  Step& step = add(select_step, "select positions", layer);
  step.indexer = index;
  step.outputs_only = layer == config_.n_layers - 1;
  need(Buf::kSelected, index.most_seen);
  plan_.select_scratch = std::max(plan_.select_scratch, select_scratch_bytes(index.most_seen));
  plan_.attention_scratch = std::max(plan_.attention_scratch, index_scratch_bytes(index, plan_.kv.type));
}

void PlanBuilder::latent_attention(const LayerWeights& w, int64_t layer) {
  const int64_t n_heads = config_.n_heads[layer], latent = config_.latent_dim, rope = config_.rope_dims;
  const int64_t plain = config_.head_k_dim - rope, value = config_.head_v_dim;
  AttentionSpec spec;
  spec.n_heads = n_heads, spec.n_kv_heads = 1;
  spec.k_dim = config_.k_dim, spec.v_dim = config_.v_dim;
  spec.scale = config_.attn_scale;
  spec.rope_pairs = config_.rotates ? rope / 2 : 0;
  spec.rotate = finder_.table().rope_interleaved;
  spec.temperature = config_.attn_temperature;
  spec.temperature_length = config_.attn_temperature_length;
  spec.queries = Buf::kAbsorbed;
  spec.q_stride = round_up<int64_t>(spec.k_dim, 16);
  spec.values_in_keys = true;
  spec.kv = plan_.kv.layers[static_cast<size_t>(layer)];
  const LatentSpec down{.kv_column = round_up<int64_t>(w.q_down ? w.q_down.n_out : 0, 16),
                        .q_latent = w.q_down ? w.q_down.n_out : 0,
                        .plain = plain,
                        .shared = rope,
                        .q_norm = w.q_down ? &w.q_latent_norm : nullptr,
                        .kv_norm = &w.latent_norm};

  spec.most_seen = config_.index_top_k;
  const IndexSpec index = indexer(w, layer, spec, down.kv_column + w.kv_down.padded_out());

  const Matrix& from_model = w.q_down ? w.q_down : w.wq;
  norm(&w.attn_norm, present(w.b_attn_norm), layer,
       forms_of({&from_model, &w.kv_down, &w.attn_gate, &w.index_k, &w.index_weights}));
  product(w.index_k  ? "q down, kv down, index k"
          : w.q_down ? "q down, kv down"
                     : "q, kv down",
          layer, Buf::kNormed,
          {{&from_model, {w.q_down ? Buf::kDown : Buf::kQkv, 0}},
           {&w.kv_down, {Buf::kDown, down.kv_column}},
           {&w.attn_gate, {Buf::kUp, 0}},
           {&w.index_k, {Buf::kDown, index.key_column}},
           {&w.index_weights, {Buf::kDown, index.weight_column}}});
  Step& store = add(latent_step, w.q_down ? "norm q; norm, rope, store kv" : "norm, rope, store kv", layer);
  store.attention = spec;
  store.latent = down;
  store.indexer = index;
  store.in = Buf::kDown;
  store.k = down.q_latent;
  store.forms = w.q_down ? forms_of({&w.wq, &w.index_q}) : Forms{};
  stored();
  if (w.q_down) {
    product(w.index_q ? "q up, index q" : "q up", layer, Buf::kDown,
            {{&w.wq, {Buf::kQkv, 0}}, {&w.index_q, {Buf::kGate, 0}}});
  }
  if (index.n_heads > 0) select(index, layer);

  HeadsSpec keys{.n_heads = n_heads, .k = plain, .in_stride = config_.head_k_dim, .out_stride = spec.q_stride};
  keys.n_groups = keys.group_step = latent / 16;
  Step& absorb = heads_step(absorb_step, "rope q, quantize heads", layer, Buf::kQkv, keys, w.k_up);
  absorb.attention = spec;
  absorb.latent = down;
  head_product("q to latent", layer, keys, w.k_up, Buf::kAbsorbed);
  attend(spec, layer);

  const Matrix& up = w.kv_up ? w.kv_up : w.v_up;
  HeadsSpec values{.n_heads = n_heads, .k = latent, .in_stride = latent, .out_stride = value, .n_groups = value / 16};
  values.first_group = w.kv_up ? plain / 16 : 0;
  values.group_step = values.first_group + values.n_groups;
  heads_step(quantize_heads_step, "quantize heads", layer, Buf::kAttended, values, up);
  head_product("latent to values", layer, values, up, Buf::kQkv);
  AttentionSpec out;
  out.n_heads = n_heads, out.v_dim = value;
  quantize_attended(w, layer, Buf::kQkv, out);
  product("attention out", layer, Buf::kQkv, {{&w.wo, {Buf::kBranch, 0}}});
  branch_pending_ = true;
}

}  // namespace stoker::model
