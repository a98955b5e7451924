// Every tensor of a model of random weights, and what goes into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/pool.h"
#include "engine/synth.h"
#include "engine/synth_blocks.h"
#include "model/config.h"

namespace stoker::engine {

struct SynthTensor {
  enum class Content { kBlocks, kMarkedBlocks, kVector, kRouter, kRouterBias, kExpertIds };

  std::string name;
  gguf::TensorType type;
  std::vector<int64_t> shape;
  Content content;
  float mean = 0, deviation = 0;
  std::shared_ptr<const SynthBlocks> blocks{};  ///< Of those made of blocks.
  int64_t n_rows = 0;
  uint64_t row_bytes = 0;
  uint64_t offset = 0;      ///< From the end of the header.
  int64_t first_chunk = 0;  ///< Of all chunks of the file.

  uint64_t bytes() const { return static_cast<uint64_t>(n_rows) * row_bytes; }
  /// A tensor is made in pieces of whole rows, each from a seed of its own, so that any thread may make any.
  int64_t rows_per_chunk() const;
  int64_t n_chunks() const { return (n_rows + rows_per_chunk() - 1) / rows_per_chunk(); }
  /// The rows of one of all chunks.
  Range rows_of(int64_t chunk) const;
};

struct SynthPlan {
  static constexpr uint64_t kAlignment = 32;

  static Result<std::unique_ptr<const SynthPlan>> make(SynthOptions options);

  /// Makes a chunk: `out` has the size of its rows.
  void fill(const SynthTensor& tensor, int64_t chunk, std::span<std::byte> out) const;

  SynthOptions options;
  const SynthShape* shape = nullptr;
  const SynthType* type = nullptr;
  model::ModelConfig config;
  std::vector<SynthTensor> tensors;
  uint64_t bytes = 0;
  int64_t n_chunks = 0;
  int64_t n_parameters = 0;

 private:
  void add_tensors();
  void add(const std::string& name, std::vector<int64_t> dims, bool is_matrix);
  void describe_matrix(SynthTensor& tensor);
  gguf::TensorType embedding_type() const;
  float embedding_deviation() const;
  bool needs_mark() const;
  void prepare_routers();
  void mark_embeddings();
  std::vector<float> mean_logits(const SynthTensor& tensor) const;
  void fill_expert_ids(const SynthTensor& tensor, SynthRandom random, std::span<std::byte> out) const;
  void fill_router(const SynthTensor& tensor, Range rows, std::span<std::byte> out) const;

  bool router_bias_ = false;       ///< The family's routers have one.
  std::vector<float> offsets_;     ///< Mean logit by popularity; empty: 0.
  std::vector<std::byte> mark_;    ///< With which the embedding of every token begins, where routers need it.
  std::vector<float> mark_gains_;  ///< The weights that give a logit of 1 on the mark.
  std::map<std::pair<gguf::TensorType, float>, std::shared_ptr<const SynthBlocks>> blocks_;
};

}  // namespace stoker::engine
