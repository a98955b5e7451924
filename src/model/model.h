#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "base/pool.h"
#include "base/result.h"
#include "gguf/file.h"
#include "kernels/table.h"
#include "model/config.h"
#include "model/embedding_reader.h"
#include "model/experts/store.h"
#include "model/loader.h"
#include "model/plan.h"
#include "model/weights.h"

namespace stoker::model {

struct LoadOptions {
  Overrides overrides{};
  int64_t context = 0;  ///< Positions that one sequence may take; 0: what the model was trained for.
  kernels::KvType kv_type = kernels::KvType::kF16;
  const kernels::Table* table = nullptr;  ///< Null: the best for this CPU, or what STOKER_ISA says.
};

struct ReadOptions {
  BulkReader::Cache cache = BulkReader::Cache::kSpare;
  Residency residency{};
  ExpertStore::Options experts{};  ///< Where experts are streamed; all but its budget also for units that are.
  /// Hears from any worker how many bytes of `file_bytes` it has dealt with; may be empty.
  std::function<void(uint64_t)> on_bytes{};
};

/// A model: configuration, weights, plan. Loading has two halves, so that what it will need can be judged in between.
/// Threads: read-only once `read` has returned, from any thread.
class Model {
 public:
  /// Checks metadata and tensor directory; reads no weights. The file must outlive the call
  /// of `read`, and the model where something stays on disk.
  static Result<std::unique_ptr<Model>> prepare(const gguf::File& file, LoadOptions options);

  /// What `read` will charge, by name.
  std::vector<Ledger::Line> load_memory(int n_workers, const Residency& residency = {},
                                        uint64_t expert_budget = 0) const;
  /// Reads and packs the weights and computes the rotation tables.
  Status read(const gguf::File& file, Ledger& ledger, Pool& pool, ReadOptions options);
  /// Which memory nodes the weights come from, where workers are divided so.
  PageNodes page_nodes(const NodeSplit& split, const Residency& residency = {}) const {
    return weight_plan_->page_nodes(residency, split);
  }
  uint64_t file_bytes(const Residency& residency = {}) const { return weight_plan_->file_bytes(residency); }
  /// Where the experts lie; no layers for a dense model.
  const ExpertIndex& expert_index() const { return expert_index_; }
  /// What else may stay on disk (Residency::units), and where those lie that do.
  const std::vector<Unit>& units() const { return weight_plan_->units(); }
  ExpertIndex unit_index(const Residency& residency) const { return weight_plan_->unit_index(residency); }
  /// Whether each token's row of the embedding is read from disk then.
  bool reads_embedding(const Residency& residency) const { return weight_plan_->reads_embedding(residency); }

  /// Both halves.
  static Result<std::unique_ptr<Model>> from_gguf(const gguf::File& file, LoadOptions options, Ledger& ledger,
                                                  Pool& pool);

  const ModelConfig& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  /// Complete after `prepare` but for the weights' bytes and the rotation tables.
  const Plan& plan() const { return plan_; }
  /// Null unless experts are streamed.
  ExpertStore* experts() const { return experts_.get(); }
  /// Null unless units are streamed. For one Runner alone.
  ExpertStore* unit_store() const { return unit_store_.get(); }
  /// Null unless the embedding is read by row.
  const EmbeddingReader* embedding_reader() const { return embedding_reader_.get(); }
  const EmbeddingReader* layer_input_reader() const { return layer_input_reader_.get(); }  ///< The same of these.
  const LoadOptions& options() const { return options_; }
  int64_t context() const { return context_; }
  int64_t vocab_size() const { return config_.n_vocab; }
  /// Tensors of the file that are not used.
  const std::vector<std::string>& unused_tensors() const { return weight_plan_->unused(); }

  /// Every matrix with the kernel that the plan holds for it, a line each: what the reference's probe_kernels tells at
  /// start.
  std::string probe_kernels() const { return plan_.describe(); }

 private:
  Model() = default;
  LoadOptions options_;
  int64_t context_ = 0;
  ModelConfig config_;
  Weights weights_;
  std::unique_ptr<WeightPlan> weight_plan_;
  ExpertIndex expert_index_;
  Plan plan_;
  std::unique_ptr<ExpertStore> experts_, unit_store_;
  std::unique_ptr<EmbeddingReader> embedding_reader_, layer_input_reader_;
};

}  // namespace stoker::model
