#include <algorithm>
#include <string>

#include "base/str_cat.h"
#include "model/arch/arch.h"

namespace stoker::model {

// Where the families are: each file has a namespace of its own name, since they are compiled several at a time.
namespace afmoe {
extern const Arch kAfMoe;
}
namespace alibi {
extern const Arch kBloom, kMpt, kJais, kRefact;
}
namespace apertus {
extern const Arch kApertus;
}
namespace arcee {
extern const Arch kArcee;
}
namespace bailingmoe {
extern const Arch kBailingMoe, kBailingMoe2;
}
namespace bert {
extern const Arch kBert, kJinaBert2, kNomicBert, kNomicBertMoe;
}
namespace chatglm {
extern const Arch kChatGlm;
}
namespace cohere {
extern const Arch kCommandR, kCohere2;
}
namespace cohere2_moe {
extern const Arch kCohere2Moe;
}
namespace dbrx {
extern const Arch kDbrx;
}
namespace deci {
extern const Arch kDeci;
}
namespace deepseek {
extern const Arch kDeepseek;
}
namespace deepseek2 {
extern const Arch kDeepseek2, kMistral4;
}
namespace deepseek4 {
extern const Arch kDeepseek4;
}
namespace dots1 {
extern const Arch kDots1;
}
namespace ernie4_5 {
extern const Arch kErnie45, kErnie45Moe;
}
namespace exaone4 {
extern const Arch kExaone4;
}
namespace exaone_moe {
extern const Arch kExaoneMoe;
}
namespace falcon_h1 {
extern const Arch kFalconH1;
}
namespace gemma {
extern const Arch kGemma, kGemma2, kGemma3, kGemmaEmbedding;
}
namespace gemma3n {
extern const Arch kGemma3n;
}
namespace gemma4 {
extern const Arch kGemma4;
}
namespace glm4 {
extern const Arch kGlm4;
}
namespace glm4_moe {
extern const Arch kGlm4Moe;
}
namespace glm_dsa {
extern const Arch kDeepseek32, kGlmDsa;
}
namespace gpt {
extern const Arch kGptNeoX, kPhi2, kFalcon, kCodeShell, kStarCoder2, kNemotron, kJais2, kGpt2, kStarCoder;
}
namespace gpt_oss {
extern const Arch kGptOss;
}
namespace granite {
extern const Arch kGranite, kGraniteMoe, kGraniteSwa;
}
namespace granite_hybrid {
extern const Arch kGraniteHybrid;
}
namespace hunyuan {
extern const Arch kHunyuanDense, kHunyuanMoe, kHunyuan3;
}
namespace internlm2 {
extern const Arch kInternLm2, kXverse, kBaichuan, kExaone;
}
namespace kimi_k3 {
extern const Arch kKimiK3;
}
namespace kimi_linear {
extern const Arch kKimiLinear;
}
namespace laguna {
extern const Arch kLaguna;
}
namespace lfm2 {
extern const Arch kLfm2, kLfm2Moe;
}
namespace llama {
extern const Arch kLlama;
}
namespace llama4 {
extern const Arch kLlama4;
}
namespace maincoder {
extern const Arch kMaincoder;
}
namespace mimo2 {
extern const Arch kMimo2;
}
namespace minicpm {
extern const Arch kMiniCpm;
}
namespace minimax_m2 {
extern const Arch kMinimaxM2;
}
namespace mistral3 {
extern const Arch kMistral3;
}
namespace modern_bert {
extern const Arch kModernBert;
}
namespace nemotron_h {
extern const Arch kNemotronH, kNemotronHMoe;
}
namespace olmo {
extern const Arch kOlmo;
}
namespace olmo2 {
extern const Arch kOlmo2;
}
namespace olmoe {
extern const Arch kOlmoe;
}
namespace phi3 {
extern const Arch kPhi3;
}
namespace phimoe {
extern const Arch kPhiMoe;
}
namespace qwen {
extern const Arch kQwen;
}
namespace qwen2 {
extern const Arch kQwen2, kQwen2Vl, kPangu;
}
namespace qwen2_moe {
extern const Arch kQwen2Moe;
}
namespace qwen3 {
extern const Arch kQwen3, kQwen3Vl;
}
namespace qwen3_moe {
extern const Arch kQwen3Moe, kQwen3VlMoe, kMellum;
}
namespace qwen3_next {
extern const Arch kQwen3Next, kQwen35, kQwen35Moe;
}
namespace seed_oss {
extern const Arch kSeedOss;
}
namespace smallthinker {
extern const Arch kSmallThinker;
}
namespace smollm3 {
extern const Arch kSmolLm3;
}
namespace stablelm {
extern const Arch kStableLm, kOrion;
}
namespace step35 {
extern const Arch kStep35;
}

namespace {
constexpr const Arch* kArchs[] = {&afmoe::kAfMoe,
                                  &apertus::kApertus,
                                  &arcee::kArcee,
                                  &internlm2::kBaichuan,
                                  &bailingmoe::kBailingMoe,
                                  &bailingmoe::kBailingMoe2,
                                  &bert::kBert,
                                  &alibi::kBloom,
                                  &chatglm::kChatGlm,
                                  &gpt::kCodeShell,
                                  &cohere::kCohere2,
                                  &cohere2_moe::kCohere2Moe,
                                  &cohere::kCommandR,
                                  &dbrx::kDbrx,
                                  &deci::kDeci,
                                  &deepseek::kDeepseek,
                                  &deepseek2::kDeepseek2,
                                  &glm_dsa::kDeepseek32,
                                  &deepseek4::kDeepseek4,
                                  &dots1::kDots1,
                                  &ernie4_5::kErnie45,
                                  &ernie4_5::kErnie45Moe,
                                  &internlm2::kExaone,
                                  &exaone4::kExaone4,
                                  &exaone_moe::kExaoneMoe,
                                  &gpt::kFalcon,
                                  &falcon_h1::kFalconH1,
                                  &gemma::kGemma,
                                  &gemma::kGemma2,
                                  &gemma::kGemma3,
                                  &gemma3n::kGemma3n,
                                  &gemma4::kGemma4,
                                  &gemma::kGemmaEmbedding,
                                  &glm4::kGlm4,
                                  &glm4_moe::kGlm4Moe,
                                  &glm_dsa::kGlmDsa,
                                  &gpt::kGpt2,
                                  &gpt::kGptNeoX,
                                  &gpt_oss::kGptOss,
                                  &granite::kGranite,
                                  &granite_hybrid::kGraniteHybrid,
                                  &granite::kGraniteMoe,
                                  &granite::kGraniteSwa,
                                  &hunyuan::kHunyuan3,
                                  &hunyuan::kHunyuanDense,
                                  &hunyuan::kHunyuanMoe,
                                  &internlm2::kInternLm2,
                                  &bert::kJinaBert2,
                                  &alibi::kJais,
                                  &gpt::kJais2,
                                  &kimi_k3::kKimiK3,
                                  &kimi_linear::kKimiLinear,
                                  &laguna::kLaguna,
                                  &lfm2::kLfm2,
                                  &lfm2::kLfm2Moe,
                                  &llama::kLlama,
                                  &llama4::kLlama4,
                                  &maincoder::kMaincoder,
                                  &qwen3_moe::kMellum,
                                  &alibi::kMpt,
                                  &mimo2::kMimo2,
                                  &minicpm::kMiniCpm,
                                  &minimax_m2::kMinimaxM2,
                                  &mistral3::kMistral3,
                                  &deepseek2::kMistral4,
                                  &modern_bert::kModernBert,
                                  &gpt::kNemotron,
                                  &nemotron_h::kNemotronH,
                                  &nemotron_h::kNemotronHMoe,
                                  &bert::kNomicBert,
                                  &bert::kNomicBertMoe,
                                  &olmo::kOlmo,
                                  &olmo2::kOlmo2,
                                  &olmoe::kOlmoe,
                                  &stablelm::kOrion,
                                  &qwen2::kPangu,
                                  &gpt::kPhi2,
                                  &phi3::kPhi3,
                                  &phimoe::kPhiMoe,
                                  &qwen::kQwen,
                                  &qwen2::kQwen2,
                                  &qwen2_moe::kQwen2Moe,
                                  &qwen2::kQwen2Vl,
                                  &qwen3::kQwen3,
                                  &qwen3_next::kQwen35,
                                  &qwen3_next::kQwen35Moe,
                                  &qwen3_moe::kQwen3Moe,
                                  &qwen3_next::kQwen3Next,
                                  &qwen3::kQwen3Vl,
                                  &qwen3_moe::kQwen3VlMoe,
                                  &alibi::kRefact,
                                  &seed_oss::kSeedOss,
                                  &smallthinker::kSmallThinker,
                                  &smollm3::kSmolLm3,
                                  &stablelm::kStableLm,
                                  &gpt::kStarCoder,
                                  &gpt::kStarCoder2,
                                  &step35::kStep35,
                                  &internlm2::kXverse};

}  // namespace

std::span<const Arch* const> all_archs() { return kArchs; }

Result<const Arch*> find_arch(std::string_view name) {
  for (const Arch* arch : kArchs) {
    if (arch->name == name) return arch;
  }
  std::string known;
  for (const Arch* arch : kArchs) known += str_cat(known.empty() ? "" : ", ", arch->name);
  return Error{ErrorCode::kUnsupported,
               str_cat("architecture ", quoted(name), " is not run by this version; known are ", known)};
}

namespace {

Status check_taps(const ModelConfig& config, std::string_view key) {
  if (config.conv_taps >= 2 && config.conv_taps <= 4) return Ok{};
  return Error{ErrorCode::kUnsupported,
               str_cat("key ", config.arch->name, ".", key, " is ", config.conv_taps, "; this version runs 2 to 4")};
}

}  // namespace

Status check_recurrence(const ModelConfig& config) {
  STOKER_TRY_STATUS(check_taps(config, "ssm.conv_kernel"));
  if (config.state_k_dim > 512 || config.state_v_dim % 16 != 0 || config.state_v_dim > 512) {
    return Error{ErrorCode::kUnsupported, str_cat("heads with a state of ", config.state_k_dim, " times ",
                                                  config.state_v_dim, "; this version runs multiples of 16 up to 512")};
  }
  if (config.n_state_heads % config.n_key_heads != 0) {
    return Error{ErrorCode::kCorrupt,
                 str_cat("key ", config.arch->name, ".ssm.time_step_rank is ", config.n_state_heads,
                         ", no multiple of ", config.n_key_heads, ", which ssm.group_count is")};
  }
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    if (!config.is_recurrent(layer) && !config.is_stateless(layer)) return Ok{};
  }
  return Error{ErrorCode::kUnsupported,
               str_cat("none of ", config.n_layers, " layers has attention; this version runs ", config.arch->name,
                       " with some")};
}

Status check_shared_kv(const ModelConfig& config) {
  for (int64_t layer = config.n_layers - config.n_shared_kv; layer < config.n_layers; ++layer) {
    if (layer > 0 && config.kv_layer(layer) != layer) continue;
    return Error{ErrorCode::kCorrupt,
                 str_cat("key ", config.arch->name, ".attention.shared_kv_layers is ", config.n_shared_kv,
                         ": no layer before layer ", layer, " has keys for it")};
  }
  return Ok{};
}

Status finish_scan(ModelConfig& config) {
  if (config.state_inner_dim % config.n_state_heads != 0) {
    return Error{ErrorCode::kCorrupt,
                 str_cat("key ", config.arch->name, ".ssm.inner_size is ", config.state_inner_dim, ", no multiple of ",
                         config.n_state_heads, ", which ssm.time_step_rank is")};
  }
  config.state_v_dim = config.state_inner_dim / config.n_state_heads;
  return Ok{};
}

Status recurrent_where_no_heads(ModelConfig& config, std::string_view taps_key) {
  bool any_attention = false;
  std::vector<int64_t> heads;
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const bool none = config.n_kv_heads[layer] == 0;
    config.recurrent_layers.values.push_back(none && !config.is_stateless(layer));
    heads.push_back(none ? 1 : config.n_kv_heads[layer]);
    any_attention |= !none;
  }
  if (!any_attention) {
    return Error{ErrorCode::kUnsupported,
                 str_cat("key ", config.arch->name, ".attention.head_count_kv is 0 in all ", config.n_layers,
                         " layers; this version runs ", config.arch->name, " with attention in some")};
  }
  config.n_kv_heads.values = std::move(heads);
  return check_taps(config, taps_key);
}

int64_t resolve(Dim dim, const ModelConfig& config, int64_t layer) {
  switch (dim) {
    case Dim::kModel:
      return config.dim;
    case Dim::kVocab:
      return config.n_vocab;
    case Dim::kQ:
      return config.n_heads[layer] * config.k_dim_of(layer);
    case Dim::kK:
      return config.n_kv_heads[layer] * config.k_dim_of(layer);
    case Dim::kV:
      return config.n_kv_heads[layer] * config.v_dim_of(layer);
    case Dim::kQkv:
      return resolve(Dim::kQ, config, layer) + resolve(Dim::kK, config, layer) + resolve(Dim::kV, config, layer);
    case Dim::kAttnOut:
      return config.n_heads[layer] * config.v_dim_of(layer);
    case Dim::kFf:
      return config.ff_dim[layer];
    case Dim::kTwoFf:
      return 2 * config.ff_dim[layer];
    case Dim::kHalfFf:
      return config.ff_dim[layer] / 2;
    case Dim::kHead:
      return config.k_dim_of(layer);
    case Dim::kHeads:
      return config.n_heads[layer];
    case Dim::kKvHeads:
      return config.n_kv_heads[layer];
    case Dim::kContext:
      return config.context_length;
    case Dim::kTokenTypes:
      return config.n_token_types;
    case Dim::kLabels:
      return config.n_rank_labels();
    case Dim::kDense2:
      return config.dense_2_dim;
    case Dim::kDense3:
      return config.dense_3_dim;
    case Dim::kExperts:
      return config.n_experts;
    case Dim::kExpertFf:
      return config.expert_ff_dim ? config.expert_ff_dim : config.ff_dim[layer];
    case Dim::kSharedFf:
      return config.shared_width();
    case Dim::kExpertModel:
      return config.expert_latent_dim ? config.expert_latent_dim : config.dim;
    case Dim::kLatent:
      return config.latent_dim;
    case Dim::kLatentAndRope:
      return config.latent_dim + config.rope_dims;
    case Dim::kQLatent:
      return config.q_latent_dim;
    case Dim::kHeadPlain:
      return config.head_k_dim - config.rope_dims;
    case Dim::kHeadValue:
      return config.head_v_dim;
    case Dim::kHeadsQ:
      return config.n_heads[layer] * config.head_k_dim;
    case Dim::kHeadsKV:
      return config.n_heads[layer] * (config.head_k_dim - config.rope_dims + config.head_v_dim);
    case Dim::kHeadsValue:
      return config.n_heads[layer] * config.head_v_dim;
    case Dim::kLayerInput:
      return config.layer_input_dim;
    case Dim::kLayerInputs:
      return config.layer_input_dim * config.n_layers;
    case Dim::kIndexQ:
      return config.index_heads * config.index_dim;
    case Dim::kIndexKey:
      return config.index_dim;
    case Dim::kIndexHeads:
      return config.index_heads;
    case Dim::kHeadsQAndGate:
      return 2 * config.n_heads[layer] * config.k_dim;
    case Dim::kThreeModel:
      return 3 * config.dim;
    case Dim::kKeyHeads:
      return config.n_key_heads;
    case Dim::kGroupInner:
      return config.n_state_heads * config.state_v_dim / config.n_key_heads;
    case Dim::kScanIn:
      return config.conv_channels() + config.n_state_heads * (config.state_v_dim + 1);
    case Dim::kTaps:
      return config.conv_taps;
    case Dim::kConvChannels:
      return config.conv_channels();
    case Dim::kStateHeads:
      return config.n_state_heads;
    case Dim::kTwoStateHeads:
      return 2 * config.n_state_heads;
    case Dim::kStateValue:
      return config.state_v_dim;
    case Dim::kStateInner:
      return config.n_state_heads * config.state_v_dim;
    case Dim::kStateIn:
      return config.conv_channels() + config.n_state_heads * config.state_v_dim;
    case Dim::kStreams:
      return config.n_streams;
    case Dim::kStreamsModel:
      return config.n_streams * config.dim;
    case Dim::kMixes:
      return config.n_streams * (config.n_streams + 2);
    case Dim::kMixScales:
      return 3;
    case Dim::kRatio:
      return config.ratio_of(layer);
    case Dim::kCompressed:
      return config.k_dim * (ModelConfig::overlaps(config.ratio_of(layer)) ? 2 : 1);
    case Dim::kIndexCompressed:
      return config.index_dim * (ModelConfig::overlaps(config.ratio_of(layer)) ? 2 : 1);
    case Dim::kOutGroups:
      return config.out_groups;
    case Dim::kOutLatent:
      return config.out_latent_dim;
    case Dim::kOutLatents:
      return config.out_groups * config.out_latent_dim;
    case Dim::kGroupOut:
      return config.n_heads[layer] * config.v_dim / config.out_groups;
    case Dim::kUsedExperts:
      return config.n_used_experts;
    case Dim::kOne:
      return 1;
    case Dim::kAltup:
      return config.n_altup;
    case Dim::kAltupOthers:
      return config.n_altup - 1;
    case Dim::kAltupPairs:
      return config.n_altup * config.n_altup;
    case Dim::kLaurel:
      return 64;  // No key says so.
    case Dim::kRopePairs:
      return config.rope_dims / 2;
    case Dim::kMostRopePairs:
      return std::max(config.rope_dims, config.rope_dims_swa) / 2;
    case Dim::kGates:
      return config.n_heads[layer] * (config.head_gates ? 1 : config.v_dim_of(layer));
  }
  return 0;
}

}  // namespace stoker::model
