// The steps of latent attention.
#include <algorithm>

#include "base/checked.h"
#include "model/exec.h"
#include "model/plan.h"

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

void PlanBuilder::latent_attention(const LayerWeights& w, int64_t layer) {
  const int64_t n_heads = config_.n_heads[layer], latent = config_.latent_dim, rope = config_.rope_dims;
  const int64_t plain = config_.head_k_dim - rope, value = config_.head_v_dim;
  AttentionSpec spec;
  spec.n_heads = n_heads, spec.n_kv_heads = 1;
  spec.k_dim = config_.k_dim, spec.v_dim = config_.v_dim;
  spec.scale = config_.attn_scale;
  spec.rope_pairs = rope / 2;
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
                        .q_norm = w.q_down ? &w.q_latent_norm : nullptr,
                        .kv_norm = &w.latent_norm};

  const Matrix& from_model = w.q_down ? w.q_down : w.wq;
  norm(&w.attn_norm, w.b_attn_norm, layer, forms_of({&from_model, &w.kv_down}));
  product(w.q_down ? "q down, kv down" : "q, kv down", layer, Buf::kNormed,
          {{&from_model, {w.q_down ? Buf::kDown : Buf::kQkv, 0}}, {&w.kv_down, {Buf::kDown, down.kv_column}}});
  Step& store = add(latent_step, w.q_down ? "norm q; norm, rope, store kv" : "norm, rope, store kv", layer);
  store.attention = spec;
  store.latent = down;
  store.in = Buf::kDown;
  store.k = down.q_latent;
  store.forms = w.q_down ? forms_of({&w.wq}) : Forms{};
  if (layer == config_.n_layers - 1) plan_.n_steps_to_store = plan_.steps.size();
  if (w.q_down) product("q up", layer, Buf::kDown, {{&w.wq, {Buf::kQkv, 0}}});

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
  Step& quantize = add(quantize_step, "quantize", layer);
  quantize.in = Buf::kQkv;
  quantize.k = n_heads * value;
  quantize.forms = forms_of({&w.wo});
  product("attention out", layer, Buf::kQkv, {{&w.wo, {Buf::kBranch, 0}}});
  branch_pending_ = true;
}

}  // namespace stoker::model
