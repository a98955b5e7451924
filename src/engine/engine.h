#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "base/pool.h"
#include "base/result.h"
#include "gguf/file.h"
#include "model/forward.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace stoker::engine {

struct EngineOptions {
  std::string path{};          ///< Of the GGUF file, or any shard of a split one.
  uint64_t memory_bytes = 0;   ///< The memory limit; 0: what the control groups and the machine leave, less a margin.
  int threads = 0;             ///< 0: the processors that this process may use.
  bool threads_exact = false;  ///< More threads than processors (tests); otherwise they are capped.
  bool pin = false;            ///< Each worker stays on one processor; the thread that calls `open` counts as one.
  bool numa = true;            ///< Workers and memory are placed by the machine's memory nodes, where it has several.
  int64_t context = 0;         ///< Positions per sequence; 0: min(the model's, 8192, what fits).
  int64_t batch = 512;         ///< Most rows per forward call.
  kernels::KvType kv_type = kernels::KvType::kF16;
  /// For the cache of streamed experts; nothing: they are resident where all fit, otherwise it takes what is left.
  std::optional<uint64_t> expert_cache_bytes{};
  model::ReaderKind expert_reader = model::ReaderKind::kDefault;
  model::LookaheadUse expert_lookahead = model::LookaheadUse::kTry;
  bool keep_routes = false;  ///< For a trace: which experts each token of the last call went to (Runner::routes).
  model::Overrides overrides{};
};

/// Where the weights of a run are.
struct Placement {
  model::Residency residency{};
  uint64_t expert_budget = 0;  ///< Of the cache, where experts are streamed.
  int64_t max_rows = 0;        ///< Of a forward call: where weights are streamed, a prompt is read in as few as fit.
};

/// A model, its tokenizer and the memory to run sequences in. Opens in two steps: `open` reads the header, so that
/// prompts can be tokenized and judged; `load` reserves everything that the run will need, then reads the weights. A
/// loaded engine never fails for memory afterwards. Threads: one at a time.
class Engine {
 public:
  static constexpr int64_t kDefaultContext = 8192;
  static constexpr int64_t kMostContext = 1 << 21;  ///< math::sincos is exact that far.

  /// kNotFound, kIo, kCorrupt, kUnsupported: name the file and the place. kInvalidArgument: an option.
  static Result<std::unique_ptr<Engine>> open(EngineOptions options);

  /// The same with a file that is open already. Its header alone will do for everything before `load`.
  static Result<std::unique_ptr<Engine>> open(EngineOptions options, gguf::File file);

  /// What a run needs reserved.
  struct Needs {
    int64_t positions = 0;      ///< Key-value memory, all sequences together.
    int64_t max_rows = 0;       ///< Most rows of one forward call.
    int64_t prompt_rows = 0;    ///< Of the longest prompt, which is read at once where that saves reads; 0: max_rows.
    int64_t max_logits = 1;     ///< Rows of logits that stand in memory at once.
    int64_t n_sequences = 1;    ///< That stand in memory at once: states of a fixed size each (model::StateTraits).
    int64_t n_checkpoints = 0;  ///< That they keep together, and snapshots.
    int64_t n_states() const { return model::KvLayout::kStatesPerSequence * n_sequences + n_checkpoints; }
  };
  /// Positions that one sequence may take: what was asked for, or the default, for `n_sequences`, that fits besides the
  /// rows and logits of `needs`. kOutOfMemory: the positions of `needs`, or one page, would be within the default and
  /// do not fit; with the table.
  Result<int64_t> context(const Needs& needs, int64_t n_sequences = 1) const;
  Result<int64_t> context() const { return context({.max_rows = options_.batch}); }

  /// kUnsupported: the model gives vectors of texts and no logits.
  Status check_logits() const;

  /// Reserves all of it, then reads the weights.
  /// kOutOfMemory: refused before anything is read, with a table of what needs what.
  /// `on_bytes` hears, from any thread, how many bytes of `model().file_bytes()` have been read; may be empty.
  Status load(const Needs& needs, const std::function<void(uint64_t)>& on_bytes = {});

  /// kOutOfMemory: `load` would refuse, with this error.
  Status fits(const Needs& needs) const;
  /// The least limit, in whole MiB, with which it would not.
  uint64_t smallest_limit(const Needs& needs) const;
  /// Another limit in place of EngineOptions::memory_bytes. Before `load`.
  void set_limit(uint64_t memory_bytes);

  /// Charges what stands before the sizes of all else are known: a long text, say. What does not fit is refused by
  /// `load`, whose table then has everything. Before `load`.
  void hold(const std::string& name, uint64_t bytes);

  const EngineOptions& options() const { return options_; }
  const gguf::File& file() const { return *file_; }
  const model::Model& model() const { return *model_; }
  /// Null when the file has none; then `tokenizer_error` says why.
  const text::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  const std::string& tokenizer_error() const { return tokenizer_error_; }
  Ledger& ledger() { return *ledger_; }
  const Ledger& ledger() const { return *ledger_; }
  Pool& pool() { return *pool_; }

  /// Where a run that needs this would have the weights, and the lines of memory that it would charge.
  Placement placement(const Needs& needs) const;
  /// With everything in memory, whether it fits or not.
  static Placement resident(const Needs& needs) { return {.max_rows = std::max<int64_t>(1, needs.max_rows)}; }
  std::vector<Ledger::Line> memory(const Needs& needs, const Placement& placement) const;

  // After `load`:
  const Placement& placement() const { return placement_; }
  /// Null unless experts are streamed, or units.
  model::ExpertStore* experts() const { return model_->experts(); }
  const model::ExpertStore* units() const { return model_->unit_store(); }
  model::Runner& runner() { return *runner_; }
  const model::Runner& runner() const { return *runner_; }
  model::KvPool& kv() { return *kv_; }
  double load_seconds() const { return load_seconds_; }

 private:
  Engine() = default;
  bool has_experts() const { return !model_->expert_index().layers.empty(); }
  bool fits(const Needs& needs, const Placement& placement) const;
  std::vector<Placement> stages(const Needs& needs) const;
  Placement smallest(const Needs& needs) const;
  Placement without_experts(const Needs& needs) const;
  Placement without_units(const Needs& needs) const;
  std::vector<bool> units_to_stream(size_t n) const;
  Error refusal(const Needs& needs) const;
  int64_t pages_that_fit(const Needs& needs, const Placement& placement, int64_t n_sequences, int share) const;
  uint64_t room_for_experts(const Needs& needs, int64_t max_rows) const;
  model::Runner::Options runner_options(const Needs& needs, const Placement& placement) const;

  EngineOptions options_;
  Placement placement_;
  std::unique_ptr<Ledger> ledger_;
  std::vector<Charge> held_;
  std::vector<Ledger::Line> not_held_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<gguf::File> file_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::string tokenizer_error_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<model::KvPool> kv_;
  std::unique_ptr<model::Runner> runner_;
  double load_seconds_ = 0;
};

/// Bytes of all of them.
uint64_t total(const std::vector<Ledger::Line>& lines);

/// The limit that holds when none is given: 90 % of what control groups and machine allow, less 256 MiB; 0 when
/// unknown.
uint64_t default_memory_limit();

}  // namespace stoker::engine
