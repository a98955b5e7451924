#include "model/loader.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "base/checked.h"
#include "base/str_cat.h"
#include "gguf/tensor_reader.h"
#include "quant/all.h"

namespace stoker::model {
namespace {

using gguf::TensorType;

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += str_cat(i ? ", " : "", shape[i]);
  return out + "]";
}

/// Shapes are equal up to leading ones, which the container drops.
bool same_shape(std::span<const int64_t> a, std::span<const int64_t> b) {
  while (a.size() > 1 && a.front() == 1) a = a.subspan(1);
  while (b.size() > 1 && b.front() == 1) b = b.subspan(1);
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

bool is_plain_float(TensorType type) {
  return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
}

}  // namespace

Status WeightPlan::add(const gguf::File& file, const std::string& name, Matrix* matrix, Vector* vector,
                       std::vector<int64_t> shape, bool required) {
  const gguf::TensorInfo* tensor = file.find_tensor(name);
  if (!tensor) {
    if (!required) return Ok{};
    return Error{ErrorCode::kNotFound, str_cat("tensor ", name, " is missing, wanted with shape ", shape_text(shape))};
  }
  if (!same_shape(tensor->shape, shape)) {
    return Error{ErrorCode::kCorrupt,
                 str_cat("tensor ", name, " has shape ", shape_text(tensor->shape), ", wanted ", shape_text(shape))};
  }
  const uint64_t offset = bytes_;
  uint64_t size = 0;
  if (vector) {
    if (!is_plain_float(tensor->type())) {
      return Error{ErrorCode::kUnsupported, str_cat("tensor ", name, " has type ", gguf::type_name(tensor->type()),
                                                    ", wanted F32, F16 or BF16")};
    }
    vector->name = name;
    vector->n = shape[0];
    size = static_cast<uint64_t>(round_up<int64_t>(shape[0], 16)) * sizeof(float);
  } else {
    if (static_cast<size_t>(tensor->type_id) >= kernels::kTypeIds ||
        !kernels::scalar_table().matmul[tensor->type_id].one) {
      return Error{ErrorCode::kUnsupported, str_cat("tensor ", name, " has type ", gguf::type_name(tensor->type()),
                                                    ", which no kernel of this version multiplies")};
    }
    *matrix = {.name = name,
               .type = tensor->type(),
               .n_out = shape[0],
               .n_in = shape[1],
               .group_bytes = kernels::group_bytes(tensor->type(), shape[1]),
               .data = nullptr};
    size = static_cast<uint64_t>(matrix->bytes());
  }
  const uint64_t least = vector ? tensor->bytes : 16 * tensor->bytes / static_cast<uint64_t>(shape[0]);
  window_bytes_ = std::max(window_bytes_, round_up<uint64_t>(least, 4096));
  slots_.push_back({tensor, matrix, vector, offset});
  file_bytes_ += tensor->bytes;
  bytes_ += round_up<uint64_t>(size, 64);
  return Ok{};
}

Status WeightPlan::add_layer(const gguf::File& file, const ModelConfig& config, int64_t layer, LayerWeights& weights) {
  const std::string prefix = str_cat("blk.", layer, ".");
  const bool fused = file.find_tensor(prefix + "attn_qkv.weight") != nullptr;
  for (const TensorSpec& spec : config.arch->tensors) {
    const bool required = spec.need == Need::kRequired || (spec.need == Need::kUnlessFused && !fused);
    if (spec.need == Need::kUnlessFused && fused) continue;
    const int64_t rows = resolve(spec.rows, config, layer);
    const std::string name = prefix + std::string(spec.name);
    if (auto matrix = std::get_if<Matrix LayerWeights::*>(&spec.slot)) {
      STOKER_TRY_STATUS(
          add(file, name, &(weights.*(*matrix)), nullptr, {rows, resolve(spec.cols, config, layer)}, required));
    } else {
      STOKER_TRY_STATUS(
          add(file, name, nullptr, &(weights.*std::get<Vector LayerWeights::*>(spec.slot)), {rows}, required));
    }
  }
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
    const int64_t rows = resolve(spec.rows, config, 0);
    const bool required = spec.need == Need::kRequired;
    const std::string name(spec.name);
    if (auto matrix = std::get_if<Matrix Weights::*>(&spec.slot)) {
      STOKER_TRY_STATUS(
          plan.add(file, name, &(weights.*(*matrix)), nullptr, {rows, resolve(spec.cols, config, 0)}, required));
    } else {
      STOKER_TRY_STATUS(
          plan.add(file, name, nullptr, &(weights.*std::get<Vector Weights::*>(spec.slot)), {rows}, required));
    }
  }
  weights.tied = weights.output.name.empty();
  if (weights.tied) weights.output = weights.embedding;
  weights.layers.resize(static_cast<size_t>(config.n_layers));
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    STOKER_TRY_STATUS(plan.add_layer(file, config, layer, weights.layers[static_cast<size_t>(layer)]));
  }
  STOKER_TRY_STATUS(plan.check_companions(file));
  plan.note_unused(file, config);
  return plan;
}

Status WeightPlan::check_companions(const gguf::File& file) const {
  for (const Slot& slot : slots_) {
    std::string_view base = slot.tensor->name;
    if (!base.ends_with(".weight")) continue;
    const std::string companion = str_cat(base.substr(0, base.size() - 7), ".scale");
    if (file.find_tensor(companion)) {
      return Error{ErrorCode::kUnsupported,
                   str_cat("tensor ", companion, " scales a product, which this version does not apply")};
    }
  }
  return Ok{};
}

void WeightPlan::note_unused(const gguf::File& file, const ModelConfig& config) {
  std::unordered_set<const gguf::TensorInfo*> used;
  for (const Slot& slot : slots_) used.insert(slot.tensor);
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    bool draft = false;
    for (int64_t layer = config.n_layers; layer < config.n_file_layers; ++layer) {
      draft |= tensor.name.starts_with(str_cat("blk.", layer, "."));
    }
    if (!used.contains(&tensor) && !draft) unused_.push_back(tensor.name);
  }
}

std::vector<WeightPlan::Piece> WeightPlan::place(std::byte* arena) const {
  std::vector<Piece> pieces;
  for (const Slot& slot : slots_) {
    std::byte* at = arena + slot.offset;
    if (slot.vector) {
      slot.vector->data = reinterpret_cast<float*>(at);
      pieces.push_back({&slot, 0, 0});
      continue;
    }
    slot.matrix->data = at;
    const auto row_bytes = static_cast<int64_t>(slot.tensor->bytes) / slot.matrix->n_out;
    const int64_t groups = std::max<int64_t>(1, static_cast<int64_t>(window_bytes_) / (16 * row_bytes));
    for (int64_t g = 0; g < slot.matrix->n_groups(); g += groups) {
      pieces.push_back({&slot, g, std::min(slot.matrix->n_groups(), g + groups)});
    }
  }
  return pieces;
}

/// Reads one piece after the other and packs it where it belongs.
struct WeightPlan::Filler {
  gguf::TensorReader reader;
  const kernels::Table& table;
  const std::function<void(uint64_t)>& on_bytes;

  Status fill(const Piece& piece, std::span<std::byte> window) const {
    STOKER_TRY(const uint64_t bytes,
               piece.slot->vector ? fill_vector(*piece.slot, window) : fill_groups(piece, window));
    if (on_bytes) on_bytes(bytes);
    return Ok{};
  }

  Result<uint64_t> fill_vector(const Slot& slot, std::span<std::byte> window) const {
    STOKER_TRY(const std::span<std::byte> bytes, reader.read(*slot.tensor, 0, slot.tensor->bytes, window));
    STOKER_TRY_STATUS(quant::dequantize_row(slot.tensor->type(), bytes, slot.vector->n, slot.vector->data));
    return bytes.size();
  }

  Result<uint64_t> fill_groups(const Piece& piece, std::span<std::byte> window) const {
    const gguf::TensorInfo& tensor = *piece.slot->tensor;
    const Matrix& w = *piece.slot->matrix;
    const auto row_bytes = static_cast<int64_t>(tensor.bytes) / w.n_out;
    const int64_t row = piece.group_begin * 16, rows = std::min(w.n_out, piece.group_end * 16) - row;
    STOKER_TRY(const std::span<std::byte> bytes, reader.read(tensor, static_cast<uint64_t>(row * row_bytes),
                                                             static_cast<uint64_t>(rows * row_bytes), window));
    for (int64_t g = piece.group_begin; g < piece.group_end; ++g) {
      const int64_t in_window = (g - piece.group_begin) * 16;
      table.pack[tensor.type_id]({.rows = bytes.data() + in_window * row_bytes,
                                  .row_bytes = row_bytes,
                                  .n_rows = static_cast<int>(std::min<int64_t>(16, rows - in_window)),
                                  .k = w.n_in,
                                  .group = w.data + g * w.group_bytes});
    }
    return bytes.size();
  }
};

Status WeightPlan::load(const gguf::File& file, BulkReader::Cache cache, const kernels::Table& table, Ledger& ledger,
                        Pool& pool, const std::function<void(uint64_t)>& on_bytes) const {
  Weights& weights = *weights_;
  STOKER_TRY(weights.arena, Buffer::allocate(ledger, "weights", bytes_));
  STOKER_TRY(Buffer windows,
             Buffer::allocate(ledger, "load window", window_bytes() * static_cast<uint64_t>(pool.size())));
  const std::vector<Piece> pieces = place(weights.arena.data());
  const Filler filler{gguf::TensorReader(file, cache), table, on_bytes};
  std::atomic<bool> failed{false};
  std::mutex mu;
  std::optional<Error> first_error;
  pool.run([&](Worker& worker) {
    const auto window = windows.bytes().subspan(static_cast<uint64_t>(worker.index()) * window_bytes(), window_bytes());
    worker.each(static_cast<int64_t>(pieces.size()), 1, [&](Range range) {
      if (failed.load(std::memory_order_relaxed)) return;
      Status status = filler.fill(pieces[static_cast<size_t>(range.begin)], window);
      if (status) return;
      const std::lock_guard lock(mu);
      failed = true;
      if (!first_error) first_error = std::move(status).error();
    });
  });
  if (first_error) return std::move(*first_error);
  if (weights.tied) weights.output = weights.embedding;
  return Ok{};
}

}  // namespace stoker::model
