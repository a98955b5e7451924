#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"

namespace stoker::model {

struct Arch;

inline constexpr int64_t kMaxExperts = 1024;

/// How the pairs of rotary position embedding lie in a head.
enum class RopePairs { kInterleaved, kHalves };  // (x[2i], x[2i+1]); (x[i], x[i + R/2])
/// How the vectors of a text's tokens become one, numbered as in pooling_type.
enum class Pooling : int64_t { kUnknown = -1, kNone = 0, kMean = 1, kFirst = 2, kLast = 3, kRank = 4 };
/// What a layer of the head that ranks ends in.
enum class RankActivation { kNone, kTanh, kGeluErf };
enum class RopeScaling { kNone, kLinear, kYarn, kLongRope };

/// How the logits of a router become scores and weights, numbered as in expert_gating_func.
enum class Gating : int64_t {
  kSoftmax = 1,          ///< Over all experts, of which the best are chosen.
  kSigmoid = 2,          ///< Of each logit by itself.
  kSoftmaxOfChosen = 3,  ///< The best logits are chosen, softmax over those.
  kSqrtSoftplus = 4,     ///< The root of log(1 + exp(logit)), of each logit by itself.
  kSoftmaxOfNear = 100,  ///< No key says so. Each of the chosen: over it and those not chosen before it that are near.
};

inline constexpr int64_t kMaxAltup = 8;  ///< Streams of AltUp.
inline constexpr int64_t kMaxKept = 64;  ///< Residuals that are kept.

/// A number that the file gives once or as one entry per layer.
struct PerLayer {
  std::vector<int64_t> values;  ///< One entry (all layers), or one per layer.
  int64_t operator[](int64_t layer) const {
    return values.size() == 1 ? values[0] : values[static_cast<size_t>(layer)];
  }
  int64_t max() const;
};

/// Parameters of an activation, as the file has them: alpha_p and alpha_n before their softplus.
struct XieluKeys {
  double alpha_p = 0, alpha_n = 0, beta = 0, eps = 0;
};

/// Everything about a model that is not a tensor: read from the metadata, checked, families' defaults filled in.
/// Field comments name the GGUF key below "{architecture}.".
struct ModelConfig {
  const Arch* arch = nullptr;
  std::string name;  ///< general.name, may be empty.

  int64_t n_layers = 0;        ///< block_count less nextn_predict_layers: the layers that run.
  int64_t n_file_layers = 0;   ///< block_count.
  int64_t n_nextn_layers = 0;  ///< nextn_predict_layers: draft layers at the end of the file, not loaded.
  int64_t dim = 0;             ///< embedding_length
  int64_t n_vocab = 0;         ///< Rows of token_embd.
  int64_t context_length = 0;  ///< The context that the model was trained for.
  PerLayer n_heads;            ///< attention.head_count
  PerLayer n_kv_heads;         ///< attention.head_count_kv
  PerLayer ff_dim;             ///< feed_forward_length
  int64_t k_dim = 0;           ///< attention.key_length: per head, of q and k.
  int64_t v_dim = 0;           ///< attention.value_length
  int64_t k_dim_swa = 0;       ///< attention.key_length_swa: the same of sliding layers; 0: as the others.
  int64_t v_dim_swa = 0;       ///< attention.value_length_swa
  int64_t n_shared_kv = 0;     ///< attention.shared_kv_layers: at the end, which attend to keys of an earlier one.
  // Where keys and values of all heads come out of one latent row, what is cached is one head: k_dim is then latent_dim
  // + rope_dims, v_dim latent_dim, n_kv_heads 1.
  int64_t latent_dim = 0;    ///< attention.kv_lora_rank; 0: K and V of each head.
  int64_t q_latent_dim = 0;  ///< attention.q_lora_rank; 0: queries come from the model dimension in one step.
  int64_t head_k_dim = 0;    ///< attention.key_length_mla: of a head's query, the rotated dimensions last.
  int64_t head_v_dim = 0;    ///< attention.value_length_mla
  // Where an indexer chooses which latents a query sees.
  int64_t index_heads = 0;           ///< attention.indexer.head_count
  int64_t index_dim = 0;             ///< attention.indexer.key_length: of a head, the rotated dimensions first.
  int64_t index_top_k = 0;           ///< attention.indexer.top_k: positions that are seen at most; 0: no indexer.
  std::vector<bool> index_layers{};  ///< attention.indexer.types: the layers that choose; others take the last choice.
  RopePairs index_pairs = RopePairs::kInterleaved;
  bool index_by_context = false;  ///< Without that key the length of the context says which.
  float index_norm_eps = 1e-6F;   ///< Of the norm of its keys.
  // Where attention sees a window of positions, and rows that stand for several positions each.
  bool compresses = false;        ///< Set in `defaults`: the next key must be there.
  std::vector<int64_t> ratios{};  ///< attention.compress_ratios, per layer: positions of a row; 0: it has none.
  int64_t out_groups = 0;         ///< attention.output_group_count: of heads, each with a way out of its own,
  int64_t out_latent_dim = 0;     ///< attention.output_lora_rank: to so many values.
  // Where a token has several residual streams, which each block mixes.
  int64_t n_streams = 1;   ///< hyper_connection.count
  int64_t mix_rounds = 0;  ///< hyper_connection.sinkhorn_iterations
  float mix_eps = 0;       ///< hyper_connection.epsilon
  // Of layers with a state of fixed size in place of attention.
  PerLayer recurrent_layers;       ///< attention.recurrent_layers: 1 where it is so; empty: by the interval.
  PerLayer linear_layers;          ///< Of these, 1 where one has a matrix in place of attention; empty: nowhere.
  PerLayer stateless_layers;       ///< 1 where a layer is a feed-forward block only; empty: nowhere.
  bool recurs_beside = false;      ///< Layers with attention have such a state beside it.
  int64_t attention_interval = 0;  ///< full_attention_interval: of each so many layers the last one has attention.
  int64_t conv_taps = 0;           ///< ssm.conv_kernel
  int64_t state_k_dim = 0;         ///< ssm.state_size: rows of a head's state, the size of q and k.
  int64_t state_v_dim = 0;         ///< Its columns, the size of v.
  int64_t n_key_heads = 0;         ///< ssm.group_count: of q and k.
  int64_t n_state_heads = 0;       ///< ssm.time_step_rank: of v.
  int64_t state_inner_dim = 0;     ///< ssm.inner_size: v of all heads.
  int64_t n_experts = 0;           ///< expert_count; 0 when it is 0 or 1: the layers are dense.
  int64_t n_used_experts = 0;      ///< expert_used_count: per token.
  int64_t expert_ff_dim = 0;       ///< expert_feed_forward_length
  int64_t shared_ff_dim = 0;       ///< expert_shared_feed_forward_length
  int64_t n_shared = 0;            ///< expert_shared_count: experts that all tokens go to, computed as one wide one.
  int64_t n_groups = 1;       ///< expert_group_count: experts are chosen out of the best groups only; 1: all are one.
  int64_t n_used_groups = 1;  ///< expert_group_used_count
  int64_t group_best = 2;     ///< A group is as good as the sum of so many of its best experts, 1 or 2.
  int64_t gating = static_cast<int64_t>(Gating::kSoftmax);  ///< expert_gating_func
  bool renormalize = false;      ///< expert_weights_norm: the weights of the chosen experts are divided by their sum.
  float expert_scale = 0;        ///< expert_weights_scale: multiplies their weights; 0: none.
  bool averages_shared = false;  ///< What the shared expert and the others give is averaged, not added.
  int64_t n_hash_layers = 0;     ///< hash_layer_count: the first layers look their experts up by token.
  std::vector<float> expert_limit{};  ///< swiglu_clamp_exp, per layer: of gate and up before the activation; 0: none.
  std::vector<float> shared_limit{};  ///< swiglu_clamp_shexp: the same of shared experts and dense blocks.
  bool late_limits = false;       ///< Set in `defaults`: of the activation of the gate, and the keys may be missing.
  bool drafts_by_tensor = false;  ///< Set in `defaults`: nextn_predict_layers counts only where such tensors are.
  int64_t n_dense_layers = 0;     ///< leading_dense_block_count: the first layers have no experts.
  int64_t expert_interval = 1;    ///< interleave_moe_layer_step: of the others each n-th, counted from 1, has.
  int64_t expert_latent_dim = 0;  ///< expert_latent_length: what routed experts read and give; 0: the model dimension.
  bool causal = true;         ///< A token sees those before it; otherwise all of its sequence, and there are no logits.
  int64_t pooling = -1;       ///< pooling_type, a Pooling.
  int64_t n_token_types = 0;  ///< tokenizer.ggml.token_type_count
  // Of a model that ranks: how vectors are pooled for its head, and what this gives.
  int64_t rank_pooling = -1;  ///< classifier.pooling_type, a Pooling; in `defaults` where a family has one.
  std::vector<std::string> rank_labels{};  ///< classifier.output_labels; none: one score without a name.
  RankActivation rank_dense_activation = RankActivation::kTanh;  ///< Set in `defaults`, as the next.
  RankActivation rank_activation = RankActivation::kNone;        ///< Of the scores,
  bool rank_softmax = false;                                     ///< which may be shares of all labels.
  int64_t n_rank_labels() const { return std::max<int64_t>(1, static_cast<int64_t>(rank_labels.size())); }
  std::string hidden_activation{};  ///< hidden_activation, of families whose tokens see each other; may be empty.
  bool alibi = false;  ///< Scores fall with the distance, by head, and nothing else says where a token stands.
  float alibi_max =
      8;  ///< attention.max_alibi_bias: the last head's by a factor of 2 to its power; of those in `alibi`.
  int64_t dense_2_dim = 0;   ///< dense_2_feat_out: what a pooled vector becomes,
  int64_t dense_3_dim = 0;   ///< dense_3_feat_in: and what goes back to the model's dimension.
  bool layer_norm = false;   ///< Norms subtract the mean first. Set in `defaults`: decides the key of norm_eps.
  bool plain_norms = false;  ///< Norms of what blocks read, and of what the head does, have no gain.
  bool norm_by_key = false;  ///< Set in `defaults`: which of the two keys of norm_eps there is decides about that.
  float norm_eps = 0;        ///< attention.layer_norm_rms_epsilon, or attention.layer_norm_epsilon

  int64_t rope_dims = 0;  ///< rope.dimension_count: the first dimensions of a head, an even number; the others stay.
  int64_t rope_dims_swa = 0;  ///< rope.dimension_count_swa, of sliding layers; 0: as the others.
  bool rotates = true;        ///< rope.scaling.finetuned, in Granite: whether there is any rotation.
  RopePairs rope_pairs = RopePairs::kInterleaved;
  float rope_base = 10000;
  bool rope_axes = false;  ///< Set in `defaults`: rope.dimension_sections must be there.
  std::vector<int64_t>
      rope_sections;            ///< The four of them: pairs of each axis of positions, of which pictures have three.
  float rope_base_swa = 0;      ///< rope.freq_base_swa, of sliding layers; 0: as rope_base.
  bool rope_swa_plain = false;  ///< Sliding layers rotate without scaling.
  RopeScaling rope_scaling = RopeScaling::kNone;
  float rope_factor = 0;              ///< rope.scaling.factor; 0: no scaling.
  int64_t rope_original_context = 0;  ///< rope.scaling.original_context_length
  int64_t yarn_truncate = 1;          ///< rope.scaling.yarn_truncate: YaRN's bounds are rounded outwards.
  float yarn_beta_fast = 32;          ///< rope.scaling.yarn_beta_fast: pairs that turn as often are left alone,
  float yarn_beta_slow = 1;           ///< rope.scaling.yarn_beta_slow: and others interpolated from here on.
  float yarn_log_multiplier = 0;      ///< rope.scaling.yarn_log_multiplier: takes back so much of its magnitude.
  float rope_attn_factor = 1;         ///< rope.scaling.attn_factor: multiplies cos and sin.
  float yarn_attn_factor = 0;         ///< rope.scaling.yarn_attn_factor: stands in place of its magnitude; 0: does not.
  double yarn_magnitude = 0;          ///< What YaRN multiplies cos and sin by, where the family has its own rule; or 0.

  /// attention.sliding_window: positions that a query of a sliding layer sees; 0: all. Where it sees both sides, those
  /// at most half of it away.
  int64_t window = 0;
  std::vector<bool> sliding;   ///< Per layer.
  float attn_scale = 0;        ///< Multiplies scores; 1 / sqrt(k_dim) unless the family says otherwise.
  float attn_temperature = 0;  ///< attention.temperature_scale: queries times 1 + t log(1 + floor(position / original
                               ///< context)).
  int64_t attn_temperature_length = 0;  ///< attention.temperature_length: stands there for the original context.
  int64_t attn_temperature_offset = 0;  ///< Added to the position there.
  bool head_gates = false;              ///< Where attention has gates: one for each head, not for each of its values.
  bool chunked = false;          ///< A query of a sliding layer sees what lies in its own chunk of `window` positions.
  bool early_weights = false;    ///< What an expert reads is multiplied by its weight, not what it gives.
  float attn_softcap = 0;        ///< attn_logit_softcapping; 0: none.
  float final_softcap = 0;       ///< final_logit_softcapping; 0: none.
  std::vector<XieluKeys> xielu;  ///< xielu.alpha_p and so on, without "{architecture}.": per layer. Empty: none.
  bool parallel = false;         ///< use_parallel_residual: attention and feed-forward read the same.
  bool head_gains = false;       ///< Norms of q and k have a gain of its own for each head.
  float qkv_limit = 0;           ///< attention.clamp_kqv: q, k and v are cut to within it on both sides; 0: none.
  PerLayer rope_layers;          ///< attention.rope_pattern: 0 where a layer does not rotate; empty: all do.
  bool turns(int64_t layer) const { return rope_layers.values.empty() || rope_layers[layer] != 0; }
  float value_scale = 0;      ///< attention.value_scale: multiplies values; 0: none.
  float embedding_scale = 0;  ///< embedding_scale: multiplies token embeddings; 0: none.
  float residual_scale = 0;   ///< residual_scale: multiplies what a block adds; 0: none.
  float logit_divisor = 0;  ///< logit_scale, or its inverse where that multiplies: what logits are divided by; 0: none.

  float situ_beta = 0;         ///< activation.situ_beta: what Activation::kSitu bounds its gate by,
  float situ_linear_beta = 0;  ///< activation.situ_linear_beta: and the other factor; 0: not bounded.
  float decay_bound = 0;       ///< kda.gate_lower_bound: the logarithm of a row's decay lies above it; 0: no bound.
  int64_t kept_interval = 0;   ///< attn_res.block_size: each so many layers the residual is kept and a new one begun.
  /// Residuals that are kept when `layer` begins.
  int64_t n_kept(int64_t layer) const { return kept_interval ? (layer + kept_interval - 1) / kept_interval : 0; }

  // Where a layer computes one of several residual streams and predicts the others (AltUp).
  int64_t n_altup = 0;        ///< altup.num_inputs
  int64_t altup_active = 0;   ///< altup.active_idx: the one that is computed.
  bool has_sparsity = false;  ///< Set in `defaults`: the next key may be there.
  /// activation_sparsity_scale, per layer: gates below their mean and so many standard deviations are 0; 0: none.
  std::vector<float> gate_sparsity{};

  int64_t layer_input_dim = 0;  ///< embedding_length_per_layer_input: of what each layer adds by token; 0: nothing.

  bool pattern_required = false;  ///< No rule of the family says which layers slide.
  int64_t sliding_period = 0;     ///< attention.sliding_window_pattern as a number; 0: all layers slide, 1: none does.
  bool whole_first = false;       ///< Of so many layers the first sees everything, not the last.

  /// Window of a layer, 0 when it sees everything.
  int64_t window_of(int64_t layer) const { return sliding[static_cast<size_t>(layer)] ? window : 0; }
  bool any_sliding() const;
  int64_t k_dim_of(int64_t layer) const { return k_dim_swa && sliding[static_cast<size_t>(layer)] ? k_dim_swa : k_dim; }
  int64_t v_dim_of(int64_t layer) const { return v_dim_swa && sliding[static_cast<size_t>(layer)] ? v_dim_swa : v_dim; }
  int64_t rope_dims_of(bool slides) const { return rope_dims_swa && slides ? rope_dims_swa : rope_dims; }
  /// The layer whose keys and values a layer attends to: itself, or the last one of the same kind that has its own.
  int64_t kv_layer(int64_t layer) const;
  bool has_indexer(int64_t layer) const { return index_top_k > 0 && index_layers[static_cast<size_t>(layer)]; }
  bool has_experts(int64_t layer) const {
    if (!stateless_layers.values.empty() && !is_stateless(layer)) return false;
    return n_experts > 0 && layer >= n_dense_layers && (layer + 1) % expert_interval == 0;
  }
  bool is_recurrent(int64_t layer) const {
    if (!recurrent_layers.values.empty()) return recurrent_layers[layer] != 0;
    return attention_interval > 0 && (layer + 1) % attention_interval != 0;
  }
  int64_t ratio_of(int64_t layer) const { return ratios.empty() ? 0 : ratios[static_cast<size_t>(layer)]; }
  /// Of rows for so many positions: whether they are also made of the positions before.
  static bool overlaps(int64_t ratio) { return ratio == 4; }
  bool is_stateless(int64_t layer) const { return !stateless_layers.values.empty() && stateless_layers[layer] != 0; }
  bool has_recurrence(int64_t layer) const { return is_recurrent(layer) || recurs_beside; }
  /// q, k and v of all heads.
  int64_t conv_channels() const { return 2 * n_key_heads * state_k_dim + n_state_heads * state_v_dim; }
  /// Values between the projections of the shared experts together; 0: there are none.
  int64_t shared_width() const {
    return n_shared ? n_shared * (shared_ff_dim ? shared_ff_dim : expert_ff_dim) : shared_ff_dim;
  }
};

/// "key=value" pairs that stand in for metadata of the file, for those who know better. Keys may leave out "{arch}.".
using Overrides = std::map<std::string, std::string>;

/// Reads and checks all keys. kUnsupported: names the architecture, or the key and value that this version does not
/// run. kCorrupt: names the key, what was wanted and what came. kInvalidArgument: an override with an unknown key or
/// bad value.
Result<ModelConfig> read_config(const gguf::File& file, const Overrides& overrides = {});

}  // namespace stoker::model
