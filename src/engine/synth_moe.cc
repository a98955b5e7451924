// Shapes for synth_shapes.cc. Families with experts.
#include "engine/synth_lists.h"

namespace stoker::engine {
namespace {

constexpr std::string_view kSelection[] = {"exp_probs_b.bias"};
constexpr std::string_view kGlm[] = {"attn_q.bias",   "attn_k.bias",        "attn_v.bias",
                                     "output.weight", "attn_q_norm.weight", "attn_k_norm.weight"};
constexpr SynthKey kDeepseek[] = {{"expert_count", 64},
                                  {"expert_used_count", 6},
                                  {"expert_feed_forward_length", 1408},
                                  {"expert_shared_count", 2},
                                  {"leading_dense_block_count", 1}};
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
constexpr SynthKey kLlama4Scout[] = {{"expert_count", 16},
                                     {"expert_used_count", 1},
                                     {"expert_feed_forward_length", 8192},
                                     {"interleave_moe_layer_step", 1}};
constexpr SynthKey kTinyLlama4[] = {{"expert_count", 4},
                                    {"expert_used_count", 1},
                                    {"expert_feed_forward_length", 256},
                                    {"interleave_moe_layer_step", 2}};
constexpr SynthKey kTinyAfMoe[] = {{"expert_count", 8},
                                   {"expert_used_count", 2},
                                   {"expert_feed_forward_length", 256},
                                   {"expert_shared_count", 1},
                                   {"leading_dense_block_count", 1},
                                   {"expert_weights_norm", true},
                                   {"attention.sliding_window", 128}};

constexpr int64_t kStepHeads[] = {64, 96, 96, 96}, kOneOfFour[] = {0, 1, 1, 1};
constexpr SynthKey kStep35Flash[] = {{"attention.head_count", kStepHeads},
                                     {"attention.sliding_window", 512},
                                     {"attention.sliding_window_pattern", kOneOfFour},
                                     {"expert_count", 288},
                                     {"expert_used_count", 8},
                                     {"expert_feed_forward_length", 1280},
                                     {"expert_shared_feed_forward_length", 1280},
                                     {"expert_weights_norm", true},
                                     {"expert_weights_scale", 3.0},
                                     {"leading_dense_block_count", 3}};
constexpr SynthKey kTinyStep[] = {{"attention.sliding_window", 128},
                                  {"attention.sliding_window_pattern", kOneOfFour},
                                  {"expert_count", 16},
                                  {"expert_used_count", 4},
                                  {"expert_feed_forward_length", 256},
                                  {"expert_shared_feed_forward_length", 256},
                                  {"leading_dense_block_count", 1}};
constexpr SynthKey kTinyLaguna[] = {{"attention.sliding_window", 128},
                                    {"expert_count", 16},
                                    {"expert_used_count", 4},
                                    {"expert_feed_forward_length", 256},
                                    {"leading_dense_block_count", 1}};

constexpr SynthKey kDbrxKeys[] = {{"expert_count", 16}, {"expert_used_count", 4}, {"attention.clamp_kqv", 8.0}};
constexpr SynthKey kTinyCohere[] = {
    {"logit_scale", 0.25},           {"attention.sliding_window", 128},   {"expert_count", 16},
    {"expert_used_count", 4},        {"expert_feed_forward_length", 256}, {"expert_shared_count", 1},
    {"leading_dense_block_count", 1}};
constexpr SynthKey kTinySlidingExperts[] = {{"attention.sliding_window", 128},
                                            {"expert_count", 16},
                                            {"expert_used_count", 4},
                                            {"expert_feed_forward_length", 256}};

constexpr SynthShape kPublished[] = {
    {"step-3.5-flash", "step35", "deepseek-v3", 128896, 45, 4096, 11264, 64, 8, 128, k256K, 5e6, 1e-5, kStep35Flash,
     kSelection},
    {"llama-4-scout", "llama4", "llama4", 202048, 48, 5120, 16384, 40, 8, 128, 10485760, 5e5, 1e-5, kLlama4Scout,
     kUntied},
    {"gemma4-e2b", "gemma4", "gpt-2", 262144, 35, 1536, 6144, 8, 1, 512, k128K, 1e6, 1e-6, kE2B, kLayerScale},
    {"gemma4-e4b", "gemma4", "gpt-2", 262144, 42, 2560, 10240, 8, 2, 512, k128K, 1e6, 1e-6, kE4B, kLayerScale},
    {"gemma4-26b-a4b", "gemma4", "gpt-2", 262144, 30, 2816, 2112, 16, 8, 512, 262144, 1e6, 1e-6, kGemmaA4B,
     kBothScales},
    {"gemma4-31b", "gemma4", "gpt-2", 262144, 60, 5376, 21504, 32, 16, 512, 262144, 1e6, 1e-6, kGemma31B, kLayerScale},
    {"olmoe-1b-7b", "olmoe", "olmo", 50304, 16, 2048, 1024, 16, 16, 128, k4K, 1e4, 1e-5, kOlmoe},
    {"qwen1.5-moe-a2.7b", "qwen2moe", "qwen2", 151936, 24, 2048, 5632, 16, 16, 128, k8K, 1e6, 1e-6, kQwen2Moe,
     kQkvBias},
    {"qwen3-30b-a3b", "qwen3moe", "qwen2", 151936, 48, 2048, 6144, 32, 4, 128, k40K, 1e6, 1e-6, kQwen3A3B, kUntied},
    {"qwen3-235b-a22b", "qwen3moe", "qwen2", 151936, 94, 4096, 12288, 64, 4, 128, k40K, 1e6, 1e-6, kQwen3A22B, kUntied},
    {"mixtral-8x7b", "llama", "llama-bpe", 32000, 32, 4096, 14336, 32, 8, 128, k32K, 1e6, 1e-5, kMixtral, kUntied},
    {"deepseek-moe-16b", "deepseek", "deepseek-llm", 102400, 28, 2048, 10944, 16, 16, 128, k4K, 1e4, 1e-6, kDeepseek,
     kUntied},
    {"ernie4.5-21b-a3b", "ernie4_5-moe", "gpt-2", 103424, 28, 2560, 12288, 20, 4, 128, k128K, 5e5, 1e-5, kErnie,
     kSelection},
    {"glm-4.5-air", "glm4moe", "glm4", 151552, 46, 4096, 10944, 96, 8, 128, k128K, 1e6, 1e-5, kGlmAir, kQkvBiasUntied},
    {"glm-4.5", "glm4moe", "glm4", 151552, 92, 5120, 12288, 96, 8, 128, k128K, 1e6, 1e-5, kGlm45, kGlm},
    {"granite-3.1-1b-a400m", "granitemoe", "refact", 49155, 24, 1024, 512, 16, 8, 64, k128K, 15e5, 1e-6, kGranite1B},
    {"granite-3.1-3b-a800m", "granitemoe", "refact", 49155, 32, 1536, 512, 24, 8, 64, k128K, 15e5, 1e-6, kGranite3B},
    {"gpt-oss-20b", "gpt-oss", "gpt-4o", 201088, 24, 2880, 2880, 64, 8, 64, k128K, 15e4, 1e-5, kOss20B, {}, "mxfp4"},
    {"gpt-oss-120b", "gpt-oss", "gpt-4o", 201088, 36, 2880, 2880, 64, 8, 64, k128K, 15e4, 1e-5, kOss120B, {}, "mxfp4"},
    {"hunyuan-a13b", "hunyuan-moe", "hunyuan", 128167, 32, 4096, 3072, 32, 8, 128, k32K, 1e4, 1e-5, kHunyuanA13B},
    {"phi-3.5-moe", "phimoe", "gpt-2", 32064, 32, 4096, 6400, 32, 8, 128, k128K, 1e4, 1e-5, kPhi35Moe, kPhi35MoeExtra},
    {"dbrx", "dbrx", "dbrx", 100352, 40, 6144, 10752, 48, 8, 128, k32K, 5e5, 1e-5, kDbrxKeys},
};

constexpr SynthShape kTiny[] = {
    {"tiny-cohere2moe", "cohere2moe", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyCohere},
    {"tiny-dbrx", "dbrx", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-5, kDbrxKeys},
    {"tiny-mellum", "mellum", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinySlidingExperts},
    {"tiny-smallthinker", "smallthinker", "gpt-2", 512, 4, 256, 256, 4, 2, 64, k4K, 1e4, 1e-5, kTinySlidingExperts},
    {"tiny-step35", "step35", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyStep},
    {"tiny-laguna", "laguna", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyLaguna},
    {"tiny-afmoe", "afmoe", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyAfMoe},
    {"tiny-llama4", "llama4", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyLlama4, kUntied},
    {"tiny-mixtral", "llama", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-5, kTinyExperts, kUntied},
    {"tiny-gemma4", "gemma4", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyGemma4, kBothScales},
    {"tiny-olmoe", "olmoe", "gpt-2", 512, 2, 256, 256, 4, 4, 64, k4K, 1e4, 1e-5, kTinyExperts},
    {"tiny-qwen2moe", "qwen2moe", "gpt-2", 512, 2, 256, 512, 4, 4, 64, k4K, 1e4, 1e-6, kTinyShared, kQkvBias},
    {"tiny-qwen3moe", "qwen3moe", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyExpertsFf, kUntied},
    {"tiny-deepseek", "deepseek", "gpt-2", 512, 2, 256, 512, 4, 4, 64, k4K, 1e4, 1e-6, kTinyDeepseek, kUntied},
    {"tiny-ernie4_5-moe", "ernie4_5-moe", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyErnie, kSelection},
    {"tiny-glm4moe", "glm4moe", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyGlm, kGlm},
    {"tiny-bailingmoe", "bailingmoe", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyLing},
    {"tiny-bailingmoe2", "bailingmoe2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyLing2, kSelection},
    {"tiny-dots1", "dots1", "gpt-2", 512, 2, 256, 512, 4, 4, 64, k4K, 1e4, 1e-5, kTinyGlm, kSelection},
    {"tiny-minimax-m2", "minimax-m2", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-6, kTinyExperts, kSelection},
    {"tiny-granitemoe", "granitemoe", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-6, kTinyGranite},
    {"tiny-hunyuan-moe", "hunyuan-moe", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-5, kTinyExperts},
    {"tiny-hy_v3", "hy_v3", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyHunyuan3, kUntied},
    {"tiny-phimoe", "phimoe", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-5, kTinyPhiMoe, kQkvBias},
    {"tiny-qwen3vlmoe", "qwen3vlmoe", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyExpertsFf, kUntied},
    {"tiny-exaone-moe", "exaone-moe", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyExaoneMoe},
    {"tiny-mimo2", "mimo2", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyMimo, kSinks},
    {"tiny-gpt-oss", "gpt-oss", "gpt-2", 512, 2, 256, 256, 4, 2, 64, k4K, 1e4, 1e-5, kTinyGptOss, {}, "mxfp4"},
};

}  // namespace

const ShapeList kMoeShapes{.published = kPublished, .tiny = kTiny};

}  // namespace stoker::engine
