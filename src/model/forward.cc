#include "model/forward.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/str_cat.h"

namespace stoker::model {
namespace {

using kernels::kTilePositions;

bool wants(const Range& range) { return range.end > range.begin; }

/// The rows of a span that are wanted for anything, as one range.
Range output_range(const Span& span) {
  if (!wants(span.logits)) return wants(span.hidden) ? span.hidden : Range{0, 0};
  if (!wants(span.hidden)) return span.logits;
  return {std::min(span.logits.begin, span.hidden.begin), std::max(span.logits.end, span.hidden.end)};
}

Range both(const Range& a, const Range& b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

template <class T>
std::span<T> part_of(std::vector<T>& all, const Range& range) {
  return std::span(all).subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size()));
}
template <class T>
int64_t count(const std::vector<T>& all) {
  return static_cast<int64_t>(all.size());
}

}  // namespace

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
    if (!plan_.config->causal && span.position != 0) {
      return bad("goes on a sequence whose tokens see each other: all of them must come in one call");
    }
    if (!plan_.head.w && wants(span.logits)) return bad("wants logits, and the model gives vectors only");
    for (size_t j = 0; j < i; ++j) {
      if (batch[j].sequence == span.sequence) return bad("its sequence is already in span ", j);
    }
    for (const Range& range : {span.logits, span.hidden}) {
      if (range.begin < 0 || range.end > n) return bad("outputs of rows ", range.begin, " to ", range.end, " of ", n);
    }
    const Matrix* positions = plan_.steps[0].positions;
    if (positions && span.position + n > positions->n_out) {
      return bad("ends at position ", span.position + n, ", the model knows ", positions->n_out);
    }
    if (plan_.max_positions > 0 && span.position + n > plan_.max_positions) {
      return bad("ends at position ", span.position + n, ", the model knows ", plan_.max_positions);
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
  int64_t states = 0;
  for (const Span& span : batch) {
    const auto n = static_cast<int64_t>(span.tokens.size());
    wanted += span.sequence->pages_wanted(n);
    states += span.sequence->states_wanted(n);
  }
  if (batch.empty()) return Ok{};
  const KvPool& pages = batch[0].sequence->pool();
  if (wanted > pages.n_free()) {
    return Error{ErrorCode::kOverloaded, str_cat("the key-value cache has ", pages.n_free(), " free pages of ",
                                                 kTilePositions, " positions, this batch wants ", wanted)};
  }
  if (states > 0 && states > pages.states()->n_free()) {
    return Error{ErrorCode::kOverloaded, str_cat("of ", pages.states()->n(), " places for recurrent states ",
                                                 pages.states()->n_free(), " are free, this batch wants ", states)};
  }
  for (const Span& span : batch) STOKER_TRY_STATUS(span.sequence->reserve(static_cast<int64_t>(span.tokens.size())));
  return Ok{};
}

Runner::Chunk& Runner::next_chunk() {
  const auto from_here = [](const auto& all) { return Range{count(all), count(all)}; };
  Chunk& chunk = chunks_.emplace_back();
  chunk.exec = exec_;
  chunk.exec.row0 = chunk.exec.token0 = count(tokens_);
  chunk.exec.out0 = count(output_rows_);
  chunk.spans = from_here(spans_);
  chunk.output_spans = from_here(output_spans_);
  chunk.tile_rows = from_here(tile_rows_);
  chunk.head_blocks = from_here(head_blocks_);
  chunk.hidden = from_here(hidden_rows_);
  return chunk;
}

void Runner::add_rows(const Span& span, int64_t begin, int64_t end, Chunk& chunk) {
  const int64_t row0 = chunk.exec.n_tokens, n = end - begin, position0 = span.position + begin;
  std::byte* next_state = span.sequence->next_state();
  spans_.push_back({.row0 = row0,
                    .q_row0 = row0,
                    .n = n,
                    .position0 = position0,
                    .length = span.position + static_cast<int64_t>(span.tokens.size()),
                    .tiles = span.sequence->tiles(),
                    .state = begin == 0 ? span.sequence->state() : next_state,
                    .next_state = next_state});
  for (int64_t i = 0; i < n; ++i) positions_.push_back(position0 + i);
  for (int64_t i = 0; tells_kinds() && i < n; ++i) kinds_.push_back(position0 + i >= span.second_kind_from);
  tokens_.insert(tokens_.end(), span.tokens.begin() + begin, span.tokens.begin() + end);
  for (int64_t i = 0; i < n;) {
    const int64_t position = position0 + i, in_tile = position % kTilePositions;
    const int64_t in_this = std::min(n - i, kTilePositions - in_tile);
    tile_rows_.push_back({.row0 = row0 + i,
                          .n = static_cast<int>(in_this),
                          .in_tile = static_cast<int>(in_tile),
                          .page = span.sequence->tile(position / kTilePositions)});
    i += in_this;
  }
  chunk.exec.n_tokens += n;
  const Range out = both(output_range(span), {begin, end});
  if (wants(out)) add_outputs(span, out, row0 + out.begin - begin, chunk);
}

/// `rows` of the span, whose first one is q_row0 of the chunk.
void Runner::add_outputs(const Span& span, Range rows, int64_t q_row0, Chunk& chunk) {
  const int64_t out0 = chunk.exec.n_outputs;
  output_spans_.push_back({.row0 = out0,
                           .q_row0 = q_row0,
                           .n = rows.size(),
                           .position0 = span.position + rows.begin,
                           .length = span.position + static_cast<int64_t>(span.tokens.size()),
                           .tiles = span.sequence->tiles()});
  for (int64_t i = 0; i < rows.size(); ++i) output_rows_.push_back(chunk.exec.row0 + q_row0 + i);
  chunk.exec.n_outputs += rows.size();
  const Range hidden = both(span.hidden, rows);
  for (int64_t i = hidden.begin; i < hidden.end; ++i) hidden_rows_.push_back(out0 + i - rows.begin);
  const Range logits = both(span.logits, rows);
  for (int64_t i = logits.begin; i < logits.end; ++i) {
    const int64_t row = out0 + i - rows.begin;
    const bool goes_on = count(head_blocks_) > chunk.head_blocks.begin &&
                         head_blocks_.back().row + head_blocks_.back().n == row && head_blocks_.back().n < logits_rows_;
    if (goes_on) {
      ++head_blocks_.back().n;
    } else {
      head_blocks_.push_back({.row = row, .n = 1, .first = n_logits_});
    }
    ++n_logits_;
  }
}

void Runner::lay_out(Batch batch) {
  tokens_.clear(), kinds_.clear(), positions_.clear(), output_rows_.clear(), hidden_rows_.clear(), chunks_.clear();
  spans_.clear(), output_spans_.clear(), tile_rows_.clear(), head_blocks_.clear();
  n_logits_ = 0;
  for (const Span& span : batch) {
    const auto n = static_cast<int64_t>(span.tokens.size());
    for (int64_t at = 0; at < n;) {
      const bool full = chunks_.empty() || chunks_.back().exec.n_tokens == chunk_rows_;
      Chunk& chunk = full ? next_chunk() : chunks_.back();
      const int64_t end = std::min(n, at + chunk_rows_ - chunk.exec.n_tokens);
      add_rows(span, at, end, chunk);
      chunk.spans.end = count(spans_), chunk.output_spans.end = count(output_spans_);
      chunk.tile_rows.end = count(tile_rows_), chunk.head_blocks.end = count(head_blocks_);
      chunk.hidden.end = count(hidden_rows_);
      at = end;
    }
  }
  bad_.assign(tokens_.size(), 0);
  first_bad_.assign(tokens_.size(), 0);
  for (Chunk& chunk : chunks_) point(chunk);
}

void Runner::point(Chunk& chunk) {
  Exec& e = chunk.exec;
  const auto row0 = static_cast<size_t>(e.row0);
  e.n_rows = e.n_tokens;
  e.tokens = tokens_.data() + row0;
  e.positions = positions_.data() + row0;
  e.kinds = tells_kinds() ? kinds_.data() + row0 : nullptr;
  e.output_rows = output_rows_.data() + e.out0;
  e.spans = part_of(spans_, chunk.spans);
  e.output_spans = part_of(output_spans_, chunk.output_spans);
  e.tile_rows = part_of(tile_rows_, chunk.tile_rows);
  e.bad = bad_.data() + row0;
  e.first_bad = first_bad_.data();
  for (size_t b = 0; b < kBufs; ++b) {
    if (rows_of(static_cast<Buf>(b)) == RowsOf::kCall) e.buffers[b] += e.row0 * plan_.row_floats[b];
  }
  for (size_t i = 0; i < plan_.ropes.size(); ++i) {
    e.rope_cos[i] += e.row0 * e.rope_stride;
    e.rope_sin[i] += e.row0 * e.rope_stride;
  }
}

/// False: some of the matrix could not be read.
bool Runner::head(const Chunk& chunk, const HeadBlock& block, Worker& worker) noexcept {
  for (const HeadPart& part : head_parts_) {
    if (part.streamed) {
      if (worker.index() == 0) units_->acquire();
      worker.barrier();
    }
    const std::byte* data = part.streamed ? units_->wait(*part.target->w) : part.target->w->data;
    if (data) head_part(chunk, block, part, data, worker);
    worker.barrier();
    if (!part.streamed) continue;
    const bool failed = units_->failed();
    if (worker.index() == 0) {
      if (failed) fail_logits(block.first);
      units_->release();
    }
    if (failed) return false;
  }
  return true;
}

/// Of this row and all that would have come after it.
void Runner::fail_logits(int64_t first) noexcept {
  read_errors_.add(head_step_.index, units_->error());
  for (const Chunk& chunk : chunks_) {
    for (const HeadBlock& block : part_of(head_blocks_, chunk.head_blocks)) {
      for (int64_t i = 0; block.first >= first && i < block.n; ++i) {
        chunk.exec.mark_unread(output_rows_[static_cast<size_t>(chunk.exec.out0 + block.row + i)], head_step_);
      }
    }
  }
}

void Runner::head_part(const Chunk& chunk, const HeadBlock& block, const HeadPart& part, const std::byte* data,
                       Worker& worker) noexcept {
  const Exec& exec = chunk.exec;
  const Target& t = *part.target;
  const ModelConfig& config = *plan_.config;
  const int64_t row0 = part.first_group * 16;
  float* y = logits_.as<float>() + (consumed_ ? 0 : block.first) * logits_stride_ + row0;
  // In runs, however many rows: each piece also caps and checks what it has computed.
  each_piece_of(worker, {t.w->n_groups(), t.w->group_bytes, 1}, [&](Range groups, Range run) {
    multiply({t, groups, run, exec.activations, block.row, block.row + block.n, y - block.row * logits_stride_,
              logits_stride_, data},
             exec.worker_scratch(worker));
    const int64_t begin = groups.begin * 16, n = std::min(groups.end * 16, config.n_vocab - row0) - begin;
    for (int64_t i = 0; i < block.n; ++i) {
      float* values = y + i * logits_stride_ + begin;
      if (output_bias_) exec.table->add(values, output_bias_ + row0 + begin, n, values);
      // Before the cap, which would turn infinity into an ordinary number.
      if (!exec.table->all_finite(values, n)) exec.mark_bad(exec.original_row(block.row + i), head_step_);
      if (config.logit_divisor != 0) exec.table->scale(values, 1 / config.logit_divisor, n, values);
      if (config.final_softcap != 0) exec.table->softcap(values, config.final_softcap, n);
    }
  });
}

void Runner::run_chunk(Chunk& chunk, const Segment& segment, Worker& worker) noexcept {
  const size_t n = n_steps(chunk.exec.n_outputs > 0);
  for (size_t i = segment.begin; i < std::min(segment.end, n); ++i) {
    const Step& step = plan_.steps[i];
    step.run(step, chunk.exec, worker);
    worker.barrier();
  }
  if (segment.end >= n || segment.experts || chunks_.size() == 1) return;
  if (!plan_.steps[segment.end].add_branch) return;               // The unit's output stands in a buffer of the call.
  add_branch_step(plan_.steps[segment.end], chunk.exec, worker);  // before the next chunk takes the buffers
  worker.barrier();
}

/// What is wanted of the chunk's outputs; no more logits once some of the matrix could not be read.
void Runner::finish_chunk(Chunk& chunk, LogitsConsumer* consumer, Worker& worker) noexcept {
  for (const HeadBlock& block : part_of(head_blocks_, chunk.head_blocks)) {
    if ((units_ && units_->failed()) || !head(chunk, block, worker)) break;
    if (!consumer) continue;
    consumer->consume({.first = block.first, .n = block.n, .logits = logits_.as<float>(), .stride = logits_stride_},
                      worker);
    worker.barrier();
  }
  if (worker.index() != 0) return;
  // Where residuals were that nobody needs any more: those of this chunk's outputs and of chunks before it.
  for (int64_t i = chunk.hidden.begin; i < chunk.hidden.end; ++i) {
    std::memcpy(exec_.row(Buf::kResidual, i), chunk.exec.row(Buf::kNormed, hidden_rows_[static_cast<size_t>(i)]),
                static_cast<size_t>(plan_.config->dim) * sizeof(float));
  }
}

/// Worker 0 asks whether to go on, and for what the segment needs; all hear the answer.
bool Runner::enter(const Segment& segment, const Control* control, Worker& worker) {
  const bool gathered = segment.experts && segment.end > plan_.n_steps_to_gather;
  if (!control && !units_ && !gathered) return true;
  const auto n_outputs = static_cast<int64_t>(output_rows_.size());
  if (worker.index() == 0) {
    if (control && &segment != &segments_.back()) {
      cancelled_ = control->cancel && control->cancel->load(std::memory_order_relaxed);
      if (control->on_layer) control->on_layer(plan_.steps[segment.end - 1].layer);
    }
    stop_ = cancelled_ || (units_ && units_->failed());
    if (!stop_ && segment.unit_first && *segment.unit_first < n_steps(n_outputs > 0)) units_->acquire();
    if (gathered) {
      experts_state_.n_rows = n_outputs;
      experts_state_.output_rows = output_rows_.data();
    }
  }
  worker.barrier();
  return !stop_;
}

void Runner::leave(const Segment& segment, Worker& worker) {
  if (worker.index() != 0 || !segment.unit_first) return;
  if (*segment.unit_first < n_steps(!output_rows_.empty())) units_->release();
}

/// False when it was cancelled.
bool Runner::run(LogitsConsumer* consumer, const Control* control) {
  const size_t n = n_steps(!output_rows_.empty());
  experts_state_.n_rows = n_tokens();
  experts_state_.output_rows = nullptr;
  experts_state_.n_last_rows = static_cast<int64_t>(output_rows_.size());
  std::fill(routed_.begin(), routed_.end(), 0);
  read_ahead(plan_, experts_state_, 0);
  cancelled_ = stop_ = false;
  if (units_) units_->begin_call(n, head_blocks_.size());
  pool_.run([&](Worker& worker) {
    for (const Segment& segment : segments_) {
      if (segment.begin >= n || !enter(segment, control, worker)) break;
      const bool last = &segment == &segments_.back();
      for (Chunk& chunk : chunks_) {
        run_chunk(chunk, segment, worker);
        if (!last) continue;
        finish_chunk(chunk, consumer, worker);
        worker.barrier();
      }
      if (segment.experts && segment.end < n) {
        experts_step(plan_.steps[segment.end], chunks_[0].exec, worker);
        worker.barrier();
      }
      leave(segment, worker);
    }
  });
  if (ahead_) ahead_->finish();  // of a layer that a call without outputs does not reach
  for (auto& later : later_) {
    if (later) later->finish();
  }
  if (units_) units_->end_call(!stop_ && !units_->failed());
  return !cancelled_;
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
      const auto index = static_cast<size_t>(std::abs(*found) - 1);
      const Step& step = index < plan_.steps.size() ? plan_.steps[index] : head_step_;
      const int64_t position = batch[i].position + (found - begin);
      const std::string where = step.layer < 0 ? std::string() : str_cat(" of layer ", step.layer);
      const Error* unread = *found < 0 ? read_errors_.find(static_cast<int>(index)) : nullptr;
      outputs.failures.push_back(
          unread ? Failure{i, position, unread->code, unread->message}
                 : Failure{i, position, ErrorCode::kCorrupt,
                           str_cat("a value that is not finite in step ", step.name, where, " at position ", position,
                                   "; the file may be damaged, `stoker inspect --verify` checks it")});
    }
    at += n;
  }
  outputs.n_logits = n_logits_;
  outputs.logits = consumed_ ? nullptr : logits_.as<float>();
  outputs.logits_stride = logits_stride_;
  outputs.n_hidden = static_cast<int64_t>(hidden_rows_.size());
  outputs.hidden_stride = exec_.stride(Buf::kResidual);
  outputs.hidden = exec_.row(Buf::kResidual, 0);
}

std::span<const int32_t> Runner::routes(size_t layer) const {
  if (routed_.empty()) return {};
  const Experts& e = experts_state_;
  return {e.routes + static_cast<int64_t>(layer) * e.routes_stride, static_cast<size_t>(routed_[layer])};
}

/// All chunks meet at each block of experts, and behind each unit that is streamed; where its layer has experts, at
/// these. A unit's last step leaves its output in a buffer of the chunk, which a norm then adds, or in one of the call.
void Runner::make_segments() {
  for (size_t step : plan_.expert_steps) segments_.push_back({.end = step, .experts = true});
  for (size_t i = 0; units_ && i < units_->steps().size(); ++i) {
    const UnitStream::Steps steps = units_->steps()[i];
    if (steps.first == plan_.steps.size()) break;  // the output matrix
    const int64_t layer = plan_.steps[steps.last].layer;
    const auto same = std::find_if(segments_.begin(), segments_.end(),
                                   [&](const Segment& s) { return s.experts && plan_.steps[s.end].layer == layer; });
    if (same != segments_.end()) {
      same->unit_first = steps.first;
    } else {
      const Step& last = plan_.steps[steps.last];
      STOKER_CHECK(plan_.steps[steps.last + 1].add_branch || rows_of(last.targets[0].out) == RowsOf::kCall);
      segments_.push_back({.end = steps.last + 1, .unit_first = steps.first});
    }
  }
  std::sort(segments_.begin(), segments_.end(), [](const Segment& a, const Segment& b) { return a.end < b.end; });
  size_t begin = 0;
  for (Segment& s : segments_) s.begin = std::exchange(begin, s.end + s.experts);
  segments_.push_back({.begin = begin, .end = plan_.steps.size()});
}

void Runner::make_head_parts() {
  if (!plan_.head.w) return;
  const auto streamed = [](const Target& part) { return part.w->data == nullptr; };
  if (!units_ || std::none_of(plan_.head_parts.begin(), plan_.head_parts.end(), streamed)) {
    head_parts_.push_back({.target = &plan_.head});
    return;
  }
  int64_t group = 0;
  for (const Target& part : plan_.head_parts) {
    head_parts_.push_back({.target = &part, .first_group = group, .streamed = streamed(part)});
    group += part.w->n_groups();
  }
}

Result<Outputs> Runner::forward(Batch batch, LogitsConsumer* consumer, const Control* control) {
  STOKER_TRY_STATUS(check(batch, consumer != nullptr));
  STOKER_TRY_STATUS(reserve(batch));
  lay_out(batch);
  consumed_ = consumer != nullptr;
  Outputs outputs;
  read_errors_.clear();
  const bool trial = options_.lookahead == LookaheadUse::kTry;
  experts_state_.guess = trial ? trial_.begin(n_tokens()) : options_.lookahead == LookaheadUse::kOn;
  if (!chunks_.empty() && !run(consumer, control)) return Error{ErrorCode::kCancelled, "cancelled"};
  if (trial) trial_.end();
  if (options_.experts) options_.experts->end_call(static_cast<int64_t>(tokens_.size()));
  collect(batch, outputs);
  return outputs;
}

}  // namespace stoker::model
