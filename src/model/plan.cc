#include "model/plan.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/math.h"
#include "base/str_cat.h"
#include "model/arch/arch.h"
#include "model/exec.h"
#include "model/plan_parts.h"

namespace stoker::model {
namespace {

kernels::Xielu xielu_of(const XieluKeys& keys) {
  const auto softplus = [](double x) { return x > 30 ? x : math::log(1 + math::exp(x)); };
  return {.alpha_p = static_cast<float>(softplus(keys.alpha_p)),
          .alpha_n = static_cast<float>(keys.beta + softplus(keys.alpha_n)),
          .beta = static_cast<float>(keys.beta),
          .eps = static_cast<float>(keys.eps)};
}

/// What ALiBi takes from a head's scores: 2^(-max/n), its square and so on for the first n heads, the largest power of
/// two; the others lie between these. Source: arXiv:2108.12409, where max is 8.
std::vector<float> alibi_slopes(int64_t n_heads, double max) {
  int64_t n = 1;
  while (2 * n <= n_heads) n *= 2;
  std::vector<float> slopes;
  for (int64_t head = 0; head < n_heads; ++head) {
    const double step =
        head < n ? max * static_cast<double>(head + 1) : max / 2 * static_cast<double>(2 * (head - n) + 1);
    slopes.push_back(static_cast<float>(math::pow(2, -step / static_cast<double>(n))));
  }
  return slopes;
}

void merge(Forms& into, Forms more) {
  into.a256 |= more.a256;
  into.a32 |= more.a32;
}

}  // namespace

Result<Target> KernelFinder::find(const Matrix& w, Buf out, int64_t column) {
  STOKER_CHECK(!sealed_);
  const auto id = static_cast<size_t>(w.type);
  if (id >= table_.matmul.size() || !table_.matmul[id].one) {
    return Error{ErrorCode::kUnsupported, str_cat("tensor ", w.name, " has type ", gguf::type_name(w.type),
                                                  ", which no kernel of this version multiplies")};
  }
  return Target{.w = &w, .kernels = table_.matmul[id], .isa = table_.matmul_isa[id], .out = out, .column = column};
}

PlanBuilder::PlanBuilder(const ModelConfig& config, const Weights& weights, KernelFinder& finder, Plan& plan)
    : config_(config), weights_(weights), finder_(finder), plan_(plan) {
  need(Buf::kResidual, config.n_streams * config.dim);
  need(Buf::kNormed, config.dim);
  need(Buf::kBranch, config.dim);
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    if (!config.is_stateless(layer) && config.kv_layer(layer) == layer) last_with_state_ = layer;
  }
}

void PlanBuilder::need(Buf buf, int64_t floats) {
  int64_t& stride = plan_.row_floats[static_cast<size_t>(buf)];
  stride = std::max(stride, round_up<int64_t>(floats, 16));
}

Step& PlanBuilder::add(StepFn run, const char* name, int64_t layer) {
  Step& step = plan_.steps.emplace_back();
  step.run = run;
  step.name = name;
  step.layer = layer;
  step.index = static_cast<int>(plan_.steps.size()) - 1;
  return step;
}

Forms PlanBuilder::forms_of(std::initializer_list<const Matrix*> matrices) const {
  Forms forms;
  for (const Matrix* w : matrices) {
    if (!w || !*w) continue;
    const kernels::ActForm form = kernels::activation_form(w->type);
    forms.a256 |= form == kernels::ActForm::kA256;
    forms.a32 |= form == kernels::ActForm::kA32;
  }
  return forms;
}

void PlanBuilder::begin() {
  Step& step = add(embed_step, "embed", -1);
  step.targets[0] = {.w = &weights_.embedding};  // looked up by row, not multiplied
  step.positions = present(weights_.positions);
  step.token_types = present(weights_.token_types);
  if (weights_.embedding_norm) stream_norm(&weights_.embedding_norm, present(weights_.b_embedding_norm));
  if (weights_.layer_inputs) begin_layer_inputs();
  if (weights_.altup_proj) begin_altup();
}

/// The projection of the embedding, to which what is looked up is added.
void PlanBuilder::begin_layer_inputs() {
  norm(nullptr, nullptr, -1, forms_of({&weights_.layer_input_proj}));
  product("layer inputs", -1, Buf::kResidual, {{&weights_.layer_input_proj, {Buf::kLayerInputs, 0}}});
  Step& step = add(layer_inputs_step, "norm, look up layer inputs", -1);
  step.gain = &weights_.layer_input_norm;
  step.k = config_.layer_input_dim;
  step.layer_inputs = &weights_.layer_inputs;
}

/// The layer's own input, times a gate that comes out of `in`, to Buf::kBranch.
void PlanBuilder::layer_input(const LayerWeights& w, int64_t layer, Buf in) {
  product("input gate", layer, in, {{&w.input_gate, {Buf::kGate, 0}}});
  Step& act = add(gated_act_step, "gelu*input", layer);
  act.activation = Activation::kGelu;
  act.in = Buf::kGate;
  act.up = Buf::kLayerInputs;
  act.up_column = layer * config_.layer_input_dim;
  act.k = w.input_proj.n_in;
  act.forms = forms_of({&w.input_proj});
  product("input out", layer, Buf::kGate, {{&w.input_proj, {Buf::kBranch, 0}}});
}

void PlanBuilder::end_layer(const LayerWeights& w, int64_t layer) {
  if (w.input_gate) {
    norm(nullptr, nullptr, layer, forms_of({&w.input_gate}));
    layer_input(w, layer, Buf::kResidual);
    branch_pending_ = true;
    post_gain_ = &w.input_norm;
  }
  layer_scale_ = present(w.layer_scale);
}

void PlanBuilder::stream_norm(const Vector* gain, const Vector* bias) {
  stream_gain_ = gain;
  stream_bias_ = bias;
}

void PlanBuilder::norm(const Vector* gain, const Vector* bias, int64_t layer, Forms forms) {
  if (config_.n_streams > 1) return mixed_norm(gain, layer, forms);
  if (stream_gain_ && gain) norm(nullptr, nullptr, layer, {});
  const bool replaces = stream_gain_ != nullptr;
  const Vector* stream_bias = std::exchange(stream_bias_, nullptr);
  if (replaces) gain = std::exchange(stream_gain_, nullptr);
  const char* name = gain ? (branch_pending_ ? "add+norm" : "norm") : (branch_pending_ ? "add" : "quantize");
  Step& step = add(norm_step, name, layer);
  step.add_branch = std::exchange(branch_pending_, false);
  step.add_parallel = std::exchange(parallel_pending_, false);
  step.branch_bias = std::exchange(branch_bias_, nullptr);
  step.parallel_bias = std::exchange(parallel_bias_, nullptr);
  step.post_gain = std::exchange(post_gain_, nullptr);
  step.layer_scale = std::exchange(layer_scale_, nullptr);
  step.kept = std::exchange(kept_, {});
  step.gain = gain;
  step.norm_bias = replaces ? stream_bias : bias;
  step.in = gain && !replaces ? Buf::kNormed : Buf::kResidual;
  step.k = config_.dim;
  step.forms = forms;
}

void PlanBuilder::read_kept(const KeptSpec& kept) {
  kept_ = kept;
  if (kept.keeps) need(Buf::kKept, (kept.n + 1) * config_.dim);
}

void PlanBuilder::product(const char* name, int64_t layer, Buf in,
                          std::initializer_list<std::pair<const Matrix*, std::pair<Buf, int64_t>>> targets) {
  Step& step = add(product_step, name, layer);
  step.in = in;
  for (const auto& [w, place] : targets) {
    if (w && *w) add_target(step, *w, place.first, place.second);
  }
}

void PlanBuilder::add_target(Step& step, const Matrix& w, Buf out, int64_t column) {
  auto target = finder_.find(w, out, column);
  if (!target) {
    if (status_) status_ = std::move(target).error();
    return;
  }
  step.targets[static_cast<size_t>(step.n_targets++)] = *target;
  step.k = w.n_in;
  need(out, column + w.padded_out());
}

void PlanBuilder::attention(const LayerWeights& w, int64_t layer, AttentionOptions options) {
  AttentionSpec spec;
  spec.n_heads = config_.n_heads[layer];
  spec.n_kv_heads = config_.n_kv_heads[config_.kv_layer(layer)];
  spec.k_dim = config_.k_dim_of(layer);
  spec.v_dim = config_.v_dim_of(layer);
  spec.stores = w.wk || w.wqkv;
  spec.values_of_keys = w.wk && !w.wv;
  spec.value_norm = options.value_norm;
  spec.window = config_.window_of(layer);
  spec.scale = config_.attn_scale;
  spec.softcap = config_.attn_softcap;
  spec.rope = spec.window != 0 && plan_.ropes.size() > 1 ? 1 : 0;
  spec.rope_pairs = config_.rotates && options.rotate ? config_.rope_dims_of(spec.rope == 1) / 2 : 0;
  spec.rotate =
      config_.rope_pairs == RopePairs::kHalves ? finder_.table().rope_halves : finder_.table().rope_interleaved;
  spec.gated = options.gated;
  spec.q_stride = options.gated ? 2 * spec.k_dim : spec.k_dim;
  // Separate matrices write whole groups of 16 outputs, so each part starts at a multiple of 16.
  const int64_t unit = w.wqkv ? 1 : 16;
  spec.k_column = round_up(spec.n_heads * spec.q_stride, unit);
  spec.v_column = spec.k_column + round_up(spec.n_kv_heads * spec.k_dim, unit);
  spec.bq = present(w.bq), spec.bk = present(w.bk), spec.bv = present(w.bv), spec.bqkv = present(w.bqkv);
  if (options.sinks) spec.sinks = present(w.sinks);
  spec.value_scale = config_.value_scale;
  spec.qkv_limit = config_.qkv_limit;
  if (options.qk_norm || options.late_qk_norm) spec.q_norm = present(w.q_norm), spec.k_norm = present(w.k_norm);
  spec.late_norm = options.late_qk_norm;
  if (options.temperature) spec.temperature = config_.attn_temperature;
  spec.temperature_length =
      config_.attn_temperature_length ? config_.attn_temperature_length : config_.rope_original_context;
  spec.temperature_offset = config_.attn_temperature_offset;
  spec.chunked = config_.chunked;
  spec.plain_late_norm = options.plain_late_qk_norm;
  spec.softplus_gates = options.softplus_gates;
  spec.kv = plan_.kv.layers[static_cast<size_t>(layer)];
  spec.causal = config_.causal;
  if (config_.alibi) spec.slopes = plan_.slopes.data();

  const bool of_mlp = options.parallel && w.ffn_norm && !w.attn_norm;  // The one norm of the layer goes by its name.
  const bool parallel = options.beside && std::exchange(parallel_pending_, false);
  norm(of_mlp             ? &w.ffn_norm
       : options.pre_norm ? gain(w.attn_norm)
                          : nullptr,
       present(of_mlp ? w.b_ffn_norm : w.b_attn_norm), layer,
       forms_of({&w.wqkv, &w.wq, &w.wk, &w.wv, &w.attn_gate, &w.laurel_down}));
  parallel_pending_ = parallel;
  if (w.wqkv) {
    product("qkv", layer, Buf::kNormed, {{&w.wqkv, {Buf::kQkv, 0}}, {&w.attn_gate, {Buf::kUp, 0}}});
  } else {
    product(spec.stores ? "q k v" : "q", layer, Buf::kNormed,
            {{&w.wq, {Buf::kQkv, 0}},
             {&w.wk, {Buf::kQkv, spec.k_column}},
             {&w.wv, {Buf::kQkv, spec.v_column}},
             {&w.attn_gate, {Buf::kUp, 0}},
             {&w.laurel_down, {Buf::kDown, 0}}});
  }
  if (w.laurel_down) laurel(w, layer);
  if (options.whole_qk_norm) {
    Step& whole = add(qk_norm_step, "norm q k", layer);
    whole.attention = spec;
    whole.attention.q_norm = &w.q_norm;
    whole.attention.k_norm = &w.k_norm;
  }
  add(qkv_step, spec.stores ? "rope+store" : "rope q", layer).attention = spec;
  need(Buf::kQkv, spec.v_column + spec.n_kv_heads * spec.v_dim);
  if (spec.stores) stored();
  attend(spec, layer);
  quantize_attended(w, layer, Buf::kAttended, spec);
  product("attention out", layer, Buf::kAttended, {{&w.wo, {options.parallel ? Buf::kParallel : Buf::kBranch, 0}}});
  (options.parallel ? parallel_pending_ : branch_pending_) = true;
  (options.parallel ? parallel_bias_ : branch_bias_) = present(w.bo);
  if (options.post_norm) post_gain_ = &w.post_attn_norm;
  if (options.stream_norm) stream_norm(&w.attn_out_norm, present(w.b_attn_out_norm));
}

void PlanBuilder::linear(const LayerWeights& w, int64_t layer) {
  norm(&w.attn_norm, nullptr, layer, forms_of({&w.wo}));
  product("linear", layer, Buf::kNormed, {{&w.wo, {Buf::kBranch, 0}}});
  branch_pending_ = true;
}

/// Attended rows as the way out reads them, times their gates where there are any.
void PlanBuilder::quantize_attended(const LayerWeights& w, int64_t layer, Buf in, const AttentionSpec& spec) {
  const bool gated = spec.gated || w.attn_gate;
  Step& step = quantize(in, 0, spec.n_heads * spec.v_dim, forms_of({&w.wo}), layer);
  if (gated) step.run = gate_step, step.name = "gate, quantize";
  step.attention = spec;
  step.gathered = layer == last_with_state_;
  AttentionSpec& a = step.attention;
  if (spec.gated) step.up = Buf::kQkv, a.gate_column = spec.q_column + spec.k_dim, a.gate_stride = spec.q_stride;
  if (!w.attn_gate) return;
  a.head_gates = w.attn_gate.n_out == spec.n_heads;
  a.gate_stride = a.head_gates ? 1 : spec.v_dim;
}

Step& PlanBuilder::gather(int64_t layer) {
  plan_.n_steps_to_gather = plan_.steps.size();
  Step& step = add(gather_step, "gather outputs", layer);
  step.add_parallel = parallel_pending_;
  step.routed = routed_;
  return step;
}

/// From the last layer that has a state of its own on of the rows that want outputs only, which become all rows: what
/// others would give nobody reads.
void PlanBuilder::attend(const AttentionSpec& spec, int64_t layer) {
  if (layer == last_with_state_) gather(layer);
  Step& step = add(attention_step, "attention", layer);
  step.attention = spec;
  step.outputs_only = layer >= last_with_state_;
  step.after_gather = layer > last_with_state_;
  need(Buf::kAttended, spec.n_heads * spec.v_dim);
  plan_.attention_scratch = std::max(
      plan_.attention_scratch, kernels::attention_scratch_bytes(static_cast<int>(spec.k_dim),
                                                                static_cast<int>(spec.v_dim), spec.values_in_keys));
}

const Vector* PlanBuilder::gain(const Vector& gain) const {
  static const Vector kOnes{.name = "ones", .n = 0, .data = nullptr};  // Kernels take none for ones.
  return config_.plain_norms ? &kOnes : &gain;
}

void PlanBuilder::limit(Step& act, const std::vector<float>& limits, int64_t layer) const {
  if (!limits.empty()) act.limit = limits[static_cast<size_t>(layer)];
  act.late_limit = config_.late_limits;
}

void PlanBuilder::mlp_norm(const LayerWeights& w, int64_t layer, const MlpOptions& options, Forms forms) {
  // Then it is added after this block; with a branch beside it, both come before.
  const bool parallel = !branch_pending_ && std::exchange(parallel_pending_, false);
  const Vector* bias = std::exchange(parallel_bias_, nullptr);
  if (parallel && !w.ffn_norm) {
    norm(&w.attn_norm, present(w.b_attn_norm), layer, forms);
  } else {
    norm(options.pre_norm ? gain(w.ffn_norm) : nullptr, present(w.b_ffn_norm), layer, forms);
  }
  parallel_pending_ = parallel, parallel_bias_ = bias;
}

void PlanBuilder::mlp_down(const LayerWeights& w, int64_t layer, const MlpOptions& options) {
  product("down", layer, Buf::kGate, {{&w.down, {Buf::kBranch, 0}}});
  branch_pending_ = true;
  branch_bias_ = present(w.b_down);
  if (options.post_norm) post_gain_ = &w.post_ffn_norm;
  if (options.stream_norm) stream_norm(&w.layer_out_norm, present(w.b_layer_out_norm));
}

void PlanBuilder::gated_mlp(const LayerWeights& w, int64_t layer, MlpOptions options) {
  mlp_norm(w, layer, options, forms_of({&w.gate_up, &w.gate, &w.up}));
  product("gate up", layer, Buf::kNormed,
          {{&w.gate_up, {Buf::kGate, 0}}, {&w.gate, {Buf::kGate, 0}}, {&w.up, {Buf::kUp, 0}}});
  Step& act = add(gated_act_step, name_of(options.activation), layer);
  act.activation = options.activation;
  limit(act, config_.shared_limit, layer);
  if (!config_.gate_sparsity.empty()) act.sparsity = config_.gate_sparsity[static_cast<size_t>(layer)];
  act.fused = static_cast<bool>(w.gate_up);
  act.in = Buf::kGate;
  act.k = w.down.n_in;
  act.forms = forms_of({&w.down});
  act.gate_bias = present(w.b_gate);
  act.up_bias = present(w.b_up);
  mlp_down(w, layer, options);
}

void PlanBuilder::mlp(const LayerWeights& w, int64_t layer, MlpOptions options) {
  mlp_norm(w, layer, options, forms_of({&w.up}));
  product("up", layer, Buf::kNormed, {{&w.up, {Buf::kGate, 0}}});
  Step& act = add(act_step, name_of_plain(options.activation), layer);
  act.activation = options.activation;
  if (options.activation == Activation::kXielu) act.xielu = xielu_of(config_.xielu[static_cast<size_t>(layer)]);
  act.in = Buf::kGate;
  act.k = w.down.n_in;
  act.forms = forms_of({&w.down});
  act.up_bias = present(w.b_up);
  mlp_down(w, layer, options);
}

Status PlanBuilder::finish() {
  if (weights_.head_mix) mix_streams(weights_.head_mix, weights_.head_mix_base, weights_.head_mix_scale);
  if (weights_.altup_back) end_altup();
  if (weights_.output_score) read_kept({.score = &weights_.output_score, .n = config_.n_kept(config_.n_layers)});
  if (weights_.output_norm || config_.plain_norms) {
    norm(gain(weights_.output_norm), present(weights_.b_output_norm), -1, forms_of({&weights_.output}));
  } else {  // The last layer's own, but of what is read from here: the residual has done its part.
    const Vector* bias = std::exchange(stream_bias_, nullptr);
    norm(std::exchange(stream_gain_, nullptr), bias, -1, {});
  }
  if (weights_.output) {
    STOKER_TRY(plan_.head, finder_.find(weights_.output, Buf::kBranch, 0));
  }
  for (const Matrix& part : weights_.output_parts) {
    STOKER_TRY(const Target target, finder_.find(part, Buf::kBranch, 0));
    plan_.head_parts.push_back(target);
  }
  plan_.output_bias = present(weights_.output_bias);
  for (const Step& step : plan_.steps) {
    if (step.run != experts_step) {
      merge(plan_.forms, step.forms);
      plan_.max_k = std::max(plan_.max_k, step.k);
      continue;
    }
    MoePlan& all = plan_.moe;
    all.n_experts = step.moe.n_experts, all.n_used = step.moe.n_used;
    all.dim = std::max(all.dim, step.moe.dim), all.ff = std::max(all.ff, step.moe.ff);
    merge(all.in_forms, step.moe.in_forms), merge(all.ff_forms, step.moe.ff_forms);
  }
  return status_;
}

Status fill_ropes(const ModelConfig& config, const Weights& weights, int64_t context, Plan& plan) {
  for (size_t i = 0; i < plan.ropes.size(); ++i) {
    STOKER_TRY(plan.ropes[i], make_rope(config, weights, i == 1, context));
  }
  return Ok{};
}

Result<Plan> build_plan(const ModelConfig& config, const Weights& weights, KernelFinder& finder,
                        kernels::KvType kv_type) {
  if (!config.ratios.empty() && kv_type == kernels::KvType::kQ8_0) {
    return Error{ErrorCode::kUnsupported, str_cat("keys and values in q8_0 are not run by this version for ",
                                                  config.arch->name, "; f16, bf16 and f32 are")};
  }
  Plan plan;
  plan.config = &config;
  plan.table = &finder.table();
  plan.norm = config.layer_norm ? plan.table->layer_norm : plan.table->rms_norm;
  plan.kv = KvLayout::of(config, kv_type);
  const bool own_rope = config.any_sliding() && (config.rope_swa_plain || config.rope_base_swa != config.rope_base);
  plan.ropes.resize(own_rope ? 2 : 1);
  if (config.alibi) plan.slopes = alibi_slopes(config.n_heads.max(), static_cast<double>(config.alibi_max));
  PlanBuilder builder(config, weights, finder, plan);
  builder.begin();
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    config.arch->build_layer(builder, weights.layers[static_cast<size_t>(layer)], layer);
  }
  STOKER_TRY_STATUS(builder.finish());
  finder.seal();
  return plan;
}

std::string Plan::describe() const {
  std::string out;
  const auto place = [](const Step& step) { return step.layer < 0 ? std::string("-") : str_cat("blk.", step.layer); };
  const auto product = [&](const std::string& where, const char* name, const Target& t) {
    const std::string stack = t.experts ? str_cat(t.experts->n_experts, ", ") : std::string();
    out += str_cat(where, "\t", name, "\t", t.w->name, "\t[", stack, t.w->n_out, ", ", t.w->n_in, "]\t",
                   gguf::type_name(t.w->type), "\t", isa_name(t.isa),
                   t.isa == Isa::kAmx                ? " from 9 rows on, avx512 below\n"
                   : t.kernels.few == t.kernels.many ? " one|many\n"
                                                     : " one|few|many\n");
  };
  out += "layer\tstep\ttensor\tshape\ttype\tkernels by rows\n";
  for (const Step& step : steps) {
    if (step.n_targets == 0) out += str_cat(place(step), "\t", step.name, "\n");
    for (int i = 0; i < step.n_targets; ++i) product(place(step), step.name, step.targets[static_cast<size_t>(i)]);
  }
  if (head.w) product("-", "head", head);
  return out;
}

}  // namespace stoker::model
