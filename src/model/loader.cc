#include "model/loader.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/checked.h"
#include "base/str_cat.h"

namespace stoker::model {
namespace {

using gguf::TensorType;

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += str_cat(i ? ", " : "", shape[i]);
  return out + "]";
}

/// Shapes are equal up to ones, which hold nothing: the container drops leading ones, and some files have others.
bool same_shape(std::span<const int64_t> a, std::span<const int64_t> b) {
  const auto without_ones = [](std::span<const int64_t> shape) {
    std::vector<int64_t> sizes(shape.begin(), shape.end());
    std::erase(sizes, 1);
    return sizes;
  };
  return without_ones(a) == without_ones(b);
}

bool is_plain_float(TensorType type) {
  return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
}

/// Parts of the output matrix are at most a quarter of the largest unit of a layer: slots for these take them, and the
/// choice among them is a fine one.
constexpr uint64_t kPartsOfUnit = 4, kMostPartBytes = 32u << 20;
/// So many groups take a multiple of 64 bytes, in all types: parts lie one after the other without gaps.
constexpr int64_t kPartGroups = 4;

}  // namespace

uint64_t WeightPlan::Slot::row_bytes() const {
  return tensor->bytes / static_cast<uint64_t>(tensor->n_elements() / to.matrix->n_in);
}

Result<uint64_t> WeightPlan::add_vector(const gguf::TensorInfo& tensor, Target to, std::span<const int64_t> shape) {
  const bool only_f32 = to.only_f32;
  if (to.n_ids > 0 && tensor.type() != TensorType::kI32) {
    return Error{ErrorCode::kUnsupported,
                 str_cat("tensor ", tensor.name, " has type ", gguf::type_name(tensor.type()), ", wanted I32")};
  }
  if (to.n_ids > 0) {
    // checked when it is read
  } else if (only_f32 ? tensor.type() != TensorType::kF32 : !is_plain_float(tensor.type())) {
    return Error{ErrorCode::kUnsupported, str_cat("tensor ", tensor.name, " has type ", gguf::type_name(tensor.type()),
                                                  ", wanted F32", only_f32 ? "" : ", F16 or BF16")};
  }
  Vector& vector = *to.vector;
  vector.name = tensor.name;
  vector.n = 1;
  for (int64_t size : shape) vector.n *= size;
  window_bytes_ = std::max(window_bytes_, round_up<uint64_t>(tensor.bytes, 4096));
  return static_cast<uint64_t>(round_up<int64_t>(vector.n, 16)) * sizeof(float);
}

Result<uint64_t> WeightPlan::add_matrix(const gguf::TensorInfo& tensor, Target to, std::span<const int64_t> shape) {
  if (static_cast<size_t>(tensor.type_id) >= kernels::kTypeIds || !kernels::scalar_table().matmul[tensor.type_id].one) {
    return Error{ErrorCode::kUnsupported, str_cat("tensor ", tensor.name, " has type ", gguf::type_name(tensor.type()),
                                                  ", which no kernel of this version multiplies")};
  }
  Matrix& matrix = *to.matrix;
  const int64_t n_in = shape.back();
  int64_t n_out = shape[shape.size() - 2];
  if (shape.size() == 3 && !to.of_experts) n_out *= shape[0];  // a stack that is used as one
  const int64_t tensor_rows = n_out;
  if (to.tensor_rows > 0) n_out /= 2;
  if (to.expert == 0) {
    matrix.name = tensor.name;
    matrix.type = tensor.type();
    matrix.n_out = n_out;
    matrix.n_in = n_in;
    matrix.group_bytes = kernels::group_bytes(tensor.type(), n_in);
  } else if (tensor.type() != matrix.type) {
    return Error{ErrorCode::kUnsupported, str_cat("tensor ", tensor.name, " has type ", gguf::type_name(tensor.type()),
                                                  ", wanted ", gguf::type_name(matrix.type), " as ", matrix.name)};
  }
  const uint64_t group = 16 * tensor.bytes / static_cast<uint64_t>(to.n_experts * tensor_rows);
  window_bytes_ = std::max(window_bytes_, round_up<uint64_t>(group, 4096));
  return static_cast<uint64_t>(to.n_experts * matrix.bytes());
}

Status WeightPlan::add(const gguf::File& file, const std::string& name, Target to, std::vector<int64_t> shape,
                       bool required) {
  const gguf::TensorInfo* tensor = file.find_tensor(name);
  if (!tensor) {
    if (!required) return Ok{};
    return Error{ErrorCode::kNotFound, str_cat("tensor ", name, " is missing, wanted with shape ", shape_text(shape))};
  }
  if (!same_shape(tensor->shape, shape)) {
    return Error{ErrorCode::kCorrupt,
                 str_cat("tensor ", name, " has shape ", shape_text(tensor->shape), ", wanted ", shape_text(shape))};
  }
  STOKER_TRY(const uint64_t size, to.vector ? add_vector(*tensor, to, shape) : add_matrix(*tensor, to, shape));
  slots_.push_back({tensor, to, round_up<uint64_t>(size, 64), tensor->bytes / (to.tensor_rows > 0 ? 2 : 1)});
  return Ok{};
}

/// One stacked tensor, or as in the first files of Mixtral one tensor per expert: "ffn_up_exps.weight" or
/// "ffn_up.0.weight" and so on.
Status WeightPlan::add_experts(const gguf::File& file, const std::string& name, ExpertMatrix& experts,
                               std::vector<int64_t> shape, bool required) {
  constexpr std::string_view kStacked = "_exps.weight";
  const std::string base = name.substr(0, name.size() - kStacked.size());
  const auto of_expert = [&](int64_t expert) { return str_cat(base, ".", expert, ".weight"); };
  experts.n_experts = shape[0];
  if (file.find_tensor(name) || !file.find_tensor(of_expert(0))) {
    return add(file, name, {.matrix = &experts, .n_experts = experts.n_experts, .of_experts = true}, std::move(shape),
               required);
  }
  for (int64_t expert = 0; expert < shape[0]; ++expert) {
    STOKER_TRY_STATUS(add(file, of_expert(expert), {.matrix = &experts, .expert = expert, .of_experts = true},
                          {shape[1], shape[2]}, true));
  }
  return Ok{};
}

/// Gate and up of each expert, one after the other in one tensor, are two matrices.
Status WeightPlan::add_fused_experts(const gguf::File& file, const std::string& name, const TensorSpec& spec,
                                     const ModelConfig& config, int64_t layer, LayerWeights& weights) {
  const auto slot = std::get<ExpertMatrix LayerWeights::*>(spec.slot);
  const int64_t rows = resolve(spec.rows, config, layer), cols = resolve(spec.cols, config, layer);
  ExpertMatrix& experts = weights.*slot;
  experts.n_experts = config.n_experts;
  return add(file, name,
             {.matrix = &experts,
              .n_experts = config.n_experts,
              .first_row = slot == &LayerWeights::expert_up ? rows : 0,
              .tensor_rows = 2 * rows,
              .of_experts = true},
             {config.n_experts, 2 * rows, cols}, true);
}

Status WeightPlan::add_tensor(const gguf::File& file, const std::string& name, const TensorSpec& spec,
                              const ModelConfig& config, int64_t layer, LayerWeights& weights, bool required) {
  const int64_t rows = resolve(spec.rows, config, layer), cols = resolve(spec.cols, config, layer);
  if (auto matrix = std::get_if<Matrix LayerWeights::*>(&spec.slot)) {
    std::vector<int64_t> shape{rows, cols};
    const gguf::TensorInfo* tensor = file.find_tensor(name);
    const int64_t n_stacked = resolve(spec.stack, config, layer);
    if (tensor && tensor->shape.size() == 2) {  // the same bytes
      shape[0] *= n_stacked;
    } else if (spec.stack != Dim::kOne) {
      shape.insert(shape.begin(), n_stacked);
    }
    return add(file, name, {.matrix = &(weights.*(*matrix))}, std::move(shape), required);
  }
  if (auto vector = std::get_if<Vector LayerWeights::*>(&spec.slot)) {
    return add(file, name,
               {.vector = &(weights.*(*vector)),
                .n_ids = spec.need == Need::kHashed ? config.n_experts : 0,
                .only_f32 = spec.need == Need::kF32,
                .turned = spec.cols == Dim::kTaps ? cols : 0},
               has_cols(spec) ? std::vector{rows, cols} : std::vector{rows}, required);
  }
  if (auto experts = std::get_if<ExpertMatrix LayerWeights::*>(&spec.slot)) {
    return add_experts(file, name, weights.*(*experts), {config.n_experts, rows, cols}, required);
  }
  ExpertVector& vector = weights.*std::get<ExpertVector LayerWeights::*>(spec.slot);
  vector.n_each = rows;
  return add(file, name, {.vector = &vector}, {config.n_experts, rows}, required);
}

/// The half of attn_kv_b that keys come out of is multiplied the other way round, by queries: it is transposed while it
/// is read, and what was quantized along the latent becomes f16.
Status WeightPlan::add_turned_keys(const gguf::File& file, const std::string& name, const ModelConfig& config,
                                   int64_t layer, LayerWeights& weights) {
  const gguf::TensorInfo* tensor = file.find_tensor(name);
  const int64_t plain = config.head_k_dim - config.rope_dims, of_head = plain + config.head_v_dim;
  Matrix& matrix = weights.k_up;
  matrix.name = str_cat(name, " (keys)");
  matrix.type = is_plain_float(tensor->type()) ? tensor->type() : TensorType::kF16;
  matrix.n_out = config.n_heads[layer] * config.latent_dim;
  matrix.n_in = plain;
  matrix.group_bytes = kernels::group_bytes(matrix.type, plain);
  const uint64_t of_keys = tensor->bytes / static_cast<uint64_t>(of_head) * static_cast<uint64_t>(plain);
  window_bytes_ =
      std::max(window_bytes_, round_up<uint64_t>(of_keys / static_cast<uint64_t>(config.n_heads[layer]), 4096));
  slots_.push_back({tensor,
                    {.matrix = &matrix, .turned = plain, .head_rows = of_head},
                    round_up<uint64_t>(static_cast<uint64_t>(matrix.bytes()), 64),
                    of_keys});
  return Ok{};
}

Status WeightPlan::add_layer(const gguf::File& file, const ModelConfig& config, int64_t layer, LayerWeights& weights) {
  const std::string prefix = str_cat("blk.", layer, ".");
  for (const TensorSpec& spec : config.arch->tensors) {
    const std::string name = prefix + std::string(spec.name);
    if (!may_have(spec, config, layer)) {
      if (is_of_own_kv(spec.need)) known_.push_back(name);
      continue;
    }
    if (spec.need == Need::kWithGate && !file.find_tensor(prefix + "ffn_gate.weight")) continue;
    const std::string fused = prefix + std::string(fused_form(spec.need));
    if (fused != prefix && file.find_tensor(fused)) {
      if (spec.need != Need::kExpertsUnlessFused) continue;
      STOKER_TRY_STATUS(add_fused_experts(file, fused, spec, config, layer, weights));
      continue;
    }
    STOKER_TRY_STATUS(add_tensor(file, name, spec, config, layer, weights, !is_optional(spec.need)));
  }
  if (weights.kv_up) STOKER_TRY_STATUS(add_turned_keys(file, weights.kv_up.name, config, layer, weights));
  return Ok{};
}

Result<WeightPlan> WeightPlan::make(const gguf::File& file, const ModelConfig& config, Weights& weights) {
  WeightPlan plan;
  plan.weights_ = &weights;
  if (config.n_vocab <= 0) {
    return Error{
        ErrorCode::kNotFound,
        str_cat("tensor token_embd.weight is missing or no matrix, wanted with shape [vocabulary, ", config.dim, "]")};
  }
  for (const GlobalTensorSpec& spec : config.arch->globals) {
    if (!may_have(spec.need, config, 0)) continue;
    const int64_t rows = resolve(spec.rows, config, 0);
    const bool required = !is_optional(spec.need);
    const std::string name(spec.name);
    if (auto matrix = std::get_if<Matrix Weights::*>(&spec.slot)) {
      std::vector<int64_t> shape{rows, resolve(spec.cols, config, 0)};
      if (spec.stack != Dim::kOne) shape.insert(shape.begin(), resolve(spec.stack, config, 0));
      STOKER_TRY_STATUS(plan.add(file, name, {.matrix = &(weights.*(*matrix))}, std::move(shape), required));
    } else {
      Vector& vector = weights.*std::get<Vector Weights::*>(spec.slot);
      STOKER_TRY_STATUS(plan.add(file, name, {.vector = &vector}, {rows}, required));
    }
  }
  weights.tied = config.causal && weights.output.name.empty();
  if (weights.tied) weights.output = weights.embedding;
  weights.layers.resize(static_cast<size_t>(config.n_layers));
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    STOKER_TRY_STATUS(plan.add_layer(file, config, layer, weights.layers[static_cast<size_t>(layer)]));
  }
  const auto is_embedding = [&](const Slot& slot) { return slot.to.matrix == &weights.embedding; };
  plan.embedding_ = std::find_if(plan.slots_.begin(), plan.slots_.end(), is_embedding)->tensor;
  if (config.causal) plan.split_output();
  plan.find_units();
  STOKER_TRY_STATUS(plan.check_companions(file));
  STOKER_TRY_STATUS(plan.note_unused(file, config));
  return plan;
}

void WeightPlan::split_output() {
  const Matrix& whole = weights_->output;
  const Matrix* const read_to = weights_->tied ? &weights_->embedding : &weights_->output;
  const auto is = [](const Matrix* w) { return [w](const Slot& slot) { return slot.to.matrix == w; }; };
  uint64_t most = 0;
  for (const Unit& unit : units_of(*weights_)) most = std::max(most, unit.bytes());
  most = most == 0 ? kMostPartBytes : std::min(most / kPartsOfUnit, kMostPartBytes);
  const auto n_wanted = static_cast<int64_t>((static_cast<uint64_t>(whole.bytes()) + most - 1) / most);
  const int64_t n_quads = (whole.n_groups() + kPartGroups - 1) / kPartGroups;
  const int64_t rows = (n_quads + n_wanted - 1) / n_wanted * kPartGroups * 16;
  for (int64_t row = 0; row < whole.n_out; row += rows) {
    Matrix& part = weights_->output_parts.emplace_back(whole);
    part.n_out = std::min(rows, whole.n_out - row);
  }
  const auto slot = std::find_if(slots_.begin(), slots_.end(), is(read_to));
  const Slot all = *slot;
  std::vector<Slot> slots;
  int64_t row = 0;
  for (Matrix& part : weights_->output_parts) {
    const auto bytes = round_up<uint64_t>(static_cast<uint64_t>(part.bytes()), 64);
    slots.push_back(
        {all.tensor, {.matrix = &part, .first_row = row}, bytes, all.row_bytes() * static_cast<uint64_t>(part.n_out)});
    row += part.n_out;
  }
  slots_.insert(slots_.erase(slot), slots.begin(), slots.end());
}

void WeightPlan::find_units() {
  units_ = units_of(*weights_);
  std::unordered_map<const Matrix*, size_t> unit_of;
  for (size_t i = 0; i < units_.size(); ++i) {
    for (const Matrix* w : units_[i].matrices) unit_of[w] = i;
  }
  for (Slot& slot : slots_) {
    if (const auto found = unit_of.find(slot.to.matrix); found != unit_of.end()) slot.to.unit = found->second;
  }
}

Status WeightPlan::check_companions(const gguf::File& file) const {
  std::unordered_set<const gguf::TensorInfo*> used;
  for (const Slot& slot : slots_) used.insert(slot.tensor);
  for (const Slot& slot : slots_) {
    std::string_view base = slot.tensor->name;
    if (!base.ends_with(".weight")) continue;
    const std::string companion = str_cat(base.substr(0, base.size() - 7), ".scale");
    const gguf::TensorInfo* found = file.find_tensor(companion);
    if (found && !used.contains(found)) {
      return Error{ErrorCode::kUnsupported,
                   str_cat("tensor ", companion, " scales a product, which this version does not apply")};
    }
  }
  return Ok{};
}

Status WeightPlan::note_unused(const gguf::File& file, const ModelConfig& config) {
  std::unordered_set<const gguf::TensorInfo*> used;
  for (const Slot& slot : slots_) used.insert(slot.tensor);
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    bool draft = false;
    for (int64_t layer = config.n_layers; layer < config.n_file_layers; ++layer) {
      draft |= tensor.name.starts_with(str_cat("blk.", layer, "."));
    }
    if (used.contains(&tensor) || draft) continue;
    const bool known = std::find(known_.begin(), known_.end(), tensor.name) != known_.end();
    if (tensor.name.starts_with("blk.") && !known) {
      return Error{ErrorCode::kUnsupported, str_cat("tensor ", tensor.name, " is no part of ", config.arch->name,
                                                    " as this version runs it, which would answer without it")};
    }
    unused_.push_back(tensor.name);
  }
  return Ok{};
}

bool WeightPlan::stays_on_disk(const Slot& slot, const Residency& residency) const {
  if (slot.to.of_experts) return residency.stream_experts;
  if (slot.to.unit < residency.units.size()) return residency.units[slot.to.unit];
  if (!residency.read_embedding || !slot.to.matrix) return false;
  return slot.to.matrix == &weights_->layer_inputs || slot.to.matrix == &weights_->embedding;
}

bool WeightPlan::reads_embedding(const Residency& residency) const {
  if (!weights_->tied) return residency.read_embedding;
  for (size_t i = 0; i < residency.units.size(); ++i) {
    if (residency.units[i] && units_[i].kind == Unit::Kind::kOutput) return true;
  }
  return false;
}

uint64_t WeightPlan::bytes(const Residency& residency) const {
  uint64_t sum = 0;
  for (const Slot& slot : slots_) sum += stays_on_disk(slot, residency) ? 0 : slot.bytes;
  return sum;
}

uint64_t WeightPlan::file_bytes(const Residency& residency) const {
  uint64_t sum = 0;
  for (const Slot& slot : slots_) sum += stays_on_disk(slot, residency) ? 0 : slot.file_bytes;
  return sum;
}

const gguf::TensorInfo* WeightPlan::tensor_of(const Matrix& matrix) const {
  if (&matrix == &weights_->embedding) return embedding_;
  const auto goes_there = [&](const Slot& slot) { return slot.to.matrix == &matrix; };
  return std::find_if(slots_.begin(), slots_.end(), goes_there)->tensor;
}

ExpertIndex WeightPlan::expert_index(const ModelConfig& config) const {
  ExpertIndex index{.layers = {}, .n_experts = config.n_experts, .n_used = config.n_used_experts};
  std::unordered_map<const Matrix*, std::pair<size_t, size_t>> where;
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const LayerWeights& w = weights_->layers[static_cast<size_t>(layer)];
    if (!w.expert_up) continue;
    std::vector<const Matrix*> matrices = {&w.expert_up, &w.expert_down};
    if (w.expert_gate) matrices.insert(matrices.begin(), &w.expert_gate);
    for (size_t p = 0; p < matrices.size(); ++p) where[matrices[p]] = {index.layers.size(), p};
    const std::vector<ExpertIndex::Place> places(matrices.size());
    index.layers.push_back({.layer = layer,
                            .matrices = std::move(matrices),
                            .experts = std::vector(static_cast<size_t>(config.n_experts), places)});
  }
  for (const Slot& slot : slots_) {
    if (!slot.to.of_experts) continue;
    const auto [layer, p] = where.at(slot.to.matrix);
    const uint64_t each = slot.tensor->bytes / static_cast<uint64_t>(slot.to.n_experts);
    const uint64_t row_bytes = slot.row_bytes();
    for (int64_t e = 0; e < slot.to.n_experts; ++e) {
      index.layers[layer].experts[static_cast<size_t>(slot.to.expert + e)][p] = {
          .tensor = slot.tensor,
          .begin = each * static_cast<uint64_t>(e) + row_bytes * static_cast<uint64_t>(slot.to.first_row),
          .row_bytes = row_bytes};
    }
  }
  return index;
}

ExpertIndex WeightPlan::unit_index(const Residency& residency) const {
  ExpertIndex index{.layers = {}, .n_experts = 1, .n_used = 1, .n_ring = residency.ring_slots};
  std::unordered_map<const Matrix*, const Slot*> slot_of;
  for (const Slot& slot : slots_) {
    if (slot.to.unit != kNoUnit) slot_of[slot.to.matrix] = &slot;
  }
  for (size_t i = 0; i < residency.units.size(); ++i) {
    if (!residency.units[i]) continue;
    auto& unit = index.layers.emplace_back(
        ExpertIndex::Layer{.layer = units_[i].layer, .matrices = units_[i].matrices, .experts = {{}}});
    for (const Matrix* w : unit.matrices) {
      const Slot& slot = *slot_of.at(w);
      const uint64_t row_bytes = slot.row_bytes();
      unit.experts[0].push_back({.tensor = slot.tensor,
                                 .begin = static_cast<uint64_t>(slot.to.first_row) * row_bytes,
                                 .row_bytes = row_bytes});
    }
  }
  return index;
}

}  // namespace stoker::model
