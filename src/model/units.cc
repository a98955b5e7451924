#include "model/units.h"

namespace stoker::model {

uint64_t Unit::bytes() const {
  uint64_t sum = 0;
  for (const Matrix* w : matrices) sum += static_cast<uint64_t>(w->bytes());
  return sum;
}

std::vector<Unit> units_of(const Weights& weights) {
  std::vector<Unit> units;
  for (size_t layer = 0; layer < weights.layers.size(); ++layer) {
    const LayerWeights& w = weights.layers[layer];
    const auto add = [&](Unit::Kind kind, std::initializer_list<const Matrix*> matrices) {
      Unit unit{.kind = kind, .layer = static_cast<int64_t>(layer)};
      for (const Matrix* matrix : matrices) {
        if (*matrix) unit.matrices.push_back(matrix);
      }
      if (!unit.matrices.empty()) units.push_back(std::move(unit));
    };
    const Matrix none;  // in place of what is made at load and lies in no file
    add(Unit::Kind::kAttention, {&w.q_down,
                                 &w.kv_down,
                                 &w.wqkv,
                                 &w.wq,
                                 &w.wk,
                                 &w.wv,
                                 w.kv_up ? &none : &w.k_up,
                                 &w.v_up,
                                 &w.kv_up,
                                 &w.wo,
                                 &w.shared_gate,
                                 &w.shared_up,
                                 &w.shared_down,
                                 &w.index_q,
                                 &w.index_k,
                                 &w.index_weights,
                                 &w.state_in,
                                 &w.state_gate,
                                 &w.beta,
                                 &w.decay,
                                 &w.decay_down,
                                 &w.state_gate_down,
                                 &w.beta_decay,
                                 &w.attn_mix,
                                 &w.ffn_mix,
                                 &w.compress_kv,
                                 &w.compress_gate,
                                 &w.index_compress_kv,
                                 &w.index_compress_gate,
                                 &w.out_down});
    add(Unit::Kind::kFeedForward, {&w.gate_up, &w.gate, &w.up, &w.down});
  }
  for (const Matrix& part : weights.output_parts) {
    units.push_back(
        {.kind = Unit::Kind::kOutput, .layer = static_cast<int64_t>(weights.layers.size()), .matrices = {&part}});
  }
  return units;
}

}  // namespace stoker::model
