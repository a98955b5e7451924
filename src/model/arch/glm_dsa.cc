// Latent attention whose queries see only what an indexer chooses: GLM-5, 5.1 and 5.2, DeepSeek V3.2. In GLM-5.2 most
// layers take the choice of an earlier one.
// Source: DeepSeek-V3.2-Exp (2025), "DeepSeek Sparse Attention"; the shared choices: GLM-5.2's configuration.
#include "base/str_cat.h"
#include "model/arch/latent.h"

namespace stoker::model::glm_dsa {
namespace {

// A million positions are chosen by nobody; a bound of what is allocated for a row.
constexpr double kMostSeen = 1 << 16;

constexpr KeySpec kIndexerKeys[] = {
    {.key = "attention.indexer.head_count",
     .field = &ModelConfig::index_heads,
     .required = true,
     .min = 1,
     .max = 1024},
    {.key = "attention.indexer.key_length", .field = &ModelConfig::index_dim, .required = true, .min = 8, .max = 1024},
    {.key = "attention.indexer.top_k",
     .field = &ModelConfig::index_top_k,
     .required = true,
     .min = 1,
     .max = kMostSeen},
};

template <size_t kN, size_t kM>
constexpr std::array<KeySpec, kN + kM> joined(const KeySpec (&a)[kN], const KeySpec (&b)[kM]) {
  std::array<KeySpec, kN + kM> all = {};
  for (size_t i = 0; i < kN; ++i) all[i] = a[i];
  for (size_t i = 0; i < kM; ++i) all[kN + i] = b[i];
  return all;
}
constexpr auto kKeys = joined(kLatentKeys, kIndexerKeys);

/// Files that have an indexer have its queries come out of a latent, and keys and values in matrices of their own.
Status finish_indexer(ModelConfig& config) {
  const auto missing = [&](const char* key) {
    return Error{ErrorCode::kCorrupt, str_cat("required key ", config.arch->name, ".", key, " is missing")};
  };
  if (config.q_latent_dim == 0) return missing("attention.q_lora_rank");
  if (config.head_k_dim == 0) return missing("attention.key_length_mla");
  if (config.head_v_dim == 0) return missing("attention.value_length_mla");
  if (config.index_dim < config.rope_dims || config.index_dim % 8 != 0) {
    return Error{ErrorCode::kUnsupported,
                 str_cat("key ", config.arch->name, ".attention.indexer.key_length is ", config.index_dim,
                         "; this version runs multiples of 8 from the ", config.rope_dims, " rotated dimensions on")};
  }
  return Ok{};
}

Status finish_glm(ModelConfig& config) {
  STOKER_TRY_STATUS(finish_indexer(config));
  if (config.gating == 0) config.gating = static_cast<int64_t>(Gating::kSigmoid);
  config.yarn_log_multiplier = 0;
  return finish_latent(config, LatentScale::kYarn);
}

Status finish_deepseek(ModelConfig& config) {
  STOKER_TRY_STATUS(finish_indexer(config));
  if (config.n_experts > 0 && config.gating == 0) {
    return Error{ErrorCode::kCorrupt, "required key expert_gating_func is missing, expert_count needs it"};
  }
  return finish_latent(config, LatentScale::kYarn);
}

void glm_defaults(ModelConfig& config) {
  latent_defaults(config);
  config.index_by_context = true;
}

void deepseek_defaults(ModelConfig& config) {
  latent_defaults(config);
  config.index_pairs = RopePairs::kHalves;
}

}  // namespace

extern const Arch kDeepseek32, kGlmDsa;
const Arch kDeepseek32{.name = "deepseek32",
                       .keys = kKeys,
                       .tensors = kLatentTensors,
                       .globals = kTiedGlobals,
                       .defaults = deepseek_defaults,
                       .finish = finish_deepseek,
                       .build_layer = build_latent_layer};
const Arch kGlmDsa{.name = "glm-dsa",
                   .keys = kKeys,
                   .tensors = kLatentTensors,
                   .globals = kTiedGlobals,
                   .defaults = glm_defaults,
                   .finish = finish_glm,
                   .build_layer = build_latent_layer};

}  // namespace stoker::model::glm_dsa
