#include "model/forward.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/str_cat.h"
#include "kernels/kv_layout.h"

namespace stoker::model {
namespace {

using kernels::kTilePositions;

// Logits of many rows come in blocks of about this size.
constexpr int64_t kLogitsBytes = 32 << 20;

struct Sizes {
  int64_t stride, rows;  // logits
  int64_t rope_stride;
  int64_t expert_rows;                                                              // of the buffers of experts
  int64_t activations, quantized, experts, logits, scratch, worker_scratch, parts;  // bytes
};

constexpr int64_t kTables = 6;  // each begins at a multiple of 64 bytes

int64_t quantized_bytes(Forms forms, int64_t max_k, int64_t n_rows) {
  const int64_t super_blocks = (max_k + 255) / 256 * n_rows;
  // Values, scales and sums of one super-block, in both forms.
  return super_blocks * ((forms.a256 ? 256 + 4 + 32 : 0) + (forms.a32 ? 256 + 32 + 16 : 0)) + kTables * 64;
}

/// Everything of experts that grows with the rows: buffers, tables, lists (six, and one by expert; see place_experts).
int64_t expert_bytes(const Plan& plan, int64_t n_rows) {
  if (n_rows == 0) return 0;
  int64_t floats = 0;
  for (int b = 0; b < kBufs; ++b) {
    if (is_of_experts(static_cast<Buf>(b))) floats += plan.row_floats[static_cast<size_t>(b)];
  }
  const int64_t lists = 6 * round_up<int64_t>(n_rows * 4, 64) + 2 * round_up<int64_t>((plan.moe.n_experts + 1) * 4, 64);
  return floats * 4 * n_rows + quantized_bytes(plan.moe.forms, plan.moe.max_k, n_rows) + lists;
}

Sizes sizes_of(const Plan& plan, const Runner::Options& options, int n_workers) {
  Sizes s{};
  s.stride = plan.head.w->padded_out();
  s.rows = std::clamp<int64_t>(kLogitsBytes / (s.stride * 4), 1, std::max<int64_t>(1, options.max_logits));
  s.rope_stride = round_up<int64_t>(plan.config->rope_dims / 2, 16);
  int64_t floats = 2 * static_cast<int64_t>(plan.ropes.size()) * s.rope_stride;
  for (int b = 0; b < kBufs; ++b) {
    if (!is_of_experts(static_cast<Buf>(b))) floats += plan.row_floats[static_cast<size_t>(b)];
  }
  s.activations = floats * 4 * options.max_rows;
  s.quantized = quantized_bytes(plan.forms, plan.max_k, options.max_rows);
  s.expert_rows = options.max_rows * plan.moe.n_used;
  s.experts = expert_bytes(plan, s.expert_rows);
  s.logits = s.rows * s.stride * 4;
  const kernels::AttentionPart part(kMostSharingQueries, static_cast<int>(plan.config->v_dim));
  s.parts = n_workers > 1 ? std::max<int64_t>(options.parts_bytes, 3 * part.total * 4) : 0;
  s.worker_scratch = round_up<int64_t>(std::max(kernels::kMatmulScratchBytes, plan.attention_scratch + s.parts), 4096);
  s.scratch = s.worker_scratch * n_workers;
  return s;
}

/// The tables of quantized rows lie where the most rows put them; only their strides follow the rows in flight.
void place_tables(Forms forms, int64_t max_k, int64_t n_rows, std::byte* at, QuantizedTables& tables) {
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
}

bool wants(const Range& range) { return range.end > range.begin; }

/// The rows of a span that are wanted for anything, as one range.
Range output_range(const Span& span) {
  if (!wants(span.logits)) return wants(span.hidden) ? span.hidden : Range{0, 0};
  if (!wants(span.hidden)) return span.logits;
  return {std::min(span.logits.begin, span.hidden.begin), std::max(span.logits.end, span.hidden.end)};
}

}  // namespace

std::vector<Ledger::Line> Runner::memory(const Plan& plan, const Options& options, int n_workers) {
  const Sizes s = sizes_of(plan, options, n_workers);
  const auto line = [](const char* name, int64_t bytes) { return Ledger::Line{name, static_cast<uint64_t>(bytes), 0}; };
  std::vector<Ledger::Line> lines = {line("activations", s.activations), line("int8 activations", s.quantized),
                                     line("logits", s.logits), line("worker scratch", s.scratch)};
  if (s.experts > 0) lines.insert(lines.begin() + 2, line("expert activations", s.experts));
  return lines;
}

Result<std::unique_ptr<Runner>> Runner::create(const Plan& plan, Pool& pool, Ledger& ledger, Options options) {
  if (options.max_rows < 1 || options.max_rows > 65536) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("a forward pass of ", options.max_rows, " rows; wanted 1 to 65536")};
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
  r.logits_rows_ = s.rows;
  r.logits_stride_ = s.stride;

  r.output_bias_ = plan.output_bias ? plan.output_bias->data : nullptr;
  r.head_step_.index = static_cast<int>(plan.steps.size());

  Exec& e = r.exec_;
  e.plan = &plan;
  e.table = plan.table;
  float* at = r.activations_.as<float>();
  const auto take = [&](int64_t floats) { return std::exchange(at, at + floats * options.max_rows); };
  for (size_t b = 0; b < kBufs; ++b) {
    if (!is_of_experts(static_cast<Buf>(b))) e.buffers[b] = take(plan.row_floats[b]);
  }
  e.rope_stride = s.rope_stride;
  for (size_t i = 0; i < plan.ropes.size(); ++i) {
    e.rope_cos[i] = take(s.rope_stride);
    e.rope_sin[i] = take(s.rope_stride);
  }
  e.scratch = r.scratch_.data();
  e.scratch_stride = s.worker_scratch;
  e.parts_bytes = s.parts;
  place_tables(plan.forms, plan.max_k, options.max_rows, r.quantized_.data(), e.quantized);
  if (s.experts > 0) r.place_experts(s.expert_rows);

  const auto n = static_cast<size_t>(options.max_rows);
  for (auto* v : {&r.tokens_, &r.first_bad_}) v->reserve(n);
  for (auto* v : {&r.positions_, &r.output_rows_, &r.hidden_rows_}) v->reserve(n);
  r.bad_.reserve(n);
  for (auto* v : {&r.spans_, &r.output_spans_}) v->reserve(n);
  r.tile_rows_.reserve(n);
  r.head_blocks_.reserve(n);
  return runner;
}

void Runner::place_experts(int64_t n_rows) {
  std::byte* at = experts_.data();
  const auto take = [&](int64_t bytes) { return std::exchange(at, at + round_up<int64_t>(bytes, 64)); };
  for (size_t b = 0; b < kBufs; ++b) {
    if (!is_of_experts(static_cast<Buf>(b))) continue;
    exec_.buffers[b] = reinterpret_cast<float*>(take(plan_.row_floats[b] * 4 * n_rows));
  }
  ExpertRows& rows = exec_.experts;
  for (int32_t** list : {&rows.expert, &rows.row_of, &rows.choice, &rows.produced}) {
    *list = reinterpret_cast<int32_t*>(take(n_rows * 4));
  }
  rows.weight = reinterpret_cast<float*>(take(n_rows * 4));
  rows.bad = reinterpret_cast<uint8_t*>(take(n_rows));
  for (int32_t** list : {&rows.first, &rows.active}) {
    *list = reinterpret_cast<int32_t*>(take((plan_.moe.n_experts + 1) * 4));
  }
  place_tables(plan_.moe.forms, plan_.moe.max_k, n_rows, at, rows.quantized);
}

Status Runner::check(Batch batch, bool consumed) const {
  int64_t n_rows = 0, n_logits = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Span& span = batch[i];
    const auto n = static_cast<int64_t>(span.tokens.size());
    const auto bad = [&](const auto&... what) {
      return Error{ErrorCode::kInvalidArgument, str_cat("span ", i, ": ", what...)};
    };
    if (!span.sequence) return bad("no sequence");
    if (span.position != span.sequence->length()) {
      return bad("starts at position ", span.position, ", its sequence ends at ", span.sequence->length());
    }
    for (size_t j = 0; j < i; ++j) {
      if (batch[j].sequence == span.sequence) return bad("its sequence is already in span ", j);
    }
    for (const Range& range : {span.logits, span.hidden}) {
      if (range.begin < 0 || range.end > n) return bad("outputs of rows ", range.begin, " to ", range.end, " of ", n);
    }
    for (int32_t token : span.tokens) {
      if (token < 0 || token >= plan_.config->n_vocab) {
        return bad("token ", token, " is outside the vocabulary of ", plan_.config->n_vocab);
      }
    }
    n_rows += n;
    n_logits += std::max<int64_t>(0, span.logits.size());
  }
  if (n_rows > options_.max_rows) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat(n_rows, " rows in one forward pass, at most ", options_.max_rows)};
  }
  if (n_logits > logits_rows_ && !consumed) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat(n_logits, " rows of logits at once, at most ", logits_rows_, " without a consumer")};
  }
  return Ok{};
}

Status Runner::reserve(Batch batch) const {
  int64_t wanted = 0;
  for (const Span& span : batch) wanted += span.sequence->pages_wanted(static_cast<int64_t>(span.tokens.size()));
  if (batch.empty()) return Ok{};
  const KvPool& pages = batch[0].sequence->pool();
  if (wanted > pages.n_free()) {
    return Error{ErrorCode::kOverloaded, str_cat("the key-value cache has ", pages.n_free(), " free pages of ",
                                                 kTilePositions, " positions, this batch wants ", wanted)};
  }
  for (const Span& span : batch) STOKER_TRY_STATUS(span.sequence->reserve(static_cast<int64_t>(span.tokens.size())));
  return Ok{};
}

void Runner::lay_out(Batch batch) {
  tokens_.clear(), positions_.clear(), output_rows_.clear(), hidden_rows_.clear();
  spans_.clear(), output_spans_.clear(), tile_rows_.clear(), head_blocks_.clear();
  n_logits_ = 0;
  for (const Span& span : batch) {
    const auto n = static_cast<int64_t>(span.tokens.size());
    if (n == 0) continue;
    const auto row0 = static_cast<int64_t>(tokens_.size());
    const std::byte* const* tiles = span.sequence->tiles();
    spans_.push_back({.row0 = row0, .q_row0 = row0, .n = n, .position0 = span.position, .tiles = tiles});
    for (int64_t i = 0; i < n; ++i) positions_.push_back(span.position + i);
    tokens_.insert(tokens_.end(), span.tokens.begin(), span.tokens.end());
    for (int64_t i = 0; i < n;) {
      const int64_t position = span.position + i, in_tile = position % kTilePositions;
      const int64_t in_this = std::min(n - i, kTilePositions - in_tile);
      tile_rows_.push_back({.row0 = row0 + i,
                            .n = static_cast<int>(in_this),
                            .in_tile = static_cast<int>(in_tile),
                            .page = span.sequence->tile(position / kTilePositions)});
      i += in_this;
    }
    const Range out = output_range(span);
    const auto out0 = static_cast<int64_t>(output_rows_.size());
    if (!wants(out)) continue;
    output_spans_.push_back({.row0 = out0,
                             .q_row0 = row0 + out.begin,
                             .n = out.size(),
                             .position0 = span.position + out.begin,
                             .tiles = tiles});
    for (int64_t i = out.begin; i < out.end; ++i) output_rows_.push_back(row0 + i);
    for (int64_t i = span.hidden.begin; i < span.hidden.end; ++i) hidden_rows_.push_back(out0 + i - out.begin);
    for (int64_t i = span.logits.begin; i < span.logits.end;) {
      const int64_t row = out0 + i - out.begin;
      if (!head_blocks_.empty() && head_blocks_.back().row + head_blocks_.back().n == row &&
          head_blocks_.back().n < logits_rows_) {
        ++head_blocks_.back().n;
      } else {
        head_blocks_.push_back({.row = row, .n = 1, .first = n_logits_});
      }
      ++n_logits_, ++i;
    }
  }
  bad_.assign(tokens_.size(), 0);
  first_bad_.assign(tokens_.size(), 0);

  Exec& e = exec_;
  e.n_tokens = e.n_rows = static_cast<int64_t>(tokens_.size());
  e.n_outputs = static_cast<int64_t>(output_rows_.size());
  e.tokens = tokens_.data();
  e.positions = positions_.data();
  e.output_rows = output_rows_.data();
  e.spans = spans_;
  e.output_spans = output_spans_;
  e.tile_rows = tile_rows_;
  e.bad = bad_.data();
  e.first_bad = first_bad_.data();
}

void Runner::head(const HeadBlock& block, Worker& worker) noexcept {
  const Target& t = plan_.head;
  const ModelConfig& config = *plan_.config;
  float* y = logits_.as<float>() + (consumed_ ? 0 : block.first) * logits_stride_;
  const int64_t n_groups = t.w->n_groups();
  // Pieces as large as for one row: few long ones, since each also caps and checks what it has computed.
  worker.each(n_groups, groups_per_piece(n_groups, 1, worker.count()), [&](Range groups) {
    multiply({t, groups, block.row, block.row + block.n, y - block.row * logits_stride_, logits_stride_}, exec_,
             worker);
    const int64_t begin = groups.begin * 16, n = std::min(groups.end * 16, config.n_vocab) - begin;
    for (int64_t i = 0; i < block.n; ++i) {
      float* part = y + i * logits_stride_ + begin;
      if (output_bias_) exec_.table->add(part, output_bias_ + begin, n, part);
      // Before the cap, which would turn infinity into an ordinary number.
      if (!exec_.table->all_finite(part, n)) exec_.mark_bad(exec_.original_row(block.row + i), head_step_);
      if (config.logit_divisor != 0) exec_.table->scale(part, 1 / config.logit_divisor, n, part);
      if (config.final_softcap != 0) exec_.table->softcap(part, config.final_softcap, n);
    }
  });
}

void Runner::run(LogitsConsumer* consumer) {
  const size_t n_steps = exec_.n_outputs > 0 ? plan_.steps.size() : plan_.n_steps_to_store;
  pool_.run([&](Worker& worker) {
    for (size_t i = 0; i < n_steps; ++i) {
      const Step& step = plan_.steps[i];
      step.run(step, exec_, worker);
      worker.barrier();
    }
    for (const HeadBlock& block : head_blocks_) {
      head(block, worker);
      worker.barrier();
      if (!consumer) continue;
      consumer->consume({.first = block.first, .n = block.n, .logits = logits_.as<float>(), .stride = logits_stride_},
                        worker);
      worker.barrier();
    }
  });
}

void Runner::collect(Batch batch, Outputs& outputs) {
  size_t at = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto n = batch[i].tokens.size();
    const auto begin = first_bad_.begin() + static_cast<int64_t>(at);
    const auto found = std::find_if(begin, begin + static_cast<int64_t>(n), [](int32_t step) { return step != 0; });
    if (found == begin + static_cast<int64_t>(n)) {
      batch[i].sequence->advance(static_cast<int64_t>(n));
    } else {
      const auto index = static_cast<size_t>(*found - 1);
      const Step& step = index < plan_.steps.size() ? plan_.steps[index] : head_step_;
      const int64_t position = batch[i].position + (found - begin);
      const std::string where = step.layer < 0 ? std::string() : str_cat(" of layer ", step.layer);
      outputs.failures.push_back({i, position,
                                  str_cat("a value that is not finite in step ", step.name, where, " at position ",
                                          position, "; the file may be damaged, `stoker inspect --verify` checks it")});
    }
    at += n;
  }
  outputs.n_logits = n_logits_;
  outputs.logits = consumed_ ? nullptr : logits_.as<float>();
  outputs.logits_stride = logits_stride_;
  outputs.n_hidden = static_cast<int64_t>(hidden_rows_.size());
  outputs.hidden_stride = exec_.stride(Buf::kNormed);
  // Rows for hidden states are moved together; they ascend, so none is overwritten before it is moved.
  for (size_t i = 0; i < hidden_rows_.size(); ++i) {
    if (hidden_rows_[i] == static_cast<int64_t>(i)) continue;
    std::memcpy(exec_.row(Buf::kNormed, static_cast<int64_t>(i)), exec_.row(Buf::kNormed, hidden_rows_[i]),
                static_cast<size_t>(plan_.config->dim) * sizeof(float));
  }
  outputs.hidden = exec_.row(Buf::kNormed, 0);
}

Result<Outputs> Runner::forward(Batch batch, LogitsConsumer* consumer) {
  STOKER_TRY_STATUS(check(batch, consumer != nullptr));
  STOKER_TRY_STATUS(reserve(batch));
  lay_out(batch);
  consumed_ = consumer != nullptr;
  Outputs outputs;
  if (exec_.n_tokens > 0) run(consumer);
  collect(batch, outputs);
  return outputs;
}

}  // namespace stoker::model
