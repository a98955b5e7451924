// Keys of DeepSeek V4 for synth_latent.cc.
#pragma once

#include <array>

#include "engine/synth_shapes.h"

namespace stoker::engine {

/// V4 Flash: two layers without compressed rows, then rows of 4 and of 128 positions in turns.
inline constexpr auto kV4FlashRatios = [] {
  std::array<int64_t, 43> ratios{};
  for (size_t layer = 2; layer < ratios.size(); ++layer) ratios[layer] = layer % 2 == 0 ? 4 : 128;
  return ratios;
}();

inline constexpr SynthKey kV4Flash[] = {{"attention.q_lora_rank", 1024},
                                        {"attention.sliding_window", 128},
                                        {"attention.output_group_count", 8},
                                        {"attention.output_lora_rank", 1024},
                                        {"attention.compress_ratios", kV4FlashRatios},
                                        {"attention.compress_rope_freq_base", 160000.0},
                                        {"attention.indexer.head_count", 64},
                                        {"attention.indexer.key_length", 128},
                                        {"attention.indexer.top_k", 512},
                                        {"rope.dimension_count", 64},
                                        {"rope.scaling.type", "yarn"},
                                        {"rope.scaling.factor", 16.0},
                                        {"rope.scaling.original_context_length", 65536},
                                        {"hyper_connection.count", 4},
                                        {"hyper_connection.sinkhorn_iterations", 20},
                                        {"hyper_connection.epsilon", 1e-6},
                                        {"hash_layer_count", 3},
                                        {"expert_count", 256},
                                        {"expert_used_count", 6},
                                        {"expert_feed_forward_length", 2048},
                                        {"expert_shared_count", 1},
                                        {"expert_weights_scale", 1.5},
                                        {"expert_weights_norm", true},
                                        {"expert_gating_func", 4},
                                        {"swiglu_clamp_exp", 10.0}};

inline constexpr int64_t kTinyV4Ratios[] = {4, 0, 128, 4};
inline constexpr SynthKey kTinyV4[] = {{"attention.q_lora_rank", 128},
                                       {"attention.sliding_window", 32},
                                       {"attention.output_group_count", 2},
                                       {"attention.output_lora_rank", 64},
                                       {"attention.compress_ratios", kTinyV4Ratios},
                                       {"attention.compress_rope_freq_base", 160000.0},
                                       {"attention.indexer.head_count", 4},
                                       {"attention.indexer.key_length", 32},
                                       {"attention.indexer.top_k", 16},
                                       {"rope.dimension_count", 32},
                                       {"hyper_connection.count", 4},
                                       {"hyper_connection.sinkhorn_iterations", 20},
                                       {"hyper_connection.epsilon", 1e-6},
                                       {"hash_layer_count", 1},
                                       {"expert_count", 8},
                                       {"expert_used_count", 2},
                                       {"expert_feed_forward_length", 256},
                                       {"expert_shared_count", 1},
                                       {"expert_weights_scale", 1.5},
                                       {"expert_weights_norm", true},
                                       {"expert_gating_func", 4},
                                       {"swiglu_clamp_exp", 10.0}};

}  // namespace stoker::engine
