// One forward call in flight: what the steps of a plan read and write. Laid out before the pool is entered; inside it
// nothing here is allocated. Where a model has experts, a call's rows may be many: its other steps take them chunk by
// chunk, each an Exec of its own, and the experts of a layer take the rows of all chunks at once.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "kernels/table.h"
#include "model/embedding_reader.h"
#include "model/experts/store.h"
#include "model/plan.h"
#include "model/unit_stream.h"

namespace stoker::model {

/// Consecutive rows of one sequence.
struct RowSpan {
  int64_t row0 = 0;    ///< First row in the buffers (for attention: where the output goes).
  int64_t q_row0 = 0;  ///< First row of Buf::kQkv.
  int64_t n = 0;
  int64_t position0 = 0;
  int64_t length = 0;  ///< Of the sequence, with all rows of the call.
  const std::byte* const* tiles = nullptr;
  const std::byte* state = nullptr;  ///< What recurrent layers go on from; null: zeros.
  std::byte* next_state = nullptr;   ///< What they leave; may be `state`.
};

/// Rows of one sequence whose positions lie in one KV tile.
struct TileRows {
  int64_t row0 = 0;
  int n = 0;
  int in_tile = 0;  ///< First position inside the tile.
  std::byte* page = nullptr;
};

/// Most queries of a call of attention whose tiles are shared among workers; with more, sharing the queries is as good.
inline constexpr int kMostSharingQueries = 16;

/// Tables that quantized activations are written to.
struct QuantizedTables {
  int8_t *q256 = nullptr, *q32 = nullptr;
  float *d256 = nullptr, *d32 = nullptr;
  int16_t *sums256 = nullptr, *sums32 = nullptr;
};

/// What could not be read during a call: the first error of each step.
class ReadErrors {
 public:
  void add(int step, Error error) {
    const MutexLock lock(mu_);
    if (!find_locked(step)) errors_.emplace_back(step, std::move(error));
  }
  const Error* find(int step) const {
    const MutexLock lock(mu_);
    return find_locked(step);
  }
  void clear() {
    const MutexLock lock(mu_);
    errors_.clear();
  }

 private:
  const Error* find_locked(int step) const REQUIRES(mu_) {
    for (const auto& [index, error] : errors_) {
      if (index == step) return &error;
    }
    return nullptr;
  }
  mutable Mutex mu_;
  std::vector<std::pair<int, Error>> errors_ GUARDED_BY(mu_);
};

class Lookahead;
/// So many layers behind the next one are guessed, for the disk to have something to read whenever it is idle.
constexpr size_t kLaterLayers = 2;

/// Some of an expert's rows.
struct WavePart {
  int32_t expert = 0;
  int64_t row = 0;                            ///< The first in the buffers of the wave.
  int64_t begin = 0, end = 0;                 ///< Rows ordered by expert.
  int32_t lease = -1;                         ///< Its index in the request; -1: the expert is resident.
  const std::byte* matrices[kProjections]{};  ///< Of a leased one.
  int64_t size() const { return end - begin; }
};

/// The experts of the layer in flight, for the rows of all chunks. A choice is one of a token's experts, number
/// row * n_used + rank; sorted by expert, then by choice, they are the rows of Buf::kExpertOut. A wave is as many of
/// them as the buffers of waves hold.
struct Experts {
  int64_t n_rows = 0;                    ///< Tokens.
  int64_t n = 0;                         ///< Choices.
  const int64_t* output_rows = nullptr;  ///< [n_rows]: what rows they were at the start; null: the same.
  int32_t* expert = nullptr;             ///< [n], by choice.
  float* weight = nullptr;               ///< [n], by choice.
  float* shared_weight = nullptr;        ///< [n_rows]
  int32_t* row_of = nullptr;             ///< [n]: the choice's row.
  int32_t* choice = nullptr;             ///< [n]: the row's choice.
  int32_t* first = nullptr;              ///< [n_experts + 1]: the first row of each expert.
  int32_t* active = nullptr;             ///< [n_active]: the experts that have rows, ascending.
  int64_t n_active = 0;
  int32_t* uses = nullptr;      ///< [n_active]: how many rows they have.
  int32_t* produced = nullptr;  ///< [n], in debug builds: groups of the down projection written.
  QuantizedTables in{};         ///< What the experts multiply, of n_rows rows.

  WavePart* parts = nullptr;  ///< [n_parts], at most one per expert.
  int64_t n_parts = 0;
  int64_t n_wave = 0, wave_rows = 0;  ///< Rows in the wave, and how many it may have.
  int64_t n_taken = 0;                ///< Active experts that have been in waves, where all are resident.
  int32_t current = -1;               ///< Has more rows than the wave took: its index among the active ones.
  int64_t current_row = 0;            ///< The next of them.
  bool together = false;              ///< Few rows: all that have a place go into one wave, read or not.
  bool last = false;                  ///< No other wave follows.
  int32_t* part_of = nullptr;         ///< [n_wave]: the part that a row is of.
  uint8_t* bad = nullptr;             ///< [n_wave]: as Exec::bad.
  QuantizedTables wave{};
  kernels::Activations activations{};  ///< What the products of the wave read.
  ExpertRequest* request = nullptr;    ///< Null: all experts are resident.
  ExpertRequest* ahead = nullptr;  ///< For the layer after, where most of its experts will be wanted, or are guessed.
  std::array<ExpertRequest*, kLaterLayers> later{};  ///< For guesses of those behind it.
  Lookahead* lookahead = nullptr;
  bool guess = false;          ///< What the next layer will want is guessed in this call, by `lookahead`.
  int32_t* all = nullptr;      ///< [n_experts]: 0, 1 and so on.
  size_t n_layers = 0;         ///< With experts.
  int64_t n_last_rows = 0;     ///< Tokens of the last of them.
  uint64_t* counts = nullptr;  ///< [layers with experts][n_experts]: tokens that went there, ever.
  int32_t* routes = nullptr;   ///< [layers with experts][routes_stride], all `expert` of the call; null: off.
  int64_t routes_stride = 0;
  int64_t* routed = nullptr;  ///< [layers with experts]: `n` of the call.

  /// The row at the start of the call that token `r` was.
  int64_t original_row(int64_t r) const { return output_rows ? output_rows[r] : r; }
};

struct Exec {
  const Plan* plan = nullptr;
  const kernels::Table* table = nullptr;

  int64_t row0 = 0;      ///< The chunk's first row in flight, among those of the call.
  int64_t out0 = 0;      ///< What it is once the outputs are gathered.
  int64_t token0 = 0;    ///< What row0 was at the start.
  int64_t n_tokens = 0;  ///< Rows at the start.
  int64_t n_rows = 0;    ///< Rows now in flight: n_tokens, after the last layer's gather n_outputs.
  int64_t n_outputs = 0;
  bool gathered = false;
  const int32_t* tokens = nullptr;        ///< [n_tokens]
  const int64_t* positions = nullptr;     ///< [n_tokens]
  const uint8_t* kinds = nullptr;         ///< [n_tokens]: rows of token_types; null: all are of the first.
  const int64_t* output_rows = nullptr;   ///< [n_outputs], ascending rows of the call.
  std::span<const RowSpan> spans;         ///< All rows.
  std::span<const RowSpan> output_spans;  ///< Output rows, once gathered.
  std::span<const TileRows> tile_rows;

  std::array<float*, kBufs> buffers{};  ///< Of chunks and of the call: the chunk's first row. Of experts: all rows.
  std::array<float*, 2> rope_cos{}, rope_sin{};  ///< Per rope table: [n_tokens][rope_stride]
  int64_t rope_stride = 0;

  QuantizedTables quantized{};
  kernels::Activations activations{};  ///< What the products of the next step read.
  Experts* experts = nullptr;          ///< One for all chunks of the call.

  const EmbeddingReader* embedding = nullptr;     ///< Null: it is in memory.
  const EmbeddingReader* layer_inputs = nullptr;  ///< Null: they are.
  UnitStream* units = nullptr;                    ///< Brings the matrices that are not.
  int branch_added = -1;                          ///< The step whose branch has been added (add_branch_step).
  ReadErrors* errors = nullptr;

  uint8_t* bad = nullptr;        ///< [n_rows]: set when a quantizer met a value that is not finite.
  int32_t* first_bad = nullptr;  ///< By row of the call: 1 + index of the step that found it, negative if it could
                                 ///< not be read; 0: fine.

  std::byte* scratch = nullptr;  ///< scratch_stride bytes per worker.
  int64_t scratch_stride = 0;
  std::byte* select_scratch = nullptr;
  int64_t parts_bytes = 0;  ///< Of each worker's scratch, behind what attention itself needs: see `parts`.

  float* row(Buf buf, int64_t r) const {
    const auto b = static_cast<size_t>(buf);
    return buffers[b] + r * plan->row_floats[b];
  }
  int32_t* selected(int64_t r) const { return reinterpret_cast<int32_t*>(row(Buf::kSelected, r)); }
  int64_t stride(Buf buf) const { return plan->row_floats[static_cast<size_t>(buf)]; }
  std::byte* worker_scratch(const Worker& w) const { return scratch + w.index() * scratch_stride; }
  /// Where a worker leaves parts of attention for the others to merge.
  float* parts(int worker) const {
    return reinterpret_cast<float*>(scratch + worker * scratch_stride + plan->attention_scratch);
  }
  /// The row at the start of the call that `r` of the chunk was.
  int64_t original_row(int64_t r) const { return gathered ? output_rows[r] : row0 + r; }
  /// The token of the chunk that row `r` is of.
  int64_t token(int64_t r) const { return gathered ? output_rows[r] - token0 : r; }
  /// Heads of one row may be marked by several workers at once.
  void mark_bad(int64_t original, const Step& step) const { mark(original, step.index + 1); }
  /// What the row needs in this step could not be read; `errors` says why.
  void mark_unread(int64_t original, const Step& step) const { mark(original, -(step.index + 1)); }

 private:
  /// The first mark stays.
  void mark(int64_t original, int32_t as) const {
    int32_t none = 0;
    std::atomic_ref<int32_t>(first_bad[original]).compare_exchange_strong(none, as, std::memory_order_relaxed);
  }
};

/// Rows of f32 to be quantized.
struct Quantize {
  const float* x;  ///< [n][stride]
  int64_t stride, n, k;
  Forms forms;
  const QuantizedTables& to;
  uint8_t* bad;
};
/// Rows [begin, end); marks those that are not finite.
void quantize(const kernels::Table& table, const Quantize& job, int64_t begin, int64_t end) noexcept;
/// What `job` has quantized, for products.
kernels::Activations activations_of(const Quantize& job) noexcept;

/// Quantizes rows [begin, end) of `step.in` into the tables of `exec` and marks rows that are not finite.
void quantize_rows(const Step& step, Exec& exec, int64_t begin, int64_t end) noexcept;
/// Where the products of the next step read, set up by one worker before the barrier.
void point_activations(const Step& step, Exec& exec) noexcept;
/// Copies row `from` of n_x quantized rows to row `to` of n_y.
struct QuantizedRow {
  Forms forms;
  int64_t k;
};
void copy_quantized(const QuantizedRow& row, const QuantizedTables& x, int64_t n_x, int64_t from,
                    const QuantizedTables& y, int64_t n_y, int64_t to) noexcept;
/// What tables for so many rows take, and tables that lie there: where the most rows put them; only their strides
/// follow the rows in flight.
int64_t quantized_bytes(Forms forms, int64_t max_k, int64_t n_rows);
QuantizedTables place_tables(Forms forms, int64_t max_k, int64_t n_rows, std::byte* at);
/// x += bias, where there is one.
void add_vector(const kernels::Table& table, const Vector* bias, float* x) noexcept;
/// x within -limit ... limit; what is no number stays so.
void limit_values(float limit, float* x, int64_t n) noexcept;
/// What is below the mean of all and so many standard deviations becomes 0, what is above its distance from there.
void sparsify(float times, float* x, int64_t n) noexcept;
/// The norm of a row as norm_step does it.
void norm_row(const Plan& plan, const Step& step, const float* x, float* y) noexcept;
/// gate = act(gate) * up of n values, within the bounds of the step; `up` is overwritten.
void activate_gate(const Plan& plan, const Step& step, float* gate, float* up, int64_t n) noexcept;
/// x = act(x), where nothing is a gate of it.
void activate_alone(const Plan& plan, const Step& step, float* x, int64_t n) noexcept;
/// To y what the row reads of its residuals, as `step.kept` says; y.
const float* read_kept(const Step& step, const Exec& exec, int64_t r, float* y) noexcept;
/// The row's branch goes into its residual streams, as `step.mix` and Buf::kMix say.
void add_to_streams(const Step& step, Exec& exec, int64_t r) noexcept;

/// Keys of an indexer that lie in `n_pages` pages, which stand for 64 positions each: one K tile of them.
void gather_index_keys(const IndexSpec& index, kernels::KvType type, const std::byte* const* pages, int64_t n_pages,
                       std::byte* tile) noexcept;
/// What select_step needs for all workers together.
int64_t select_scratch_bytes(int64_t most_seen) noexcept;
/// And what each of them needs.
int64_t index_scratch_bytes(const IndexSpec& index, kernels::KvType type) noexcept;
/// What a query at this position is multiplied by, where the family has a temperature.
float temperature_at(const AttentionSpec& a, int64_t position) noexcept;

// The steps. Each is run by all workers, who split rows, heads or groups of 16 matrix rows.
void embed_step(const Step&, Exec&, Worker&) noexcept;
void layer_inputs_step(const Step&, Exec&, Worker&) noexcept;  ///< normed, and what is looked up by token added.
void norm_step(const Step&, Exec&, Worker&) noexcept;      ///< residual += branch; normed = norm(residual); quantized.
void mix_norm_step(const Step&, Exec&, Worker&) noexcept;  ///< streams: branch added; normed = all of them, normed.
void mix_step(const Step&, Exec&, Worker&) noexcept;       ///< normed = norm(mixture of the streams); quantized.
void altup_begin_step(const Step&, Exec&, Worker&) noexcept;    ///< kept = streams of the residual's magnitude.
void altup_predict_step(const Step&, Exec&, Worker&) noexcept;  ///< kept += what streams say of each other; residual.
void altup_correct_step(const Step&, Exec&, Worker&) noexcept;  ///< kept += error of the residual; normed, quantized.
void altup_spread_step(const Step&, Exec&, Worker&) noexcept;   ///< kept += norm(branch), but for the computed stream.
void altup_end_step(const Step&, Exec&, Worker&) noexcept;      ///< residual = mean of all streams.
void laurel_step(const Step&, Exec&, Worker&) noexcept;         ///< parallel = norm(parallel) + normed.
void product_step(const Step&, Exec&, Worker&) noexcept;  ///< up to four matrices times the quantized activations.
void qk_norm_step(const Step&, Exec&, Worker&) noexcept;  ///< Norm of whole q and k vectors.
void qkv_step(const Step&, Exec&, Worker&) noexcept;      ///< bias, norm, rotation of q and k; K and V into the pages.
void gather_step(const Step&, Exec&, Worker&) noexcept;   ///< From here on only output rows are in flight.
void attention_step(const Step&, Exec&, Worker&) noexcept;
void latent_step(const Step&, Exec&, Worker&) noexcept;  ///< Latents: normed; of q quantized, of K and V stored.
void absorb_step(const Step&, Exec&, Worker&) noexcept;  ///< q: scaled and rotated; what is not, quantized by heads.
void index_query_step(const Step&, Exec&, Worker&) noexcept;     ///< Queries of an indexer: rotated.
void select_step(const Step&, Exec&, Worker&) noexcept;          ///< Which positions each row sees.
void quantize_heads_step(const Step&, Exec&, Worker&) noexcept;  ///< The rows of each head: quantized.
void heads_product_step(const Step&, Exec&, Worker&) noexcept;   ///< Each head's matrix times its rows.
void compress_step(const Step&, Exec&, Worker&) noexcept;  ///< q latent, kv: normed; what rows are made of, gathered.
void compressed_rows_step(const Step&, Exec&, Worker&) noexcept;   ///< q: normed, rotated; complete rows: stored.
void window_attention_step(const Step&, Exec&, Worker&) noexcept;  ///< kv into the window; attention to it and to rows.
void convolve_step(const Step&, Exec&, Worker&) noexcept;  ///< q, k, v: convolved; q and k of length 1; gates ready.
void recur_step(const Step&, Exec&, Worker&) noexcept;     ///< The state of each head; its output, normed and gated.
void short_convolve_step(const Step&, Exec&, Worker&) noexcept;  ///< Both gates and the convolution between them.
void group_norm_step(const Step&, Exec&, Worker&) noexcept;      ///< attended: normed in groups, quantized.
void gate_step(const Step&, Exec&, Worker&) noexcept;            ///< attended: times its gate, quantized.
void quantize_step(const Step&, Exec&, Worker&) noexcept;        ///< attended: quantized.
void gated_act_step(const Step&, Exec&, Worker&) noexcept;       ///< gate = act(gate + bias) * (up + bias), quantized.
void act_step(const Step&, Exec&, Worker&) noexcept;             ///< gate = act(gate + bias), quantized.
void route_step(const Step&, Exec&, Worker&) noexcept;           ///< Experts of each row, which is kept for them.
void experts_step(const Step&, Exec&, Worker&) noexcept;         ///< Each active expert times its rows, of all chunks.
void combine_step(const Step&, Exec&, Worker&) noexcept;  ///< branch = sum of the experts' outputs in order of rank.

/// The experts that a row's logits (biases added) go to, the likeliest first, or those of its token: moe.n_used of
/// them.
void choose_experts(const float* logits, const MoeSpec& moe, int32_t token, int32_t* chosen) noexcept;
/// The first half of a norm_step: residual += branch, which other chunks would overwrite before its turn comes.
void add_branch_step(const Step& step, Exec& exec, Worker& worker) noexcept;

/// Whether a call of so many tokens will want most of the experts, if they are chosen evenly.
bool reads_ahead(const MoePlan& moe, int64_t n_rows) noexcept;
/// Starts reading the experts of layer `index` among those with experts, where reads_ahead: the disk then works while
/// the steps before them do.
void read_ahead(const Plan& plan, Experts& experts, size_t index) noexcept;

/// Some groups of 16 rows of one matrix times rows [row_begin, row_end) of the activations; `y` is the output of row 0.
struct Product {
  const Target& target;
  Range groups;
  Range run;  ///< The groups that the worker reads one after the other, these among them.
  const kernels::Activations& x;
  int64_t row_begin, row_end;
  float* y;
  int64_t y_stride;
  const std::byte* data;
};
void multiply(const Product& product, std::byte* scratch) noexcept;
/// The matrix's bytes, waited for where they come from disk; null when they could not be read: the rows have failed.
const std::byte* data_of(const Matrix& w, const Step& step, Exec& exec) noexcept;
/// The groups of all matrices that are this worker's memory node's, counted one matrix after the other.
inline int64_t count_groups(std::span<const Target> targets, const Worker& worker) noexcept {
  int64_t n = 0;
  for (const Target& target : targets) n += worker.near(target.w->n_groups()).size();
  return n;
}
/// f(target, part, run) for each matrix of which `groups`, so counted, hold a part: its groups in them and in `run`.
template <class F>
void each_part(std::span<const Target> targets, const Worker& worker, Range groups, Range run, F&& f) noexcept {
  int64_t first = 0;
  for (const Target& target : targets) {
    const Range near = worker.near(target.w->n_groups());
    const auto within = [&](Range all) {
      const Range here = all.of_items(first, near.size());
      return Range{near.begin + here.begin, near.begin + here.end};
    };
    if (const Range part = within(groups); part.begin < part.end) f(target, part, within(run));
    first += near.size();
  }
}
inline std::span<const Target> targets_of(const Step& step) noexcept {
  return {step.targets.data(), static_cast<size_t>(step.n_targets)};
}
/// How the groups of some matrices are cut into pieces of work.
struct MatrixWork {
  int64_t n_groups;
  int64_t group_bytes;
  int64_t n_rows;
};
/// Groups of 16 matrix rows in one piece.
int64_t groups_per_piece(const MatrixWork& work, int n_workers) noexcept;
bool reads_in_runs(int64_t n_rows) noexcept;
/// f(groups, run) for pieces of work, each by one worker of this memory node; `run`: what it reads on in, in order.
template <class F>
void each_piece(Worker& worker, const MatrixWork& work, F&& f) noexcept {
  const int64_t piece = groups_per_piece(work, worker.near_count());
  if (reads_in_runs(work.n_rows)) return worker.each_in_runs(work.n_groups, piece, f);
  worker.each_near(work.n_groups, piece, [&](Range groups) { f(groups, groups); });
}
/// The same for one matrix of so many groups: those of this worker's memory node.
template <class F>
void each_piece_of(Worker& worker, const MatrixWork& work, F&& f) noexcept {
  const Range near = worker.near(work.n_groups);
  const auto here = [&](Range part) { return Range{near.begin + part.begin, near.begin + part.end}; };
  each_piece(worker, {near.size(), work.group_bytes, work.n_rows},
             [&](Range groups, Range run) { f(here(groups), here(run)); });
}

}  // namespace stoker::model
