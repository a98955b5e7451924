#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "base/pool.h"
#include "base/result.h"
#include "model/forward.h"
#include "model/model.h"

namespace stoker::model {

/// The forward pass under the names of the reference system (docs/from-the-reference.md). Each only builds a Batch and
/// copies the outputs: Runner::forward is the one implementation, so a rule has one home. It enters the worker pool
/// once per call. Engines use Runner itself, which copies nothing. Contiguous and paged key-value memory are the same
/// thing here (contiguous is a lucky page table), and so are host and device copies: the `_paged`, `_kv` and `_host_kv`
/// names are kept for those who look for them. Threads: one call at a time.
class Decoder {
 public:
  using Row = std::vector<float>;  ///< Logits [vocab_size] or a hidden state [dim].
  struct Options {
    int threads = 1;
    int64_t positions = 4096;  ///< Key-value memory, all sequences together.
    int64_t max_rows = 512;    ///< Most rows of one call.
    int64_t n_sequences = 16;  ///< At once, of models whose state has a fixed size each.
    LoadOptions load{};
    uint64_t memory_bytes = 0;  ///< Limit of the ledger; 0: none.
  };
  struct LogitsAndHidden {
    std::vector<Row> logits, hidden;
  };

  /// Loads a file. Errors as in gguf::File::open and Model::from_gguf.
  static Result<std::unique_ptr<Decoder>> from_gguf(const std::string& path, Options options);
  /// The same with experts streamed through a cache of so many bytes (ExpertStore::Options::budget_bytes), as is an
  /// untied embedding. For a dense model that of from_gguf.
  static Result<std::unique_ptr<Decoder>> from_gguf_with_expert_cache(const std::string& path, uint64_t budget_bytes,
                                                                      Options options);
  /// A model of `config`'s shape with random F32 weights, but `n_layers` layers and `vocab` tokens: to test plumbing,
  /// never to judge quality. The same numbers on every machine. kInvalidArgument: a shape that cannot be.
  static Result<std::unique_ptr<Decoder>> new_random_small(ModelConfig config, int64_t n_layers, int64_t vocab,
                                                           uint64_t seed, Options options);

  Sequence new_state() { return Sequence(*kv_); }
  int64_t vocab_size() const { return model_->vocab_size(); }
  /// Every matrix with the kernel that will run it, a line each; complete since loading.
  std::string probe_kernels() const { return model_->probe_kernels(); }

  // All: `position` must be the sequence's length. kInvalidArgument, kOverloaded (pages wanted and free) before
  // anything is written; kCorrupt when a value is not finite, naming layer, step and position.

  /// One token; its logits.
  Result<Row> forward_token(int32_t token, int64_t position, Sequence& state);
  Result<Row> forward_token_paged(int32_t token, int64_t position, Sequence& state) {
    return forward_token(token, position, state);
  }

  /// Some tokens from `position` on; the logits of each. No tokens give no rows.
  Result<std::vector<Row>> forward_batch(std::span<const int32_t> tokens, int64_t position, Sequence& state);
  /// The same with the hidden states after the output norm.
  Result<LogitsAndHidden> forward_batch_with_hidden(std::span<const int32_t> tokens, int64_t position, Sequence& state);
  /// The logits of the last token alone. kInvalidArgument: no tokens.
  Result<Row> forward_batch_last(std::span<const int32_t> tokens, int64_t position, Sequence& state);
  Result<Row> forward_batch_last_paged(std::span<const int32_t> tokens, int64_t position, Sequence& state) {
    return forward_batch_last(tokens, position, state);
  }
  Result<Row> forward_batch_last_host_kv(std::span<const int32_t> tokens, int64_t position, Sequence& state) {
    return forward_batch_last(tokens, position, state);
  }
  /// The hidden states alone, for pooling: no logits are computed.
  Result<std::vector<Row>> forward_hidden_batch(std::span<const int32_t> tokens, int64_t position, Sequence& state);

  /// One token of each of several sequences: bit for bit what forward_token gives for each alone.
  Result<std::vector<Row>> forward_multi_seq(std::span<const int32_t> tokens, std::span<const int64_t> positions,
                                             std::span<Sequence> states);
  Result<std::vector<Row>> forward_multi_seq_kv(std::span<const int32_t> tokens, std::span<const int64_t> positions,
                                                std::span<Sequence> states) {
    return forward_multi_seq(tokens, positions, states);
  }

  /// Hits, misses, evictions and so on; all zero while the experts are resident.
  ExpertStore::Stats expert_store_stats() const {
    return model_->experts() ? model_->experts()->stats() : ExpertStore::Stats{};
  }

  Ledger& ledger() { return ledger_; }
  Pool& pool() { return *pool_; }
  KvPool& kv() { return *kv_; }
  const Model& model() const { return *model_; }

 private:
  explicit Decoder(uint64_t memory_bytes) : ledger_(memory_bytes) {}
  static Result<std::unique_ptr<Decoder>> from_file(const gguf::File& file, Options options, ReadOptions read);
  static Result<std::unique_ptr<Decoder>> from_kept_file(gguf::File file, Options options, ReadOptions read);
  Result<LogitsAndHidden> call(Batch batch);

  std::unique_ptr<gguf::File> file_;
  Ledger ledger_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<KvPool> kv_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace stoker::model
