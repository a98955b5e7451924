#include "engine/synth_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/checked.h"
#include "base/str_cat.h"
#include "engine/synth_header.h"
#include "engine/synth_router.h"
#include "model/arch/arch.h"
#include "quant/all.h"

namespace stoker::engine {
namespace {

using gguf::TensorType;
using Content = SynthTensor::Content;

constexpr int64_t kChunkBytes = 2 << 20;
constexpr int64_t kMark = 32;  // values at least

/// How F32 vectors are spread, by the first part that is in the name.
struct Spread {
  std::string_view part;
  float mean, deviation;
};
constexpr Spread kSpreads[] = {{"norm.weight", 1, 0.1f},
                               {"altup_correct_scale", 1, 0.1f},
                               {"altup_", 0, 0.1f},
                               {"ssm_a", -0.6f, 0.3f},
                               {"ssm_conv1d", 0, 0.5f},
                               {"sinks", 0, 1.5f},
                               {"exp_probs_b", 0, 0},
                               {".bias", 0, 0.1f},
                               {"", 1, 0}};

void store(std::span<std::byte> out, size_t index, float value) {
  std::memcpy(out.data() + index * sizeof value, &value, sizeof value);
}

bool wanted(const SynthShape& shape, const model::ModelConfig& config, std::string_view name, model::Need need,
            int64_t layer) {
  if (need != model::Need::kOptional) return may_have(need, config, layer);
  return std::find(shape.extra.begin(), shape.extra.end(), name) != shape.extra.end();
}

Result<model::ModelConfig> config_of(const SynthShape& shape, int64_t n_layers) {
  gguf::Writer writer(shape.arch);
  add_synth_keys(writer, shape, n_layers);
  STOKER_TRY(const std::string bytes, writer.bytes());
  STOKER_TRY(const gguf::File file, gguf::File::parse(std::as_bytes(std::span(bytes)), std::string(shape.name)));
  STOKER_TRY(model::ModelConfig config, model::read_config(file));
  config.n_vocab = shape.n_vocab;
  return config;
}

}  // namespace

int64_t SynthTensor::rows_per_chunk() const {
  return std::max<int64_t>(1, kChunkBytes / static_cast<int64_t>(row_bytes));
}

Range SynthTensor::rows_of(int64_t chunk) const {
  const int64_t first = (chunk - first_chunk) * rows_per_chunk();
  return {first, std::min(first + rows_per_chunk(), n_rows)};
}

Result<std::unique_ptr<const SynthPlan>> SynthPlan::make(SynthOptions options) {
  const auto bad = [](std::string text) { return Error{ErrorCode::kInvalidArgument, std::move(text)}; };
  auto plan = std::make_unique<SynthPlan>();
  STOKER_TRY(plan->shape, find_synth_shape(options.shape));
  if (options.type.empty()) options.type = plan->shape->type;
  STOKER_TRY(plan->type, find_synth_type(options.type));
  if (options.n_layers == 0) options.n_layers = plan->shape->n_layers;
  if (options.n_layers < 1 || options.n_layers > kMostSynthLayers)
    return bad(str_cat(options.n_layers, " layers, wanted 1 to ", kMostSynthLayers));
  if (!(options.zipf >= 0 && options.zipf <= kMostZipf))
    return bad(str_cat("the exponent of the law of routing is ", options.zipf, ", wanted 0 to ", kMostZipf));
  STOKER_TRY(plan->config, config_of(*plan->shape, options.n_layers));
  if (options.zipf > 0 && plan->config.n_experts == 0)
    return bad(str_cat(options.shape, " has no experts, and so no law of routing"));
  plan->options = std::move(options);
  plan->prepare_routers();
  plan->add_tensors();
  return std::unique_ptr<const SynthPlan>(std::move(plan));
}

void SynthPlan::add_tensors() {
  for (const model::GlobalTensorSpec& spec : config.arch->globals) {
    if (!wanted(*shape, config, spec.name, spec.need, 0)) continue;
    const bool is_matrix = std::holds_alternative<model::Matrix model::Weights::*>(spec.slot);
    std::vector<int64_t> dims{resolve(spec.rows, config, 0)};
    if (is_matrix) dims.push_back(resolve(spec.cols, config, 0));
    if (spec.stack != model::Dim::kOne) dims.insert(dims.begin(), resolve(spec.stack, config, 0));
    add(std::string(spec.name), std::move(dims), is_matrix);
  }
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    for (const model::TensorSpec& spec : config.arch->tensors) {
      if (!may_have(spec, config, layer) || !wanted(*shape, config, spec.name, spec.need, layer)) continue;
      using model::LayerWeights;
      const bool is_stack = std::holds_alternative<model::ExpertMatrix LayerWeights::*>(spec.slot);
      const bool is_matrix = is_stack || std::holds_alternative<model::Matrix LayerWeights::*>(spec.slot);
      std::vector<int64_t> dims{resolve(spec.rows, config, layer)};
      if (has_cols(spec)) dims.push_back(resolve(spec.cols, config, layer));
      if (is_stack || std::holds_alternative<model::ExpertVector LayerWeights::*>(spec.slot))
        dims.insert(dims.begin(), config.n_experts);
      else if (spec.stack != model::Dim::kOne)
        dims.insert(dims.begin(), resolve(spec.stack, config, layer));
      if (dims.size() == 2 && dims[0] == 1) dims.erase(dims.begin());
      if (spec.unit) dims.insert(dims.begin() + 1, 1);
      add(str_cat("blk.", layer, ".", spec.name), std::move(dims), is_matrix);
    }
  }
}

void SynthPlan::add(const std::string& name, std::vector<int64_t> dims, bool is_matrix) {
  SynthTensor tensor{name, TensorType::kF32, std::move(dims), Content::kVector};
  if (is_matrix) {
    describe_matrix(tensor);
  } else if (name.ends_with(".ffn_gate_tid2eid.weight")) {
    tensor.content = Content::kExpertIds;
    tensor.type = TensorType::kI32;
  } else if (router_bias_ && name.ends_with(".ffn_gate_inp.bias")) {
    tensor.content = Content::kRouterBias;
  } else {
    const auto* spread = std::find_if(std::begin(kSpreads), std::end(kSpreads),
                                      [&](const Spread& s) { return name.find(s.part) != std::string::npos; });
    tensor.mean = spread->mean;
    tensor.deviation = spread->deviation;
  }
  const gguf::TypeInfo info = *gguf::type_info(tensor.type);
  int64_t n = 1;
  for (const int64_t dim : tensor.shape) n *= dim;
  const int64_t n_in = tensor.shape.back();
  tensor.n_rows = n / n_in;
  tensor.row_bytes = static_cast<uint64_t>(n_in / info.n_weights * info.n_bytes);
  tensor.offset = bytes;
  tensor.first_chunk = n_chunks;
  bytes += round_up(tensor.bytes(), kAlignment);
  n_chunks += tensor.n_chunks();
  n_parameters += n;
  tensors.push_back(std::move(tensor));
}

void SynthPlan::describe_matrix(SynthTensor& tensor) {
  const int64_t n_in = tensor.shape.back();
  const bool is_embedding = tensor.name == "token_embd.weight";
  tensor.deviation = 1.2f / std::sqrt(static_cast<float>(n_in));
  if (tensor.name.ends_with(".ffn_gate_inp.weight")) {
    tensor.content = Content::kRouter;
    return;
  }
  if (tensor.name.find("ffn_gate_inp") != std::string::npos) return;  // one row: the weight of a shared expert
  tensor.content = is_embedding && !mark_.empty() ? Content::kMarkedBlocks : Content::kBlocks;
  tensor.type =
      is_embedding ? embedding_type() : synth_type_of(*type, tensor.name, n_in, config.n_layers, config.n_experts > 0);
  if (is_embedding && config.n_experts > 0) tensor.deviation = embedding_deviation();
  auto& blocks = blocks_[{tensor.type, tensor.deviation}];
  if (!blocks) blocks = std::make_shared<SynthBlocks>(tensor.type, tensor.deviation);
  tensor.blocks = blocks;
}

/// What goes on from layer to layer is mostly the token itself, each layer adding about a third of 1: so every router
/// sees something else for every token.
float SynthPlan::embedding_deviation() const { return 3 * std::sqrt(static_cast<float>(config.n_layers)); }

TensorType SynthPlan::embedding_type() const {
  const TensorType found = synth_type_of(*type, "token_embd.weight", config.dim, config.n_layers, config.n_experts > 0);
  const bool too_wide = needs_mark() && gguf::type_info(found)->n_weights * 4 > config.dim;
  return too_wide ? TensorType::kQ8_0 : found;
}

bool SynthPlan::needs_mark() const { return !offsets_.empty() && !router_bias_; }

void SynthPlan::prepare_routers() {
  const std::span<const model::TensorSpec> specs = config.arch->tensors;
  router_bias_ = std::any_of(specs.begin(), specs.end(),
                             [](const model::TensorSpec& spec) { return spec.name == "ffn_gate_inp.bias"; });
  if (options.zipf == 0) return;
  offsets_ = router_offsets(zipf_shares(config.n_experts, config.n_used_experts, options.zipf), config.n_used_experts);
  if (needs_mark()) mark_embeddings();
}

void SynthPlan::mark_embeddings() {
  const TensorType embedding = embedding_type();
  const gguf::TypeInfo info = *gguf::type_info(embedding);
  const int64_t n = std::max<int64_t>(kMark, info.n_weights);
  mark_.resize(static_cast<size_t>(n / info.n_weights * info.n_bytes));
  SynthBlocks(embedding, embedding_deviation()).fill(SynthRandom(options.seed, "mark", 0), mark_);
  mark_gains_.resize(static_cast<size_t>(n));
  STOKER_CHECK(quant::dequantize_row(embedding, mark_, n, mark_gains_.data()).has_value());
  double squares = 0;
  for (const float value : mark_gains_) squares += static_cast<double>(value) * static_cast<double>(value);
  // The router sees the mark divided by the root of the mean square of all values.
  const auto deviation = static_cast<double>(embedding_deviation());
  const double others = static_cast<double>(config.dim - n) * deviation * deviation;
  const double norm = std::sqrt((squares + others) / static_cast<double>(config.dim));
  for (float& value : mark_gains_) value = static_cast<float>(static_cast<double>(value) * norm / squares);
}

/// Of each expert, in the layer of a router: the offsets in an order of the layer's own.
std::vector<float> SynthPlan::mean_logits(const SynthTensor& tensor) const {
  std::vector<float> out = offsets_;
  out.resize(static_cast<size_t>(config.n_experts));
  SynthRandom random(options.seed, std::string_view(tensor.name).substr(0, tensor.name.find("ffn_gate_inp")), 0);
  for (size_t i = out.size() - 1; i > 0; --i) std::swap(out[i], out[random.next() % (i + 1)]);
  return out;
}

/// Rows of length 1, so that logits vary by 1; those that prefer experts by the mark do not look at it otherwise.
void SynthPlan::fill_router(const SynthTensor& tensor, Range rows, std::span<std::byte> out) const {
  const size_t n_in = static_cast<size_t>(config.dim), n_mark = mark_gains_.size();
  const std::vector<float> logits = mean_logits(tensor);
  std::vector<float> row(n_in);
  for (int64_t e = rows.begin; e < rows.end; ++e) {
    SynthRandom random(options.seed, tensor.name, static_cast<uint64_t>(e));
    double squares = 0;
    for (size_t i = n_mark; i < n_in; ++i) {
      row[i] = random.uniform();
      squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    }
    const auto scale = static_cast<float>(1 / std::sqrt(squares));
    for (size_t i = 0; i < n_mark; ++i) row[i] = mark_gains_[i] * logits[static_cast<size_t>(e)];
    for (size_t i = n_mark; i < n_in; ++i) row[i] *= scale;
    std::memcpy(out.data() + static_cast<size_t>(e - rows.begin) * tensor.row_bytes, row.data(), tensor.row_bytes);
  }
}

/// Of each token as many different ones as it goes to.
void SynthPlan::fill_expert_ids(const SynthTensor& tensor, SynthRandom random, std::span<std::byte> out) const {
  const auto n_used = static_cast<size_t>(config.n_used_experts);
  std::vector<int32_t> row(n_used);
  for (size_t at = 0; at < out.size(); at += tensor.row_bytes) {
    for (size_t i = 0; i < n_used;) {
      row[i] = static_cast<int32_t>(random.next() % static_cast<uint64_t>(config.n_experts));
      const auto end = row.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::find(row.begin(), end, row[i]) == end) ++i;
    }
    std::memcpy(out.data() + at, row.data(), tensor.row_bytes);
  }
}

void SynthPlan::fill(const SynthTensor& tensor, int64_t chunk, std::span<std::byte> out) const {
  SynthRandom random(options.seed, tensor.name, static_cast<uint64_t>(chunk - tensor.first_chunk));
  switch (tensor.content) {
    case Content::kBlocks:
      return tensor.blocks->fill(random, out);
    case Content::kMarkedBlocks:
      tensor.blocks->fill(random, out);
      for (size_t at = 0; at < out.size(); at += tensor.row_bytes) std::copy(mark_.begin(), mark_.end(), &out[at]);
      return;
    case Content::kExpertIds:
      return fill_expert_ids(tensor, random, out);
    case Content::kRouter:
      return fill_router(tensor, tensor.rows_of(chunk), out);
    case Content::kRouterBias: {
      const std::vector<float> logits = mean_logits(tensor);
      std::memcpy(out.data(), logits.data(), out.size());
      return;
    }
    case Content::kVector:
      for (size_t i = 0; i < out.size() / sizeof(float); ++i)
        store(out, i, tensor.mean + tensor.deviation * random.uniform());
  }
}

}  // namespace stoker::engine
