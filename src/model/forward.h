#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/ledger.h"
#include "base/pool.h"
#include "base/result.h"
#include "model/exec.h"
#include "model/lookahead.h"
#include "model/lookahead_trial.h"
#include "model/plan.h"
#include "model/state/kv_pool.h"

namespace stoker::model {

/// New tokens of one sequence. Rows of `logits` and `hidden` are indices into `tokens`.
struct Span {
  Sequence* sequence = nullptr;
  std::span<const int32_t> tokens;
  int64_t position = 0;  ///< Of tokens[0]: the sequence's length.
  Range logits{};        ///< Rows that want logits.
  Range hidden{};        ///< Rows that want the hidden state after the output norm.
  /// Positions from here on are of the second kind of text, in models that tell kinds apart.
  int64_t second_kind_from = std::numeric_limits<int64_t>::max();
};
using Batch = std::span<const Span>;

/// A value that is not finite turned up in one span, or an expert that it needs could not be read: its rows have no
/// outputs and its sequence is as long as before.
struct Failure {
  size_t span = 0;
  int64_t position = 0;
  ErrorCode code = ErrorCode::kCorrupt;
  std::string message;  ///< Names layer, step and position, or the tensor.
};

/// What the caller of a long call may want of it. Heard at each layer with experts, or with a unit that is streamed.
struct Control {
  const std::atomic<bool>* cancel = nullptr;  ///< Once true, the call ends with kCancelled, and nothing has happened.
  std::function<void(int64_t layer)> on_layer{};  ///< Layers done. Called by the thread that called `forward`.
};

/// What a call leaves behind, in the order of the batch: spans, and rows in each. Valid until the next call.
struct Outputs {
  int64_t n_logits = 0;
  const float* logits = nullptr;  ///< [n_logits][logits_stride]; null when a consumer took them.
  int64_t logits_stride = 0;
  int64_t n_hidden = 0;
  const float* hidden = nullptr;  ///< [n_hidden][hidden_stride]
  int64_t hidden_stride = 0;
  std::vector<Failure> failures;  ///< At most one per span.

  const float* logits_row(int64_t i) const { return logits + i * logits_stride; }
  const float* hidden_row(int64_t i) const { return hidden + i * hidden_stride; }
};

/// Some rows of logits, handed out while the call runs.
struct LogitsBlock {
  int64_t first = 0;  ///< Index of the first row among all rows of the call that want logits.
  int64_t n = 0;
  const float* logits = nullptr;  ///< [n][stride]
  int64_t stride = 0;
};

/// Takes logits block by block, in order, so that a prompt's worth of them never stands in memory at once.
class LogitsConsumer {
 public:
  virtual ~LogitsConsumer() = default;
  /// Called by all workers at once for each block; they may share the rows. Must not throw.
  virtual void consume(const LogitsBlock& block, Worker& worker) noexcept = 0;
};

/// Runs forward passes of one model: the one entry. Owns the scratch memory of one call.
/// Threads: one call at a time.
class Runner {
 public:
  struct Options {
    int64_t max_rows = 512;   ///< Most tokens in one call.
    int64_t chunk_rows = 0;   ///< Most tokens in one step, those of experts aside; 0: max_rows.
    int64_t max_logits = 64;  ///< Rows of logits that stand in memory at once; fewer where that is more than 32 MiB.
    /// Per worker, for what attention over a long sequence leaves for others to merge: what does not fit goes in
    /// rounds. 512 KiB are 121 tiles with 4 queries of 256 dimensions. At least three tiles are always there.
    int64_t parts_bytes = 512 << 10;
    ExpertStore* experts = nullptr;                 ///< Where they are streamed. Must outlive the runner, as the next.
    LookaheadUse lookahead = LookaheadUse::kOff;    ///< With `experts`.
    ExpertStore* units = nullptr;                   ///< Where units are streamed; for this runner alone.
    const EmbeddingReader* embedding = nullptr;     ///< Where it is read by row.
    const EmbeddingReader* layer_inputs = nullptr;  ///< Where these are.
    bool keep_routes = false;                       ///< For `routes`, at 4 bytes per row, layer and expert chosen.
  };
  static constexpr int64_t kMostRows = 1 << 21;
  /// Bytes of scratch that `create` charges, by name.
  static std::vector<Ledger::Line> memory(const Plan& plan, const Options& options, int n_workers);
  static Result<std::unique_ptr<Runner>> create(const Plan& plan, Pool& pool, Ledger& ledger, Options options);

  /// One pass over a ragged batch. Decoding, prefill, many sequences, verification and pooling are this call with other
  /// spans. The result of a row depends on the tokens of its sequence alone, bit for bit. kInvalidArgument: a span that
  /// does not start where its sequence ends, a sequence twice, a token outside the vocabulary, more rows than max_rows,
  /// or more logits than fit at once and no consumer. kOverloaded: too few pages. In all of these nothing has been
  /// written. kCancelled: see Control.
  Result<Outputs> forward(Batch batch, LogitsConsumer* consumer = nullptr, const Control* control = nullptr);

  int64_t max_rows() const { return options_.max_rows; }
  /// Rows of logits that fit at once.
  int64_t max_logits() const { return logits_rows_; }
  /// Tokens that went to each expert since the runner was made: [layers with experts][n_experts].
  std::span<const uint64_t> expert_counts() const { return expert_counts_; }
  /// The experts that the rows of the last call were sent to in a layer (by index among those with experts): [rows]
  /// [n_used], the likeliest first. The last layer has only the rows that wanted outputs. Valid until the next call;
  /// empty unless Options::keep_routes.
  std::span<const int32_t> routes(size_t layer) const;
  /// Tokens of the last call.
  int64_t n_tokens() const { return static_cast<int64_t>(tokens_.size()); }
  const Plan& plan() const { return plan_; }
  Pool& pool() const { return pool_; }

 private:
  Runner(const Plan& plan, Pool& pool, Options options) : plan_(plan), pool_(pool), options_(options) {}
  struct HeadBlock {
    int64_t row = 0;  ///< First output row of the chunk.
    int64_t n = 0;
    int64_t first = 0;  ///< First logits index.
  };
  /// Rows of a call that its steps take at once. What they share with other chunks lies in vectors of the Runner.
  struct Chunk {
    Exec exec;
    Range spans, output_spans, tile_rows, head_blocks, hidden;  ///< Of the vectors below.
  };
  /// Steps that a chunk goes through before the next one does: up to where all chunks meet. With at most one unit that
  /// is streamed, so that it stays for all chunks.
  struct Segment {
    size_t begin = 0, end = 0;
    bool experts = false;                ///< Then comes a step that takes the rows of all chunks at once.
    std::optional<size_t> unit_first{};  ///< The first step that needs the unit.
  };
  /// Of the output matrix: all of it, or where some is streamed one of its parts.
  struct HeadPart {
    const Target* target = nullptr;
    int64_t first_group = 0;
    bool streamed = false;
  };
  struct Sizes;
  static Sizes sizes_of(const Plan& plan, const Options& options, int n_workers);
  void place_buffers(const Sizes& sizes);
  /// Lays out what experts write.
  void place_experts(const Sizes& sizes);
  void place_routes();
  void reserve_lists();
  Status check(Batch batch, bool consumed) const;
  Status reserve(Batch batch) const;
  void lay_out(Batch batch);
  void add_rows(const Span& span, int64_t begin, int64_t end, Chunk& chunk);
  void add_outputs(const Span& span, Range rows, int64_t q_row0, Chunk& chunk);
  Chunk& next_chunk();
  void point(Chunk& chunk);
  bool tells_kinds() const { return plan_.steps[0].token_types && plan_.steps[0].token_types->n_out > 1; }
  void make_segments();
  void make_head_parts();
  size_t n_steps(bool outputs) const { return outputs ? plan_.steps.size() : plan_.n_steps_to_store; }
  bool enter(const Segment& segment, const Control* control, Worker& worker);
  void leave(const Segment& segment, Worker& worker);
  bool run(LogitsConsumer* consumer, const Control* control);
  void run_chunk(Chunk& chunk, const Segment& segment, Worker& worker) noexcept;
  void finish_chunk(Chunk& chunk, LogitsConsumer* consumer, Worker& worker) noexcept;
  bool head(const Chunk& chunk, const HeadBlock& block, Worker& worker) noexcept;
  void head_part(const Chunk& chunk, const HeadBlock& block, const HeadPart& part, const std::byte* data,
                 Worker& worker) noexcept;
  void fail_logits(int64_t first) noexcept;
  void collect(Batch batch, Outputs& outputs);

  const Plan& plan_;
  Pool& pool_;
  Options options_;
  int64_t chunk_rows_ = 0;
  int64_t logits_rows_ = 0;
  int64_t logits_stride_ = 0;
  Buffer activations_, quantized_, experts_, routes_, logits_, scratch_;
  Exec exec_;  ///< What all chunks begin with.
  Experts experts_state_;
  std::vector<uint64_t> expert_counts_;
  std::vector<int64_t> routed_;
  std::unique_ptr<ExpertRequest> request_, ahead_;
  std::array<std::unique_ptr<ExpertRequest>, kLaterLayers> later_;
  std::unique_ptr<Lookahead> lookahead_;
  LookaheadTrial trial_;
  std::unique_ptr<UnitStream> units_;
  std::vector<Segment> segments_;
  std::vector<HeadPart> head_parts_;
  ReadErrors read_errors_;
  bool cancelled_ = false, stop_ = false;
  std::vector<Chunk> chunks_;
  std::vector<int32_t> tokens_, first_bad_;
  std::vector<uint8_t> kinds_;  // Of text; empty where the model knows one only.
  std::vector<int64_t> positions_, output_rows_, hidden_rows_;
  std::vector<uint8_t> bad_;
  std::vector<RowSpan> spans_, output_spans_;
  std::vector<TileRows> tile_rows_;
  std::vector<HeadBlock> head_blocks_;
  int64_t n_logits_ = 0;
  bool consumed_ = false;
  const float* output_bias_ = nullptr;
  Step head_step_{.name = "head"};
};

}  // namespace stoker::model
