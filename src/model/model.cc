#include "model/model.h"

#include <utility>

#include "base/str_cat.h"

namespace stoker::model {

Result<std::unique_ptr<Model>> Model::prepare(const gguf::File& file, LoadOptions options) {
  auto model = std::unique_ptr<Model>(new Model);
  Model& m = *model;
  if (!options.table) {
    STOKER_TRY(Isa isa, pick_isa());
    STOKER_TRY(options.table, kernels::table_for(isa));
  }
  m.options_ = std::move(options);
  STOKER_TRY(m.config_, read_config(file, m.options_.overrides));
  m.context_ = m.options_.context > 0 ? m.options_.context : m.config_.context_length;
  STOKER_TRY(WeightPlan weight_plan, WeightPlan::make(file, m.config_, m.weights_));
  m.weight_plan_ = std::make_unique<WeightPlan>(std::move(weight_plan));
  m.expert_index_ = m.weight_plan_->expert_index(m.config_);
  KernelFinder finder(*m.options_.table);
  STOKER_TRY(m.plan_, build_plan(m.config_, m.weights_, finder, m.options_.kv_type));
  if (const int64_t most = m.plan_.max_positions; most > 0 && m.context_ > most) {
    return Error{ErrorCode::kUnsupported, str_cat("a context of ", m.context_, " positions; this version runs ",
                                                  m.config_.arch->name, " with the ", most, " of context_length")};
  }
  return model;
}

std::vector<Ledger::Line> Model::load_memory(int n_workers, const Residency& residency, uint64_t expert_budget) const {
  std::vector<Ledger::Line> lines = {
      {"weights", weight_plan_->bytes(residency), 0},
      {"load window", weight_plan_->window_bytes() * static_cast<uint64_t>(n_workers), 0}};
  const auto add = [&](const ExpertIndex& index, uint64_t budget) {
    for (Ledger::Line& line : ExpertStore::memory(index, budget)) lines.push_back(std::move(line));
  };
  if (residency.stream_experts) add(expert_index_, expert_budget);
  if (residency.streams_units()) add(unit_index(residency), 0);
  return lines;
}

Status Model::read(const gguf::File& file, Ledger& ledger, Pool& pool, ReadOptions options) {
  const kernels::Table& table = *options_.table;
  options.experts.split = &pool.split();
  if (options.residency.stream_experts) {  // First: its slots are touched while weights are read.
    STOKER_TRY(experts_, ExpertStore::reserve(file, expert_index_, table, ledger, options.experts));
  }
  STOKER_TRY_STATUS(weight_plan_->load(file, options.residency, options.cache, table, ledger, pool, options.on_bytes));
  if (experts_) experts_->start();
  if (options.residency.streams_units()) {
    ExpertStore::Options units = options.experts;
    if (experts_) units.lanes = experts_->lanes();
    STOKER_TRY(unit_store_, ExpertStore::open(file, unit_index(options.residency), table, ledger, units));
  }
  if (options.residency.read_embedding && weights_.layer_inputs) {
    layer_input_reader_ = std::make_unique<EmbeddingReader>(file, *weight_plan_->tensor_of(weights_.layer_inputs));
  }
  if (weight_plan_->reads_embedding(options.residency)) {
    embedding_reader_ = std::make_unique<EmbeddingReader>(file, *weight_plan_->tensor_of(weights_.embedding));
  }
  return fill_ropes(config_, weights_, context_, plan_);
}

Result<std::unique_ptr<Model>> Model::from_gguf(const gguf::File& file, LoadOptions options, Ledger& ledger,
                                                Pool& pool) {
  STOKER_TRY(std::unique_ptr<Model> model, prepare(file, std::move(options)));
  STOKER_TRY_STATUS(model->read(file, ledger, pool, {}));
  return model;
}

}  // namespace stoker::model
