#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/pool.h"
#include "base/result.h"
#include "kernels/table.h"
#include "model/config.h"
#include "model/rope.h"
#include "model/state/kv_pool.h"
#include "model/weights.h"

namespace stoker::model {

struct Exec;
struct Step;
using StepFn = void (*)(const Step&, Exec&, Worker&) noexcept;

enum class Activation { kSilu, kGelu, kGeluErf, kClampedSilu, kRelu, kReluSquared, kXielu, kSitu };

/// Row buffers of a forward pass, f32.
enum class Buf {
  kNormed,
  kQkv,
  kAttended,
  kGate,  ///< Before attention: the queries of its indexer.
  kUp,
  kBranch,
  kDown,      ///< Latent attention: the latent of q, and that of keys and values with their rotated part.
  kAbsorbed,  ///< The same: what is multiplied by cached rows.
  kRouter,
  kResidual,
  kMix,          ///< How the residual streams are mixed: factors into a block, out of it, and from stream to stream.
  kParallel,     ///< What attention gives where the feed-forward beside it has not been added either.
  kShared,       ///< What the shared expert gives.
  kKept,         ///< Residuals of layers before, which blocks read beside the present one; or streams of AltUp.
  kLayerInputs,  ///< What each layer adds at its end, of all of them.
  kSelected,     ///< Positions that a query sees, int32, ascending; row 0 stays the first of the chunk.
  kExpertIn,     ///< What experts multiply, where that is f32.
  kExpertOut,
  kWaveIn,  ///< As kExpertIn.
  kWaveGate,
  kWaveUp,
};
inline constexpr int kBufs = 21;

/// What a buffer has a row for.
enum class RowsOf {
  kChunk,   ///< A token of the chunk in flight.
  kCall,    ///< A token of the call.
  kChoice,  ///< A token of the call and one of its experts, ordered by expert.
  kWave,    ///< A choice of the wave in flight.
};
constexpr RowsOf rows_of(Buf buf) {
  if (buf < Buf::kResidual) return RowsOf::kChunk;
  return buf < Buf::kExpertOut ? RowsOf::kCall : buf < Buf::kWaveIn ? RowsOf::kChoice : RowsOf::kWave;
}

/// One matrix of a product step: out[column ...] = w * in.
struct Target {
  const Matrix* w = nullptr;
  const ExpertMatrix* experts = nullptr;  ///< `w` is the first of these.
  kernels::MatmulKernels kernels{};
  Isa isa = Isa::kScalar;
  Buf out = Buf::kBranch;
  int64_t column = 0;
};

/// Geometry of one attention block.
/// Of a head, whose dimensions are at most 1024.
inline constexpr int64_t kMostHeadPairs = 512;

struct AttentionSpec {
  int64_t n_heads = 0, n_kv_heads = 0, k_dim = 0, v_dim = 0;
  int64_t window = 0;  ///< 0: all positions.
  float scale = 0, softcap = 0;
  int rope = 0;  ///< Index into Plan::ropes.
  int64_t rope_pairs = 0;
  void (*rotate)(float*, const float*, const float*, int64_t) noexcept = nullptr;
  int64_t q_column = 0, k_column = 0, v_column = 0;  ///< In Buf::kQkv.
  Buf queries = Buf::kQkv;                           ///< Where attention reads them, from q_column on,
  int64_t q_stride = 0;                              ///< from one head to the next.
  bool gated = false;                                ///< Behind each query in Buf::kQkv stands the gate of its output.
  int64_t gate_column = 0, gate_stride = 0;          ///< Of gates: that of head 0, and from one head to the next;
  bool head_gates = false, softplus_gates = false;   ///< one value for each head; through a softplus, not a sigmoid.
  bool values_in_keys = false;                       ///< V is the first v_dim dimensions of K.
  const Vector *bq = nullptr, *bk = nullptr, *bv = nullptr, *bqkv = nullptr, *q_norm = nullptr, *k_norm = nullptr;
  const Vector* sinks = nullptr;
  bool causal = true;             ///< Otherwise a query sees all positions, or those half a window away.
  const float* slopes = nullptr;  ///< [n_heads]: ALiBi.
  bool stores = true;             ///< Otherwise K and V are another layer's.
  bool values_of_keys = false;    ///< V is what K is before its norm and rotation.
  bool value_norm = false;        ///< Of each head of V, without a gain.
  bool late_norm = false;         ///< q_norm and k_norm come after the rotation.
  float qkv_limit = 0;            ///< Of all heads, before norm and rotation; 0: none.
  float value_scale = 0;          ///< Multiplies values; 0: none.
  float temperature = 0;  ///< Queries at position p times 1 + temperature * log(1 + floor(p / temperature_length)).
  int64_t temperature_length = 0, temperature_offset = 0;
  bool chunked = false;          ///< ModelConfig::chunked.
  bool plain_late_norm = false;  ///< Of q and k heads, without a gain, after the rotation.
  KvLayout::Layer kv;
  int64_t most_rows = 0, rows_offset = 0;  ///< Rows that a query sees at most, where these lie anywhere; in scratch.
  int64_t most_seen = 0;                   ///< Positions of Buf::kSelected that a query sees at most; 0: it sees all.
};

/// How one row is made of `ratio` positions: docs/kernels.md#compressed.
struct CompressSpec {
  int64_t ratio = 0;  ///< 0: the layer has no such rows.
  int64_t dim = 0;
  int64_t value_column = 0, score_column = 0;  ///< In Buf::kDown.
  const Vector *position_scores = nullptr, *norm = nullptr;
  bool is_index = false;  ///< The rows are keys of the indexer.
  KvLayout::Layer layout{};
};

/// How the residual streams of a token are mixed.
struct MixSpec {
  int64_t n_streams = 0;  ///< 0: there is but one.
  int64_t n_rounds = 0;
  double eps = 0;
  bool back = true;  ///< What the block gives goes back into them.
  const Vector *base = nullptr, *scale = nullptr;
};

/// Residual streams of which a layer computes one; they stand in Buf::kKept, that one last.
struct AltupSpec {
  int64_t n = 0;
  const Vector* coefficients = nullptr;  ///< [.][n]: times what the router says.
  const Vector* scale = nullptr;         ///< Of the computed one, before the layer's own input is added to the others.
};

/// How an indexer says which positions its layer's queries see. docs/kernels.md#sparse has the rule.
struct IndexSpec {
  int64_t n_heads = 0, dim = 0, most_seen = 0;
  int64_t key_column = 0, weight_column = 0;  ///< In Buf::kDown; queries stand in Buf::kGate.
  const Vector *k_norm = nullptr, *k_norm_bias = nullptr;
  AttentionSpec rotation{};  ///< Of its heads,
  int64_t first_turned = 0;  ///< from this dimension on.
  KvLayout::Layer keys{};
};

/// Where the values of heads stand in a row of Buf::kQkv: so many heads of a group beside each other, and groups.
struct HeadColumns {
  int64_t column = 0, group = 1, group_step = 0, step = 0;
  int64_t of(int64_t head) const { return column + head / group * group_step + head % group * step; }
};

/// Where the channels of q, k or v have their convolution.
struct ConvPart {
  const Vector* w = nullptr;  ///< [taps][channels]
  const Vector* bias = nullptr;
  int64_t in_w = 0;      ///< The first of these channels in w,
  int64_t in_state = 0;  ///< and in the state.
};

/// Geometry of a layer with a recurrence.
struct RecurrentSpec {
  int64_t taps = 0, k_dim = 0, v_dim = 0, n_key_heads = 0, n_heads = 0;
  bool tiled = false;         ///< Head h reads key head h mod n_key_heads; otherwise h / (n_heads / n_key_heads).
  bool row_decay = false;     ///< Each row of a head's state decays by itself: k_dim values in place of one.
  float decay_bound = 0;      ///< Of the logarithm of such a decay; 0: none.
  bool sigmoid_gate = false;  ///< Of the output; otherwise SiLU.
  /// Mamba-2: no delta rule, q and k as they are, beta is the step, from which the decay follows; `skip` times v is
  /// added to the output, and what is normed is groups of gated heads.
  bool scan = false;
  HeadColumns q{}, k{}, v{}, gate{}, beta{}, decay{};
  ConvPart q_conv{}, k_conv{}, v_conv{};
  const Vector *b_decay = nullptr, *decay_a = nullptr, *norm = nullptr, *skip = nullptr;
  KvLayout::Layer layout{};
  int64_t key_head_of(int64_t head) const { return tiled ? head % n_key_heads : head / (n_heads / n_key_heads); }
  int64_t conv_channels() const { return 2 * n_key_heads * k_dim + n_heads * v_dim; }
};

/// What latent attention does before queries meet what is cached, and after.
struct LatentSpec {
  int64_t kv_column = 0;  ///< In Buf::kDown; the latent of q begins at 0.
  int64_t q_latent = 0;   ///< 0: q comes from the model dimension.
  int64_t plain = 0;      ///< Dimensions of a head's query in Buf::kQkv before those that are rotated.
  int64_t shared = 0;     ///< And these, whose keys all heads share; not all families rotate them.
  const Vector *q_norm = nullptr, *kv_norm = nullptr;
};

/// What a block reads of several residuals: all of them, each weighed by the softmax of its score, which is the sum of
/// its normed values (docs/kernels.md#residuals).
struct KeptSpec {
  const Vector* score = nullptr;  ///< The gain of that norm.
  int64_t n = 0;                  ///< Of Buf::kKept, before the residual itself; 0: it alone is read.
  bool keeps = false;             ///< It then becomes the next of them.
  bool begins = false;            ///< Before that: the branch takes the place of the residual, which was kept.
};

/// Products of each head's row of activations with a matrix of its own; all of them are rows of one matrix.
struct HeadsSpec {
  int64_t n_heads = 0, k = 0;            ///< Values of a head's row.
  int64_t in_stride = 0;                 ///< From one head to the next, in Step::in.
  int64_t out_stride = 0;                ///< The same in the target.
  int64_t first_group = 0;               ///< Of head 0, in the matrix.
  int64_t group_step = 0, n_groups = 0;  ///< From one head to the next; of one head.
};

/// How experts are chosen and weighed: docs/kernels.md#experts.
struct Routing {
  Gating gating = Gating::kSoftmax;
  bool renormalize = false;
  float scale = 1, shared_scale = 1;
  float logit_scale = 0;  ///< Multiplies logits; 0: none.
  bool early = false;     ///< ModelConfig::early_weights.
  int64_t n_groups = 1, n_used_groups = 1, group_best = 2;
  const Vector* selection_bias = nullptr;
  const Vector* expert_scale = nullptr;     ///< Multiplies the weight of each expert in the end.
  const Vector* expert_of_token = nullptr;  ///< Nothing is chosen: LayerWeights::expert_of_token.
};

/// Which forms of the activations a step leaves behind for the products that follow; f32 is always there.
struct Forms {
  bool a256 = false, a32 = false;
};

/// Geometry of one block of experts.
struct MoeSpec {
  size_t index = 0;  ///< Among the layers with experts.
  Routing routing;
  int64_t n_experts = 0, n_used = 0;
  const Vector* router_bias = nullptr;
  const ExpertVector *gate_bias = nullptr, *up_bias = nullptr, *down_bias = nullptr;
  const Vector *post_gain = nullptr, *post_shared_gain = nullptr;  ///< Norms of the experts' sum and the shared output.
  bool shared = false;                        ///< The shared expert's output stands in Buf::kShared.
  int64_t shared_weight_column = 0;           ///< In Buf::kRouter: the logit of its weight. 0: it has none.
  int64_t dim = 0, ff = 0;                    ///< Of the experts.
  Buf in = Buf::kNormed, out = Buf::kBranch;  ///< Rows of `dim`.
  Forms in_forms{}, ff_forms{};               ///< What gate and up, and what down multiply.
};

/// One step: all workers run it, then meet at a barrier.
struct Step {
  StepFn run = nullptr;
  const char* name = "";
  int64_t layer = -1;
  int index = 0;

  std::array<Target, 6> targets{};
  int n_targets = 0;
  Buf in = Buf::kResidual;  ///< What is normed, quantized or multiplied.
  int64_t in_column = 0;    ///< From here on; of quantize_step only.
  int64_t k = 0;            ///< Values per row of `in`.
  Forms forms{};
  const Vector* gain = nullptr;       ///< Norm before the next products; null: none, they take the residual itself.
  const Vector* norm_bias = nullptr;  ///< Where `in` is the residual, its norm takes its place.
  bool add_branch = false;            ///< First: residual += branch (+ bias, normed by post_gain).
  KeptSpec kept{};
  bool add_parallel = false;  ///< Before that: residual += parallel (+ bias).
  const Vector *branch_bias = nullptr, *parallel_bias = nullptr;
  const Vector* post_gain = nullptr;
  const Vector* layer_scale = nullptr;  ///< And then: residual *= its one value.
  AttentionSpec attention{};
  LatentSpec latent{};
  MixSpec mix{};
  AltupSpec altup{};
  CompressSpec compress{}, index_compress{};
  IndexSpec indexer{};  ///< n_heads 0: the layer has none.
  HeadsSpec heads{};
  bool after_gather = false;  ///< Attention in a layer behind the one in which rows became fewer.
  RecurrentSpec recurrent{};
  bool outputs_only = false;  ///< Attention for output rows only, which become all rows; its selection likewise.
  bool gathered = false;      ///< Of gate_step: behind such attention. Of gather_step: `in` too has rows to gather.
  bool routed = false;        ///< Of gather_step: so has Buf::kRouter.
  Activation activation = Activation::kSilu;
  kernels::Xielu xielu{};
  float limit = 0;          ///< Gate is cut to this, up to within -limit ... limit, before the activation; 0: neither.
  float sparsity = 0;       ///< Of the gate, before that: ModelConfig::gate_sparsity.
  bool late_limit = false;  ///< Of the gate: behind the activation.
  Buf up = Buf::kUp;        ///< Of gate_step: where the gates stand.
  int64_t up_column = 0;
  bool fused = false;  ///< Of a gated activation: up stands behind gate in Buf::kGate.
  const Vector *gate_bias = nullptr, *up_bias = nullptr;
  MoeSpec moe{};
  const Matrix* layer_inputs = nullptr;  ///< Of the layers' own inputs: the table of what is looked up.
  const Matrix* positions = nullptr;     ///< Of the embedding: a row for each position, which is added,
  const Matrix* token_types = nullptr;   ///< and the first row of this.
};

/// What the blocks of experts of all layers need together.
struct MoePlan {
  int64_t n_experts = 0, n_used = 0;  ///< 0: there are none.
  int64_t dim = 0, ff = 0;
  Forms in_forms{}, ff_forms{};
};

/// Everything that a forward pass needs to know, decided at load for this file, CPU and context.
struct Plan {
  const ModelConfig* config = nullptr;
  const kernels::Table* table = nullptr;
  void (*norm)(const float* x, const float* gain, float eps, int64_t n, float* y) noexcept = nullptr;
  std::vector<RopeTable> ropes;
  std::vector<float> slopes;  ///< AttentionSpec::slopes.
  std::vector<Step> steps;
  std::vector<size_t> expert_steps;  ///< Those that take all rows of a call at once; the others go by chunks of rows.
  size_t n_steps_to_gather = 0;      ///< The steps before that from which on only rows with outputs are in flight.
  size_t n_steps_to_store = 0;       ///< The steps that a call without outputs runs: up to the last layer's K and V.
  Target head;                       ///< The output matrix; without a matrix where the model has none.
  std::vector<Target> head_parts;    ///< The same as Weights::output_parts, of which some may be streamed.
  const Vector* output_bias = nullptr;
  KvLayout kv;
  std::array<int64_t, kBufs> row_floats{};  ///< Row strides of the buffers, multiples of 16.
  int64_t max_k = 0;                        ///< Longest row that is quantized.
  Forms forms;                              ///< Union over all steps.
  MoePlan moe;
  int64_t attention_scratch = 0;  ///< Bytes per worker.
  int64_t select_scratch = 0;     ///< Bytes of all workers together.
  int64_t max_positions = 0;      ///< Of a sequence, where attention_scratch depends on it; 0: any number.

  /// A line per step: layer, name, matrices with type and kernel; for `stoker inspect --plan`.
  std::string describe() const;
};

/// Looks kernels up while a plan is being built, and never after.
class KernelFinder {
 public:
  explicit KernelFinder(const kernels::Table& table) : table_(table) {}
  /// kUnsupported: no kernel for this type; names the tensor.
  Result<Target> find(const Matrix& w, Buf out, int64_t column);
  /// From here on a look-up is a bug and aborts.
  void seal() { sealed_ = true; }
  const kernels::Table& table() const { return table_; }

 private:
  const kernels::Table& table_;
  bool sealed_ = false;
};

/// Options of shared blocks, named after what they do.
struct AttentionOptions {
  bool pre_norm = true;             ///< Norm of what the block reads.
  bool qk_norm = false;             ///< Norm of each q and k head before the rotation, where the file has its gain.
  bool late_qk_norm = false;        ///< The same after the rotation.
  bool plain_late_qk_norm = false;  ///< The same without a gain.
  bool whole_qk_norm = false;       ///< The same on the whole vectors of q and k, which have no biases.
  bool rotate = true;               ///< Positions turn q and k; in some families not in all layers.
  bool temperature = false;         ///< Queries grow with the position (ModelConfig::attn_temperature).
  bool value_norm = false;          ///< Norm of each head of V, without a gain.
  bool post_norm = false;           ///< Norm of the block's output before it is added.
  bool stream_norm = false;         ///< Norm of all that goes on, once the output has been added.
  bool gated = false;               ///< The output of each head is multiplied by a sigmoid, which comes out of wq.
  bool softplus_gates = false;      ///< What attn_gate gives goes through a softplus, not through a sigmoid.
  bool beside = false;              ///< Reads what the block before it has read, not what that adds (scan).
  bool sinks = false;               ///< A logit per head that takes part in the softmax and has no value.
  /// The feed-forward that follows reads what this block has read, not what it adds: with a norm of its own where the
  /// layer has one, otherwise with the same.
  bool parallel = false;
};
struct MlpOptions {
  Activation activation = Activation::kSilu;
  bool pre_norm = true;
  bool post_norm = false;
  bool stream_norm = false;
};

struct MoeOptions {
  Activation activation = Activation::kSilu;
  bool post_norm = false;  ///< Norm of what the experts give together.
  bool pre_norm = true;
  bool stream_norm = false;
};

/// Composes the steps of a model. An architecture calls one method per block of a layer, in order.
class PlanBuilder {
 public:
  PlanBuilder(const ModelConfig& config, const Weights& weights, KernelFinder& finder, Plan& plan);

  void attention(const LayerWeights& w, int64_t layer, AttentionOptions options);
  /// Attention whose keys and values are one latent row for all heads: queries are taken into its space before they
  /// meet it, and what they attended to out of it afterwards (docs/kernels.md#latent).
  void latent_attention(const LayerWeights& w, int64_t layer);
  /// Attention over the positions of a window and over rows that stand for several positions each, keys and values in
  /// one (docs/kernels.md#compressed).
  void compressed_attention(const LayerWeights& w, int64_t layer);
  /// The block that comes next reads a mixture of the residual streams, as this matrix says.
  void mix_streams(const Matrix& w, const Vector& base, const Vector& scale) { mixing_ = {&w, &base, &scale}; }
  /// The block that comes next reads several residuals.
  void read_kept(const KeptSpec& kept);
  /// The gated delta rule in place of attention: docs/kernels.md#recurrence. `tiled`: RecurrentSpec::tiled.
  void gated_delta(const LayerWeights& w, int64_t layer, bool tiled);
  /// The same where each row of the state decays by itself (Kimi Delta Attention).
  void kimi_delta(const LayerWeights& w, int64_t layer);
  /// Mamba-2 in place of attention; where it has a way out of its own, attention `beside` it comes next.
  void scan(const LayerWeights& w, int64_t layer);
  /// A short convolution between two gates in place of attention.
  void short_convolution(const LayerWeights& w, int64_t layer);
  /// wo * x in place of attention.
  void linear(const LayerWeights& w, int64_t layer);
  /// down * (activation(gate * x) . (up * x)); gate and up may be one matrix.
  void gated_mlp(const LayerWeights& w, int64_t layer, MlpOptions options);
  /// down * activation(up * x).
  void mlp(const LayerWeights& w, int64_t layer, MlpOptions options);

  /// The experts that come next are chosen by the residual as it is here.
  void route_early(const LayerWeights& w, int64_t layer);
  /// Experts chosen by a router, and a shared one where the layer has its tensors.
  void moe(const LayerWeights& w, int64_t layer, MoeOptions options);
  /// The same where the shared one is a dense block: it, the router and the experts each read through a norm of their
  /// own, and what the two blocks give is normed before it is added up, and then again.
  void moe_beside_dense(const LayerWeights& w, int64_t layer, MoeOptions options);
  /// The residual becomes what a layer's computed stream is predicted to be, of all streams.
  void predict(const LayerWeights& w, int64_t layer);
  /// What the layer computed corrects the others, to which it adds its own input.
  void correct(const LayerWeights& w, int64_t layer);
  /// The next addition to the residual is multiplied by 1 / sqrt(2), residual included.
  void add_by_root_half();
  /// What a layer does last: adds its own input, through a gate, and scales what goes on; where it has the tensors.
  void end_layer(const LayerWeights& w, int64_t layer);
  /// One or the other, as the layer has it.
  void feed_forward(const LayerWeights& w, int64_t layer, Activation activation = Activation::kSilu) {
    w.router ? moe(w, layer, {.activation = activation}) : gated_mlp(w, layer, {.activation = activation});
  }

  /// Embedding before the first layer; final norm and head after the last. The first error of any block, if one failed.
  void begin();
  Status finish();
  const ModelConfig& config() const { return config_; }

 private:
  Step& add(StepFn run, const char* name, int64_t layer);
  /// The norm before a block, which also adds what the block before has left in Buf::kBranch.
  /// Without a gain there is no norm.
  void norm(const Vector* gain, const Vector* bias, int64_t layer, Forms forms);
  void stream_norm(const Vector* gain, const Vector* bias);
  void mixed_norm(const Vector* gain, int64_t layer, Forms forms);
  /// The gain of a norm; in some families none has any.
  const Vector* gain(const Vector& gain) const;
  void limit(Step& act, const std::vector<float>& limits, int64_t layer) const;
  void mlp_norm(const LayerWeights& w, int64_t layer, const MlpOptions& options, Forms forms);
  void mlp_down(const LayerWeights& w, int64_t layer, const MlpOptions& options);
  void product(const char* name, int64_t layer, Buf in,
               std::initializer_list<std::pair<const Matrix*, std::pair<Buf, int64_t>>> targets);
  Step& gather(int64_t layer);
  void attend(const AttentionSpec& spec, int64_t layer);
  void quantize_attended(const LayerWeights& w, int64_t layer, Buf in, const AttentionSpec& spec);
  AttentionSpec window_spec(const LayerWeights& w, int64_t layer);
  void attend_window(const LayerWeights& w, int64_t layer, const AttentionSpec& spec);
  IndexSpec indexer(const LayerWeights& w, int64_t layer, const AttentionSpec& spec, int64_t column) const;
  void select(const IndexSpec& index, int64_t layer);
  /// What comes before has made the state of the layer.
  void stored() { plan_.n_steps_to_store = plan_.steps.size(); }
  void recur(const RecurrentSpec& spec, const LayerWeights& w, int64_t layer);
  RecurrentSpec recurrent_spec(const LayerWeights& w, int64_t layer) const;
  void state_out(const RecurrentSpec& spec, const LayerWeights& w, int64_t layer);
  Step& quantize(Buf in, int64_t column, int64_t k, Forms forms, int64_t layer);
  Step& heads_step(StepFn run, const char* name, int64_t layer, Buf in, const HeadsSpec& heads, const Matrix& w);
  void head_product(const char* name, int64_t layer, HeadsSpec heads, const Matrix& w, Buf out);
  MoeSpec moe_spec(const LayerWeights& w) const;
  void shared_expert(const LayerWeights& w, int64_t layer, Activation activation);
  void read_for_experts(const LayerWeights& w, int64_t layer, const MoeSpec& spec, const MoeOptions& options);
  void route(const LayerWeights& w, int64_t layer, const MoeSpec& spec);
  void experts(const LayerWeights& w, int64_t layer, const MoeSpec& spec, Activation activation);
  void latent_experts(const LayerWeights& w, int64_t layer, MoeSpec spec, Activation activation);
  void begin_layer_inputs();
  void layer_input(const LayerWeights& w, int64_t layer, Buf in);
  void begin_altup();
  void end_altup();
  void laurel(const LayerWeights& w, int64_t layer);
  void add_experts(const LayerWeights& w, int64_t layer, const MoeSpec& spec, Activation activation);
  void add_target(Step& step, const Matrix& w, Buf out, int64_t column);
  Forms forms_of(std::initializer_list<const Matrix*> matrices) const;
  void need(Buf buf, int64_t floats);

  const ModelConfig& config_;
  const Weights& weights_;
  KernelFinder& finder_;
  Plan& plan_;
  Status status_ = Ok{};
  struct Mixing {
    const Matrix* w = nullptr;
    const Vector *base = nullptr, *scale = nullptr;
  } mixing_;
  KeptSpec kept_{};
  int64_t last_with_state_ = 0;  ///< The last layer that has a state of its own: behind it only output rows go on.
  bool branch_pending_ = false, parallel_pending_ = false, routed_ = false;
  const Vector *branch_bias_ = nullptr, *parallel_bias_ = nullptr;
  const Vector *post_gain_ = nullptr, *layer_scale_ = nullptr;
  const Vector *stream_gain_ = nullptr, *stream_bias_ = nullptr;  ///< Norm of the residual that is due.
};

/// Builds the plan of a model whose weights need not have been read yet. kUnsupported: names the tensor.
Result<Plan> build_plan(const ModelConfig& config, const Weights& weights, KernelFinder& finder,
                        kernels::KvType kv_type);
/// Computes the rotation tables, once the weights have been read. `context` as in make_rope.
Status fill_ropes(const ModelConfig& config, const Weights& weights, int64_t context, Plan& plan);

}  // namespace stoker::model
