#include "engine/score.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/math.h"
#include "base/seconds.h"
#include "base/str_cat.h"

namespace stoker::engine {
namespace {

/// Turns blocks of logits into log-probabilities while the forward pass goes on.
class Scorer final : public model::LogitsConsumer {
 public:
  Scorer(std::span<const int32_t> tokens, int64_t n_vocab, const ScoreOptions& options, Scores& out)
      : tokens_(tokens), n_vocab_(n_vocab), options_(options), out_(out) {}

  /// The next call's first row is position `row` of the text, its window ends before `end`.
  void begin(int64_t row, int64_t end) {
    row_ = row;
    window_end_ = end;
  }
  /// What became of writing the logits.
  const Status& written() const { return written_; }

  void consume(const model::LogitsBlock& block, Worker& worker) noexcept override {
    if (worker.index() == 0) {
      for (int64_t i = 0; i < block.n; ++i) store(block.logits + i * block.stride);
    }
    worker.each(block.n, 1, [&](Range range) {
      score_row(row_ + block.first + range.begin, block.logits + range.begin * block.stride);
    });
  }

 private:
  void store(const float* row) noexcept {
    if (options_.digest) options_.digest->add(row, n_vocab_);
    const auto n = static_cast<size_t>(n_vocab_);
    if (!options_.logits || !written_) return;
    written_ = options_.logits->write({reinterpret_cast<const char*>(row), n * sizeof(float)});
  }

  void score_row(int64_t row, const float* logits) noexcept {
    const auto i = static_cast<size_t>(row);
    const float largest = *std::max_element(logits, logits + n_vocab_);
    double sum = 0;
    for (int64_t id = 0; id < n_vocab_; ++id)
      sum += math::exp(static_cast<double>(logits[id]) - static_cast<double>(largest));
    const double log_sum = static_cast<double>(largest) + math::log(sum);
    if (row + 1 < window_end_) out_.logprobs[i] = static_cast<double>(logits[tokens_[i + 1]]) - log_sum;
    if (options_.top > 0) rank(logits, log_sum, out_.top[i]);
  }

  void rank(const float* logits, double log_sum, std::vector<std::pair<int32_t, double>>& best) const {
    // A heap of the best so far, worst on top; of equals the lower id is better.
    const auto better = [](const auto& a, const auto& b) {
      return a.second > b.second || (a.second == b.second && a.first < b.first);
    };
    for (int64_t id = 0; id < n_vocab_; ++id) {
      const std::pair<int32_t, double> entry{static_cast<int32_t>(id), static_cast<double>(logits[id])};
      if (static_cast<int64_t>(best.size()) == options_.top) {
        if (!better(entry, best.front())) continue;
        std::pop_heap(best.begin(), best.end(), better);
        best.back() = entry;
      } else {
        best.push_back(entry);
      }
      std::push_heap(best.begin(), best.end(), better);
    }
    std::sort_heap(best.begin(), best.end(), better);
    for (auto& entry : best) entry.second -= log_sum;
  }

  std::span<const int32_t> tokens_;
  int64_t n_vocab_;
  const ScoreOptions& options_;
  Scores& out_;
  int64_t row_ = 0, window_end_ = 0;
  Status written_ = Ok{};
};

Status check(const Engine& engine, std::span<const int32_t> tokens, const ScoreOptions& options) {
  STOKER_TRY_STATUS(engine.check_logits());
  if (tokens.size() < 2) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("a text of ", tokens.size(), " tokens cannot be scored, at least 2 are wanted")};
  }
  if (options.context < 2)
    return Error{ErrorCode::kInvalidArgument, str_cat("a context of ", options.context, ", wanted 2 or more")};
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= engine.model().vocab_size()) {
      return Error{ErrorCode::kInvalidArgument, str_cat("token ", i, " is ", tokens[i], ", outside the vocabulary of ",
                                                        engine.model().vocab_size())};
    }
  }
  return Ok{};
}

Status score_window(Engine& engine, std::span<const int32_t> tokens, int64_t begin, int64_t end,
                    const ScoreOptions& options, Scorer& scorer) {
  model::Sequence sequence(engine.kv(), end - begin);
  for (int64_t at = begin; at < end;) {
    if (options.cancel && options.cancel->load(std::memory_order_relaxed))
      return Error{ErrorCode::kCancelled, "cancelled"};
    const int64_t rows = std::min(engine.runner().max_rows(), end - at);
    scorer.begin(at, end);
    const model::Span span{.sequence = &sequence,
                           .tokens = tokens.subspan(static_cast<size_t>(at), static_cast<size_t>(rows)),
                           .position = sequence.length(),
                           .logits = {0, rows}};
    STOKER_TRY(model::Outputs outputs, engine.runner().forward({&span, 1}, &scorer));
    if (!outputs.failures.empty()) return Error{outputs.failures[0].code, outputs.failures[0].message};
    STOKER_TRY_STATUS(scorer.written());
    at += rows;
    if (options.on_progress) options.on_progress(at, static_cast<int64_t>(tokens.size()));
  }
  return Ok{};
}

}  // namespace

uint64_t score_bytes(int64_t n_tokens, int64_t top) {
  const auto n = static_cast<uint64_t>(n_tokens), best = static_cast<uint64_t>(top);
  uint64_t per_token = sizeof(double);
  // The lists of the best grow by doubling.
  if (best > 0)
    per_token += sizeof(std::vector<std::pair<int32_t, double>>) + 2 * best * sizeof(std::pair<int32_t, double>);
  return n * per_token;
}

Result<Scores> score(Engine& engine, std::span<const int32_t> tokens, const ScoreOptions& options) {
  STOKER_TRY_STATUS(check(engine, tokens, options));
  const auto start = std::chrono::steady_clock::now();
  const auto n = static_cast<int64_t>(tokens.size());
  Scores out;
  out.logprobs.assign(tokens.size() - 1, NAN);
  if (options.top > 0) out.top.resize(tokens.size());
  Scorer scorer(tokens, engine.model().vocab_size(), options, out);
  for (int64_t begin = 0; begin < n; begin += options.context) {
    STOKER_TRY_STATUS(score_window(engine, tokens, begin, std::min(n, begin + options.context), options, scorer));
  }
  double sum = 0;
  int64_t count = 0;
  for (double logprob : out.logprobs) {
    if (std::isnan(logprob)) continue;
    sum += logprob;
    ++count;
  }
  out.perplexity = count ? math::exp(-sum / static_cast<double>(count)) : NAN;
  out.seconds = seconds_since(start);
  return out;
}

}  // namespace stoker::engine
