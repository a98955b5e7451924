#include "engine/generate.h"

#include <algorithm>
#include <chrono>

#include "base/seconds.h"
#include "base/str_cat.h"
#include "engine/step.h"

namespace stoker::engine {
namespace {

using Clock = std::chrono::steady_clock;

bool cancelled(const GenerateOptions& options) {
  return options.cancel && options.cancel->load(std::memory_order_relaxed);
}

/// One generation in progress.
class Generation {
 public:
  Generation(Engine& engine, std::span<const int32_t> prompt, const GenerateOptions& options)
      : engine_(engine),
        prompt_(prompt),
        options_(options),
        limit_(options.max_tokens ? *options.max_tokens : options.context - static_cast<int64_t>(prompt.size())),
        sequence_(engine.kv(), static_cast<int64_t>(prompt.size()) + limit_),
        sampler_(options.sampler) {
    out_.prompt_tokens = static_cast<int64_t>(prompt.size());
  }

  Result<Generated> run() {
    auto start = Clock::now();
    begin_phase();
    if (options_.from) {
      STOKER_TRY(sequence_, options_.from->restore(engine_.kv(), static_cast<int64_t>(prompt_.size()) + limit_));
      out_.restored_tokens = sequence_.length();
    }
    STOKER_TRY(bool read, prefill());
    if (read && limit_ > 0) choose();
    out_.prefill_seconds = phase_seconds(start);
    end_phase("prefill", sequence_.length() - out_.restored_tokens);
    start = Clock::now();
    begin_phase();
    while (read && !done_) {
      const int32_t token = out_.tokens.back();
      STOKER_TRY_STATUS(forward({&token, 1}, true));
      ++out_.decode_tokens;
      choose();
    }
    out_.decode_seconds = phase_seconds(start);
    end_phase("decode", out_.decode_tokens);
    flush(utf8_.finish());
    if (options_.save_to) save();
    return std::move(out_);
  }

 private:
  void begin_phase() {
    if (options_.profiler) options_.profiler->begin();
  }
  void end_phase(const char* name, int64_t tokens) {
    if (options_.profiler) options_.profiler->end(name, tokens);
  }
  /// Without the profiler's pauses.
  double phase_seconds(Clock::time_point start) const {
    return seconds_since(start) - (options_.profiler ? options_.profiler->paused_seconds() : 0);
  }

  /// False when cancelled on the way.
  Result<bool> prefill() {
    const bool wants_logits = limit_ > 0 || options_.digest;
    const int64_t n = static_cast<int64_t>(prompt_.size()) - (options_.save_to && !wants_logits ? 1 : 0);
    for (int64_t at = sequence_.length(); at < n;) {
      if (cancelled(options_)) return stop(Stop::kCancelled), false;
      const int64_t rows = std::min(engine_.runner().max_rows(), n - at);
      const auto chunk = prompt_.subspan(static_cast<size_t>(at), static_cast<size_t>(rows));
      at += rows;
      model::Control control{.cancel = options_.cancel};
      if (options_.on_prefill) {
        control.on_layer = [&](int64_t layer) {
          options_.on_prefill(at - rows + rows * layer / engine_.model().config().n_layers, n);
        };
      }
      if (Status status = forward(chunk, at == n && wants_logits, rows > 1 ? &control : nullptr); !status) {
        if (status.error().code == ErrorCode::kCancelled) return stop(Stop::kCancelled), false;
        return std::move(status).error();
      }
      if (options_.on_prefill) options_.on_prefill(at, n);
    }
    if (limit_ == 0) stop(options_.max_tokens ? Stop::kTokenLimit : Stop::kContext);
    return true;
  }

  Status forward(std::span<const int32_t> tokens, bool wants_logits, const model::Control* control = nullptr) {
    STOKER_TRY(logits_, step(engine_, sequence_, tokens, wants_logits, control));
    if (options_.profiler) options_.profiler->pause();
    if (options_.trace) STOKER_TRY_STATUS(options_.trace->add(engine_.runner()));
    if (wants_logits && options_.digest) options_.digest->add(logits_, engine_.model().vocab_size());
    return Ok{};
  }

  /// Draws the next token and decides whether it is the last.
  void choose() {
    if (cancelled(options_)) return stop(Stop::kCancelled);
    const int32_t token = sampler_.sample(logits_, engine_.model().vocab_size(), sequence_.length());
    const text::Tokenizer* tokenizer = engine_.tokenizer();
    if (!options_.ignore_end && tokenizer && tokenizer->is_end(token)) return stop(Stop::kEndOfSequence);
    out_.tokens.push_back(token);
    if (tokenizer) flush(utf8_.push(tokenizer->token_bytes(token)));
    if (static_cast<int64_t>(out_.tokens.size()) == limit_)
      stop(options_.max_tokens ? Stop::kTokenLimit : Stop::kContext);
  }

  void save() {
    std::vector<int32_t> tokens(prompt_.begin(), prompt_.end());
    tokens.insert(tokens.end(), out_.tokens.begin(), out_.tokens.end());
    if (Status status = save_state(engine_, sequence_, tokens, *options_.save_to); !status)
      out_.not_saved = std::move(status).error();
  }

  void flush(std::string_view text) {
    if (text.empty()) return;
    out_.text += text;
    if (options_.on_text && !options_.on_text(text)) stop(Stop::kCancelled);
  }

  void stop(Stop why) {
    if (!done_) out_.stop = why;
    done_ = true;
  }

  Engine& engine_;
  std::span<const int32_t> prompt_;
  const GenerateOptions& options_;
  const int64_t limit_;  // Tokens to generate.
  model::Sequence sequence_;
  Sampler sampler_;
  text::Utf8Stream utf8_;
  const float* logits_ = nullptr;
  bool done_ = false;
  Generated out_;
};

}  // namespace

std::string_view stop_name(Stop stop) {
  switch (stop) {
    case Stop::kEndOfSequence:
      return "end_of_sequence";
    case Stop::kTokenLimit:
      return "token_limit";
    case Stop::kContext:
      return "context";
    case Stop::kCancelled:
      return "cancelled";
  }
  return "";
}

Result<int64_t> positions_for(const Engine& engine, std::span<const int32_t> prompt, const GenerateOptions& options) {
  const auto n = static_cast<int64_t>(prompt.size());
  const auto bad = [](std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; };
  STOKER_TRY_STATUS(engine.check_logits());
  if (n == 0) return bad("the prompt is empty: there is nothing to continue");
  if (options.context <= 0) return bad(str_cat("a context of ", options.context, " positions holds no prompt"));
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] < 0 || prompt[i] >= engine.model().vocab_size()) {
      return bad(
          str_cat("prompt token ", i, " is ", prompt[i], ", outside the vocabulary of ", engine.model().vocab_size()));
    }
  }
  if (options.from) {
    const std::vector<int32_t>& begin = options.from->tokens();
    if (begin.size() > prompt.size() || !std::equal(begin.begin(), begin.end(), prompt.begin()))
      return bad("the prompt does not begin with the tokens of the saved state");
  }
  if (n > options.context) return bad(str_cat("the prompt has ", n, " tokens, the context ", options.context));
  if (options.max_tokens && *options.max_tokens < 0)
    return bad(str_cat("-n is ", *options.max_tokens, ", wanted 0 or more"));
  if (options.max_tokens && *options.max_tokens > options.context - n) {
    return bad(str_cat("prompt (", n, " tokens) and answer (", *options.max_tokens, ") together exceed the context of ",
                       options.context, "; shorten them or raise --ctx"));
  }
  STOKER_TRY_STATUS(options.sampler.check());
  return options.max_tokens ? n + *options.max_tokens : options.context;
}

Result<Generated> generate(Engine& engine, std::span<const int32_t> prompt, const GenerateOptions& options) {
  STOKER_TRY(int64_t positions, positions_for(engine, prompt, options));
  static_cast<void>(positions);
  return Generation(engine, prompt, options).run();
}

}  // namespace stoker::engine
