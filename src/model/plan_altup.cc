// The steps of residual streams of which a layer computes one and predicts the others.
#include "model/exec.h"
#include "model/plan_parts.h"

namespace stoker::model {

void PlanBuilder::begin_altup() {
  const AltupSpec spec{.n = config_.n_altup};
  need(Buf::kKept, spec.n * config_.dim);
  norm(nullptr, nullptr, -1, forms_of({&weights_.altup_proj}));
  product("streams", -1, Buf::kResidual, {{&weights_.altup_proj, {Buf::kKept, 0}}});
  add(altup_begin_step, "streams of one magnitude", -1).altup = spec;
}

void PlanBuilder::predict(const LayerWeights& w, int64_t layer) {
  norm(&w.altup_router_norm, nullptr, layer, forms_of({&w.altup_router}));
  product("router of streams", layer, Buf::kNormed, {{&w.altup_router, {Buf::kRouter, 0}}});
  add(altup_predict_step, "predict streams", layer).altup = {.n = config_.n_altup, .coefficients = &w.altup_predict};
}

void PlanBuilder::laurel(const LayerWeights& w, int64_t layer) {
  quantize(Buf::kDown, 0, w.laurel_up.n_in, forms_of({&w.laurel_up}), layer);
  product("laurel up", layer, Buf::kDown, {{&w.laurel_up, {Buf::kParallel, 0}}});
  add(laurel_step, "norm, add", layer).gain = &w.laurel_norm;
  parallel_pending_ = true;
}

void PlanBuilder::add_by_root_half() {
  static float root_half = 0.70710678F;
  static const Vector kRootHalf{.name = "1/sqrt(2)", .n = 1, .data = &root_half};
  layer_scale_ = &kRootHalf;
}

void PlanBuilder::correct(const LayerWeights& w, int64_t layer) {
  AltupSpec spec{.n = config_.n_altup, .coefficients = &w.altup_correct, .scale = &w.altup_scale};
  norm(&w.altup_router_norm, nullptr, layer, forms_of({&w.altup_router}));
  product("router of streams", layer, Buf::kNormed, {{&w.altup_router, {Buf::kRouter, 0}}});
  Step& correct = add(altup_correct_step, "correct streams", layer);
  correct.altup = spec;
  correct.in = Buf::kNormed;
  correct.k = config_.dim;
  correct.forms = forms_of({&w.input_gate});
  layer_input(w, layer, Buf::kNormed);
  Step& spread = add(altup_spread_step, "norm, add to other streams", layer);
  spread.altup = spec;
  spread.gain = &w.input_norm;
}

void PlanBuilder::end_altup() {
  const int64_t dim = config_.dim;
  HeadsSpec streams{.n_heads = config_.n_altup - 1, .k = dim, .in_stride = dim, .out_stride = dim};
  streams.n_groups = streams.group_step = dim / 16;
  heads_step(quantize_heads_step, "quantize streams", -1, Buf::kKept, streams, weights_.altup_back);
  head_product("streams back", -1, streams, weights_.altup_back, Buf::kUp);
  add(altup_end_step, "mean of streams", -1).altup = {.n = config_.n_altup};
}

}  // namespace stoker::model
