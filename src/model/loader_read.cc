// What WeightPlan has planned, done: where each tensor lies in memory, and how it gets there.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "base/f16.h"
#include "base/str_cat.h"
#include "base/toucher.h"
#include "gguf/tensor_reader.h"
#include "model/loader.h"
#include "quant/all.h"

namespace stoker::model {
namespace {

using gguf::TensorType;

/// From here on memory is cleared beside the reading: half of what workers did while the disk waited for them.
constexpr uint64_t kWorthTouching = 256u << 20;
constexpr int kMostTouching = 4;

/// So that the system takes each page from its node.
void touch_by_nodes(std::span<std::byte> arena, const PageNodes& pages, Pool& pool) {
  std::vector<std::vector<uint64_t>> of_node(pages.bytes.size());
  for (size_t i = 0; i < pages.node.size(); ++i) {
    of_node[static_cast<size_t>(pages.node[i])].push_back(i * PageNodes::kPage);
  }
  pool.run([&](Worker& worker) {
    const std::vector<uint64_t>& mine = of_node[static_cast<size_t>(worker.node())];
    worker.each_near(static_cast<int64_t>(mine.size()), 1, [&](Range one) {
      const uint64_t begin = mine[static_cast<size_t>(one.begin)];
      touch_pages(arena.subspan(begin, std::min(PageNodes::kPage, arena.size() - begin)));
    });
  });
}

}  // namespace

/// What products read. Matrices that rows are looked up in are everybody's.
std::vector<SplitRange> WeightPlan::split_ranges(const Residency& residency) const {
  const Weights& w = *weights_;
  const std::vector<Matrix>& parts = w.output_parts;
  const auto is_part = [&](const Matrix& m) { return !parts.empty() && &m >= &parts.front() && &m <= &parts.back(); };
  // A product goes through the output matrix as one, unless some of it comes from disk.
  const bool whole_output = std::none_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.to.matrix && is_part(*slot.to.matrix) && stays_on_disk(slot, residency);
  });
  std::vector<SplitRange> ranges;
  uint64_t at = 0;
  for (const Slot& slot : slots_) {
    if (stays_on_disk(slot, residency)) continue;
    const uint64_t begin = std::exchange(at, at + slot.bytes);
    const Matrix* m = slot.to.matrix;
    if (!m || slot.to.expert > 0) continue;
    if (m == &w.embedding || m == &w.token_types || m == &w.positions || m == &w.layer_inputs) continue;
    SplitRange range{.begin = begin,
                     .unit_bytes = static_cast<uint64_t>(m->group_bytes),
                     .n = m->n_groups(),
                     .n_all = m->n_groups()};
    if (const ExpertMatrix* experts = slot.experts()) range.unit_bytes *= static_cast<uint64_t>(experts->n_experts);
    if (is_part(*m) && whole_output) {
      range.first = slot.to.first_row / 16;
      range.n_all = w.output.n_groups();
    }
    ranges.push_back(range);
  }
  return ranges;
}

PageNodes WeightPlan::page_nodes(const Residency& residency, const NodeSplit& split) const {
  return place_pages(split_ranges(residency), bytes(residency), split);
}

std::vector<WeightPlan::Piece> WeightPlan::place(std::byte* arena, const Residency& residency,
                                                 const NodeSplit& split) const {
  std::vector<Piece> pieces;
  for (const Slot& slot : slots_) {
    if (stays_on_disk(slot, residency)) continue;
    std::byte* at = std::exchange(arena, arena + slot.bytes);
    if (slot.to.vector) {
      slot.to.vector->data = reinterpret_cast<float*>(at);
      pieces.push_back({&slot, 0, 0, 0});
      continue;
    }
    Matrix& w = *slot.to.matrix;
    if (slot.to.expert == 0) w.data = at;
    if (ExpertMatrix* experts = slot.experts()) {
      experts->borders.clear();
      for (int i = 1; i < split.n_nodes(); ++i) experts->borders.push_back(split.part(w.n_groups(), i).begin);
    }
    if (slot.to.turned > 0) {
      const int64_t n_heads = slot.tensor->shape[0] / slot.to.head_rows, groups = w.n_groups() / n_heads;
      for (int64_t h = 0; h < n_heads; ++h) pieces.push_back({&slot, h * groups, (h + 1) * groups, 0});
      continue;
    }
    const auto row_bytes = static_cast<int64_t>(slot.row_bytes());
    const int64_t groups = std::max<int64_t>(1, static_cast<int64_t>(window_bytes_) / (16 * row_bytes));
    for (int64_t expert = 0; expert < slot.to.n_experts; ++expert) {
      for (int64_t g = 0; g < w.n_groups(); g += groups) {
        pieces.push_back({&slot, g, std::min(w.n_groups(), g + groups), expert});
      }
    }
  }
  Matrix& output = weights_->output;
  const std::vector<Matrix>& parts = weights_->output_parts;
  if (parts.empty()) return pieces;
  const bool there = std::all_of(parts.begin(), parts.end(), [](const Matrix& part) { return part.data != nullptr; });
  output.data = there ? parts[0].data : nullptr;
  if (weights_->tied) weights_->embedding.data = output.data;
  return pieces;
}

/// Reads one piece after the other and packs it where it belongs.
struct WeightPlan::Filler {
  gguf::TensorReader reader;
  const kernels::Table& table;
  const std::function<void(uint64_t)>& on_bytes;

  Status fill(const Piece& piece, std::span<std::byte> window) const {
    STOKER_TRY(const uint64_t bytes, piece.slot->to.vector       ? fill_vector(*piece.slot, window)
                                     : piece.slot->to.turned > 0 ? fill_turned(piece, window)
                                                                 : fill_groups(piece, window));
    if (on_bytes) on_bytes(bytes);
    return Ok{};
  }

  Result<uint64_t> fill_vector(const Slot& slot, std::span<std::byte> window) const {
    STOKER_TRY(const std::span<std::byte> bytes, reader.read(*slot.tensor, 0, slot.tensor->bytes, window));
    const Vector& vector = *slot.to.vector;
    if (slot.to.turned == 0) {
      STOKER_TRY_STATUS(quant::dequantize_row(slot.tensor->type(), bytes, vector.n, vector.data));
      if (slot.to.n_ids > 0) STOKER_TRY_STATUS(check_ids(slot));
      return bytes.size();
    }
    std::vector<float> values(static_cast<size_t>(vector.n));
    STOKER_TRY_STATUS(quant::dequantize_row(slot.tensor->type(), bytes, vector.n, values.data()));
    const int64_t n_cols = slot.to.turned, n_rows = vector.n / n_cols;
    for (int64_t i = 0; i < vector.n; ++i) {
      vector.data[i % n_cols * n_rows + i / n_cols] = values[static_cast<size_t>(i)];
    }
    return bytes.size();
  }

  static Status check_ids(const Slot& slot) {
    const Vector& vector = *slot.to.vector;
    for (int64_t i = 0; i < vector.n; ++i) {
      if (vector.data[i] >= 0 && vector.data[i] < static_cast<float>(slot.to.n_ids)) continue;
      return Error{ErrorCode::kCorrupt, str_cat("tensor ", slot.tensor->name, ": entry ", i, " is ", vector.data[i],
                                                ", wanted 0 to ", slot.to.n_ids - 1)};
    }
    return Ok{};
  }

  /// The rows of one head, transposed.
  Result<uint64_t> fill_turned(const Piece& piece, std::span<std::byte> window) const {
    const gguf::TensorInfo& tensor = *piece.slot->tensor;
    const Target& to = piece.slot->to;
    const Matrix& w = *to.matrix;
    const uint64_t row_bytes = tensor.bytes / static_cast<uint64_t>(tensor.shape[0]);
    const int64_t head = piece.group_begin / (piece.group_end - piece.group_begin), n_in = tensor.shape[1];
    STOKER_TRY(const std::span<std::byte> bytes,
               reader.read(tensor, static_cast<uint64_t>(head * to.head_rows) * row_bytes,
                           static_cast<uint64_t>(to.turned) * row_bytes, window));
    std::vector<float> values(static_cast<size_t>(to.turned * n_in));
    STOKER_TRY_STATUS(quant::dequantize_row(tensor.type(), bytes, to.turned * n_in, values.data()));
    const auto value_bytes = static_cast<int64_t>(w.type == TensorType::kF32 ? sizeof(float) : sizeof(uint16_t));
    std::vector<std::byte> rows(static_cast<size_t>(16 * to.turned * value_bytes));
    for (int64_t g = piece.group_begin; g < piece.group_end; ++g) {
      const int64_t first = (g - piece.group_begin) * 16;
      for (int64_t i = 0; i < 16 * to.turned; ++i) {
        const float value = values[static_cast<size_t>(i % to.turned * n_in + first + i / to.turned)];
        const uint16_t half = w.type == TensorType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
        const void* from = w.type == TensorType::kF32 ? static_cast<const void*>(&value) : &half;
        std::memcpy(rows.data() + i * value_bytes, from, static_cast<size_t>(value_bytes));
      }
      table.pack[static_cast<size_t>(w.type)]({.rows = rows.data(),
                                               .row_bytes = to.turned * value_bytes,
                                               .n_rows = 16,
                                               .k = to.turned,
                                               .group = w.data + g * w.group_bytes});
    }
    return bytes.size();
  }

  Result<uint64_t> fill_groups(const Piece& piece, std::span<std::byte> window) const {
    const gguf::TensorInfo& tensor = *piece.slot->tensor;
    const Target& to = piece.slot->to;
    const Matrix& w = *to.matrix;
    const int64_t expert_rows = to.tensor_rows > 0 ? to.tensor_rows : w.n_out;
    const auto row_bytes = static_cast<int64_t>(piece.slot->row_bytes());
    const int64_t row = piece.group_begin * 16, rows = std::min(w.n_out, piece.group_end * 16) - row;
    const int64_t in_tensor = piece.expert * expert_rows + to.first_row + row;
    const ExpertMatrix* const experts = piece.slot->experts();
    STOKER_TRY(const std::span<std::byte> bytes, reader.read(tensor, static_cast<uint64_t>(in_tensor * row_bytes),
                                                             static_cast<uint64_t>(rows * row_bytes), window));
    for (int64_t g = piece.group_begin; g < piece.group_end; ++g) {
      const int64_t in_window = (g - piece.group_begin) * 16;
      std::byte* const groups = experts ? experts->stretch(to.expert + piece.expert, g).data : w.data;
      table.pack[tensor.type_id]({.rows = bytes.data() + in_window * row_bytes,
                                  .row_bytes = row_bytes,
                                  .n_rows = static_cast<int>(std::min<int64_t>(16, rows - in_window)),
                                  .k = w.n_in,
                                  .group = groups + g * w.group_bytes});
    }
    return bytes.size();
  }
};

Status WeightPlan::load(const gguf::File& file, const Residency& residency, BulkReader::Cache cache,
                        const kernels::Table& table, Ledger& ledger, Pool& pool,
                        const std::function<void(uint64_t)>& on_bytes) const {
  Weights& weights = *weights_;
  STOKER_TRY(weights.arena, Buffer::allocate(ledger, "weights", bytes(residency)));
  STOKER_TRY(Buffer windows,
             Buffer::allocate(ledger, "load window", window_bytes() * static_cast<uint64_t>(pool.size())));
  const NodeSplit& split = pool.split();
  Toucher toucher;
  if (split.n_nodes() > 1) {
    touch_by_nodes(weights.arena.bytes(), page_nodes(residency, split), pool);
  } else if (weights.arena.size() >= kWorthTouching) {
    toucher.start(weights.arena.bytes(), std::min(pool.size(), kMostTouching));
  }
  const std::vector<Piece> pieces = place(weights.arena.data(), residency, split);
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
  return Ok{};
}

}  // namespace stoker::model
