// What tests of the forward pass share: tiny models (made by tools/tiny_model.py into STOKER_TINY_DIR) with their
// recorded references, and a model with its memory in one bundle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/pool.h"
#include "gguf/file.h"
#include "model/forward.h"
#include "model/model.h"

namespace stoker::model::testing {

/// A reference: float64 forward over the same file.
struct Golden {
  std::string name, sha256;
  int64_t context = 0;
  std::vector<int32_t> tokens;
  std::vector<double> logprobs;
  std::vector<double> truncated_logprobs;  ///< With YaRN's bounds rounded, where this is not how the family does it.
  double llama_cpp = 0;                    ///< llama.cpp's mean distance from it, with f32 K and V.
  std::vector<std::vector<std::pair<int32_t, double>>> top;
};
Golden read_golden(const std::string& name);
std::vector<std::string> golden_names();
std::string tiny_path(const std::string& name);

struct Setup {
  Isa isa = Isa::kScalar;
  int threads = 1;
  std::vector<MemoryNode> nodes{};  ///< Of memory, made up: what workers are bound to, the test's thread among them.
  kernels::KvType kv = kernels::KvType::kF32;
  int64_t positions = 1024;
  int64_t max_rows = 512;
  int64_t chunk_rows = 0;
  bool stream = false;                              ///< Experts and an untied embedding stay in the file.
  bool read_embedding = false;                      ///< Only an untied embedding does.
  std::function<bool(const Unit&)> streams_unit{};  ///< Other matrices do; empty: none.
  int64_t ring_slots = 2;
  ExpertStore::Options experts{};
  LookaheadUse lookahead = LookaheadUse::kOff;
  uint64_t scatter_seed = 0;
  int64_t n_states = 16;  ///< Places for recurrent states.
  int64_t context = 0;
  Overrides overrides{};
  const kernels::Table* table = nullptr;  ///< Instead of the one of `isa`.
};

/// A loaded model, ready to run. Aborts the test when it cannot be had.
struct Loaded {
  std::unique_ptr<gguf::File> own_file;
  Ledger ledger;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<Model> model;
  std::unique_ptr<KvPool> kv;
  std::unique_ptr<Runner> runner;
  explicit Loaded(const std::string& path, const Setup& setup = {});
  explicit Loaded(const gguf::File& file, const Setup& setup = {});
  int64_t n_vocab() const { return model->vocab_size(); }

 private:
  void load(const gguf::File& file, const Setup& setup);
};

/// Logits of all tokens of one sequence, read in chunks of `chunk`: [tokens][n_vocab].
std::vector<std::vector<float>> all_logits(Loaded& loaded, std::span<const int32_t> tokens, int64_t chunk);

/// Natural logarithm of the softmax at `id`, in double.
double logprob(const std::vector<float>& logits, int32_t id);

}  // namespace stoker::model::testing
