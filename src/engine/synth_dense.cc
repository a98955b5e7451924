// Shapes for synth_shapes.cc. Families whose layers all have attention and a dense feed-forward block.
#include "engine/synth_lists.h"

namespace stoker::engine {
namespace {

constexpr SynthKey kGemma2[] = {{"attention.sliding_window", 4096}};
constexpr SynthKey kGemma3[] = {{"attention.sliding_window", 512}};
constexpr SynthKey kGranite2B[] = {
    {"embedding_scale", 12.0}, {"residual_scale", 0.22}, {"attention.scale", 0.015625}, {"logit_scale", 8.0}};
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
constexpr std::string_view kPlainMlpBiasesUntied[] = {
    "attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias", "ffn_up.bias", "ffn_down.bias", "output.weight"};
constexpr std::string_view kPhi2[] = {"attn_q.bias", "attn_k.bias",   "attn_v.bias",   "attn_output.bias",
                                      "ffn_up.bias", "ffn_down.bias", "output.weight", "output.bias"};
constexpr std::string_view kStableLm[] = {"attn_q.bias",     "attn_k.bias",   "attn_v.bias",
                                          "ffn_norm.weight", "ffn_norm.bias", "output.weight"};
constexpr SynthKey kTinyHalf[] = {{"rope.dimension_count", 32}};
constexpr SynthKey kXielu[] = {
    {"xielu.alpha_p", 0.8}, {"xielu.alpha_n", 0.8}, {"xielu.beta", 0.5}, {"xielu.eps", -1e-6}};

constexpr int64_t kThreeSlide[] = {1, 1, 1, 0};
constexpr SynthKey kTinyGraniteSwa[] = {
    {"embedding_scale", 12.0}, {"residual_scale", 0.22},          {"attention.scale", 0.015625},
    {"logit_scale", 6.0},      {"attention.sliding_window", 128}, {"attention.sliding_window_pattern", kThreeSlide}};

constexpr std::string_view kMlpBiases[] = {"attn_output.bias", "ffn_up.bias", "ffn_down.bias"};
constexpr SynthKey kMaxBias[] = {{"attention.max_alibi_bias", 8.0}};

constexpr int64_t kFourThenWhole[] = {1, 1, 1, 1, 0};
constexpr SynthKey kGemma3nE2B[] = {{"altup.num_inputs", 4},
                                    {"attention.sliding_window", 512},
                                    {"attention.sliding_window_pattern", kFourThenWhole},
                                    {"attention.shared_kv_layers", 10},
                                    {"embedding_length_per_layer_input", 256}};
constexpr SynthKey kGemma3nE4B[] = {{"altup.num_inputs", 4},
                                    {"attention.sliding_window", 512},
                                    {"attention.sliding_window_pattern", kFourThenWhole},
                                    {"attention.shared_kv_layers", 15},
                                    {"embedding_length_per_layer_input", 256}};
constexpr SynthKey kTinyGemma3n[] = {
    {"altup.num_inputs", 4}, {"attention.sliding_window", 128}, {"embedding_length_per_layer_input", 32}};

constexpr int64_t kTinyDeciHeads[] = {4, 4, 0, 4}, kTinyDeciKv[] = {2, 0, 0, 2}, kTinyDeciFf[] = {512, 512, 256, 0};
constexpr SynthKey kTinyDeci[] = {{"attention.head_count", kTinyDeciHeads},
                                  {"attention.head_count_kv", kTinyDeciKv},
                                  {"feed_forward_length", kTinyDeciFf}};

constexpr SynthShape kPublished[] = {
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
    {"gemma3n-e2b", "gemma3n", "gpt-2", 262400, 30, 2048, 8192, 8, 2, 256, k32K, 1e6, 1e-6, kGemma3nE2B},
    {"gemma3n-e4b", "gemma3n", "gpt-2", 262400, 35, 2048, 16384, 8, 2, 256, k32K, 1e6, 1e-6, kGemma3nE4B},
    {"qwen2.5-0.5b", "qwen2", "qwen2", 151936, 24, 896, 4864, 14, 2, 64, k32K, 1e6, 1e-6, {}, kQkvBias},
    {"qwen2.5-1.5b", "qwen2", "qwen2", 151936, 28, 1536, 8960, 12, 2, 128, k32K, 1e6, 1e-6, {}, kQkvBias},
    {"qwen2.5-7b", "qwen2", "qwen2", 152064, 28, 3584, 18944, 28, 4, 128, k32K, 1e6, 1e-6, {}, kQkvBiasUntied},
    {"qwen3-0.6b", "qwen3", "qwen2", 151936, 28, 1024, 3072, 16, 8, 128, k40K, 1e6, 1e-6},
    {"qwen3-1.7b", "qwen3", "qwen2", 151936, 28, 2048, 6144, 16, 8, 128, k40K, 1e6, 1e-6},
    {"qwen3-4b", "qwen3", "qwen2", 151936, 36, 2560, 9728, 32, 8, 128, k40K, 1e6, 1e-6},
    {"qwen3-8b", "qwen3", "qwen2", 151936, 36, 4096, 12288, 32, 8, 128, k40K, 1e6, 1e-6, {}, kUntied},
    {"ernie4.5-0.3b", "ernie4_5", "gpt-2", 103424, 18, 1024, 3072, 16, 2, 128, k128K, 5e5, 1e-5},
    {"granite-3.1-2b", "granite", "refact", 49155, 40, 2048, 8192, 32, 8, 64, k128K, 5e6, 1e-5, kGranite2B},
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
    {"minicpm-2b", "minicpm", "gpt-2", 122753, 40, 2304, 5760, 36, 36, 64, k4K, 1e4, 1e-5},
    {"gemma-2b", "gemma", "gpt-2", 256000, 18, 2048, 16384, 8, 1, 256, k8K, 1e4, 1e-6},
    {"stablelm-2-1.6b", "stablelm", "stablelm2", 100352, 24, 2048, 5632, 32, 32, 64, k4K, 1e4, 1e-5, kRotate16,
     kStableLm},
    {"pythia-1.4b", "gptneox", "gpt-2", 50304, 24, 2048, 8192, 16, 16, 128, 2048, 1e4, 1e-5, kPythia,
     kPlainMlpBiasesUntied},
    {"phi-2", "phi2", "phi-2", 51200, 32, 2560, 10240, 32, 32, 80, 2048, 1e4, 1e-5, kRotate32, kPhi2},
    {"gpt2", "gpt2", "gpt-2", 50257, 12, 768, 3072, 12, 12, 64, 1024, 1e4, 1e-5, {}, kPlainMlpBiases},
    {"bloom-7b1", "bloom", "bloom", 250880, 30, 4096, 16384, 32, 32, 128, 2048, 1e4, 1e-5, {}, kPlainMlpBiases},
    {"mpt-7b", "mpt", "mpt", 50432, 32, 4096, 16384, 32, 32, 128, 2048, 1e4, 1e-5, kMaxBias},
    {"olmo-7b", "olmo", "olmo", 50304, 32, 4096, 11008, 32, 32, 128, 2048, 1e4, 1e-5, {}, kUntied},
};

constexpr SynthShape kTiny[] = {
    {"tiny-deci", "deci", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyDeci},
    {"tiny-gemma3n", "gemma3n", "gpt-2", 512, 5, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kTinyGemma3n},
    {"tiny-bloom", "bloom", "gpt-2", 512, 2, 256, 512, 4, 4, 64, k4K, 1e4, 1e-5, {}, kPlainMlpBiases},
    {"tiny-jais", "jais", "gpt-2", 512, 2, 256, 512, 4, 4, 64, k4K, 1e4, 1e-5, kMaxBias, kMlpBiases},
    {"tiny-jais2", "jais2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, {}, kPlainMlpBiases},
    {"tiny-maincoder", "maincoder", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-mpt", "mpt", "gpt-2", 512, 2, 256, 512, 4, 4, 64, k4K, 1e4, 1e-5, kMaxBias},
    {"tiny-olmo", "olmo", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-pangu-embedded", "pangu-embedded", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, {}, kQkvBias},
    {"tiny-refact", "refact", "gpt-2", 512, 2, 256, 512, 4, 1, 64, k4K, 1e4, 1e-5},
    {"tiny-granite_swa", "granite_swa", "gpt-2", 512, 4, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kTinyGraniteSwa},
    {"tiny-llama", "llama", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-gemma2", "gemma2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kGemma2},
    {"tiny-gemma3", "gemma3", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, kGemma3},
    {"tiny-qwen2", "qwen2", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6, {}, kQkvBias},
    {"tiny-qwen3", "qwen3", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-6},
    {"tiny-ernie4_5", "ernie4_5", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5},
    {"tiny-granite", "granite", "gpt-2", 512, 2, 256, 512, 4, 2, 64, k4K, 1e4, 1e-5, kGranite2B},
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
};

}  // namespace

const ShapeList kDenseShapes{.published = kPublished, .tiny = kTiny};

}  // namespace stoker::engine
