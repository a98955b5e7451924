// The steps of blocks of experts.
#include <algorithm>
#include <utility>

#include "model/exec.h"
#include "model/plan_parts.h"

namespace stoker::model {
namespace {

Routing routing_of(const ModelConfig& config, const LayerWeights& w) {
  const float share = config.averages_shared && w.shared_down ? 0.5F : 1;
  return {.gating = static_cast<Gating>(config.gating),
          .renormalize = config.renormalize,
          .scale = (config.expert_scale == 0 ? 1 : config.expert_scale) * share,
          .shared_scale = share,
          .early = config.early_weights,
          .n_groups = config.n_groups,
          .n_used_groups = config.n_used_groups,
          .group_best = config.group_best,
          .selection_bias = present(w.selection_bias),
          .expert_of_token = present(w.expert_of_token)};
}

}  // namespace

/// Gate, where there is one, and up, and then down, in one step: its last target.
void PlanBuilder::add_experts(const LayerWeights& w, int64_t layer, const MoeSpec& spec, Activation activation) {
  plan_.expert_steps.push_back(plan_.steps.size());
  Step& step = add(experts_step, "experts", layer);
  step.activation = activation;
  step.moe = spec;
  step.moe.index = plan_.expert_steps.size() - 1;
  limit(step, config_.expert_limit, layer);
  const std::pair<const ExpertMatrix*, Buf> targets[] = {{&w.expert_gate, Buf::kWaveGate},
                                                         {&w.expert_up, w.expert_gate ? Buf::kWaveUp : Buf::kWaveGate},
                                                         {&w.expert_down, Buf::kExpertOut}};
  for (const auto& [matrix, out] : targets) {
    if (!*matrix) continue;
    add_target(step, *matrix, out, 0);
    if (step.n_targets > 0) step.targets[static_cast<size_t>(step.n_targets - 1)].experts = matrix;
  }
}

/// With latent experts into Buf::kParallel, since what these give has a way to go before it is added.
void PlanBuilder::shared_expert(const LayerWeights& w, int64_t layer, Activation activation) {
  Step& act =
      w.shared_gate ? add(gated_act_step, name_of(activation), layer) : add(act_step, name_of_plain(activation), layer);
  act.activation = activation;
  act.in = Buf::kGate;
  act.k = w.shared_down.n_in;
  limit(act, config_.shared_limit, layer);
  act.forms = forms_of({&w.shared_down});
  product("shared down", layer, Buf::kGate, {{&w.shared_down, {w.routed_up ? Buf::kParallel : Buf::kShared, 0}}});
}

/// Of rows that have been normed: they are kept for the experts, before another block quantizes something else.
void PlanBuilder::route(const LayerWeights& w, int64_t layer, const MoeSpec& spec) {
  const auto is_float = [](const Matrix& m) { return m && kernels::activation_form(m.type) == kernels::ActForm::kF32; };
  if (is_float(w.expert_gate) || is_float(w.expert_up)) {
    need(Buf::kExpertIn, spec.dim);
    need(Buf::kWaveIn, spec.dim);
  }
  add(route_step, "route", layer).moe = spec;
}

/// Of rows that have been routed.
void PlanBuilder::experts(const LayerWeights& w, int64_t layer, const MoeSpec& spec, Activation activation) {
  add_experts(w, layer, spec, activation);
  add(combine_step, "sum of experts", layer).moe = spec;
  branch_pending_ = true;
}

MoeSpec PlanBuilder::moe_spec(const LayerWeights& w) const {
  return {.routing = routing_of(config_, w),
          .n_experts = config_.n_experts,
          .n_used = config_.n_used_experts,
          .router_bias = present(w.b_router),
          .gate_bias = present(w.b_expert_gate),
          .up_bias = present(w.b_expert_up),
          .down_bias = present(w.b_expert_down),
          .shared = static_cast<bool>(w.shared_down),
          .dim = w.expert_up.n_in,
          .ff = w.expert_down.n_in,
          .in_forms = forms_of({&w.expert_gate, &w.expert_up}),
          .ff_forms = forms_of({&w.expert_down})};
}

void PlanBuilder::route_early(const LayerWeights& w, int64_t layer) {
  norm(nullptr, nullptr, layer, forms_of({&w.router}));
  product("router", layer, Buf::kResidual, {{&w.router, {Buf::kRouter, 0}}});
  routed_ = true;
}

/// The norm before the block, and all that is multiplied with its rows but the experts.
void PlanBuilder::read_for_experts(const LayerWeights& w, int64_t layer, const MoeSpec& spec,
                                   const MoeOptions& options) {
  const bool latent = static_cast<bool>(w.routed_down);
  mlp_norm(w, layer, {.pre_norm = options.pre_norm},
           forms_of({&w.router, &w.shared_weight, &w.routed_down, latent ? nullptr : &w.expert_gate,
                     latent ? nullptr : &w.expert_up, &w.shared_gate, &w.shared_up}));
  const Matrix* router = std::exchange(routed_, false) ? nullptr : &w.router;
  if (!router && !spec.shared && !latent) return;
  product(latent ? (spec.shared ? "router, down, shared gate up" : "router, down")
                 : (spec.shared ? "router, shared gate up" : "router"),
          layer, Buf::kNormed,
          {{router, {Buf::kRouter, 0}},
           {&w.shared_weight, {Buf::kRouter, spec.shared_weight_column}},
           {&w.routed_down, {Buf::kDown, 0}},
           {&w.shared_gate, {Buf::kGate, 0}},
           {&w.shared_up, {w.shared_gate ? Buf::kUp : Buf::kGate, 0}}});
}

void PlanBuilder::moe(const LayerWeights& w, int64_t layer, MoeOptions options) {
  MoeSpec spec = moe_spec(w);
  if (w.shared_weight) spec.shared_weight_column = w.router.padded_out();
  if (!options.pre_norm) spec.in = Buf::kResidual;
  read_for_experts(w, layer, spec, options);
  if (w.routed_down) return latent_experts(w, layer, spec, options.activation);
  route(w, layer, spec);
  if (spec.shared) shared_expert(w, layer, options.activation);
  experts(w, layer, spec, options.activation);
  if (options.post_norm) post_gain_ = &w.post_ffn_norm;
  if (options.stream_norm) stream_norm(&w.layer_out_norm, present(w.b_layer_out_norm));
}

/// Experts read and give rows of a smaller dimension than the model's: a matrix has led there, another one leads back.
void PlanBuilder::latent_experts(const LayerWeights& w, int64_t layer, MoeSpec spec, Activation activation) {
  const bool shared = std::exchange(spec.shared, false);
  if (shared) shared_expert(w, layer, activation);
  spec.in = spec.out = Buf::kDown;
  spec.post_gain = present(w.routed_norm);
  quantize(spec.in, 0, spec.dim, spec.in_forms, layer);
  route(w, layer, spec);
  experts(w, layer, spec, activation);
  quantize(spec.out, 0, spec.dim, forms_of({&w.routed_up}), layer);
  product("up", layer, spec.out, {{&w.routed_up, {Buf::kBranch, 0}}});
  parallel_pending_ = shared;
}

void PlanBuilder::moe_beside_dense(const LayerWeights& w, int64_t layer, MoeOptions options) {
  MoeSpec spec = moe_spec(w);
  spec.routing.logit_scale = 1 / __builtin_sqrtf(static_cast<float>(config_.dim));
  spec.routing.expert_scale = present(w.expert_scale);
  spec.post_gain = &w.post_expert_norm;
  spec.post_shared_gain = &w.post_shared_norm;
  norm(&w.router_norm, nullptr, layer, forms_of({&w.router}));
  product("router", layer, Buf::kNormed, {{&w.router, {Buf::kRouter, 0}}});
  norm(&w.ffn_norm, nullptr, layer, forms_of({&w.shared_gate, &w.shared_up}));
  product("shared gate up", layer, Buf::kNormed, {{&w.shared_gate, {Buf::kGate, 0}}, {&w.shared_up, {Buf::kUp, 0}}});
  shared_expert(w, layer, options.activation);
  norm(&w.expert_norm, nullptr, layer, spec.in_forms);
  route(w, layer, spec);
  experts(w, layer, spec, options.activation);
  post_gain_ = &w.post_ffn_norm;
}

}  // namespace stoker::model
