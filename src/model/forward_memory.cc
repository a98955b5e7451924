// The memory of a forward pass: how much, and what lies where.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/str_cat.h"
#include "kernels/kv_layout.h"
#include "model/forward.h"

namespace stoker::model {
namespace {

// Logits of many rows come in blocks of about this size.
constexpr int64_t kLogitsBytes = 32 << 20;
// Choices in a wave of experts: enough that the kernels for many rows are at their best.
constexpr int64_t kWaveRows = 512;
constexpr int64_t kTables = 6;  // each begins at a multiple of 64 bytes

/// Where the rows are experts', the buffer lies with what experts write.
bool is_of_experts(RowsOf of) { return of == RowsOf::kChoice || of == RowsOf::kWave; }

Forms both(Forms a, Forms b) { return {.a256 = a.a256 || b.a256, .a32 = a.a32 || b.a32}; }

/// f(bytes, pointer) for each list of experts, in the order in which they lie in memory.
template <class F>
void each_list(Experts& experts, int64_t n_rows, int64_t n_wave, const MoePlan& moe, F&& f) {
  const int64_t n = n_rows * moe.n_used;
  const auto list = [&](auto*& pointer, int64_t entries) {
    using T = std::remove_reference_t<decltype(*pointer)>;
    pointer = reinterpret_cast<T*>(f(entries * static_cast<int64_t>(sizeof(T))));
  };
  list(experts.expert, n), list(experts.weight, n), list(experts.row_of, n), list(experts.choice, n);
  list(experts.produced, n), list(experts.shared_weight, n_rows);
  list(experts.first, moe.n_experts + 1), list(experts.active, moe.n_experts), list(experts.uses, moe.n_experts),
      list(experts.all, moe.n_experts), list(experts.parts, moe.n_experts);
  list(experts.part_of, n_wave), list(experts.bad, n_wave);
}

}  // namespace

int64_t quantized_bytes(Forms forms, int64_t max_k, int64_t n_rows) {
  const int64_t super_blocks = (max_k + 255) / 256 * n_rows;
  // Values, scales and sums of one super-block, in both forms.
  return super_blocks * ((forms.a256 ? 256 + 4 + 32 : 0) + (forms.a32 ? 256 + 32 + 16 : 0)) + kTables * 64;
}

QuantizedTables place_tables(Forms forms, int64_t max_k, int64_t n_rows, std::byte* at) {
  QuantizedTables tables;
  const int64_t super_blocks = (max_k + 255) / 256 * n_rows;
  const auto take = [&](int64_t bytes) { return std::exchange(at, at + round_up<int64_t>(bytes * super_blocks, 64)); };
  if (forms.a256) {
    tables.q256 = reinterpret_cast<int8_t*>(take(256));
    tables.d256 = reinterpret_cast<float*>(take(4));
    tables.sums256 = reinterpret_cast<int16_t*>(take(32));
  }
  if (forms.a32) {
    tables.q32 = reinterpret_cast<int8_t*>(take(256));
    tables.d32 = reinterpret_cast<float*>(take(32));
    tables.sums32 = reinterpret_cast<int16_t*>(take(16));
  }
  return tables;
}

struct Runner::Sizes {
  int64_t chunk_rows, wave_rows;
  std::array<int64_t, kBufs> buf_rows;
  int64_t stride, logits_rows, rope_stride, worker_scratch, parts;
  int64_t activations, quantized, experts, routes, logits, scratch;  // bytes
};

Runner::Sizes Runner::sizes_of(const Plan& plan, const Options& options, int n_workers) {
  Sizes s{};
  const MoePlan& moe = plan.moe;
  const int64_t rows = options.max_rows, choices = rows * moe.n_used;
  // Tokens that see each other are in flight together.
  const bool whole = options.chunk_rows == 0 || !plan.config->causal;
  s.chunk_rows = whole ? rows : std::min(options.chunk_rows, rows);
  s.wave_rows = std::min(choices, std::max(kWaveRows, moe.n_used));
  s.stride = plan.head.w ? plan.head.w->padded_out() : 16;
  s.logits_rows = std::clamp<int64_t>(kLogitsBytes / (s.stride * 4), 1, std::max<int64_t>(1, options.max_logits));
  s.rope_stride = round_up<int64_t>(std::max(plan.config->rope_dims, plan.config->rope_dims_swa) / 2, 16);
  int64_t floats = 2 * static_cast<int64_t>(plan.ropes.size()) * s.rope_stride * rows, of_experts = 0;
  for (size_t b = 0; b < kBufs; ++b) {
    const RowsOf of = rows_of(static_cast<Buf>(b));
    s.buf_rows[b] = of == RowsOf::kChunk  ? s.chunk_rows
                    : of == RowsOf::kCall ? rows
                    : of == RowsOf::kWave ? s.wave_rows
                                          : choices;
    (is_of_experts(of) ? of_experts : floats) += plan.row_floats[b] * s.buf_rows[b];
  }
  s.activations = floats * 4;
  s.quantized = quantized_bytes(plan.forms, plan.max_k, s.chunk_rows);
  if (moe.n_experts > 0) {
    s.experts = of_experts * 4 + quantized_bytes(moe.in_forms, moe.dim, rows) +
                quantized_bytes(both(moe.in_forms, moe.ff_forms), std::max(moe.dim, moe.ff), s.wave_rows);
    Experts unused;
    each_list(unused, rows, s.wave_rows, moe, [&](int64_t bytes) {
      s.experts += round_up<int64_t>(bytes, 64);
      return static_cast<std::byte*>(nullptr);
    });
  }
  if (options.keep_routes) s.routes = choices * 4 * static_cast<int64_t>(plan.expert_steps.size());
  s.logits = s.logits_rows * s.stride * 4;
  const kernels::AttentionPart part(kMostSharingQueries,
                                    static_cast<int>(std::max(plan.config->v_dim, plan.config->v_dim_swa)));
  s.parts = n_workers > 1 ? std::max<int64_t>(options.parts_bytes, 3 * part.total * 4) : 0;
  const auto window_of = [](const EmbeddingReader* reader) {
    return reader ? static_cast<int64_t>(reader->window_bytes()) : 0;
  };
  // A row of layer inputs stands behind the window that it is read through.
  const int64_t inputs = plan.row_floats[static_cast<size_t>(Buf::kLayerInputs)] * static_cast<int64_t>(sizeof(float));
  const int64_t row_window = std::max(window_of(options.embedding), window_of(options.layer_inputs) + inputs);
  s.worker_scratch =
      round_up<int64_t>(std::max({kernels::kMatmulScratchBytes, plan.attention_scratch + s.parts, row_window}), 4096);
  s.scratch = s.worker_scratch * n_workers + plan.select_scratch;
  return s;
}

std::vector<Ledger::Line> Runner::memory(const Plan& plan, const Options& options, int n_workers) {
  const Sizes s = sizes_of(plan, options, n_workers);
  const auto line = [](const char* name, int64_t bytes) { return Ledger::Line{name, static_cast<uint64_t>(bytes), 0}; };
  std::vector<Ledger::Line> lines = {line("activations", s.activations), line("int8 activations", s.quantized),
                                     line("logits", s.logits), line("worker scratch", s.scratch)};
  if (s.experts > 0) lines.insert(lines.begin() + 2, line("expert activations", s.experts));
  if (s.routes > 0) lines.push_back(line("route trace", s.routes));
  return lines;
}

Result<std::unique_ptr<Runner>> Runner::create(const Plan& plan, Pool& pool, Ledger& ledger, Options options) {
  if (options.max_rows < 1 || options.max_rows > kMostRows) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("a forward pass of ", options.max_rows, " rows; wanted 1 to ", kMostRows)};
  }
  auto runner = std::unique_ptr<Runner>(new Runner(plan, pool, options));
  Runner& r = *runner;
  const Sizes s = sizes_of(plan, options, pool.size());
  STOKER_TRY(r.activations_, Buffer::allocate(ledger, "activations", static_cast<uint64_t>(s.activations)));
  STOKER_TRY(r.quantized_, Buffer::allocate(ledger, "int8 activations", static_cast<uint64_t>(s.quantized)));
  if (s.experts > 0) {
    STOKER_TRY(r.experts_, Buffer::allocate(ledger, "expert activations", static_cast<uint64_t>(s.experts)));
  }
  STOKER_TRY(r.logits_, Buffer::allocate(ledger, "logits", static_cast<uint64_t>(s.logits)));
  STOKER_TRY(r.scratch_, Buffer::allocate(ledger, "worker scratch", static_cast<uint64_t>(s.scratch)));
  if (s.routes > 0) {
    STOKER_TRY(r.routes_, Buffer::allocate(ledger, "route trace", static_cast<uint64_t>(s.routes)));
  }
  r.place_buffers(s);
  if (s.experts > 0) r.place_experts(s);
  if (s.routes > 0) r.place_routes();
  r.reserve_lists();
  r.expert_counts_.resize(plan.expert_steps.size() * static_cast<size_t>(plan.moe.n_experts));
  r.experts_state_.counts = r.expert_counts_.data();
  if (options.experts) {
    r.request_ = std::make_unique<ExpertRequest>(*options.experts);
    r.ahead_ = std::make_unique<ExpertRequest>(*options.experts);
    r.experts_state_.request = r.request_.get();
    r.experts_state_.ahead = r.ahead_.get();
    for (size_t i = 0; i < kLaterLayers; ++i) {
      r.later_[i] = std::make_unique<ExpertRequest>(*options.experts);
      r.experts_state_.later[i] = r.later_[i].get();
    }
    r.experts_state_.n_layers = plan.expert_steps.size();
    if (options.lookahead != LookaheadUse::kOff) r.lookahead_ = std::make_unique<Lookahead>(plan);
    r.experts_state_.lookahead = r.lookahead_.get();
    std::iota(r.experts_state_.all, r.experts_state_.all + plan.moe.n_experts, 0);
  }
  if (options.units) r.units_ = std::make_unique<UnitStream>(plan, *options.units);
  r.make_segments();
  r.make_head_parts();
  r.exec_.units = r.units_.get();
  r.exec_.embedding = options.embedding;
  r.exec_.layer_inputs = options.layer_inputs;
  r.exec_.errors = &r.read_errors_;
  r.output_bias_ = plan.output_bias ? plan.output_bias->data : nullptr;
  r.head_step_.index = static_cast<int>(plan.steps.size());
  return runner;
}

void Runner::place_buffers(const Sizes& s) {
  chunk_rows_ = s.chunk_rows;
  logits_rows_ = s.logits_rows;
  logits_stride_ = s.stride;
  Exec& e = exec_;
  e.plan = &plan_;
  e.table = plan_.table;
  e.experts = &experts_state_;
  float* at = activations_.as<float>();
  for (size_t b = 0; b < kBufs; ++b) {
    if (is_of_experts(rows_of(static_cast<Buf>(b)))) continue;
    e.buffers[b] = std::exchange(at, at + plan_.row_floats[b] * s.buf_rows[b]);
  }
  e.rope_stride = s.rope_stride;
  for (size_t i = 0; i < plan_.ropes.size(); ++i) {
    e.rope_cos[i] = std::exchange(at, at + s.rope_stride * options_.max_rows);
    e.rope_sin[i] = std::exchange(at, at + s.rope_stride * options_.max_rows);
  }
  e.scratch = scratch_.data();
  e.scratch_stride = s.worker_scratch;
  e.select_scratch = e.scratch + s.scratch - plan_.select_scratch;
  e.parts_bytes = s.parts;
  e.quantized = place_tables(plan_.forms, plan_.max_k, s.chunk_rows, quantized_.data());
}

void Runner::place_experts(const Sizes& s) {
  const MoePlan& moe = plan_.moe;
  std::byte* at = experts_.data();
  const auto take = [&](int64_t bytes) { return std::exchange(at, at + round_up<int64_t>(bytes, 64)); };
  for (size_t b = 0; b < kBufs; ++b) {
    if (!is_of_experts(rows_of(static_cast<Buf>(b)))) continue;
    exec_.buffers[b] = reinterpret_cast<float*>(take(plan_.row_floats[b] * 4 * s.buf_rows[b]));
  }
  each_list(experts_state_, options_.max_rows, s.wave_rows, moe, take);
  experts_state_.wave_rows = s.wave_rows;
  experts_state_.in = place_tables(moe.in_forms, moe.dim, options_.max_rows,
                                   take(quantized_bytes(moe.in_forms, moe.dim, options_.max_rows)));
  experts_state_.wave = place_tables(both(moe.in_forms, moe.ff_forms), std::max(moe.dim, moe.ff), s.wave_rows, at);
}

void Runner::place_routes() {
  routed_.resize(plan_.expert_steps.size());
  experts_state_.routed = routed_.data();
  experts_state_.routes = routes_.as<int32_t>();
  experts_state_.routes_stride = options_.max_rows * plan_.moe.n_used;
}

/// So that a call allocates nothing.
void Runner::reserve_lists() {
  const auto n = static_cast<size_t>(options_.max_rows);
  for (auto* v : {&tokens_, &first_bad_}) v->reserve(n);
  for (auto* v : {&positions_, &output_rows_, &hidden_rows_}) v->reserve(n);
  bad_.reserve(n);
  if (tells_kinds()) kinds_.reserve(n);
  for (auto* v : {&spans_, &output_spans_}) v->reserve(n);
  tile_rows_.reserve(n);
  head_blocks_.reserve(n);
  chunks_.reserve((n + static_cast<size_t>(chunk_rows_) - 1) / static_cast<size_t>(chunk_rows_));
}

}  // namespace stoker::model
