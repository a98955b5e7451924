#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/digest.h"
#include "engine/engine.h"
#include "engine/profile.h"
#include "engine/sampler.h"
#include "engine/saved_state.h"
#include "engine/trace.h"

namespace stoker::engine {

enum class Stop { kEndOfSequence, kTokenLimit, kContext, kCancelled };
/// "end_of_sequence", "token_limit", "context", "cancelled".
std::string_view stop_name(Stop stop);

struct GenerateOptions {
  std::optional<int64_t> max_tokens{};  ///< Not given: up to the end of the context.
  int64_t context = 0;                  ///< Positions that prompt and answer may take together.
  SamplerOptions sampler{};
  bool ignore_end = false;   ///< Go on past end tokens, and keep them.
  Digest* digest = nullptr;  ///< Takes the logits of the last prompt row and of each token that is forwarded.
  const std::atomic<bool>* cancel =
      nullptr;  ///< Set by a signal handler or another thread: stop after the step in hand.
  /// Text as it comes: whole UTF-8 characters. Returns false to stop. May be empty.
  std::function<bool(std::string_view)> on_text{};
  /// Prompt rows read so far, of all; between calls of the prefill. May be empty.
  std::function<void(int64_t done, int64_t all)> on_prefill{};
  Profiler* profiler = nullptr;            ///< Takes the phases `prefill` and `decode`.
  const model::StateFile* from = nullptr;  ///< Its tokens are the prompt's first ones: what it has is not read again.
  /// Takes the state at the end, also of a cancelled run, for StateFile. Then what the prompt leaves to whoever goes
  /// on, its last token if nothing else, is not read where nothing is to be generated.
  OutputFile* save_to = nullptr;
  TraceWriter* trace = nullptr;  ///< Takes the routes of all calls (EngineOptions::keep_routes).
};

struct Generated {
  std::string text;
  std::vector<int32_t> tokens;  ///< Without the end token, unless ignore_end.
  int64_t prompt_tokens = 0;
  int64_t restored_tokens = 0;  ///< Of these, not read: their state was there.
  int64_t decode_tokens = 0;    ///< Tokens that were forwarded one by one.
  double prefill_seconds = 0;   ///< Up to the first token's choice.
  double decode_seconds = 0;
  Stop stop = Stop::kTokenLimit;
  std::optional<Error> not_saved{};  ///< Why the state was not, where it was to be: the answer is not lost for that.
};

/// Positions of key-value memory that the run will take: what Engine::load must reserve.
/// kInvalidArgument: an empty prompt, a token outside the vocabulary, a context of 0, or prompt and answer longer than
/// the context (with both numbers); a prompt that does not begin with the tokens of a state that it goes on from.
Result<int64_t> positions_for(const Engine& engine, std::span<const int32_t> prompt, const GenerateOptions& options);

/// Reads the prompt and answers. The one loop behind run, chat, server and bindings.
/// kCorrupt: a value that is not finite; names layer, step and position. Errors of StateFile::restore.
Result<Generated> generate(Engine& engine, std::span<const int32_t> prompt, const GenerateOptions& options);

}  // namespace stoker::engine
