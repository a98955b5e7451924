// The steps of layers whose state has a fixed size.
#include "base/checked.h"
#include "model/exec.h"
#include "model/plan_parts.h"

namespace stoker::model {
namespace {

/// q, k, v and gates of ssm_in, key head by key head.
void place_by_key_heads(RecurrentSpec& spec) {
  const int64_t group = spec.n_heads / spec.n_key_heads, step = 2 * spec.k_dim + 2 * group * spec.v_dim;
  spec.q = {.column = 0, .group_step = step};
  spec.k = {.column = spec.k_dim, .group_step = step};
  spec.v = {.column = 2 * spec.k_dim, .group = group, .group_step = step, .step = spec.v_dim};
  spec.gate = spec.v;
  spec.gate.column += group * spec.v_dim;
}

void place(RecurrentSpec& spec, int64_t gate_column) {
  const int64_t keys = spec.n_key_heads * spec.k_dim;
  spec.q = {.column = 0, .group_step = spec.k_dim};
  spec.k = {.column = keys, .group_step = spec.k_dim};
  spec.v = {.column = 2 * keys, .group_step = spec.v_dim};
  spec.gate = {.column = gate_column, .group_step = spec.v_dim};
}

/// From the q, k and v of all heads in one vector.
void place_conv(RecurrentSpec& spec, const Vector& conv) {
  const int64_t keys = spec.n_key_heads * spec.k_dim;
  spec.q_conv = {.w = &conv, .in_w = 0, .in_state = 0};
  spec.k_conv = {.w = &conv, .in_w = keys, .in_state = keys};
  spec.v_conv = {.w = &conv, .in_w = 2 * keys, .in_state = 2 * keys};
}

}  // namespace

/// What layers with a recurrence have in common.
RecurrentSpec PlanBuilder::recurrent_spec(const LayerWeights& w, int64_t layer) const {
  return {.taps = config_.conv_taps,
          .k_dim = config_.state_k_dim,
          .v_dim = config_.state_v_dim,
          .n_key_heads = config_.n_key_heads,
          .n_heads = config_.n_state_heads,
          .b_decay = &w.b_decay,
          .decay_a = &w.decay_a,
          .norm = &w.state_norm,
          .layout = plan_.kv.layers[static_cast<size_t>(layer)]};
}

/// What follows once q, k, v, gates, beta and decay stand in Buf::kQkv.
void PlanBuilder::recur(const RecurrentSpec& spec, const LayerWeights& w, int64_t layer) {
  add(convolve_step, spec.scan ? "convolve" : "convolve, norm q k", layer).recurrent = spec;
  add(recur_step, spec.scan ? "scan, gate" : "delta rule, norm, gate", layer).recurrent = spec;
  state_out(spec, w, layer);
}

/// The state is made, and what comes out of it stands in Buf::kAttended.
void PlanBuilder::state_out(const RecurrentSpec& spec, const LayerWeights& w, int64_t layer) {
  const int64_t inner = spec.n_heads * spec.v_dim;
  need(Buf::kAttended, inner);
  stored();
  if (layer == last_with_state_ && !w.state_out) {  // otherwise attention comes next
    Step& outputs = gather(layer);
    outputs.in = Buf::kAttended;
    outputs.k = inner;
    outputs.gathered = true;
  }
  const Matrix& out = w.state_out ? w.state_out : w.wo;
  Step& step = quantize(Buf::kAttended, 0, inner, forms_of({&out}), layer);
  if (spec.scan && w.state_norm) {
    step.run = group_norm_step;
    step.name = "norm, quantize";
    step.recurrent = spec;
  }
  product("state out", layer, Buf::kAttended, {{&out, {w.state_out ? Buf::kParallel : Buf::kBranch, 0}}});
  (w.state_out ? parallel_pending_ : branch_pending_) = true;
}

Step& PlanBuilder::quantize(Buf in, int64_t column, int64_t k, Forms forms, int64_t layer) {
  Step& step = add(quantize_step, "quantize", layer);
  step.in = in;
  step.in_column = column;
  step.k = k;
  step.forms = forms;
  return step;
}

void PlanBuilder::gated_delta(const LayerWeights& w, int64_t layer, bool tiled) {
  RecurrentSpec spec = recurrent_spec(w, layer);
  spec.tiled = tiled;
  place_conv(spec, w.conv);
  int64_t column = 0;
  const auto next = [&column](const Matrix& m) { return std::exchange(column, column + m.padded_out()); };
  const int64_t in = next(w.state_in ? w.state_in : w.wqkv), gate = next(w.state_gate);
  const int64_t beta = next(w.beta_decay ? w.beta_decay : w.beta), decay = next(w.decay);
  w.state_in ? place_by_key_heads(spec) : place(spec, gate);
  const int64_t group = w.beta_decay ? spec.n_heads / spec.n_key_heads : spec.n_heads;
  spec.beta = {.column = beta, .group = group, .group_step = 2 * group, .step = 1};
  spec.decay = spec.beta;
  spec.decay.column = w.beta_decay ? beta + group : decay;

  norm(&w.attn_norm, present(w.b_attn_norm), layer,
       forms_of({&w.state_in, &w.wqkv, &w.state_gate, &w.beta, &w.decay, &w.beta_decay}));
  product("q k v, gates", layer, Buf::kNormed,
          {{&w.state_in, {Buf::kQkv, in}},
           {&w.wqkv, {Buf::kQkv, in}},
           {&w.state_gate, {Buf::kQkv, gate}},
           {&w.beta, {Buf::kQkv, beta}},
           {&w.beta_decay, {Buf::kQkv, beta}},
           {&w.decay, {Buf::kQkv, decay}}});
  recur(spec, w, layer);
}

void PlanBuilder::kimi_delta(const LayerWeights& w, int64_t layer) {
  RecurrentSpec spec = recurrent_spec(w, layer);
  spec.row_decay = spec.sigmoid_gate = true;
  spec.decay_bound = config_.decay_bound;
  const int64_t inner = spec.n_heads * spec.v_dim, dim = spec.k_dim;
  spec.q_conv = {.w = &w.conv_q, .in_w = 0, .in_state = 0};
  spec.k_conv = {.w = &w.conv_k, .in_w = 0, .in_state = inner};
  spec.v_conv = {.w = &w.conv_v, .in_w = 0, .in_state = 2 * inner};
  // inner is a multiple of 16, so separate matrices leave no gaps. Then the ways down of decay and gate, and up.
  int64_t column = 3 * inner;
  const auto next = [&column](const Matrix& m) { return std::exchange(column, column + m.padded_out()); };
  const int64_t beta = next(w.beta), decay_down = next(w.decay_down), gate_down = next(w.state_gate_down);
  const int64_t decay = next(w.decay), gate = next(w.state_gate);
  place(spec, gate);
  spec.beta = {.column = beta, .group = spec.n_heads, .group_step = 0, .step = 1};
  spec.decay = {.column = decay, .group_step = dim};

  const Matrix& gate_in = w.state_gate_down ? w.state_gate_down : w.state_gate;
  norm(&w.attn_norm, present(w.b_attn_norm), layer,
       forms_of({&w.wqkv, &w.wq, &w.wk, &w.wv, &w.beta, &w.decay_down, &gate_in}));
  if (w.wqkv) {
    product("q k v", layer, Buf::kNormed, {{&w.wqkv, {Buf::kQkv, 0}}});
  } else {
    product("q k v", layer, Buf::kNormed,
            {{&w.wq, {Buf::kQkv, 0}}, {&w.wk, {Buf::kQkv, inner}}, {&w.wv, {Buf::kQkv, 2 * inner}}});
  }
  product(w.state_gate_down ? "beta, decay and gate down" : "beta, decay down, gate", layer, Buf::kNormed,
          {{&w.beta, {Buf::kQkv, beta}},
           {&w.decay_down, {Buf::kQkv, decay_down}},
           {&gate_in, {Buf::kQkv, w.state_gate_down ? gate_down : gate}}});
  quantize(Buf::kQkv, decay_down, w.decay.n_in, forms_of({&w.decay}), layer);
  product("decay up", layer, Buf::kQkv, {{&w.decay, {Buf::kQkv, decay}}});
  if (w.state_gate_down) {
    quantize(Buf::kQkv, gate_down, w.state_gate.n_in, forms_of({&w.state_gate}), layer);
    product("gate up", layer, Buf::kQkv, {{&w.state_gate, {Buf::kQkv, gate}}});
  }
  recur(spec, w, layer);
}

void PlanBuilder::scan(const LayerWeights& w, int64_t layer) {
  RecurrentSpec spec = recurrent_spec(w, layer);
  spec.scan = true;
  spec.skip = &w.state_skip;
  // Gates, values, k, q, steps; all but gates and steps are convolved.
  const int64_t inner = spec.n_heads * spec.v_dim, keys = spec.n_key_heads * spec.k_dim;
  const auto part = [&](int64_t channel) {
    return ConvPart{.w = &w.conv, .bias = w.b_conv ? &w.b_conv : nullptr, .in_w = channel, .in_state = channel};
  };
  spec.v_conv = part(0), spec.k_conv = part(inner), spec.q_conv = part(inner + keys);
  spec.gate = {.column = 0, .group_step = spec.v_dim};
  spec.v = {.column = inner, .group_step = spec.v_dim};
  spec.k = {.column = 2 * inner, .group_step = spec.k_dim};
  spec.q = {.column = 2 * inner + keys, .group_step = spec.k_dim};
  spec.beta = {.column = 2 * inner + 2 * keys, .group = spec.n_heads, .step = 1};
  norm(&w.attn_norm, present(w.b_attn_norm), layer, forms_of({&w.state_in}));
  product("gates, v k q, steps", layer, Buf::kNormed, {{&w.state_in, {Buf::kQkv, 0}}});
  recur(spec, w, layer);
}

void PlanBuilder::short_convolution(const LayerWeights& w, int64_t layer) {
  RecurrentSpec spec{.taps = config_.conv_taps,
                     .v_dim = config_.dim,
                     .n_heads = 1,
                     .layout = plan_.kv.layers[static_cast<size_t>(layer)]};
  spec.v_conv = {.w = &w.conv};
  norm(&w.attn_norm, present(w.b_attn_norm), layer, forms_of({&w.state_in}));
  product("gates and values", layer, Buf::kNormed, {{&w.state_in, {Buf::kQkv, 0}}});
  add(short_convolve_step, "gate, convolve, gate", layer).recurrent = spec;
  state_out(spec, w, layer);
}

}  // namespace stoker::model
