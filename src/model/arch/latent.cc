// What families of latent attention share: their sizes, and YaRN's share in the scale of scores.
// Source: DeepSeek-V2 (arXiv:2405.04434), DeepSeek-V3 (arXiv:2412.19437).
#include "model/arch/latent.h"

#include "base/math.h"
#include "base/str_cat.h"
#include "model/plan.h"

namespace stoker::model {
namespace {

/// YaRN's share in the rotation and in the scale of scores.
void finish_scale(ModelConfig& config, LatentScale scale) {
  const bool own_scale = scale == LatentScale::kOwn;
  const auto factor = static_cast<double>(config.rope_factor), attn = static_cast<double>(config.rope_attn_factor);
  const auto growth = [&](double m) { return factor > 1 ? 1 + 0.1 * m * math::log(factor) : 1; };
  const double all_dim = static_cast<double>(config.yarn_log_multiplier) / 0.1;
  double score = 1;
  if (config.rope_scaling == RopeScaling::kYarn) {
    config.yarn_magnitude = all_dim == 0 ? growth(1) : own_scale ? 1 : growth(1) / growth(all_dim);
    score = growth(all_dim != 0 && own_scale ? all_dim : 1);
  }
  const double root = __builtin_sqrt(static_cast<double>(config.head_k_dim));
  config.attn_scale = static_cast<float>(score * score * attn * attn / root);
}

}  // namespace

Status finish_latent(ModelConfig& config, LatentScale scale) {
  STOKER_TRY_STATUS(finish_latent_heads(config));
  finish_scale(config, scale);
  if (config.attn_temperature != 0 && config.attn_temperature_length == 0) {
    return Error{ErrorCode::kCorrupt,
                 "key attention.temperature_length is missing, attention.temperature_scale needs it"};
  }
  if (config.n_experts > 0 && config.expert_ff_dim == 0) {
    return Error{ErrorCode::kCorrupt, "required key expert_feed_forward_length is missing, expert_count needs it"};
  }
  if (config.gating == 0) {
    // Files of GLM-4.7-Flash do not say it.
    const bool glm_flash = (config.n_layers == 47 || config.n_layers == 48) && config.n_vocab == 154880;
    config.gating = static_cast<int64_t>(glm_flash ? Gating::kSigmoid : Gating::kSoftmax);
  }
  // DeepSeek V2 takes the best of a group, V3 the sum of its two best.
  if (config.gating == static_cast<int64_t>(Gating::kSoftmax)) config.group_best = 1;
  return Ok{};
}

void latent_defaults(ModelConfig& config) {
  config.rope_pairs = RopePairs::kInterleaved;
  config.gating = 0;
}

void build_latent_layer(PlanBuilder& plan, const LayerWeights& w, int64_t layer) {
  plan.latent_attention(w, layer);
  plan.feed_forward(w, layer);
}

Status finish_latent_heads(ModelConfig& config) {
  if (config.head_k_dim == 0 || config.head_v_dim == 0)
    config.head_k_dim = config.k_dim, config.head_v_dim = config.v_dim;
  const int64_t plain = config.head_k_dim - config.rope_dims;
  if (config.rope_dims < 2 || plain < 1) {
    return Error{ErrorCode::kCorrupt,
                 str_cat("rope.dimension_count is ", config.rope_dims, ", wanted 2 or more and less than the ",
                         config.head_k_dim, " dimensions of a head (attention.key_length_mla)")};
  }
  if (config.latent_dim % 16 != 0 || plain % 16 != 0 || config.head_v_dim % 16 != 0 || config.head_v_dim == 0) {
    return Error{ErrorCode::kUnsupported,
                 str_cat("a latent of ", config.latent_dim, " and heads of ", plain, " unrotated and ",
                         config.head_v_dim, " value dimensions; this version runs multiples of 16")};
  }
  for (const int64_t n : config.n_kv_heads.values) {
    if (n == 1 || n == config.n_heads[0]) continue;
    return Error{ErrorCode::kCorrupt, str_cat("key ", config.arch->name, ".attention.head_count_kv is ", n,
                                              ", wanted 1 or the number of heads, ", config.n_heads[0])};
  }
  config.k_dim = config.latent_dim + config.rope_dims;
  config.v_dim = config.latent_dim;
  config.n_kv_heads = {{1}};
  return Ok{};
}

Status finish_kimi(ModelConfig& config) {
  config.rotates = false;
  STOKER_TRY_STATUS(recurrent_where_no_heads(config));
  config.n_kv_heads = {{1}};
  config.n_heads = {{config.n_heads[0]}};
  config.n_key_heads = config.n_state_heads = config.n_heads[0];
  config.state_v_dim = config.state_k_dim;
  STOKER_TRY_STATUS(check_recurrence(config));
  STOKER_TRY_STATUS(finish_latent_heads(config));
  config.attn_scale = static_cast<float>(1 / __builtin_sqrt(static_cast<double>(config.head_k_dim)));
  return Ok{};
}

}  // namespace stoker::model
