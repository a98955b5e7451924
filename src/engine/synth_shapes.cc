#include "engine/synth_shapes.h"

#include <string>

#include "base/str_cat.h"

namespace stoker::engine {
namespace {

constexpr std::string_view kUntied[] = {"output.weight"};
constexpr std::string_view kQkvBias[] = {"attn_q.bias", "attn_k.bias", "attn_v.bias"};
constexpr std::string_view kQkvBiasUntied[] = {"attn_q.bias", "attn_k.bias", "attn_v.bias", "output.weight"};

constexpr std::string_view kSelection[] = {"exp_probs_b.bias"};
constexpr std::string_view kSelectionUntied[] = {"exp_probs_b.bias", "output.weight"};
constexpr std::string_view kGlm[] = {"attn_q.bias",   "attn_k.bias",        "attn_v.bias",
                                     "output.weight", "attn_q_norm.weight", "attn_k_norm.weight"};

constexpr SynthKey kGemma2[] = {{"attention.sliding_window", 4096}};
constexpr SynthKey kGemma3[] = {{"attention.sliding_window", 512}};
constexpr SynthKey kDeepseek[] = {{"expert_count", 64},
                                  {"expert_used_count", 6},
                                  {"expert_feed_forward_length", 1408},
                                  {"expert_shared_count", 2},
                                  {"leading_dense_block_count", 1}};
// Latent attention: the heads' own sizes are those of attention.key_length_mla and value_length_mla; n_heads,
// n_kv_heads and head_dim of the shapes below are overridden where the cached row has others.
constexpr SynthKey kV2Lite[] = {{"attention.kv_lora_rank", 512},
                                {"attention.key_length", 576},
                                {"attention.value_length", 512},
                                {"attention.key_length_mla", 192},
                                {"attention.value_length_mla", 128},
                                {"rope.dimension_count", 64},
                                {"rope.scaling.type", "yarn"},
                                {"rope.scaling.factor", 40.0},
                                {"rope.scaling.original_context_length", 4096},
                                {"rope.scaling.yarn_log_multiplier", 0.0707},
                                {"expert_count", 64},
                                {"expert_used_count", 6},
                                {"expert_feed_forward_length", 1408},
                                {"expert_shared_count", 2},
                                {"leading_dense_block_count", 1},
                                {"expert_gating_func", 1}};
constexpr SynthKey kV32[] = {{"attention.kv_lora_rank", 512},
                             {"attention.q_lora_rank", 1536},
                             {"attention.key_length", 576},
                             {"attention.value_length", 512},
                             {"attention.key_length_mla", 192},
                             {"attention.value_length_mla", 128},
                             {"attention.indexer.head_count", 64},
                             {"attention.indexer.key_length", 128},
                             {"attention.indexer.top_k", 2048},
                             {"rope.dimension_count", 64},
                             {"rope.scaling.type", "yarn"},
                             {"rope.scaling.factor", 40.0},
                             {"rope.scaling.original_context_length", 4096},
                             {"rope.scaling.yarn_log_multiplier", 0.1},
                             {"expert_count", 256},
                             {"expert_used_count", 8},
                             {"expert_feed_forward_length", 2048},
                             {"expert_shared_count", 1},
                             {"expert_weights_norm", true},
                             {"expert_weights_scale", 2.5},
                             {"expert_gating_func", 2},
                             {"expert_group_count", 8},
                             {"expert_group_used_count", 4},
                             {"leading_dense_block_count", 3}};
constexpr SynthKey kGlm5[] = {{"attention.kv_lora_rank", 512},
                              {"attention.q_lora_rank", 2048},
                              {"attention.key_length", 576},
                              {"attention.value_length", 512},
                              {"attention.key_length_mla", 256},
                              {"attention.value_length_mla", 256},
                              {"attention.indexer.head_count", 32},
                              {"attention.indexer.key_length", 128},
                              {"attention.indexer.top_k", 2048},
                              {"rope.dimension_count", 64},
                              {"expert_count", 256},
                              {"expert_used_count", 8},
                              {"expert_feed_forward_length", 2048},
                              {"expert_shared_count", 1},
                              {"expert_weights_norm", true},
                              {"expert_weights_scale", 2.5},
                              {"leading_dense_block_count", 3}};
constexpr SynthKey kV3[] = {{"attention.kv_lora_rank", 512},
                            {"attention.q_lora_rank", 1536},
                            {"attention.key_length", 576},
                            {"attention.value_length", 512},
                            {"attention.key_length_mla", 192},
                            {"attention.value_length_mla", 128},
                            {"rope.dimension_count", 64},
                            {"rope.scaling.type", "yarn"},
                            {"rope.scaling.factor", 40.0},
                            {"rope.scaling.original_context_length", 4096},
                            {"rope.scaling.yarn_log_multiplier", 0.1},
                            {"expert_count", 256},
                            {"expert_used_count", 8},
                            {"expert_feed_forward_length", 2048},
                            {"expert_shared_count", 1},
                            {"leading_dense_block_count", 3},
                            {"expert_gating_func", 2},
                            {"expert_weights_norm", true},
                            {"expert_weights_scale", 2.5},
                            {"expert_group_count", 8},
                            {"expert_group_used_count", 4}};
constexpr SynthKey kKimiK2[] = {{"attention.kv_lora_rank", 512},
                                {"attention.q_lora_rank", 1536},
                                {"attention.key_length", 576},
                                {"attention.value_length", 512},
                                {"attention.key_length_mla", 192},
                                {"attention.value_length_mla", 128},
                                {"rope.dimension_count", 64},
                                {"rope.scaling.type", "yarn"},
                                {"rope.scaling.factor", 32.0},
                                {"rope.scaling.original_context_length", 4096},
                                {"rope.scaling.yarn_log_multiplier", 0.1},
                                {"rope.scaling.yarn_beta_fast", 1.0},
                                {"rope.scaling.yarn_beta_slow", 1.0},
                                {"expert_count", 384},
                                {"expert_used_count", 8},
                                {"expert_feed_forward_length", 2048},
                                {"expert_shared_count", 1},
                                {"leading_dense_block_count", 1},
                                {"expert_gating_func", 2},
                                {"expert_weights_norm", true},
                                {"expert_weights_scale", 2.827}};
constexpr SynthKey kGlmFlash[] = {{"attention.kv_lora_rank", 512},   {"attention.q_lora_rank", 768},
                                  {"attention.key_length", 576},     {"attention.value_length", 512},
                                  {"attention.key_length_mla", 256}, {"attention.value_length_mla", 256},
                                  {"rope.dimension_count", 64},      {"expert_count", 64},
                                  {"expert_used_count", 4},          {"expert_feed_forward_length", 1536},
                                  {"expert_shared_count", 1},        {"leading_dense_block_count", 1},
                                  {"expert_gating_func", 2},         {"expert_weights_norm", true},
                                  {"expert_weights_scale", 1.8}};
constexpr SynthKey kMistralSmall4[] = {{"attention.kv_lora_rank", 256},
                                       {"attention.q_lora_rank", 1024},
                                       {"attention.key_length", 320},
                                       {"attention.value_length", 256},
                                       {"attention.key_length_mla", 128},
                                       {"attention.value_length_mla", 128},
                                       {"attention.temperature_scale", 0.1},
                                       {"attention.temperature_length", 8192},
                                       {"rope.dimension_count", 64},
                                       {"rope.scaling.type", "yarn"},
                                       {"rope.scaling.factor", 128.0},
                                       {"rope.scaling.original_context_length", 8192},
                                       {"rope.scaling.yarn_log_multiplier", 0.1},
                                       {"expert_count", 128},
                                       {"expert_used_count", 4},
                                       {"expert_feed_forward_length", 2048},
                                       {"expert_shared_count", 1},
                                       {"expert_weights_norm", true}};
constexpr SynthKey kErnie[] = {{"expert_count", 64},
                               {"expert_used_count", 6},
                               {"expert_feed_forward_length", 1536},
                               {"expert_shared_feed_forward_length", 3072},
                               {"interleave_moe_layer_step", 1},
                               {"leading_dense_block_count", 1}};
constexpr SynthKey kGlm45[] = {
    {"expert_count", 160},         {"expert_used_count", 8},         {"expert_feed_forward_length", 1536},
    {"expert_shared_count", 1},    {"leading_dense_block_count", 3}, {"expert_weights_norm", true},
    {"expert_weights_scale", 2.5}, {"rope.dimension_count", 64}};
constexpr SynthKey kGlmAir[] = {
    {"expert_count", 128},       {"expert_used_count", 8},         {"expert_feed_forward_length", 1408},
    {"expert_shared_count", 1},  {"leading_dense_block_count", 1}, {"expert_weights_norm", true},
    {"rope.dimension_count", 64}};
constexpr SynthKey kGranite2B[] = {
    {"embedding_scale", 12.0}, {"residual_scale", 0.22}, {"attention.scale", 0.015625}, {"logit_scale", 8.0}};
constexpr SynthKey kGranite1B[] = {{"embedding_scale", 12.0}, {"residual_scale", 0.22}, {"attention.scale", 0.015625},
                                   {"logit_scale", 6.0},      {"expert_count", 32},     {"expert_used_count", 8}};
constexpr SynthKey kGranite3B[] = {{"embedding_scale", 12.0}, {"residual_scale", 0.22}, {"attention.scale", 0.015625},
                                   {"logit_scale", 6.0},      {"expert_count", 40},     {"expert_used_count", 8}};
constexpr SynthKey kMixtral[] = {{"expert_count", 8}, {"expert_used_count", 2}};
constexpr SynthKey kOlmoe[] = {{"expert_count", 64}, {"expert_used_count", 8}};
constexpr SynthKey kQwen2Moe[] = {{"expert_count", 60},
                                  {"expert_used_count", 4},
                                  {"expert_feed_forward_length", 1408},
                                  {"expert_shared_feed_forward_length", 5632}};
constexpr SynthKey kQwen3A3B[] = {{"expert_count", 128}, {"expert_used_count", 8}, {"expert_feed_forward_length", 768}};
constexpr SynthKey kQwen3A22B[] = {
    {"expert_count", 128}, {"expert_used_count", 8}, {"expert_feed_forward_length", 1536}};
constexpr SynthKey kOss20B[] = {{"expert_count", 32},
                                {"expert_used_count", 4},
                                {"expert_feed_forward_length", 2880},
                                {"attention.sliding_window", 128},
                                {"rope.scaling.type", "yarn"},
                                {"rope.scaling.factor", 32.0},
                                {"rope.scaling.original_context_length", 4096}};
constexpr SynthKey kOss120B[] = {{"expert_count", 128},
                                 {"expert_used_count", 4},
                                 {"expert_feed_forward_length", 2880},
                                 {"attention.sliding_window", 128},
                                 {"rope.scaling.type", "yarn"},
                                 {"rope.scaling.factor", 32.0},
                                 {"rope.scaling.original_context_length", 4096}};

constexpr SynthKey kCommandR[] = {{"logit_scale", 0.0625}};
constexpr SynthKey kCommandR7B[] = {{"logit_scale", 0.25}, {"attention.sliding_window", 4096}};
constexpr SynthKey kGlm4[] = {{"rope.dimension_count", 64}};
constexpr SynthKey kMinistral[] = {{"rope.scaling.type", "yarn"},
                                   {"rope.scaling.factor", 16.0},
                                   {"rope.scaling.original_context_length", 16384},
                                   {"rope.scaling.yarn_log_multiplier", 1.0},
                                   {"attention.temperature_scale", 0.1}};
constexpr SynthKey kPhi35[] = {{"rope.scaling.original_context_length", 4096}, {"rope.scaling.attn_factor", 1.190238}};
constexpr SynthKey kPhi4Mini[] = {{"rope.scaling.original_context_length", 4096},
                                  {"rope.scaling.attn_factor", 1.190238},
                                  {"rope.dimension_count", 96}};
constexpr std::string_view kLongRope[] = {"rope_factors_long.weight", "rope_factors_short.weight"};
constexpr std::string_view kLongRopeUntied[] = {"rope_factors_long.weight", "rope_factors_short.weight",
                                                "output.weight"};
constexpr std::string_view kPlainMlpBiases[] = {"attn_q.bias",      "attn_k.bias", "attn_v.bias",
                                                "attn_output.bias", "ffn_up.bias", "ffn_down.bias"};

constexpr SynthKey kNeoX[] = {{"use_parallel_residual", true}};
constexpr SynthKey kPythia[] = {{"use_parallel_residual", true}, {"rope.dimension_count", 32}};
constexpr SynthKey kRotate16[] = {{"rope.dimension_count", 16}};
constexpr SynthKey kRotate32[] = {{"rope.dimension_count", 32}};
constexpr SynthKey kExaone32B[] = {{"attention.sliding_window", 4096}};
constexpr SynthKey kHunyuanA13B[] = {{"expert_count", 64}, {"expert_used_count", 8}};
constexpr SynthKey kPhi35Moe[] = {{"expert_count", 16},
                                  {"expert_used_count", 2},
                                  {"attention.layer_norm_rms_epsilon", 1e-5},
                                  {"rope.scaling.original_context_length", 4096},
                                  {"rope.scaling.attn_factor", 1.243163}};
constexpr std::string_view kPhi35MoeExtra[] = {"attn_q.bias",
                                               "attn_k.bias",
                                               "attn_v.bias",
                                               "output.bias",
                                               "output.weight",
                                               "rope_factors_long.weight",
                                               "rope_factors_short.weight"};
constexpr std::string_view kPlainMlpBiasesUntied[] = {
    "attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "ffn_up.bias", "ffn_down.bias", "output.weight"};
constexpr std::string_view kPhi2[] = {"attn_q.bias", "attn_k.bias",   "attn_v.bias",   "attn_output.bias",
                                      "ffn_up.bias", "ffn_down.bias", "output.weight", "output.bias"};
constexpr std::string_view kStableLm[] = {"attn_q.bias",     "attn_k.bias",   "attn_v.bias",
                                          "ffn_norm.weight", "ffn_norm.bias", "output.weight"};

constexpr int64_t kFourSlide[] = {1, 1, 1, 1, 0}, kFiveSlide[] = {1, 1, 1, 1, 1, 0}, kOneSlides[] = {1, 0};
// The layers without keys of their own are twice as wide.
constexpr int64_t kE2BWidths[] = {6144,  6144,  6144,  6144,  6144,  6144,  6144,  6144,  6144,  6144,  6144,  6144,
                                  6144,  6144,  6144,  12288, 12288, 12288, 12288, 12288, 12288, 12288, 12288, 12288,
                                  12288, 12288, 12288, 12288, 12288, 12288, 12288, 12288, 12288, 12288, 12288};
constexpr int64_t kKv8And2[] = {8, 8, 8, 8, 8, 2}, kKv16And4[] = {16, 16, 16, 16, 16, 4};
constexpr SynthKey kE2B[] = {{"attention.key_length_swa", 256},
                             {"attention.value_length_swa", 256},
                             {"rope.dimension_count_swa", 256},
                             {"attention.sliding_window", 512},
                             {"attention.sliding_window_pattern", kFourSlide},
                             {"attention.shared_kv_layers", 20},
                             {"embedding_length_per_layer_input", 256},
                             {"feed_forward_length", kE2BWidths}};
constexpr SynthKey kE4B[] = {{"attention.key_length_swa", 256},
                             {"attention.value_length_swa", 256},
                             {"rope.dimension_count_swa", 256},
                             {"attention.sliding_window", 512},
                             {"attention.sliding_window_pattern", kFiveSlide},
                             {"attention.shared_kv_layers", 18},
                             {"embedding_length_per_layer_input", 256}};
constexpr SynthKey kGemmaA4B[] = {{"attention.key_length_swa", 256},
                                  {"attention.value_length_swa", 256},
                                  {"rope.dimension_count_swa", 256},
                                  {"attention.sliding_window", 1024},
                                  {"attention.sliding_window_pattern", kFiveSlide},
                                  {"attention.head_count_kv", kKv8And2},
                                  {"embedding_length_per_layer_input", 0},
                                  {"expert_count", 128},
                                  {"expert_used_count", 8},
                                  {"expert_feed_forward_length", 704}};
constexpr SynthKey kGemma31B[] = {{"attention.key_length_swa", 256},
                                  {"attention.value_length_swa", 256},
                                  {"rope.dimension_count_swa", 256},
                                  {"attention.sliding_window", 1024},
                                  {"attention.sliding_window_pattern", kFiveSlide},
                                  {"attention.head_count_kv", kKv16And4},
                                  {"embedding_length_per_layer_input", 0}};
constexpr SynthKey kTinyGemma4[] = {{"attention.key_length_swa", 32},
                                    {"attention.value_length_swa", 32},
                                    {"rope.dimension_count_swa", 32},
                                    {"attention.sliding_window", 128},
                                    {"attention.sliding_window_pattern", kOneSlides},
                                    {"embedding_length_per_layer_input", 32},
                                    {"expert_count", 16},
                                    {"expert_used_count", 4},
                                    {"expert_feed_forward_length", 256}};
constexpr std::string_view kLayerScale[] = {"layer_output_scale.weight"},
                           kBothScales[] = {"layer_output_scale.weight", "ffn_down_exps.scale"};
constexpr SynthKey kTinyHalf[] = {{"rope.dimension_count", 32}};
constexpr SynthKey kTinyHunyuan3[] = {{"expert_count", 16},          {"expert_used_count", 4},
                                      {"expert_weights_norm", true}, {"expert_feed_forward_length", 256},
                                      {"expert_weights_scale", 2.5}, {"leading_dense_block_count", 1}};
constexpr SynthKey kTinyExaoneMoe[] = {{"expert_count", 16},
                                       {"expert_used_count", 4},
                                       {"expert_weights_norm", true},
                                       {"expert_feed_forward_length", 256},
                                       {"leading_dense_block_count", 1},
                                       {"attention.sliding_window", 128}};
constexpr SynthKey kTinyMimo[] = {{"expert_count", 16},
                                  {"expert_used_count", 4},
                                  {"expert_feed_forward_length", 256},
                                  {"leading_dense_block_count", 1},
                                  {"attention.sliding_window", 128},
                                  {"attention.sliding_window_pattern", 2},
                                  {"attention.value_scale", 0.7}};
constexpr std::string_view kSinks[] = {"attn_sinks.weight"};
constexpr SynthKey kXielu[] = {
    {"xielu.alpha_p", 0.8}, {"xielu.alpha_n", 0.8}, {"xielu.beta", 0.5}, {"xielu.eps", -1e-6}};
constexpr SynthKey kTinyPhiMoe[] = {
    {"expert_count", 16}, {"expert_used_count", 2}, {"attention.layer_norm_rms_epsilon", 1e-5}};
constexpr SynthKey kTinyExperts[] = {{"expert_count", 16}, {"expert_used_count", 4}};
constexpr SynthKey kTinyExpertsFf[] = {
    {"expert_count", 16}, {"expert_used_count", 4}, {"expert_feed_forward_length", 256}};
constexpr SynthKey kTinyShared[] = {{"expert_count", 16},
                                    {"expert_used_count", 4},
                                    {"expert_feed_forward_length", 256},
                                    {"expert_shared_feed_forward_length", 512}};
constexpr SynthKey kTinyDeepseek[] = {{"expert_count", 16},
                                      {"expert_used_count", 4},
                                      {"expert_feed_forward_length", 256},
                                      {"expert_shared_count", 2},
                                      {"leading_dense_block_count", 1}};
constexpr SynthKey kTinyLatent[] = {{"attention.kv_lora_rank", 256},  {"attention.q_lora_rank", 256},
                                    {"attention.key_length", 288},    {"attention.value_length", 256},
                                    {"attention.key_length_mla", 96}, {"attention.value_length_mla", 64},
                                    {"rope.dimension_count", 32},     {"expert_count", 16},
                                    {"expert_used_count", 4},         {"expert_feed_forward_length", 256},
                                    {"expert_shared_count", 1},       {"expert_weights_norm", true},
                                    {"leading_dense_block_count", 1}};
constexpr SynthKey kTinyIndexed[] = {{"attention.kv_lora_rank", 256},
                                     {"attention.q_lora_rank", 256},
                                     {"attention.key_length", 288},
                                     {"attention.value_length", 256},
                                     {"attention.key_length_mla", 96},
                                     {"attention.value_length_mla", 64},
                                     {"attention.indexer.head_count", 4},
                                     {"attention.indexer.key_length", 64},
                                     {"attention.indexer.top_k", 128},
                                     {"rope.dimension_count", 32},
                                     {"expert_count", 16},
                                     {"expert_used_count", 4},
                                     {"expert_feed_forward_length", 256},
                                     {"expert_shared_count", 1},
                                     {"expert_weights_norm", true},
                                     {"expert_gating_func", 2},
                                     {"leading_dense_block_count", 1}};
constexpr SynthKey kTinyErnie[] = {{"expert_count", 16},
                                   {"expert_used_count", 4},
                                   {"expert_feed_forward_length", 256},
                                   {"expert_shared_feed_forward_length", 512},
                                   {"interleave_moe_layer_step", 1},
                                   {"leading_dense_block_count", 1}};
constexpr SynthKey kTinyGlm[] = {
    {"expert_count", 16},          {"expert_used_count", 4},         {"expert_feed_forward_length", 256},
    {"expert_shared_count", 1},    {"leading_dense_block_count", 1}, {"expert_weights_norm", true},
    {"expert_weights_scale", 2.5}, {"rope.dimension_count", 32}};
constexpr SynthKey kTinyLing[] = {{"expert_count", 16},
                                  {"expert_used_count", 4},
                                  {"expert_feed_forward_length", 256},
                                  {"expert_shared_count", 2},
                                  {"expert_weights_norm", true}};
constexpr SynthKey kTinyLing2[] = {
    {"expert_count", 16},          {"expert_used_count", 4},         {"expert_feed_forward_length", 256},
    {"expert_shared_count", 1},    {"leading_dense_block_count", 1}, {"expert_weights_norm", true},
    {"expert_weights_scale", 2.5}, {"rope.dimension_count", 32},     {"expert_group_count", 4},
    {"expert_group_used_count", 2}};
constexpr SynthKey kTinyGranite[] = {{"embedding_scale", 12.0}, {"residual_scale", 0.22}, {"attention.scale", 0.015625},
                                     {"logit_scale", 6.0},      {"expert_count", 16},     {"expert_used_count", 4}};
constexpr SynthKey kTinyGptOss[] = {{"expert_count", 16},
                                    {"expert_used_count", 4},
                                    {"expert_feed_forward_length", 256},
                                    {"attention.sliding_window", 128},
                                    {"rope.scaling.type", "yarn"},
                                    {"rope.scaling.factor", 32.0},
                                    {"rope.scaling.original_context_length", 4096}};

constexpr int64_t kSections[] = {11, 11, 10, 0};
constexpr SynthKey kQwen3Next[] = {{"rope.dimension_count", 64},
                                   {"ssm.conv_kernel", 4},
                                   {"ssm.state_size", 128},
                                   {"ssm.group_count", 16},
                                   {"ssm.time_step_rank", 32},
                                   {"ssm.inner_size", 4096},
                                   {"expert_count", 512},
                                   {"expert_used_count", 10},
                                   {"expert_feed_forward_length", 512},
                                   {"expert_shared_feed_forward_length", 512}};
constexpr SynthKey kQwen35A3B[] = {{"rope.dimension_count", 64},
                                   {"rope.dimension_sections", kSections},
                                   {"ssm.conv_kernel", 4},
                                   {"ssm.state_size", 128},
                                   {"ssm.group_count", 16},
                                   {"ssm.time_step_rank", 32},
                                   {"ssm.inner_size", 4096},
                                   {"expert_count", 256},
                                   {"expert_used_count", 8},
                                   {"expert_feed_forward_length", 512},
                                   {"expert_shared_feed_forward_length", 512}};
constexpr SynthKey kKimiLinear[] = {{"attention.head_count_kv", SynthLayers{4}},
                                    {"attention.kv_lora_rank", 512},
                                    {"attention.key_length", 576},
                                    {"attention.value_length", 512},
                                    {"attention.key_length_mla", 192},
                                    {"attention.value_length_mla", 128},
                                    {"rope.dimension_count", 64},
                                    {"ssm.conv_kernel", 4},
                                    {"kda.head_dim", 128},
                                    {"expert_count", 256},
                                    {"expert_used_count", 8},
                                    {"expert_feed_forward_length", 1024},
                                    {"expert_shared_count", 1},
                                    {"leading_dense_block_count", 1},
                                    {"expert_gating_func", 2},
                                    {"expert_weights_scale", 2.446}};
constexpr SynthKey kTinyNext[] = {{"rope.dimension_count", 16},
                                  {"full_attention_interval", 2},
                                  {"ssm.conv_kernel", 4},
                                  {"ssm.state_size", 32},
                                  {"ssm.group_count", 2},
                                  {"ssm.time_step_rank", 8},
                                  {"ssm.inner_size", 256},
                                  {"expert_count", 16},
                                  {"expert_used_count", 4},
                                  {"expert_feed_forward_length", 256},
                                  {"expert_shared_feed_forward_length", 256}};
constexpr int64_t kTinySections[] = {3, 3, 2, 0};
constexpr SynthKey kTinyQwen35[] = {{"rope.dimension_count", 16},   {"rope.dimension_sections", kTinySections},
                                    {"full_attention_interval", 2}, {"ssm.conv_kernel", 4},
                                    {"ssm.state_size", 32},         {"ssm.group_count", 2},
                                    {"ssm.time_step_rank", 8},      {"ssm.inner_size", 256}};
constexpr SynthKey kTinyQwen35Moe[] = {{"rope.dimension_count", 16},
                                       {"rope.dimension_sections", kTinySections},
                                       {"full_attention_interval", 2},
                                       {"ssm.conv_kernel", 4},
                                       {"ssm.state_size", 32},
                                       {"ssm.group_count", 2},
                                       {"ssm.time_step_rank", 8},
                                       {"ssm.inner_size", 256},
                                       {"expert_count", 16},
                                       {"expert_used_count", 4},
                                       {"expert_feed_forward_length", 256},
                                       {"expert_shared_feed_forward_length", 256}};
constexpr SynthKey kTinyKimiLinear[] = {{"attention.head_count_kv", SynthLayers{2}},
                                        {"attention.kv_lora_rank", 128},
                                        {"attention.key_length", 160},
                                        {"attention.value_length", 128},
                                        {"attention.key_length_mla", 96},
                                        {"attention.value_length_mla", 64},
                                        {"rope.dimension_count", 32},
                                        {"ssm.conv_kernel", 4},
                                        {"kda.head_dim", 64},
                                        {"expert_count", 16},
                                        {"expert_used_count", 4},
                                        {"expert_feed_forward_length", 256},
                                        {"expert_shared_count", 1},
                                        {"leading_dense_block_count", 1},
                                        {"expert_gating_func", 2},
                                        {"expert_weights_scale", 2.0}};
constexpr int64_t kLfm2Heads[] = {0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0};
constexpr SynthKey kLfm2[] = {{"attention.head_count_kv", kLfm2Heads}, {"shortconv.l_cache", 3}};
constexpr int64_t kGranite4Heads[] = {0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0,
                                      0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0};
constexpr SynthKey kGranite4Tiny[] = {{"attention.head_count_kv", kGranite4Heads},
                                      {"ssm.conv_kernel", 4},
                                      {"ssm.state_size", 128},
                                      {"ssm.group_count", 1},
                                      {"ssm.time_step_rank", 48},
                                      {"ssm.inner_size", 3072},
                                      {"rope.scaling.finetuned", false},
                                      {"embedding_scale", 12.0},
                                      {"residual_scale", 0.22},
                                      {"attention.scale", 0.0078125},
                                      {"logit_scale", 6.0},
                                      {"expert_count", 64},
                                      {"expert_used_count", 6},
                                      {"expert_shared_feed_forward_length", 1024}};
constexpr SynthKey kTinyGranite4[] = {{"attention.head_count_kv", SynthLayers{2, 2}},
                                      {"ssm.conv_kernel", 4},
                                      {"ssm.state_size", 32},
                                      {"ssm.group_count", 2},
                                      {"ssm.time_step_rank", 8},
                                      {"ssm.inner_size", 512},
                                      {"embedding_scale", 12.0},
                                      {"residual_scale", 0.22},
                                      {"attention.scale", 0.015625},
                                      {"logit_scale", 6.0}};
constexpr SynthKey kTinyLfm2[] = {{"attention.head_count_kv", SynthLayers{2, 2}}, {"shortconv.l_cache", 3}};
constexpr SynthKey kTinyLfm2Moe[] = {{"attention.head_count_kv", SynthLayers{2, 2}},
                                     {"shortconv.l_cache", 3},
                                     {"expert_count", 16},
                                     {"expert_used_count", 4},
                                     {"expert_feed_forward_length", 256},
                                     {"leading_dense_block_count", 1},
                                     {"expert_gating_func", 2}};
constexpr int64_t k256K = 262144, k1M = 1 << 20;
constexpr int64_t k4K = 4096, k8K = 8192, k16K = 16384, k32K = 32768, k40K = 40960, k128K = 131072, k160K = 163840;

// Source: the published configurations. Vocabulary; layers, dimension, feed-forward; heads, key-value heads, their
// dimension; context, rope base, epsilon.
constexpr SynthShape kShapes[] = {
    {"smollm2-135m", "llama", "smollm", 49152, 30, 576, 1536, 9, 3, 64, k8K, 1e5, 1e-5},
    {"smollm2-360m", "llama", "smollm", 49152, 32, 960, 2560, 15, 5, 64, k8K, 1e5, 1e-5},
    {"smollm2-1.7b", "llama", "smollm", 49152, 24, 2048, 8192, 32, 32, 64, k8K, 130000, 1e-5},
    {"llama-3.2-1b", "llama", "llama-bpe", 128256, 16, 2048, 8192, 32, 8, 64, k128K, 5e5, 1e-5},
    {"llama-3.2-3b", "llama", "llama-bpe", 128256, 28, 3072, 8192, 24, 8, 128, k128K, 5e5, 1e-5},
    {"llama-3.1-8b", "llama", "llama-bpe", 128256, 32, 4096, 14336, 32, 8, 128, k128K, 5e5, 1e-5, {}, kUntied},
    {"llama-3.3-70b", "llama", "llama-bpe", 128256, 80, 8192, 28672, 64, 8, 128, k128K, 5e5, 1e-5, {}, kUntied},
    {"mistral-7b", "llama", "llama-bpe", 32768, 32, 4096, 14336, 32, 8, 128, k32K, 1e6, 1e-5, {}, kUntied},
    {"gemma2-2b", "gemma2", "gpt-2", 256000, 26, 2304, 9216, 8, 4, 256, k8K, 1e4, 1e-6, kGemma2},
    {"gemma3-270m", "gemma3", "gpt-2", 262144, 18, 640, 2048, 4, 1, 256, k32K, 1e6, 1e-6, kGemma3},
    {"gemma3-1b", "gemma3", "gpt-2", 262144, 26, 1152, 6912, 4, 1, 256, k32K, 1e6, 1e-6, kGemma3},
    {"gemma4-e2b", "gemma4", "gpt-2", 262144, 35, 1536, 6144, 8, 1, 512, k128K, 1e6, 1e-6, kE2B, kLayerScale},
    {"gemma4-e4b", "gemma4", "gpt-2", 262144, 42, 2560, 10240, 8, 2, 512, k128K, 1e6, 1e-6, kE4B, kLayerScale},
    {"gemma4-26b-a4b", "gemma4", "gpt-2", 262144, 30, 2816, 2112, 16, 8, 512, 262144, 1e6, 1e-6, kGemmaA4B,
     kBothScales},
    {"gemma4-31b", "gemma4", "gpt-2", 262144, 60, 5376, 21504, 32, 16, 512, 262144, 1e6, 1e-6, kGemma31B, kLayerScale},
    {"qwen2.5-0.5b", "qwen2", "qwen2", 151936, 24, 896, 4864, 14, 2, 64, k32K, 1e6, 1e-6, {}, kQkvBias},
    {"qwen2.5-1.5b", "qwen2", "qwen2", 151936, 28, 1536, 8960, 12, 2, 128, k32K, 1e6, 1e-6, {}, kQkvBias},
    {"qwen2.5-7b", "qwen2", "qwen2", 152064, 28, 3584, 18944, 28, 4, 128, k32K, 1e6, 1e-6, {}, kQkvBiasUntied},
    {"qwen3-0.6b", "qwen3", "qwen2", 151936, 28, 1024, 3072, 16, 8, 128, k40K, 1e6, 1e-6},
    {"qwen3-1.7b", "qwen3", "qwen2", 151936, 28, 2048, 6144, 16, 8, 128, k40K, 1e6, 1e-6},
    {"qwen3-4b", "qwen3", "qwen2", 151936, 36, 2560, 9728, 32, 8, 128, k40K, 1e6, 1e-6},
    {"qwen3-8b", "qwen3", "qwen2", 151936, 36, 4096, 12288, 32, 8, 128, k40K, 1e6, 1e-6, {}, kUntied},
    {"olmoe-1b-7b", "olmoe", "olmo", 50304, 16, 2048, 1024, 16, 16, 128, k4K, 1e4, 1e-5, kOlmoe},
    {"qwen1.5-moe-a2.7b", "qwen2moe", "qwen2", 151936, 24, 2048, 5632, 16, 16, 128, k8K, 1e6, 1e-6, kQwen2Moe,
     kQkvBias},
    {"qwen3-30b-a3b", "qwen3moe", "qwen2", 151936, 48, 2048, 6144, 32, 4, 128, k40K, 1e6, 1e-6, kQwen3A3B, kUntied},
    {"qwen3-235b-a22b", "qwen3moe", "qwen2", 151936, 94, 4096, 12288, 64, 4, 128, k40K, 1e6, 1e-6, kQwen3A22B, kUntied},
    {"mixtral-8x7b", "llama", "llama-bpe", 32000, 32, 4096, 14336, 32, 8, 128, k32K, 1e6, 1e-5, kMixtral, kUntied},
    {"deepseek-moe-16b", "deepseek", "deepseek-llm", 102400, 28, 2048, 10944, 16, 16, 128, k4K, 1e4, 1e-6, kDeepseek,
     kUntied},
    {"deepseek-v2-lite", "deepseek2", "deepseek-llm", 102400, 27, 2048, 10944, 16, 1, 192, k160K, 1e4, 1e-6, kV2Lite,
     kUntied},
    {"deepseek-v3", "deepseek2", "deepseek-v3", 129280, 61, 7168, 18432, 128, 1, 192, k160K, 1e4, 1e-6, kV3,
     kSelectionUntied},
    {"deepseek-v3.2", "deepseek32", "deepseek-v3", 129280, 61, 7168, 18432, 128, 1, 192, k160K, 1e4, 1e-6, kV32,
     kSelectionUntied},
    {"glm-5", "glm-dsa", "glm4", 154880, 78, 6144, 12288, 64, 1, 256, 202752, 1e6, 1e-5, kGlm5, kSelectionUntied},
    {"glm-5.2", "glm-dsa", "glm4", 154880, 78, 6144, 12288, 64, 1, 256, 1048576, 8e6, 1e-5, kGlm5, kSelectionUntied},
    {"qwen3-next-80b-a3b", "qwen3next", "qwen2", 151936, 48, 2048, 5120, 16, 2, 256, k256K, 1e7, 1e-6, kQwen3Next,
     kUntied},
    {"qwen3.5-35b-a3b", "qwen35moe", "qwen35", 248320, 40, 2048, 5120, 16, 2, 256, k256K, 1e7, 1e-6, kQwen35A3B,
     kUntied},
    {"lfm2-1.2b", "lfm2", "lfm2", 65536, 16, 2048, 8192, 32, 8, 64, k128K, 1e6, 1e-5, kLfm2},
    {"granite-4.0-h-tiny", "granitehybrid", "dbrx", 100352, 40, 1536, 512, 12, 4, 128, k128K, 1e4, 1e-5, kGranite4Tiny},
    {"kimi-linear-48b-a3b", "kimi-linear", "kimi-k2", 163840, 27, 2304, 9216, 32, 1, 72, k1M, 1e4, 1e-5, kKimiLinear},
    {"kimi-k2", "deepseek2", "kimi-k2", 163840, 61, 7168, 18432, 64, 1, 192, k128K, 5e4, 1e-6, kKimiK2,
     kSelectionUntied},
    {"glm-4.7-flash", "deepseek2", "glm4", 154880, 47, 2048, 10240, 20, 1, 256, 202752, 1e6, 1e-5, kGlmFlash,
     kSelectionUntied},
    {"mistral-small-4", "mistral4", "tekken", 131072, 36, 4096, 12288, 32, 1, 128, 1048576, 1e4, 1e-6, kMistralSmall4,
     kUntied},
    {"ernie4.5-0.3b", "ernie4_5", "gpt-2", 103424, 18, 1024, 3072, 16, 2, 128, k128K, 5e5, 1e-5},
    {"ernie4.5-21b-a3b", "ernie4_5-moe", "gpt-2", 103424, 28, 2560, 12288, 20, 4, 128, k128K, 5e5, 1e-5, kErnie,
     kSelection},
    {"glm-4.5-air", "glm4moe", "glm4", 151552, 46, 4096, 10944, 96, 8, 128, k128K, 1e6, 1e-5, kGlmAir, kQkvBiasUntied},
    {"glm-4.5", "glm4moe", "glm4", 151552, 92, 5120, 12288, 96, 8, 128, k128K, 1e6, 1e-5, kGlm45, kGlm},
    {"granite-3.1-2b", "granite", "refact", 49155, 40, 2048, 8192, 32, 8, 64, k128K, 5e6, 1e-5, kGranite2B},
    {"granite-3.1-1b-a400m", "granitemoe", "refact", 49155, 24, 1024, 512, 16, 8, 64, k128K, 15e5, 1e-6, kGranite1B},
    {"granite-3.1-3b-a800m", "granitemoe", "refact", 49155, 32, 1536, 512, 24, 8, 64, k128K, 15e5, 1e-6, kGranite3B},
    {"gpt-oss-20b", "gpt-oss", "gpt-4o", 201088, 24, 2880, 2880, 64, 8, 64, k128K, 15e4, 1e-5, kOss20B, {}, "mxfp4"},
    {"gpt-oss-120b", "gpt-oss", "gpt-4o", 201088, 36, 2880, 2880, 64, 8, 64, k128K, 15e4, 1e-5, kOss120B, {}, "mxfp4"},
    {"phi-3.5-mini", "phi3", "gpt-2", 32064, 32, 3072, 8192, 32, 32, 96, k128K, 1e4, 1e-5, kPhi35, kLongRopeUntied},
    {"phi-4-mini", "phi3", "gpt-4o", 200064, 32, 3072, 8192, 24, 8, 128, k128K, 1e4, 1e-5, kPhi4Mini, kLongRope},
    {"phi-4", "phi3", "dbrx", 100352, 40, 5120, 17920, 40, 10, 128, k16K, 25e4, 1e-5, {}, kUntied},
    {"ministral-3-3b", "mistral3", "tekken", 131072, 26, 3072, 9216, 32, 8, 128, 262144, 1e6, 1e-5, kMinistral},
    {"ministral-3-8b", "mistral3", "tekken", 131072, 34, 4096, 14336, 32, 8, 128, 262144, 1e6, 1e-5, kMinistral,
     kUntied},
    {"smollm3-3b", "smollm3", "smaug-bpe", 128256, 36, 2048, 11008, 16, 4, 128, 65536, 5e6, 1e-6},
    {"glm-4-9b", "glm4", "glm4", 151552, 40, 4096, 13696, 32, 2, 128, k32K, 1e4, 1e-5, kGlm4, kQkvBiasUntied},
    {"glm-4-32b", "glm4", "glm4", 151552, 61, 6144, 23040, 48, 2, 128, k32K, 1e4, 1e-5, kGlm4, kUntied},
    {"olmo-2-1b", "olmo2", "dbrx", 100352, 16, 2048, 8192, 16, 16, 128, k4K, 5e5, 1e-6},
    {"olmo-2-7b", "olmo2", "dbrx", 100352, 32, 4096, 11008, 32, 32, 128, k4K, 5e5, 1e-6},
    {"command-r7b", "cohere2", "command-r", 256000, 32, 4096, 14336, 32, 8, 128, k128K, 5e4, 1e-5, kCommandR7B},
    {"command-r-35b", "command-r", "command-r", 256000, 40, 8192, 22528, 64, 64, 128, k128K, 8e6, 1e-5, kCommandR},
    {"starcoder2-3b",
     "starcoder2",
     "starcoder",
     49152,
     30,
     3072,
     12288,
     24,
     2,
     128,
     k16K,
     999999,
     1e-5,
     {},
     kPlainMlpBiases},
    {"qwen2.5-vl-3b", "qwen2vl", "qwen2", 151936, 36, 2048, 11008, 16, 2, 128, 128000, 1e6, 1e-6, {}, kQkvBias},
    {"qwen3-vl-4b", "qwen3vl", "qwen2", 151936, 36, 2560, 9728, 32, 8, 128, 262144, 5e6, 1e-6},
    {"apertus-8b", "apertus", "tekken", 131072, 32, 4096, 21504, 32, 8, 128, 65536, 12e6, 1e-5, kXielu, kUntied},
    {"internlm2.5-7b", "internlm2", "gpt-2", 92544, 32, 4096, 14336, 32, 8, 128, k32K, 1e6, 1e-5},
    {"exaone-4-1.2b", "exaone4", "exaone4", 102400, 30, 2048, 4096, 32, 8, 64, 65536, 1e6, 1e-5},
    {"exaone-4-32b", "exaone4", "exaone4", 102400, 64, 5120, 27392, 40, 8, 128, k128K, 1e6, 1e-5, kExaone32B, kUntied},
    {"seed-oss-36b",
     "seed_oss",
     "seed-coder",
     155136,
     64,
     5120,
     27648,
     80,
     8,
     128,
     524288,
     1e7,
     1e-6,
     {},
     kQkvBiasUntied},
    {"hunyuan-a13b", "hunyuan-moe", "hunyuan", 128167, 32, 4096, 3072, 32, 8, 128, k32K, 1e4, 1e-5, kHunyuanA13B},
    {"phi-3.5-moe", "phimoe", "gpt-2", 32064, 32, 4096, 6400, 32, 8, 128, k128K, 1e4, 1e-5, kPhi35Moe, kPhi35MoeExtra},
    {"minicpm-2b", "minicpm", "gpt-2", 122753, 40, 2304, 5760, 36, 36, 64, k4K, 1e4, 1e-5},
    {"gemma-2b", "gemma", "gpt-2", 256000, 18, 2048, 16384, 8, 1, 256, k8K, 1e4, 1e-6},
    {"stablelm-2-1.6b", "stablelm", "stablelm2", 100352, 24, 2048, 5632, 32, 32, 64, k4K, 1e4, 1e-5, kRotate16,
     kStableLm},
    {"pythia-1.4b", "gptneox", "gpt-2", 50304, 24, 2048, 8192, 16, 16, 128, 2048, 1e4, 1e-5, kPythia,
     kPlainMlpBiasesUntied},
    {"phi-2", "phi2", "phi-2", 51200, 32, 2560, 10240, 32, 32, 80, 2048, 1e4, 1e-5, kRotate32, kPhi2},
    {"gpt2", "gpt2", "gpt-2", 50257, 12, 768, 3072, 12, 12, 64, 1024, 1e4, 1e-5, {}, kPlainMlpBiases},
    // For tests and first steps.
    {"tiny-llama", "llama", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-mixtral", "llama", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-5, kTinyExperts, kUntied},
    {"tiny-gemma2", "gemma2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kGemma2},
    {"tiny-gemma3", "gemma3", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kGemma3},
    {"tiny-gemma4", "gemma4", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyGemma4, kBothScales},
    {"tiny-qwen2", "qwen2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, {}, kQkvBias},
    {"tiny-qwen3", "qwen3", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6},
    {"tiny-olmoe", "olmoe", "gpt-2", 512, 2, 256, 256, 4, 4, 64, k4K, 1e4, 1e-5, kTinyExperts},
    {"tiny-qwen2moe", "qwen2moe", "gpt-2", 512, 2, 256, 512, 4, 4, 64, k4K, 1e4, 1e-6, kTinyShared, kQkvBias},
    {"tiny-qwen3moe", "qwen3moe", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyExpertsFf, kUntied},
    {"tiny-deepseek", "deepseek", "gpt-2", 512, 2, 256, 512, 4, 4, 64, k4K, 1e4, 1e-6, kTinyDeepseek, kUntied},
    {"tiny-lfm2", "lfm2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyLfm2},
    {"tiny-lfm2moe", "lfm2moe", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyLfm2Moe},
    {"tiny-granitehybrid", "granitehybrid", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyGranite4},
    {"tiny-qwen3next", "qwen3next", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyNext, kUntied},
    {"tiny-qwen35", "qwen35", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyQwen35},
    {"tiny-qwen35moe", "qwen35moe", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyQwen35Moe, kUntied},
    {"tiny-kimi-linear", "kimi-linear", "gpt-2", 512, 4, 256, 512, 4, 1, 64, k4K, 1e4, 1e-5, kTinyKimiLinear},
    {"tiny-deepseek2", "deepseek2", "gpt-2", 512, 2, 256, 512, 4, 1, 64, k4K, 1e4, 1e-6, kTinyLatent, kUntied},
    {"tiny-deepseek32", "deepseek32", "gpt-2", 512, 2, 256, 512, 4, 1, 64, k4K, 1e4, 1e-6, kTinyIndexed, kUntied},
    {"tiny-glm-dsa", "glm-dsa", "gpt-2", 512, 2, 256, 512, 4, 1, 64, k4K, 1e4, 1e-6, kTinyIndexed, kUntied},
    {"tiny-mistral4", "mistral4", "gpt-2", 512, 2, 256, 512, 4, 1, 64, k4K, 1e4, 1e-6, kTinyLatent, kUntied},
    {"tiny-ernie4_5", "ernie4_5", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-ernie4_5-moe", "ernie4_5-moe", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyErnie, kSelection},
    {"tiny-glm4moe", "glm4moe", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyGlm, kGlm},
    {"tiny-bailingmoe", "bailingmoe", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyLing},
    {"tiny-bailingmoe2", "bailingmoe2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyLing2, kSelection},
    {"tiny-dots1", "dots1", "gpt-2", 512, 2, 256, 512, 4, 4, 64, k4K, 1e4, 1e-5, kTinyGlm, kSelection},
    {"tiny-minimax-m2", "minimax-m2", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-6, kTinyExperts, kSelection},
    {"tiny-granite", "granite", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kGranite2B},
    {"tiny-granitemoe", "granitemoe", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-6, kTinyGranite},
    {"tiny-phi3", "phi3", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-mistral3", "mistral3", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kMinistral},
    {"tiny-smollm3", "smollm3", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-glm4", "glm4", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-olmo2", "olmo2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6},
    {"tiny-cohere2", "cohere2", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kCommandR7B},
    {"tiny-command-r", "command-r", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kCommandR},
    {"tiny-starcoder2", "starcoder2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, {}, kPlainMlpBiases},
    {"tiny-internlm2", "internlm2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-xverse", "xverse", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-baichuan", "baichuan", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-exaone", "exaone", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-exaone4", "exaone4", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-minicpm", "minicpm", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-seed_oss", "seed_oss", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, {}, kQkvBias},
    {"tiny-hunyuan-dense", "hunyuan-dense", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-hunyuan-moe", "hunyuan-moe", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-5, kTinyExperts},
    {"tiny-hy_v3", "hy_v3", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyHunyuan3, kUntied},
    {"tiny-phimoe", "phimoe", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-5, kTinyPhiMoe, kQkvBias},
    {"tiny-gemma", "gemma", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-qwen", "qwen", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-apertus", "apertus", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kXielu, kUntied},
    {"tiny-arcee", "arcee", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-chatglm", "chatglm", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyHalf},
    {"tiny-stablelm", "stablelm", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyHalf, kStableLm},
    {"tiny-orion", "orion", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-gptneox", "gptneox", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kNeoX, kPlainMlpBiases},
    {"tiny-phi2", "phi2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyHalf, kPhi2},
    {"tiny-falcon", "falcon", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-codeshell", "codeshell", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, {}, kPlainMlpBiases},
    {"tiny-nemotron", "nemotron", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyHalf},
    {"tiny-gpt2", "gpt2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, {}, kPlainMlpBiases},
    {"tiny-starcoder", "starcoder", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, {}, kPlainMlpBiases},
    {"tiny-qwen2vl", "qwen2vl", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, {}, kQkvBias},
    {"tiny-qwen3vl", "qwen3vl", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-qwen3vlmoe", "qwen3vlmoe", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyExpertsFf, kUntied},
    {"tiny-exaone-moe", "exaone-moe", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyExaoneMoe},
    {"tiny-mimo2", "mimo2", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyMimo, kSinks},
    {"tiny-gpt-oss", "gpt-oss", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-5, kTinyGptOss, {}, "mxfp4"},
};

}  // namespace

std::span<const SynthShape> synth_shapes() { return kShapes; }

Result<const SynthShape*> find_synth_shape(std::string_view name) {
  std::string known;
  for (const SynthShape& shape : kShapes) {
    if (shape.name == name) return &shape;
    known += str_cat(known.empty() ? "" : ", ", shape.name);
  }
  return Error{ErrorCode::kInvalidArgument, str_cat("no shape ", quoted(name), "; known are ", known)};
}

}  // namespace stoker::engine
