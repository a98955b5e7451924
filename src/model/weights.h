#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "gguf/types.h"

namespace stoker::model {

/// A weight matrix w: [n_out, n_in] in layout R16 (docs/kernels.md#r16). Points into Weights::arena.
struct Matrix {
  std::string name;  ///< Of the tensor; empty: the model has none.
  gguf::TensorType type = gguf::TensorType::kF32;
  int64_t n_out = 0;
  int64_t n_in = 0;
  int64_t group_bytes = 0;
  std::byte* data = nullptr;

  explicit operator bool() const { return !name.empty(); }
  int64_t n_groups() const { return (n_out + 15) / 16; }
  int64_t padded_out() const { return n_groups() * 16; }
  int64_t bytes() const { return n_groups() * group_bytes; }
};

/// The matrices of all experts of a layer, each whole groups of 16 rows, one expert after the other. Where memory has
/// several nodes, first all experts' groups that the first node reads, then those of the second and so on: a small
/// expert's part of a node would share its pages with other nodes' parts.
struct ExpertMatrix : Matrix {
  int64_t n_experts = 0;
  std::vector<int64_t> borders{};  ///< The first group of each node but the first.

  /// Groups of an expert without a gap: group g is at data + g * group_bytes, up to `end`.
  struct Stretch {
    std::byte* data;
    int64_t end;
  };
  /// The stretch with group `g`.
  Stretch stretch(int64_t expert, int64_t g) const {
    int64_t begin = 0, end = n_groups();
    for (const int64_t border : borders) {
      if (g < border) {
        end = border;
        break;
      }
      begin = border;
    }
    return {data + (n_experts * begin + expert * (end - begin) - begin) * group_bytes, end};
  }
};

/// A vector of f32: norm gains, biases. Its bytes are followed by zeros up to a multiple of 16 values.
struct Vector {
  std::string name;
  int64_t n = 0;
  float* data = nullptr;
  explicit operator bool() const { return !name.empty(); }
};

/// A vector of `n_each` values for each expert, one after the other without gaps.
struct ExpertVector : Vector {
  int64_t n_each = 0;
  const float* of(int64_t expert) const { return data + expert * n_each; }
};

/// The tensors of one layer. A family's table says which of them it has; the others stay empty.
struct LayerWeights {
  Vector attn_norm, post_attn_norm, ffn_norm, post_ffn_norm;
  Vector router_norm, expert_norm;            ///< Of what the router and the experts read, where that differs.
  Vector post_shared_norm, post_expert_norm;  ///< Of what the shared expert and the others give.
  Vector expert_scale;                        ///< Multiplies the weight of each expert.
  Matrix input_gate, input_proj;              ///< Of the layer's own input: [width, model], [model, width].
  Vector input_norm;
  Vector layer_scale;  ///< One value, which multiplies all that goes on from the layer.
  Vector b_attn_norm, b_ffn_norm;
  // Of residual streams that predict each other: [streams, dim]; [pairs of streams][streams], [streams][streams]. And
  // of the branch beside attention: [rank, dim], [dim, rank].
  Matrix altup_router, laurel_down, laurel_up;
  Vector altup_router_norm, altup_predict, altup_correct, altup_scale, laurel_norm;
  Vector attn_out_norm, b_attn_out_norm;    ///< Of all that goes on, once attention has been added,
  Vector layer_out_norm, b_layer_out_norm;  ///< and once the feed-forward has.
  Matrix wq, wk, wv, wqkv, wo;
  Vector bq, bk, bv, bqkv, bo;
  Vector q_norm, k_norm, sinks;
  // Latent attention. Queries come out of `wq`, whose input is the latent of q_down where there is one.
  Matrix q_down, kv_down;
  Vector q_latent_norm, latent_norm;
  Matrix k_up;       ///< [heads * latent, unrotated]: a head's query to what is multiplied by latents.
  Matrix v_up;       ///< [heads * value, latent]
  Matrix attn_gate;  ///< [heads * value, dim] or [heads, dim]: multiplies the output of attention, through a sigmoid.
  Matrix index_q, index_k, index_weights;  ///< Of an indexer: [heads * dim, q latent], [dim, model], [heads, model].
  Vector index_k_norm, b_index_k_norm;
  // Of attention over compressed rows: values and scores of a row's channels, the scores of positions in it, its norm;
  // the same of an indexer's keys; and the way out of each group of heads, [groups * latent, heads' values].
  Matrix compress_kv, compress_gate, index_compress_kv, index_compress_gate;
  Vector compress_ape, compress_norm, index_compress_ape, index_compress_norm;
  Matrix out_down;
  // Of residual streams: what decides how they are mixed for attention and for the feed-forward, [factors, streams *
  // dim], and offsets and factors of that.
  Matrix attn_mix, ffn_mix;
  Vector attn_mix_base, attn_mix_scale, ffn_mix_base, ffn_mix_scale;
  Matrix kv_up;  ///< Both as one, [heads * (unrotated + value), latent]; k_up is then made from it, and v_up empty.
  // Of layers with a state of fixed size; q, k and v come out of `wqkv`, and `wo` is the way back.
  Matrix state_gate;                   ///< [v of all heads, dim]
  Matrix state_out;                    ///< [dim, v of all heads]: where `wo` is that of attention beside it.
  Matrix state_in;                     ///< Both as one, by key heads: q, k, its v and its gates.
  Matrix beta, decay;                  ///< [heads, dim]
  Matrix beta_decay;                   ///< Both as one, by key heads.
  Matrix decay_down, state_gate_down;  ///< `decay` and `state_gate` are then the way up.
  Vector b_conv, state_skip;           ///< [channels], [heads]
  Vector conv_q, conv_k, conv_v;       ///< As `conv`, each by itself.
  Vector attn_score, ffn_score;        ///< [dim]: score the residuals that a block reads (KeptSpec).
  Vector conv;                         ///< [taps, channels]: in the file the other way round.
  Vector b_decay, decay_a;             ///< [heads]
  Vector state_norm;                   ///< [v of one head]
  Matrix gate, up, down;
  Matrix gate_up;  ///< In place of gate and up: the rows of gate, then those of up.
  Vector b_gate, b_up, b_down;
  Matrix router;
  Vector b_router;
  Vector selection_bias;   ///< Decides with the scores which experts are chosen; no part of their weights.
  Vector expert_of_token;  ///< [vocabulary, experts used], whole numbers: in place of a choice.
  ExpertMatrix expert_gate, expert_up, expert_down;
  ExpertVector b_expert_gate, b_expert_up, b_expert_down;
  Matrix routed_down, routed_up;  ///< Between the model dimension and that of the routed experts, where they differ.
  Vector routed_norm;             ///< Of their sum, before the way up.
  Matrix shared_gate, shared_up, shared_down;
  Matrix shared_weight;  ///< [1, dim]: the logit of the shared expert's weight.
};

struct Weights {
  Matrix embedding;    ///< [n_vocab, dim]
  Matrix token_types;  ///< [types, dim]: of kinds of text, of which the first is added to all embeddings.
  Vector embedding_norm, b_embedding_norm;  ///< Of the sum of these.
  Matrix dense_2, dense_3;                  ///< What a pooled vector goes through.
  // What makes scores of it in a model that ranks: a layer with an activation and a norm where it has them, and the
  // score of each label.
  Matrix rank_dense;  ///< [dim, dim]
  Matrix rank_out;    ///< [labels, dim]
  Vector b_rank_dense, rank_norm, b_rank_out;
  Matrix positions;               ///< [context_length, dim]: added to the embeddings, where the family has them.
  Matrix layer_inputs;            ///< [n_vocab, layers * width]: looked up by token, for each layer.
  Matrix layer_input_proj;        ///< [layers * width, dim]: the same out of the embedding.
  Vector layer_input_norm;        ///< [width]
  Matrix altup_proj, altup_back;  ///< [other streams * dim, dim]: from the embedding, and back behind the last layer.
  Matrix output;                  ///< [n_vocab, dim]; shares the bytes of `embedding` when the file ties them.
  /// The rows of `output`, some at a time, in order: each is there or on disk. `output.data` is null unless all are
  /// there.
  std::vector<Matrix> output_parts;
  Vector output_norm, b_output_norm, output_bias, output_score;
  Matrix head_mix;  ///< Of residual streams, behind the last layer: [streams, streams * dim].
  Vector head_mix_base, head_mix_scale;
  Vector rope_factors, rope_long, rope_short;  ///< [rope_dims / 2] divisors of the rotation frequencies.
  std::vector<LayerWeights> layers;
  bool tied = false;
  Buffer arena;
};

}  // namespace stoker::model
