#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/bulk_reader.h"
#include "base/pool.h"
#include "base/result.h"
#include "gguf/file.h"
#include "kernels/table.h"
#include "model/arch/arch.h"
#include "model/config.h"
#include "model/experts/index.h"
#include "model/page_nodes.h"
#include "model/units.h"
#include "model/weights.h"

namespace stoker::model {

/// What stays on disk while the model runs.
struct Residency {
  bool stream_experts = false;  ///< They come through an ExpertStore.
  bool read_embedding =
      false;                  ///< An untied embedding and inputs of layers are read row by row, as tokens ask for them.
  std::vector<bool> units{};  ///< Which of WeightPlan::units come through a ring of slots; empty: none of them.
  int64_t ring_slots = kFewestRingSlots;
  static constexpr int64_t kFewestRingSlots = 2;  ///< One is read while the other is at work.
  bool streams() const { return stream_experts || streams_units(); }
  bool streams_units() const { return std::find(units.begin(), units.end(), true) != units.end(); }
};

/// Which tensors of a file go where, checked against the architecture's table before anything is read.
/// Holds pointers into the file's directory and into the Weights it was made for: neither may move in between.
class WeightPlan {
 public:
  /// kNotFound: names a missing tensor and the shape wanted. kCorrupt: a shape that does not fit. kUnsupported: a type
  /// without kernels, a tensor in a layer that nobody reads, or a companion tensor that this version does not apply.
  static Result<WeightPlan> make(const gguf::File& file, const ModelConfig& config, Weights& weights);

  /// Bytes of the weights in memory, in the layout of the kernels.
  uint64_t bytes(const Residency& residency) const;
  /// Tensors of the file that the model does not use.
  const std::vector<std::string>& unused() const { return unused_; }

  /// Bytes of the file that `load` reads.
  uint64_t file_bytes(const Residency& residency) const;
  const std::vector<Unit>& units() const { return units_; }
  /// Those that stay on disk, each a layer of the index with one expert.
  ExpertIndex unit_index(const Residency& residency) const;
  /// The layers with experts and where these lie; empty for a dense model.
  ExpertIndex expert_index(const ModelConfig& config) const;
  /// The tensor that a matrix of the model comes from, which there must be.
  const gguf::TensorInfo* tensor_of(const Matrix& matrix) const;
  /// Whether the embedding is read row by row: where the output matrix shares its bytes, when not all of these are in
  /// memory.
  bool reads_embedding(const Residency& residency) const;
  /// Which memory node each page of the weights comes from, where workers are divided so.
  PageNodes page_nodes(const Residency& residency, const NodeSplit& split) const;
  /// Bytes that each worker reads into while loading.
  uint64_t window_bytes() const { return BulkReader::window_bytes(window_bytes_); }

  /// Allocates the arena and fills it, all workers of `pool` reading and packing. Where these are of several memory
  /// nodes, each page is first touched by one of its node's.
  /// kIo, kCorrupt: name the tensor. kOutOfMemory: the ledger refuses.
  /// `on_bytes` hears from any worker how many bytes of the file it has dealt with; may be empty.
  Status load(const gguf::File& file, const Residency& residency, BulkReader::Cache cache, const kernels::Table& table,
              Ledger& ledger, Pool& pool, const std::function<void(uint64_t)>& on_bytes) const;

 private:
  /// Where a tensor goes: one of the two.
  struct Target {
    Matrix* matrix = nullptr;
    Vector* vector = nullptr;
    int64_t expert = 0;       ///< The first of those in this tensor.
    int64_t n_experts = 1;    ///< Matrices in it.
    int64_t first_row = 0;    ///< Of the tensor, or of each expert there, where the matrix has only some of the rows.
    int64_t tensor_rows = 0;  ///< Of an expert in the tensor, where it has more than the matrix; 0: it has not.
    int64_t n_ids = 0;        ///< Of a vector: it holds whole numbers below this, as I32; 0: it does not.
    bool only_f32 = false;    ///< Of a vector: no other type will do.
    bool of_experts = false;
    int64_t turned = 0;  ///< Of each head's rows in the tensor the first so many, transposed; 0: all, as they are. Of
                         ///< a vector: its columns in the file; rows of them are transposed.
    int64_t head_rows = 0;  ///< Then: rows of a head.
    size_t unit = kNoUnit;
  };
  static constexpr size_t kNoUnit = ~size_t{0};
  struct Slot {
    const gguf::TensorInfo* tensor;
    Target to;
    uint64_t bytes;       ///< In the arena.
    uint64_t file_bytes;  ///< Read for it.
    uint64_t row_bytes() const;
    /// Where the matrices are experts'.
    ExpertMatrix* experts() const { return to.of_experts ? static_cast<ExpertMatrix*>(to.matrix) : nullptr; }
  };
  struct Filler;
  struct Piece {
    const Slot* slot;
    int64_t group_begin, group_end;
    int64_t expert;  ///< Of those in the tensor.
  };
  Status add(const gguf::File& file, const std::string& name, Target to, std::vector<int64_t> shape, bool required);
  Result<uint64_t> add_vector(const gguf::TensorInfo& tensor, Target to, std::span<const int64_t> shape);
  Result<uint64_t> add_matrix(const gguf::TensorInfo& tensor, Target to, std::span<const int64_t> shape);
  Status add_tensor(const gguf::File& file, const std::string& name, const TensorSpec& spec, const ModelConfig& config,
                    int64_t layer, LayerWeights& weights, bool required);
  Status add_experts(const gguf::File& file, const std::string& name, ExpertMatrix& experts, std::vector<int64_t> shape,
                     bool required);
  Status add_fused_experts(const gguf::File& file, const std::string& name, const TensorSpec& spec,
                           const ModelConfig& config, int64_t layer, LayerWeights& weights);
  Status add_turned_keys(const gguf::File& file, const std::string& name, const ModelConfig& config, int64_t layer,
                         LayerWeights& weights);
  Status add_layer(const gguf::File& file, const ModelConfig& config, int64_t layer, LayerWeights& weights);
  void split_output();
  void find_units();
  /// kUnsupported: a layer has a tensor that nobody reads.
  Status note_unused(const gguf::File& file, const ModelConfig& config);
  Status check_companions(const gguf::File& file) const;
  bool stays_on_disk(const Slot& slot, const Residency& residency) const;
  std::vector<SplitRange> split_ranges(const Residency& residency) const;
  /// Places the weights in the arena and cuts them into what one worker reads at once.
  std::vector<Piece> place(std::byte* arena, const Residency& residency, const NodeSplit& split) const;

  Weights* weights_ = nullptr;
  const gguf::TensorInfo* embedding_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<Unit> units_;
  std::vector<std::string> unused_;
  std::vector<std::string> known_;  ///< Tensors of layers that are not read and change nothing.
  uint64_t window_bytes_ = (2u << 20) - BulkReader::kAlign;  // at least: a group of 16 rows, or a whole vector
};

}  // namespace stoker::model
